"""The pages speak as the terminal does, offer each command once, and offer it where its reasons are."""

import re
from pathlib import Path
from typing import Any

import pytest

from fleet_log import FleetLog, folded
from lifefold.core.fleet import AgentPlan, TaskPlan
from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.worker import assignment, stall_detector
from lifefold.core.fleet.worker.stall_detector import Limits
from lifefold.core.kernel import EntityQuarantined
from lifefold.core.lifecycles import session, task
from lifefold.interpreters.cli.app import main
from lifefold.interpreters.store import SqliteStore
from lifefold.interpreters.web import fleet_pages
from web_desk import served

TASKS = (
    TaskPlan("one", "do it", max_retries=0),
    TaskPlan("two", "do it", depends_on=("one",)),
    TaskPlan("three", "do it", needs_approval=True),
)


@pytest.fixture(name="stuck")
def a_fleet_that_is_stuck(tmp_path: Path) -> Path:
    """One task has failed, one is blocked by it, and the work of one waits for its approval."""
    log = FleetLog(tmp_path / "fleet.db", *TASKS)
    log.failed("one").claimed("three")
    epoch = log.task("three").epoch
    log.happens("board", "task:three", task.Completed(epoch), fleet_task.Parked(epoch, "0" * 40))
    return log.path


def test_the_sum_of_a_fleet_has_the_words_of_the_terminal(stuck: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["status", "--db", str(stuck)])
    (headline, *_) = capsys.readouterr().out.splitlines()
    with served([stuck]) as desk:
        (fleet,) = desk.json("/index.json")["fleets"]
        assert fleet["words"] == "1 failed, 1 waiting for approval, 1 blocked"
        assert headline.endswith(f"0 of 3 tasks closed, {fleet['words']}")
        text = desk.get("/", accept="text/html").text
        assert f"0 of 3 tasks closed, {fleet['words']}" in text
        columns = desk.json("/fleets/fleet/board.json")["columns"]
        assert [each["words"] for each in columns] == ["waiting for approval", "failed", "blocked"]


def test_what_waits_is_told_without_the_command_that_a_button_gives(stuck: Path) -> None:
    with served([stuck]) as desk:
        (wait,) = desk.json("/fleets/fleet.json")["waits"]
        assert wait["said"] == "three is done and waits for your approval"
        assert wait["sentence"].startswith(f"{wait['said']}: lifefold approve three")
        shown = re.sub(r'title="[^"]*"', "", desk.get("/", accept="text/html").text)
        assert wait["said"] in shown
        assert "lifefold approve three" not in shown


def test_a_failed_task_says_why_and_is_retried_where_it_is_seen(stuck: Path) -> None:
    with served([stuck]) as desk:
        text = desk.get("/", accept="text/html").text
        assert "tests fail (after 1 attempt)" in text
        assert "blocked</b> by one (failed): tests fail" in text
        first, second = desk.json("/fleets/fleet.json")["failed"]
        assert ([each["label"] for each in first["actions"]], second["actions"]) == (["Retry"], [])
        desk.give("fleet", first["actions"][0]["command"])
    assert folded(stuck).record("board", "task:one").state == "OPEN"


def test_a_task_that_has_failed_for_good_comes_before_retries_and_before_what_it_blocks(tmp_path: Path) -> None:
    """The order is that of the terminal, and not that of the plan: the list is cut at its end."""
    plan = (
        TaskPlan("early", "do it", depends_on=("late",)),
        TaskPlan("again", "do it", max_retries=3),
        TaskPlan("late", "do it", max_retries=0),
    )
    with served([FleetLog(tmp_path / "fleet.db", *plan).failed("again").failed("late").path]) as desk:
        found = desk.json("/fleets/fleet.json")["failed"]
    assert [(each["status"]["id"], each["words"]) for each in found] == [
        ("late", "failed"), ("early", "blocked"), ("again", "to be retried")
    ]  # fmt: skip


def test_the_past_names_no_command_and_an_attempt_ends_in_words(stuck: Path) -> None:
    """Nothing can be changed there, so a command would lead nowhere."""
    with served([stuck]) as desk:
        at = desk.json("/fleets/fleet.json")["at"]["seq"]
        desk.give("fleet", {"command": "pause", "names": ["ann"]})
        text = desk.get(f"/fleets/fleet?at={at}", accept="text/html").text
        assert "waits for your approval" in text
        assert "lifefold approve" not in text
        (claim,) = desk.json("/fleets/fleet/tasks/three.json")["claims"]
        assert claim["ended"] == "waiting for approval"


