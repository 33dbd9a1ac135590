"""A task is edited on its page as by ``lifefold edit``: in the fleet file and in the plan, once, or not at all."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fleet_log import folded
from fleet_sandbox import Sandbox
from web_desk import Served, served

NEW = "Write plain-2.txt\nwith <b>two</b> lines"


@pytest.fixture(name="sandbox")
def a_fleet_that_waits(tmp_path: Path) -> Sandbox:
    """A fleet without a runner: one task is closed, one waits for an approval, and one for that."""
    sandbox = Sandbox(tmp_path).prepare("plain-0", "plain-1", "plain-2")
    sandbox.demand("plain-1", 'approval = "merge"')
    sandbox.demand("plain-2", 'depends_on = ["plain-1"]', "budget = { sessions = 7 }")
    sandbox.call("run", str(sandbox.fleet), "--transitions", "--no-wait", code=4)
    return sandbox


@pytest.fixture(name="desk")
def its_desk(sandbox: Sandbox) -> Iterator[Served]:
    """The desk of its log."""
    with served([sandbox.log]) as desk:
        yield desk


def test_an_edit_is_in_the_file_and_in_the_plan_and_is_given_once(sandbox: Sandbox, desk: Served) -> None:
    """Of two operators with the same form, the second one is told to look again."""
    page = "/fleets/sandbox/tasks/plain-2"
    assert "budget in sessions, now 0 of 7 sessions" in desk.get(page, accept="text/html").text
    form = desk.json(f"{page}.json")["form"]
    expected = {"prompt": "Write plain-2.txt", "verify": ["test -s plain-2.txt"], "priority": 2, "max_retries": 3}
    assert {name: form[name] for name in expected} == expected
    edit = {"command": "edit", "name": "plain-2", "seen": form["seen"], "prompt": NEW, "priority": 1}
    edit |= {"verify": ["test -s plain-2.txt", "test -e plain-2.txt"], "max_retries": 5, "sessions": "9"}
    given = desk.give("sandbox", edit, key="mine")
    assert [each["words"] for each in given["lines"]] == [
        "plain-2: edited; change 1 is accepted, and in force; the next run acts on it"
    ]
    changed = [each.partition(":")[0] for each in given["notes"]]
    keys = ("prompt", "verify", "priority", "max_retries", "budget.sessions")
    assert sorted(changed) == sorted(f"tasks.plain-2.{key}" for key in keys)
    record = folded(sandbox.log).record("board", "task:plain-2")
    assert (record.prompt, record.priority, record.max_retries) == (NEW, 1, 5)
    assert record.verify == (("test", "-s", "plain-2.txt"), ("test", "-e", "plain-2.txt"))
    assert "nothing has changed" in sandbox.call("plan", str(sandbox.fleet)).stdout
    before = sandbox.fleet.read_text()
    again = desk.give("sandbox", edit, key="mine")
    assert again["is_repeated"]
    assert again["lines"] == given["lines"]
    assert sandbox.fleet.read_text() == before
    late = desk.give("sandbox", {"command": "edit", "name": "plain-2", "seen": form["seen"], "priority": 3}, status=409)
    assert late["refusal"] == "plain-2 was changed since this page showed it; look again"
    assert sandbox.fleet.read_text() == before
    desk.give("sandbox", {"command": "edit", "name": "plain-2", "priority": 3})  # a program that has seen no form
    text = desk.get(page, accept="text/html").text
    assert "<b>two" not in text
    assert "with &lt;b&gt;two&lt;/b&gt; lines</textarea>" in text


def test_an_edit_is_refused_as_on_the_command_line(
    sandbox: Sandbox, desk: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A closed task, one whose work is done, one that is so already, and a file with another change.

    A form is shown where an edit can have an effect: not for a closed task, not in the past, not in a fork, not without
    the file.
    """
    before = sandbox.fleet.read_text()
    monkeypatch.chdir(sandbox.folder)  # both name the same log, so both leave it out of the commands that they name
    for name, priority in (("plain-0", 1), ("plain-1", 1), ("plain-2", 2)):
        words = ("edit", name, "--priority", str(priority), "--yes")
        said = sandbox.call(*words, code=2).stdout
        given = desk.give("sandbox", {"command": "edit", "name": name, "priority": priority}, status=409)
        assert [each["words"] for each in given["lines"]] == [line for line in said.splitlines() if name in line]
        assert given["lines"][0]["words"].startswith(f"{name}: ")
    assert sandbox.fleet.read_text() == before
    nothings: tuple[dict[str, Any], ...] = (
        {},
        {"priority": None},
        {"verify": []},
        {"priority": "1"},
        {"max_retries": -1},
    )
    for nothing in nothings:
        desk.give("sandbox", {"command": "edit", "name": "plain-2", **nothing}, status=400)
    page = "/fleets/sandbox/tasks"
    assert desk.json(f"{page}/plain-0.json")["form"] is None
    assert desk.json(f"{page}/plain-2.json?at=9")["form"] is None
    (sandbox.folder / "fork.db").write_bytes(desk.get("/fleets/sandbox/fork").content)
    with served([sandbox.folder / "fork.db"]) as forked:
        assert forked.json("/fleets/fork/tasks/plain-2.json")["form"] is None
        refused = forked.give("fork", {"command": "edit", "name": "plain-2", "priority": 1}, status=409)
        assert "is the log of the fleet 'sandbox forked at" in refused["refusal"]
    assert sandbox.fleet.read_text() == before
    assert "<summary>edit plain-2" in desk.get(f"{page}/plain-2", accept="text/html").text
    sandbox.settle('prompt = "Write plain-2.txt"', 'prompt = "Write it"')
    given = desk.give("sandbox", {"command": "edit", "name": "plain-2", "priority": 1}, status=409)
    assert f"{sandbox.fleet} has other changes, which are not in force" in given["refusal"]
    sandbox.fleet.rename(sandbox.folder / "elsewhere.toml")
    assert desk.json(f"{page}/plain-2.json")["form"] is None


def test_no_page_shows_a_secret_that_a_prompt_has(sandbox: Sandbox, desk: Served) -> None:
    """The prompt can be written anew, and the other keys can be edited."""
    sandbox.demand("", 'redact = ["DOOR"]', 'env = { DOOR = "open-sesame-now" }')
    desk.give("sandbox", {"command": "edit", "name": "plain-2", "prompt": "Say open-sesame-now"})
    page = desk.json("/fleets/sandbox/tasks/plain-2.json")
    assert page["form"]["prompt"] == ""
    assert "sesame" not in desk.get("/fleets/sandbox/tasks/plain-2", accept="text/html").text
    desk.give("sandbox", {"command": "edit", "name": "plain-2", "seen": page["form"]["seen"], "priority": 1})
    assert folded(sandbox.log).record("board", "task:plain-2").prompt == "Say open-sesame-now"
