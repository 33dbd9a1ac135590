"""The pages: what they show now and in the past, as HTML and as JSON, with everything escaped."""

import json
import re
import runpy
import time
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest

from asking_log import LEAVE, WORDS, at_work
from benchmarks import desk_pages
from fleet_log import FleetLog
from lifefold.core.fleet import TaskPlan
from lifefold.core.fleet.worker import mailbox
from lifefold.core.fleet.worker.question import REF, QuestionAsked
from lifefold.core.kernel import replace
from lifefold.interpreters.cli.app import main
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.web.pages import PAGES
from web_desk import Served, served
from web_logs import run_of, written

ENTRIES = run_of(2, 4).entries
HALF = len(ENTRIES) // 2
EVIL = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31m"


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The desk of a whole log, and of its first half."""
    folder = tmp_path_factory.mktemp("both")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        logs = [written(folder / "whole.db", ENTRIES), written(folder / "half.db", ENTRIES[:HALF])]
        with served(logs) as desk:
            yield desk


def without_outside(page: Any) -> Any:
    """Return a page without what the present alone has: the time, the runner, processes, files, commands."""
    outside = {"at", "believed", "evident", "looks", "process", "is_missing", "next", "actions", "doubts", "evidence"}
    outside |= {"verifications", "sessions", "session", "prompt", "printed", "is_cut", "troubles", "to_ms", "is_over"}
    outside |= {"onward", "sentence", "said", "command"}  # they count the time that is left
    match page:
        case dict():
            table = cast("dict[str, Any]", page)
            return {name: without_outside(value) for name, value in table.items() if name not in outside}
        case list():
            return [without_outside(each) for each in cast("Iterable[Any]", page)]
        case _:
            return page


@pytest.mark.parametrize("path", ["", "/board", "/agents/agent-1", "/tasks/task-2", "/log"])
def test_a_page_of_the_past_is_the_page_of_a_log_that_ends_there(both: Served, path: str) -> None:
    names = both.json("/fleets/half.json")
    agent = names["agents"][0]["status"]["name"]
    task = both.json("/fleets/half/board.json")["columns"][0]["tasks"][0]["status"]["id"]
    path = path.replace("agent-1", agent).replace("task-2", task)
    past, half = both.json(f"/fleets/whole{path}.json?at={HALF}"), both.json(f"/fleets/half{path}.json")
    assert without_outside(past) == without_outside(half)
    assert past["at"]["seq"] == half["at"]["seq"] == HALF
    assert (past["at"]["is_now"], half["at"]["is_now"]) == (False, True)
    assert past["at"]["runner"] == "unknown"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
def test_each_page_is_html_for_browsers_and_json_for_programs(desk: Served, page: Any) -> None:
    name = "T1" if "tasks" in page.path else "session" if "machines" in page.path else "ann"
    path = page.path.format(key="fleet", name="lost" if "reports" in page.path else name)
    html, as_json = desk.get(path, accept="text/html"), desk.get(path, accept="application/json")
    by_name = desk.get(("/index" if path == "/" else path) + ".json")
    assert html.status_code == as_json.status_code == by_name.status_code == 200
    assert html.headers["content-type"].startswith("text/html")
    assert "<main" in html.text
    assert 'lang="en"' in html.text
    assert as_json.json().keys() == by_name.json().keys()


def test_what_waits_comes_first_with_its_commands(desk: Served) -> None:
    (fleet,) = desk.json("/index.json")["fleets"]
    first, second = fleet["waits"]
    assert first["sentence"].startswith("ann asks: may it run `rm -rf build`? ")
    assert [each["command"]["command"] for each in first["actions"]] == ["approve", "reject"]
    assert [each["command"]["command"] for each in second["actions"]] == ["answer", "reject"]
    text = desk.get("/").text
    assert text.index("Waits for you") < text.index("no runner is at work") < text.index("<caption>Agents")


def test_the_page_of_a_task_says_what_why_says(desk: Served, log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = desk.json("/fleets/fleet/tasks/T1.json")
    main(["why", "T1", "--json", "--db", str(log)])
    said = json.loads(capsys.readouterr().out)
    assert {name: said[name] for name in ("state", "owner", "causes", "story", "options")} == {
        name: page["why"][name] for name in ("state", "owner", "causes", "story", "options")
    }
    assert [each["command"]["command"] for each in page["actions"]].count("cancel") == 1


def test_asked_believed_and_evident_stand_side_by_side(desk: Served) -> None:
    page = desk.json("/fleets/fleet/agents/ann.json")
    agent = page["agent"]
    assert (agent["asked"], agent["believed"]) == ("Run", "running? no process")
    assert agent["evident"] == "no process was found"
    assert {"session": "Running", "assignment": "Working"}.items() <= {
        each["machine"]: each["state"] for each in page["marks"]
    }.items()
    assert '<g class="box lit" data-key="Running">' in desk.get("/fleets/fleet/agents/ann").text


@pytest.mark.parametrize("path", ["/fleets/fleet", "/fleets/fleet/agents/ann"])
def test_an_agent_has_the_mark_of_its_visual_state_with_its_colour(desk: Served, path: str) -> None:
    """The mark is that of document 004, as in ``status``: the work of this agent waits for a runner."""
    looks = desk.json("/fleets/fleet/agents/ann.json")["agent"]["looks"]
    assert (looks["state"], looks["indicator"], looks["colour"]) == ("IDLE", "□", "gray")
    shown = re.findall(r'<span class="mark ([^"]*)" title="([^"]*)">(.)</span>', desk.get(path).text)
    assert (looks["colour"], looks["state"], looks["indicator"]) in shown


def test_a_log_page_is_chosen_and_older_pages_follow(both: Served) -> None:
    seen: list[Any] = []
    before = 0
    while True:
        page = both.json(f"/fleets/whole/log.json?machine=session&before={before}")
        seen += page["lines"]
        before = page["before"]
        if not before:
            break
    lines = [json.loads(line) for line in both.get("/fleets/whole/log.ndjson?machine=session").text.splitlines()]
    assert lines
    assert seen == lines[::-1]
    assert {each["machine"] for each in lines} == {"session"}
    assert both.json("/fleets/whole/log.json?text=nowhere")["lines"] == []


def test_a_timeline_has_a_lane_for_each_agent_and_each_task(both: Served) -> None:
    page = both.json("/fleets/whole/timeline.json")
    board = both.json("/fleets/whole/board.json")
    tasks = {task["status"]["id"] for column in board["columns"] for task in column["tasks"]}
    assert {lane["name"] for lane in page["lanes"] if lane["kind"] == "task"} == tasks
    for lane in page["lanes"]:
        ends = [page["from_ms"]] + [number for span in lane["spans"] for number in (span["from_ms"], span["to_ms"])]
        assert ends == sorted(ends)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/fleets/fleet?at=0", 404),
        ("/fleets/fleet?at=999999", 404),
        ("/fleets/fleet?at=-1", 400),
        ("/fleets/fleet?at=1e3", 400),
        ("/fleets/fleet?at=99999999999999999999999", 400),
        ("/fleets/other", 404),
        ("/fleets/fleet/agents/bob", 404),
        ("/fleets/fleet/tasks/T9", 404),
        ("/machines/engine", 404),
        ("/nothing", 404),
        ("/events?after=x", 400),
    ],
)
def test_a_request_that_cannot_be_answered_says_why(desk: Served, path: str, status: int) -> None:
    answer = desk.get(path, accept="application/json")
    assert answer.status_code == status
    assert answer.json()["error"]
    assert desk.get(path, accept="text/html").status_code == status


def test_texts_of_agents_and_operators_are_never_code(tmp_path: Path) -> None:
    """Prompts, questions, reasons, messages, outputs, names of files: all are shown, and none is a tag."""
    log = at_work(tmp_path / "fleet.db", replace(WORDS, text=EVIL, choices=(EVIL,)), replace(LEAVE, subject=EVIL))
    log.happens("worker/ann", "mailbox", mailbox.OperatorMessageArrived(EVIL, urgent=False))
    log.happens("worker/ann", REF, QuestionAsked("T1", 1, id="c", text=EVIL))
    folder = FleetFolder(log.path)
    start = folder.session("ann", 1) / "start-1"
    start.mkdir(parents=True)
    (start / "output.log").write_text(EVIL)
    folder.prompt("ann", 1).write_text(EVIL)
    place = folder.verification("T1", 1) / "1"
    place.mkdir(parents=True)
    (place / "output.log").write_text(EVIL)
    with served([log.path]) as desk:
        paths = [
            "",
            "/agents/ann",
            "/tasks/T1",
            "/tasks/T1/diff",
            "/board",
            "/log",
            "/timeline",
            f"/log?text={EVIL[:9]}",
        ]
        texts = [desk.client.get(f"/fleets/fleet{path}").text for path in paths]
        texts.append(desk.client.get("/fleets/<script>alert(4)</script>").text)
    for text in texts:
        assert "<script>" not in text
        assert "<img" not in text
        assert "\x1b" not in text
    assert "&lt;script&gt;alert(1)" in texts[1]
    assert "&lt;script&gt;alert(1)" in texts[2]


def test_a_secret_is_on_no_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in an output, nor in a prompt, nor in a verification."""
    monkeypatch.setenv("SHOP_API_KEY", "sk-very-hidden-words")
    log = at_work(tmp_path / "fleet.db")
    folder = FleetFolder(log.path)
    start, place = folder.session("ann", 1) / "start-1", folder.verification("T1", 1) / "1"
    for each in (start, place):
        each.mkdir(parents=True)
        (each / "output.log").write_text("it said sk-very-hidden-words\n")
    folder.prompt("ann", 1).write_text("use sk-very-hidden-words")
    with served([log.path]) as desk:
        texts = [desk.get(f"/fleets/fleet{path}").text for path in ("/agents/ann", "/tasks/T1", "/tasks/T1/diff")]
    assert all("sk-very-hidden-words" not in text for text in texts)
    assert all("[redacted SHOP_API_KEY]" in text for text in texts)


