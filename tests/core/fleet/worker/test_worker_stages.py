"""A worker whose work needs an approval, one with the rest of a task, and a paused one."""

from collections.abc import Callable

import pytest

from aggregate_hand import Hand
from fleet_worker import BRIEF, exit_with, interrupting, opened, preparing, running, start, states, verifying, wanting
from lifefold.core.fleet.board import fleet_task, worker_slot
from lifefold.core.fleet.system import worker_properties
from lifefold.core.fleet.worker import assignment, desired_state, shutdown
from lifefold.core.kernel import replace
from lifefold.core.lifecycles import session, task
from lifefold.core.lifecycles.task import Stage
from lifefold.effects import Begin, CheckOutWork, MergeWork, ParkWork

ASKS = replace(BRIEF, needs_approval=True)
VERIFY = replace(BRIEF, stage=Stage.VERIFY)
MERGE = replace(ASKS, stage=Stage.MERGE, result=1)


def given(brief: task.Brief) -> Hand:
    """Return a worker that was given this."""
    return wanting().hear("board", "assignment", assignment.Assigned(brief))


def parking() -> Hand:
    """Return a worker whose verified work is being put where a person's word is waited for."""
    of = given(ASKS).report("assignment", "CheckOutWork", assignment.CheckedOut())
    exit_with(start(of), session.Success())
    return of.report("assignment", "VerifyWork", assignment.Verified())


def whole_verifying() -> Hand:
    """Return a worker that verifies what the parts of a task have come to."""
    return given(VERIFY).report("assignment", "CheckOutWork", assignment.CheckedOut())


# A person's word


def test_verified_work_that_a_person_has_to_agree_to_is_parked_and_the_worker_wants_other_work() -> None:
    """The board hears of it under the claim, and at once that the worker has nothing to do (E2)."""
    of = parking()
    assert [each.activity for each in of.effects(Begin) if isinstance(each, Begin)] == [ParkWork("T1", 2, "do it")]
    assert states(of) == ("SessionComplete", "Parking")
    assert not shutdown.quiet(of.aggregate)
    of.report("assignment", "ParkWork", assignment.Parked())
    assert of.told()[0] == ("board", "task:T1", fleet_task.Parked(2))
    assert of.told()[-1] == ("board", "worker_slot:ann", worker_slot.WorkWanted())
    assert states(of) == ("BuildingPrompt", "Wanting")


def test_work_that_can_not_be_parked_is_rejected_with_the_reason() -> None:
    """It is done again, by its next owner."""
    of = parking().report("assignment", "ParkWork", assignment.ParkingFailed("no space left"))
    assert of.told()[0] == ("board", "task:T1", task.Rejected(2, "no space left"))


def test_work_that_is_recalled_while_it_is_parked_is_dropped() -> None:
    """The board has heard nothing of it, and hears nothing (E20)."""
    of = parking().hear("board", "assignment", assignment.Recalled("T1", 2))
    assert not any(isinstance(event, fleet_task.Parked) for _, _, event in of.told())
    assert of.state("assignment") == "Idle"
    of.confirm("assignment", "ParkWork")
    assert states(of) == ("BuildingPrompt", "Wanting")


def test_an_agent_that_stops_while_its_work_is_parked_has_it_parked() -> None:
    """It is done; then the worker is gone."""
    of = parking().give("desired_state", desired_state.StopWanted("enough"))
    assert (states(of), of.told()) == (("Stopped", "Parking"), [])
    of.report("assignment", "ParkWork", assignment.Parked())
    assert of.told() == [
        ("board", "task:T1", fleet_task.Parked(2)),
        ("board", "worker_slot:ann", worker_slot.WorkerGone("enough")),
    ]


# What is left of a task


def test_approved_work_is_merged_without_a_session_and_without_a_worktree() -> None:
    """From where it is kept, under the new claim."""
    of = given(MERGE)
    assert [each.activity for each in of.effects(Begin) if isinstance(each, Begin)] == [MergeWork("T1", 2, "do it", 1)]
    assert states(of) == ("BuildingPrompt", "Merging")
    of.report("assignment", "MergeWork", assignment.Merged("c0ffee"))
    assert of.told()[0] == ("board", "task:T1", task.Verified(2, "c0ffee"))
    assert states(of) == ("BuildingPrompt", "Wanting")


def test_the_result_of_parts_is_verified_without_a_session() -> None:
    """In a place of its own; then it is merged, or parked, like any other work."""
    of = whole_verifying()
    assert states(of) == ("BuildingPrompt", "Verifying")
    assert of.report("assignment", "VerifyWork", assignment.Verified()).state("assignment") == "Merging"


