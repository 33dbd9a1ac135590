"""A changed fleet file on the pages: its difference is shown, accepted as it was seen, or refused with the reason."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet_log import folded
from fleet_sandbox import Sandbox
from lifefold.interpreters.cli.awaited import goes_on
from web_desk import Served, served

OLD, NEW = "Write plain-2.txt", "Write plain-2.txt <b>well</b>"


@pytest.fixture(name="sandbox")
def a_fleet_that_waits(tmp_path: Path) -> Sandbox:
    """A fleet without a runner: its first work waits for an approval, and its second task for the first."""
    sandbox = Sandbox(tmp_path).prepare("plain-1", "plain-2")
    sandbox.demand("plain-1", 'approval = "merge"').demand("plain-2", 'depends_on = ["plain-1"]')
    sandbox.call("run", str(sandbox.fleet), "--transitions", "--no-wait", code=4)
    return sandbox


@pytest.fixture(name="desk")
def its_desk(sandbox: Sandbox) -> Iterator[Served]:
    """The desk of its log."""
    with served([sandbox.log]) as desk:
        yield desk


def test_a_changed_fleet_file_is_shown_and_accepted(sandbox: Sandbox, desk: Served) -> None:
    """The next run finds nothing to accept."""
    assert desk.json("/fleets/sandbox.json")["change"] is None
    sandbox.settle(OLD, NEW)
    shown = sandbox.call("plan", str(sandbox.fleet)).stdout
    (fleet,) = desk.json("/index.json")["fleets"]
    change = fleet["change"]
    assert change["source"] == str(sandbox.fleet)
    assert [f"  {each}" for each in change["lines"]] == shown.splitlines()[1 : 1 + len(change["lines"])]
    assert change["lines"][0].startswith("tasks.plain-2.prompt: was ")
    for path in ("/", "/fleets/sandbox"):
        text = desk.get(path, accept="text/html").text
        assert "The fleet file was changed (change 1)" in text
        assert "&lt;b&gt;well&lt;/b&gt;" in text
        assert "<b>well" not in text
    (accept,) = change["actions"]
    given = desk.give("sandbox", accept["command"])
    assert given["lines"][0]["words"].startswith("change 1: accepted, and in force")
    assert "nothing has changed" in sandbox.call("plan", str(sandbox.fleet)).stdout
    assert folded(sandbox.log).record("board", "task:plain-2").prompt == NEW


def test_only_the_difference_that_was_seen_is_accepted(sandbox: Sandbox, desk: Served) -> None:
    sandbox.settle(OLD, NEW)
    (accept,) = desk.json("/fleets/sandbox.json")["change"]["actions"]
    sandbox.settle(NEW, "Write nothing")
    given = desk.give("sandbox", accept["command"], status=409)
    assert given["refusal"] == f"{sandbox.fleet} or its fleet was changed since this difference was shown; look again"
    assert folded(sandbox.log).record("board", "task:plain-2").prompt == OLD


def test_a_change_that_is_not_possible_is_shown_with_its_obstacles(sandbox: Sandbox, desk: Served) -> None:
    sandbox.settle(OLD, NEW).settle('approval = "merge"', 'approval = "none"')
    change = desk.json("/fleets/sandbox.json")["change"]
    assert change["actions"] == []
    assert any("tasks.plain-1" in each for each in change["obstacles"])
    given = desk.give("sandbox", {"command": "accept-plan", "seen": "x"}, status=409)
    assert "was changed since" in given["refusal"]
    assert "It is refused as a whole" in desk.get("/", accept="text/html").text


def test_a_fleet_file_that_cannot_be_read_is_told_and_accepts_nothing(sandbox: Sandbox, desk: Served) -> None:
    """A mistake in the file is shown with its line. A file that is gone is told to the one who accepts."""
    sandbox.settle(OLD, '"')
    change = desk.json("/fleets/sandbox.json")["change"]
    assert change["problem"]
    assert change["actions"] == []
    assert "The fleet file cannot be read" in desk.get("/", accept="text/html").text
    sandbox.fleet.unlink()
    assert desk.json("/fleets/sandbox.json")["change"] is None
    given = desk.give("sandbox", {"command": "accept-plan", "seen": "x"}, status=409)
    assert str(sandbox.fleet) in given["refusal"]


def test_the_past_and_a_fork_have_no_change_to_accept(sandbox: Sandbox, desk: Served, tmp_path: Path) -> None:
    """A fork is the log of another fleet, so its fleet file is not its own."""
    sandbox.settle(OLD, NEW)
    newest = desk.json("/fleets/sandbox.json")["at"]["seq"]
    assert desk.json(f"/fleets/sandbox.json?at={newest - 1}")["change"] is None
    path = tmp_path / "fork.db"
    path.write_bytes(desk.get(f"/fleets/sandbox/fork?at={newest}").content)
    with served([path]) as other:
        assert other.json("/fleets/fork.json")["change"] is None
        given = other.give("fork", {"command": "accept-plan", "seen": "x"}, status=409)
        assert "is the log of the fleet" in given["refusal"]
    assert goes_on(folded(path).aggregates)
