"""A session that says it is done and has changed nothing: looked at, told to the board, and never silently closed."""

from typing import Any, Final

import pytest

from aggregate_hand import Hand
from board_hand import ask, finish, make, opened, say, states
from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.worker import assignment, desired_state, mailbox, nothing_done
from lifefold.core.kernel import replace
from lifefold.core.lifecycles import session, session_profiles, task
from lifefold.core.lifecycles.task import OnNothing
from lifefold.effects import InspectWork, Tell, VerifyWork
from lifefold.interpreters.explain import task_status

PROVEN: Final = (("make", "check"),)


def finished(*, guarded: bool = True, **brief: Any) -> Hand:
    """Return a worker whose session has said that the work is done."""
    of = Hand(
        "worker/ann",
        {
            "desired_state": desired_state.DesiredState(),
            "mailbox": mailbox.Mailbox(),
            "assignment": assignment.Assignment(guarded=guarded),
            "session": session_profiles.SupervisedSession(name="ann"),
        },
    ).report("session", "PrepareWorktree", session.WorktreeReady())
    of.hear("board", "assignment", assignment.Assigned(replace(task.Brief("T1", 1), **brief)))
    of.report("assignment", "CheckOutWork", assignment.CheckedOut())
    of.report("session", "RunSession", session.SessionStarted(0))
    return of.report("session", "RunSession", session.SessionExited(session.Success()))


def inspected(of: Hand, *hidden: str, differs: bool = False) -> Hand:
    """Let it be found out whether anything was changed."""
    return of.report("assignment", "InspectWork", assignment.Inspected(differs, hidden))


def told(of: Hand) -> list[Any]:
    """Return what the last reaction tells the board of the task."""
    return [each.event for each in of.effects(Tell) if isinstance(each, Tell) and each.entity.startswith("task:")]


LOOKED_AT: Final[dict[str, tuple[dict[str, Any], bool]]] = {
    "nothing proves it": ({}, True),
    "commands prove it": ({"verify": PROVEN}, False),
    "it is meant to change nothing": ({"on_nothing": OnNothing.CLOSE}, False),
    "changes of a plain folder are unknown": ({"guarded": False}, False),
}


@pytest.mark.parametrize("name", LOOKED_AT)
def test_only_work_that_nothing_else_proves_is_looked_at(name: str) -> None:
    """Before that, or instead, the commands are run; none is a proof of nothing."""
    fields, looks = LOOKED_AT[name]
    of = finished(**fields)
    begun = of.part("assignment", "InspectWork" if looks else "VerifyWork").activity
    assert isinstance(begun, InspectWork if looks else VerifyWork)


def test_a_session_that_has_changed_nothing_has_not_done_its_task() -> None:
    """The board hears an outcome of its own, with what is ignored, and the agent goes on with other work."""
    of = inspected(finished(), "build/", "out.txt")
    assert told(of) == [
        fleet_task.NothingDone(1, "nothing was changed; git ignores what is there besides: build/, out.txt"),
    ]
    assert of.state("assignment") == "Wanting"


def test_of_many_ignored_files_some_are_named() -> None:
    """A worktree may hold thousands."""
    assert nothing_done.reason_of(()) == "nothing was changed"
    assert nothing_done.reason_of(tuple("abcde")).endswith("besides: a, b, c, d, e")
    assert nothing_done.reason_of(tuple("abcdef")).endswith("besides: a, b, c, d, e and more")


def test_the_agents_last_words_are_told_if_they_name_a_known_trouble() -> None:
    """A program that is limited may exit with 0; other words of an agent explain nothing."""
    assert nothing_done.reason_of((), "rate limit exceeded") == (
        "nothing was changed; the agent's last words: rate limit exceeded"
    )
    assert nothing_done.reason_of((), "I have looked at it") == "nothing was changed"


def test_a_session_that_has_changed_something_goes_its_way() -> None:
    """It is verified, by no command, and merged."""
    of = inspected(finished(), differs=True)
    assert of.state("assignment") == "Verifying"
    assert told(of) == []


def test_commands_that_the_plan_gets_while_it_is_looked_at_decide() -> None:
    """A changed plan may say meanwhile what proves the work."""
    of = finished()
    of.hear("board", "assignment", assignment.Rebriefed("T1", 1, PROVEN))
    assert inspected(of).state("assignment") == "Verifying"


def test_a_task_for_which_nothing_was_done_is_tried_again_and_fails_in_the_end() -> None:
    """As after any failure; it was said to be done before, so the board has it as DONE."""
    of = finish(ask(opened(make("T1", max_retries=1), worker_slots=("ann",))), "T1")
    say(of, "T1", fleet_task.NothingDone, reason="nothing was changed")
    (found,) = [each for each in task_status.tasks({"board": of.aggregate}) if each.id == "T1"]
    assert (states(of, "T1"), found.reason, found.settled) == (["FAILED"], "nothing was changed", False)


@pytest.mark.parametrize(
    ("commit", "state", "parent", "named"),
    [("", "CLOSED", "", True), ("c0ffee", "CLOSED", "", False), ("", "OPEN", "", False)],
)
def test_closed_tasks_without_a_change_are_named(commit: str, state: str, parent: str, named: bool) -> None:  # noqa: FBT001 - one of a table
    """Not those that were merged, nor those that were split: their parts were."""
    record = fleet_task.FleetTask(task.State(state), "T1", commit=commit, parent=parent)
    board = Hand("board", {"task:T1": record})
    assert task_status.without_change(task_status.tasks({"board": board.aggregate})) == (("T1",) if named else ())


def test_a_split_task_is_not_named_as_unchanged() -> None:
    """Its parts are merged, and it is nothing but them."""
    records = {"task:T1": fleet_task.FleetTask(task.State.CLOSED, "T1", parts=1)}
    part = fleet_task.FleetTask(task.State.CLOSED, "T1+1", parent="T1", commit="c0ffee")
    board = Hand("board", {**records, "task:T1+1": part})
    assert task_status.without_change(task_status.tasks({"board": board.aggregate})) == ()