def test_kept_work_is_checked_out_and_verified_again_without_a_session() -> None:
    """As it was kept by the earlier claim; then it is parked under the new claim, for the person's word."""
    of = given(replace(ASKS, stage=Stage.REVERIFY, result=1, collected="c0ffee"))
    checked_out = [each.activity for each in of.effects(Begin) if isinstance(each, Begin)]
    assert checked_out == [CheckOutWork("T1", 2, 1, "c0ffee")]
    of.report("assignment", "CheckOutWork", assignment.CheckedOut())
    assert states(of) == ("BuildingPrompt", "Verifying")
    of.report("assignment", "VerifyWork", assignment.Verified())
    of.report("assignment", "ParkWork", assignment.Parked("c0ffee"))
    assert of.told()[0] == ("board", "task:T1", fleet_task.Parked(2, "c0ffee"))


def test_a_stage_that_is_left_is_returned_unchanged() -> None:
    """When no place can be made for it, or the agent stops before it is begun; no attempt has failed by that."""
    failed = given(VERIFY).report("assignment", "CheckOutWork", assignment.CheckoutFailed("no branch"))
    assert failed.told()[0] == ("board", "task:T1", fleet_task.Returned(2, "ann could not make its place: no branch"))
    stopped = given(VERIFY).give("desired_state", desired_state.StopWanted("enough"))
    assert stopped.told()[0] == ("board", "task:T1", fleet_task.Returned(2, "its agent has stopped: enough"))


@pytest.mark.parametrize(("make", "slot"), [(whole_verifying, "VerifyWork"), (lambda: given(MERGE), "MergeWork")])
def test_a_begun_stage_is_finished_although_the_worker_stops(make: Callable[[], Hand], slot: str) -> None:
    """The worker is gone when it is, and not before."""
    of = make().give("desired_state", desired_state.StopWanted("enough"))
    assert of.told() == []
    assert of.part("assignment", slot).slot == slot


def test_no_session_begins_while_what_is_left_of_a_task_is_handed_over() -> None:
    """Neither by a pause that is over, nor by anything else."""
    for of in (whole_verifying(), given(MERGE)):
        of.give("desired_state", desired_state.PauseWanted()).give("desired_state", desired_state.ResumeWanted())
        assert (of.state("session"), of.begun(), of.told()) == ("BuildingPrompt", [], [])
        assert worker_properties.continues_after_verification(of.aggregate)


# Pauses


def test_a_pause_interrupts_the_session_and_lasts_until_an_operator_ends_it() -> None:
    """It is no error; a runner that comes back ends a hold, and no pause."""
    of = running().give("desired_state", desired_state.PauseWanted("lunch"))
    assert states(of) == ("Interrupting", "Working")
    exit_with(of, session.Error("cancelled"))
    assert (states(of), of.record("session").total_errors) == (("BuildingPrompt", "Working"), 0)
    assert shutdown.quiet(of.aggregate)
    assert of.must_refuse("desired_state", desired_state.RunWanted()).kind == "illegal"
    assert of.give("desired_state", desired_state.ResumeWanted()).begun() == ["RunSession"]


def test_a_held_worker_can_be_paused_and_then_waits_for_an_operator() -> None:
    """What people want lasts longer than the runner that is away."""
    of = (
        opened()
        .give("desired_state", desired_state.HoldWanted())
        .give("desired_state", desired_state.PauseWanted("lunch"))
    )
    of.report("session", "PrepareWorktree", session.WorktreeReady())
    assert (states(of), of.told()) == (("BuildingPrompt", "Idle"), [])
    assert of.must_refuse("desired_state", desired_state.RunWanted()).kind == "illegal"
    assert of.give("desired_state", desired_state.ResumeWanted()).told() == [
        ("board", "worker_slot:ann", worker_slot.WorkWanted())
    ]


@pytest.mark.parametrize("rest", [desired_state.PauseWanted, desired_state.HoldWanted])
def test_a_resting_worker_merges_finished_work_and_begins_nothing(rest: type[desired_state.PauseWanted]) -> None:
    """Its verification and its merge go on; no work is wanted after them."""
    of = verifying().give("desired_state", rest())
    of.report("assignment", "VerifyWork", assignment.Verified())
    of.report("assignment", "MergeWork", assignment.Merged("c0ffee"))
    assert of.told() == [("board", "task:T1", task.Verified(2, "c0ffee"))]
    assert (states(of), shutdown.quiet(of.aggregate)) == (("BuildingPrompt", "Idle"), True)


@pytest.mark.parametrize("rest", [desired_state.PauseWanted, desired_state.HoldWanted])
def test_a_resting_worker_can_be_stopped(rest: type[desired_state.PauseWanted]) -> None:
    """At once, and for good: no command lets it go on."""
    of = preparing().give("desired_state", rest()).give("desired_state", desired_state.StopWanted("enough"))
    assert (of.state("session"), of.state("assignment")) == ("Stopped", "Idle")
    for again in (desired_state.ResumeWanted(), desired_state.RunWanted(), desired_state.PauseWanted()):
        assert of.must_refuse("desired_state", again).kind == "illegal"


def test_a_pause_of_a_session_that_is_being_interrupted_interrupts_it_once() -> None:
    """It ends already."""
    of = interrupting().give("desired_state", desired_state.PauseWanted())
    assert of.reaction.effects == ()