def test_a_file_that_is_no_plain_file_is_not_read(tmp_path: Path) -> None:
    """An agent can put a link in the place of its output."""
    log = at_work(tmp_path / "fleet.db")
    secret = tmp_path / "secret"
    secret.write_text("hidden words")
    folder = FleetFolder(log.path)
    start = folder.session("ann", 1) / "start-1"
    start.mkdir(parents=True)
    (start / "output.log").symlink_to(secret)
    folder.prompt("ann", 1).symlink_to(secret)
    place = folder.verification("T1", 1) / "1"
    place.mkdir(parents=True)
    (place / "output.log").symlink_to(secret)
    with served([log.path]) as desk:
        for path in ("/agents/ann", "/tasks/T1", "/tasks/T1/diff"):
            assert "hidden words" not in desk.get(f"/fleets/fleet{path}").text


def test_pages_of_a_large_log_are_made_in_time(tmp_path: Path) -> None:
    """``python -m benchmarks desk`` measures them; this bound only finds a page that folds the whole log."""
    log = written(tmp_path / "large.db", desk_pages.entries(10, 100, 8_000))
    with served([log]) as desk:
        newest = desk.json("/fleets/large.json")["at"]["seq"]
        assert newest > 7_000
        paths = ("", "/board", "/tasks/T0099", "/log?text=nowhere", "/timeline", f"?at={newest // 2 + 1}")
        for path in paths:
            began = time.monotonic()
            assert desk.get(f"/fleets/large{path}").status_code == 200
            assert time.monotonic() - began < 20, path


