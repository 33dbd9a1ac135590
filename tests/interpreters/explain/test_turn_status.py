"""The turn of an agent as operators see it, in words and in the explanation of its task."""

import pytest
from msgspec.structs import replace

from aggregate_hand import Hand
from fleet_worker import BRIEF, exit_with, following, next_task, running, start
from lifefold.core.fleet.worker import assignment, output
from lifefold.core.fleet.worker.output import Doing, PermissionDenied, PermissionWanted, Seen, Work, WorkSeen
from lifefold.core.lifecycles import session
from lifefold.core.policy.ends import TIMED_OUT
from lifefold.effects import FollowOutput
from lifefold.interpreters.explain.status import agent_status
from lifefold.interpreters.explain.turn_status import TurnStatus, turn_status
from lifefold.interpreters.explain.why import Story, tell
from lifefold.interpreters.fleet_runner.agent_looks import looks, marked, style
from lifefold.interpreters.fleet_runner.process_evidence import Evidence

NOW_MS = 1_000_000


def at_work(*facts: Seen) -> Hand:
    """Return a worker whose output has told these facts."""
    of = start(next_task(following()))
    for fact in facts:
        of.report(output.REF, FollowOutput.__name__, fact)
    return of


def turn(of: Hand) -> TurnStatus:
    """Return the turn of a worker."""
    found = turn_status(of.aggregate)
    assert found is not None
    return found


def test_an_agent_without_a_claim_has_no_turn() -> None:
    """Nor has an agent whose sessions are not followed."""
    assert turn_status(following().aggregate) is None
    assert turn_status(running().aggregate) is None


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ((), "working"),
        ((WorkSeen(1, (Doing(Work.TOOL, "Bash"), Doing(Work.TOOL, "Bash"), Doing(Work.TOOL, "Edit")), 3),),
         "using Bash, Edit"),
        ((WorkSeen(1, (Doing(Work.COMPACTION),), 0, 1),), "compacting its context"),
        ((PermissionWanted(1, "1", "Bash"),), "working, asks for Bash"),
    ],
)  # fmt: skip
def test_a_turn_is_told_with_what_its_session_does(facts: tuple[Seen, ...], words: str) -> None:
    """In a few words for a table."""
    assert turn(at_work(*facts)).in_words() == words


def test_a_failed_turn_has_its_reasons_and_no_phase() -> None:
    """The words are those of document 004."""
    of = exit_with(at_work(WorkSeen(1, (), 2)), session.Error("killed", TIMED_OUT))
    failed = turn(of)
    assert (failed.state, failed.ended(), failed.tools) == ("FAILED", "retry, timeout", 2)
    reaped = turn(of.confirm(output.REF, FollowOutput.__name__))
    assert (reaped.state, reaped.in_words(), reaped.reason) == ("REAPED", "", "killed")


def test_a_refused_tool_is_a_line_of_the_story_of_its_task() -> None:
    """So is a tool that the agent asks leave for."""
    of, story = following(), Story("T1")
    steps = [
        of.hear("board", "assignment", assignment.Assigned(BRIEF)),
    ]
    story = _told(story, steps[0])
    of.report("assignment", "CheckOutWork", assignment.CheckedOut())
    start(of)
    of.report(output.REF, FollowOutput.__name__, PermissionWanted(1, "1", "Bash", "rm -rf build"))
    story = _told(story, of)
    of.report(output.REF, FollowOutput.__name__, PermissionDenied(2, "1", "Bash", "not allowed"))
    story = _told(story, of)
    assert [line.said for line in story.lines] == [
        "asked for leave to use Bash: rm -rf build",
        "was refused the tool Bash: not allowed",
    ]


def _told(story: Story, of: Hand) -> Story:
    for transition in of.reaction.transitions:
        story = tell(story, of.aggregate.name, transition)
    return story


@pytest.mark.parametrize(("runs", "indicator"), [(True, "◐"), (False, "●")])
def test_an_agent_that_is_stuck_looks_so_before_the_threshold_of_the_document(*, runs: bool, indicator: str) -> None:
    """The stall detector has warned after a silence of one minute; only a runner keeps its warning true."""
    stuck = replace(agent_status(at_work().aggregate), silent_since_ms=NOW_MS - 60_000)
    seen = looks(stuck, Evidence(9, alive=True, observed_ms=NOW_MS, silent_ms=60_000), NOW_MS, runs=runs)
    assert seen is not None
    assert (seen.indicator, seen.stalled) == (indicator, runs)


def test_the_looks_of_an_agent_come_from_the_log_and_its_process() -> None:
    """A silent session is shown as stalled, and one without work as idle."""
    agent = agent_status(at_work().aggregate)
    moving, silent = (Evidence(9, alive=True, observed_ms=NOW_MS, silent_ms=each) for each in (1_000, 300_001))
    running_ = looks(agent, moving, NOW_MS, runs=True)
    stalled = looks(agent, silent, NOW_MS, runs=True)
    left = looks(agent, Evidence(9, alive=False, observed_ms=NOW_MS), NOW_MS, runs=False)
    assert running_ is not None
    assert stalled is not None
    assert left is not None
    assert [(each.indicator, style(each)) for each in (running_, stalled, left)] == [
        ("●", "green"), ("◐", "dark_orange"), ("□", "bright_black")
    ]  # fmt: skip
    assert marked(running_, "Running") == "● Running"
    assert marked(None, "running") == "running"