def test_work_is_approved_and_rejected_beside_its_difference(stuck: Path) -> None:
    with served([stuck]) as desk:
        (wait,) = desk.json("/fleets/fleet/tasks/three/diff.json")["waits"]
        assert [each["label"] for each in wait["actions"]] == ["Approve", "Reject"]
        assert desk.json("/fleets/fleet/tasks/one/diff.json")["waits"] == []


@pytest.mark.parametrize("name", ["one", "two", "three"])
def test_the_page_of_a_task_offers_each_command_once(stuck: Path, name: str) -> None:
    with served([stuck]) as desk:
        page: Any = desk.json(f"/fleets/fleet/tasks/{name}.json")
    offered = [each for wait in page["waits"] for each in wait["actions"]] + page["actions"]
    keys = [str((each["command"], each["asks"])) for each in offered]
    assert keys
    assert len(keys) == len(set(keys))


def test_a_page_that_is_broken_tells_so_and_leads_to_the_others(stuck: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error itself is for the terminal of the desk, and no page has its text."""
    with served([stuck]) as desk:

        def broken(_there: object) -> None:
            raise KeyError("hidden words")

        monkeypatch.setattr(fleet_pages, "balances", broken)
        assert desk.get("/fleets/fleet/board", accept="text/html").status_code == 200
        answer = desk.get("/fleets/fleet", accept="text/html")
        assert answer.status_code == 500
        assert "a mistake of lifefold has broken this page (KeyError)" in answer.text
        assert "hidden words" not in answer.text
        assert 'href="/fleets/fleet"' in answer.text


def test_a_quarantine_is_ended_where_it_is_told(tmp_path: Path) -> None:
    log = FleetLog(tmp_path / "fleet.db", *TASKS).happens("worker/ann", "session", EntityQuarantined("a bug"))
    with served([log.path]) as desk:
        (fleet,) = desk.json("/index.json")["fleets"]
        assert fleet["troubles"][0].startswith("ann: its session is quarantined: a bug")
        text = desk.get("/", accept="text/html").text
        assert '<a href="/fleets/fleet/agents/ann">ann</a>: its session is quarantined: a bug' in text
        (release,) = fleet["releases"]
        assert release["label"] == "Release ann"
        given = desk.give("fleet", release["command"])
        assert given["lines"][0]["words"].startswith("ann: is released, and continues in its state")
        assert desk.json("/fleets/fleet.json")["releases"] == []
        assert desk.json("/fleets/fleet.json?at=3")["releases"] == []


def test_a_stuck_agent_is_named_and_looks_so_while_a_runner_is_at_work(tmp_path: Path) -> None:
    """Its mark and the line about it change at the same entry, as in the terminal."""
    log = FleetLog(tmp_path / "fleet.db", *TASKS, agents=(AgentPlan("ann", stall=Limits(60_000, None, 120_000)),))
    log.reported("worker/ann", "session", session.WorktreeReady()).claimed("one")
    log.happens("worker/ann", "assignment", assignment.Assigned(task.Brief("one", 1, "do it")))
    log.reported("worker/ann", "assignment", assignment.CheckedOut())
    log.reported("worker/ann", "session", session.SessionStarted(0))
    with SqliteStore.open(log.path), served([log.path]) as desk:
        before = desk.json("/fleets/fleet.json")
        assert before["agents"][0]["looks"]["state"] == "RUNNING"
        assert before["troubles"] == []
    log.later(61_000).reported("worker/ann", stall_detector.REF, stall_detector.Silent(61_000))
    with SqliteStore.open(log.path), served([log.path]) as desk:
        (fleet,) = desk.json("/index.json")["fleets"]
        assert fleet["troubles"][0].startswith("ann is stuck: its session at one has shown no progress for ")
        (ann,) = fleet["agents"]
        assert (ann["looks"]["state"], ann["looks"]["indicator"]) == ("STALLED", "◐")
        page = desk.get("/", accept="text/html").text
        assert '<span class="mark dark-orange" title="STALLED">◐</span>' in page
        believed = desk.get("/fleets/fleet/agents/ann", accept="text/html").text.partition("Believed by the log")[2]
        assert ", for " not in believed.partition("</dd>")[0]  # a silence has its own length