def test_the_pictures_are_those_of_the_machines_as_they_are() -> None:
    """``make pages`` draws them anew."""
    root = Path(__file__).parents[3]
    drawn = runpy.run_path(str(root / "docs" / "draw_machines.py"))["pictures"]()
    folder = root / "interpreters" / "web" / "pictures"
    assert {file.name: file.read_text() for file in folder.glob("*.svg")} == drawn


def test_several_fleets_are_on_one_page_and_have_names_of_their_own(tmp_path: Path) -> None:
    logs: list[Path] = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        logs.append(FleetLog(tmp_path / name / "fleet.db", TaskPlan("one", "do it")).path)
    with served(logs) as desk:
        fleets = desk.json("/index.json")["fleets"]
        first, second = (each["at"]["key"] for each in fleets)
        assert re.fullmatch("fleet-[0-9a-f]{6}", first)
        assert first != second
        assert [each["at"]["log"] for each in fleets] == list(map(str, logs))
        desk.give(second, {"command": "cancel", "names": ["one"]})
        assert desk.json(f"/fleets/{first}/tasks/one.json")["task"]["status"]["state"] == "OPEN"
    with served(logs[::-1]) as desk:
        assert {each["at"]["key"]: each["at"]["log"] for each in desk.json("/index.json")["fleets"]} == {
            first: str(logs[0]),
            second: str(logs[1]),
        }


def test_an_agent_without_a_task_is_idle_in_its_lane_and_in_the_past(both: Served) -> None:
    """It has a prepared session meanwhile, which is a state of the machine and says nothing to an operator."""
    page = both.json("/fleets/whole/timeline.json")
    for lane in [each for each in page["lanes"] if each["kind"] == "agent"]:
        states = [span["state"] for span in lane["spans"]]
        assert "Idle" in states
        assert "Running" in states
        times = [(span["from_ms"], span["to_ms"]) for span in lane["spans"]]
        assert all(before[1] == after[0] for before, after in pairwise(times))
        for span in lane["spans"]:
            if span["state"] == "Idle":
                past = both.json(f"/fleets/whole/agents/{lane['name']}.json?at={span['seq']}")
                assert past["agent"]["status"]["task"] == ""
                assert past["agent"]["believed"] == "idle"
    assert "idle" in both.get("/fleets/whole/timeline").text
