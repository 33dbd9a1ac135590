"""A worker whose task is taken from it: nothing goes on for the task, nothing is merged, other work is wanted."""

from collections.abc import Callable

import pytest

from aggregate_hand import Hand
from fleet_worker import (
    exit_with,
    interrupting,
    merging,
    preparing,
    prompt_of,
    running,
    spawning,
    start,
    states,
    verifying,
)
from lifefold.core.fleet.board import worker_slot
from lifefold.core.fleet.worker import assignment, desired_state, shutdown
from lifefold.core.kernel import journal, replace
from lifefold.core.lifecycles import session, task
from lifefold.core.policy.reasons import AbortReason
from lifefold.effects import CancelSession, End

RECALL = assignment.Recalled("T1", 2, "not any more")


def recalled(of: Hand) -> Hand:
    """Let the board take the task from its owner."""
    return of.hear("board", "assignment", RECALL)


@pytest.mark.parametrize(
    ("make", "slot", "entity"),
    [(preparing, "CheckOutWork", "assignment"), (verifying, "VerifyWork", "assignment")],
    ids=["preparing", "verifying"],
)
def test_a_recalled_task_is_dropped_and_other_work_is_wanted_when_nothing_of_it_is_left(
    make: Callable[[], Hand], slot: str, entity: str
) -> None:
    """Its activities are ended; a worktree with a live process is never cleaned (E20)."""
    of = recalled(make())
    assert states(of) == ("BuildingPrompt", "Idle")
    assert [e.slot for e in of.effects(End) if isinstance(e, End)] == [slot]
    assert of.told() == []
    of.confirm(entity, slot)
    assert (of.state("assignment"), of.told()) == ("Wanting", [("board", "worker_slot:ann", worker_slot.WorkWanted())])


def test_a_recall_interrupts_the_session_that_works_on_the_task_and_counts_no_error() -> None:
    """Its result is not reported; when it has ended, other work is wanted (E20)."""
    of = recalled(running())
    assert states(of) == ("Interrupting", "Idle")
    assert of.effects(CancelSession) == [CancelSession()]
    exit_with(of, session.Success())
    assert states(of) == ("BuildingPrompt", "Wanting")
    assert of.told() == [("board", "worker_slot:ann", worker_slot.WorkWanted())]
    assert of.record("session").total_errors == 0


@pytest.mark.parametrize("reason", AbortReason)
def test_the_journal_has_the_reason_for_which_a_session_was_recalled(reason: AbortReason) -> None:
    """It is the board's: an operator has interrupted only what an operator has taken away."""
    of = running().hear("board", "assignment", replace(RECALL, abort_reason=reason))
    (interrupted,) = [each for each in of.reaction.transitions if each.entered is session.State.INTERRUPTING]
    assert journal(of.aggregate.name, interrupted).abort_reason == reason


def test_a_recall_while_spawning_interrupts_as_soon_as_the_session_runs() -> None:
    """The board does not hear of a beginning any more."""
    of = recalled(spawning())
    assert states(of) == ("Spawning", "Idle")
    start(of)
    assert (states(of), of.told()) == (("Interrupting", "Idle"), [])


def test_a_recall_of_what_is_interrupted_already_leaves_the_message_for_the_next_task() -> None:
    """One interruption is enough, and nothing that was said is lost."""
    of = recalled(interrupting())
    assert (states(of), of.effects()) == (("Interrupting", "Idle"), [])
    exit_with(of, session.Error("cancelled"))
    of.hear("board", "assignment", assignment.Assigned(task.Brief("T3", 1, "do that")))
    of.report("assignment", "CheckOutWork", assignment.CheckedOut())
    assert prompt_of(of) == "do that\n\nYou have messages:\n- look"


def test_a_recalled_session_that_does_not_end_is_killed_before_other_work_is_wanted() -> None:
    """The next task's place is the folder that the old session still runs in (D13)."""
    of = recalled(running()).elapse("session", "GraceExceeded")
    assert (states(of), of.told()) == (("BuildingPrompt", "Idle"), [])
    of.confirm("session", "RunSession")
    assert of.told() == [("board", "worker_slot:ann", worker_slot.WorkWanted())]


def test_a_held_worker_asks_for_other_work_after_a_recall_and_a_resume() -> None:
    """Not before, and not the old one."""
    of = exit_with(running().give("desired_state", desired_state.HoldWanted()), session.Error("cancelled"))
    assert (states(recalled(of)), of.told()) == (("BuildingPrompt", "Idle"), [])
    of.give("desired_state", desired_state.RunWanted())
    assert of.told() == [("board", "worker_slot:ann", worker_slot.WorkWanted())]


def test_a_merge_that_has_begun_is_finished_although_the_task_is_recalled() -> None:
    """The recall is refused; the board has the task as it wants it, and the commit names the claim."""
    of = merging()
    assert of.dismiss("board", "assignment", RECALL).kind == "illegal"
    assert states(of) == ("SessionComplete", "Merging")


def test_a_stopped_worker_is_gone_after_a_recall_during_verification() -> None:
    """Nothing is in its hands any more."""
    of = recalled(verifying().give("desired_state", desired_state.StopWanted("enough")))
    assert (states(of), of.told()) == (
        ("Stopped", "Idle"),
        [("board", "worker_slot:ann", worker_slot.WorkerGone("enough"))],
    )
    of.confirm("assignment", "VerifyWork")
    assert of.told() == []
    assert shutdown.settled(of.aggregate)
