"""Decisions of operators on the board: on finished work without an owner, and on a plan before it begins."""

from typing import Any

import pytest

from aggregate_hand import Hand
from board_hand import ask, assigned, brief, close, finish, go, happened, make, opened, park, rest, say, states
from lifefold.core.fleet.board import fleet_task, intake
from lifefold.core.fleet.dispatch import plan_approval
from lifefold.core.fleet.system import board
from lifefold.core.fleet.worker import assignment, desired_state
from lifefold.core.kernel import Created, Event
from lifefold.core.lifecycles import approval, task
from lifefold.core.lifecycles.task import Stage
from lifefold.effects import CancelTimer, StartTimer

# Finished work


def parked(*more: fleet_task.FleetTask, **fields: Any) -> Hand:
    """Return a board on which ann's work waits for a person, who is given an hour."""
    return park(ask(opened(make("T1", needs_approval=True, **fields), *more)), "T1")


def test_work_that_waits_for_an_approval_has_no_owner_and_its_worker_is_free() -> None:
    """It gets the next task, while the work is kept under the number of the claim that has done it (E2)."""
    of = parked(make("T2"))
    record = of.record("task:T1")
    assert (record.state, record.owner, record.stage, record.result) == ("PENDING_APPROVAL", "", Stage.MERGE, 1)
    assert assigned(ask(of)) == [("worker/ann", "T2")]
    assert (of.state("task:T1"), board.finished(of.aggregate)) == ("PENDING_APPROVAL", False)


def test_approved_work_goes_to_a_waiting_worker_for_its_merge_only() -> None:
    """To another worker, maybe; under a number of its own, and with the number that it is kept under (E12)."""
    of = ask(parked(), "bob")
    assert assigned(of) == []
    of.give("task:T1", approval.ApprovalGranted("looks good"))
    assert assigned(of) == [("worker/bob", "T1")]
    given = brief(of)
    assert (given.epoch, given.stage, given.result, given.needs_approval) == (2, Stage.MERGE, 1, True)
    assert of.dismiss("worker/ann", "task:T1", task.Verified(1)).kind == "illegal"
    assert close(of, "T1").state("task:T1") == "CLOSED"


def test_approved_work_goes_first_to_the_next_worker_that_waits() -> None:
    """Before any task, however urgent, and whatever role it asks for: it is done already."""
    of = opened(
        make("T1", needs_approval=True, role="tester"),
        make("T2", priority=1, ordinal=1),
        worker_slots={"ann": ("tester",), "bob": ()},
    )
    park(ask(close(ask(of), "T2")), "T1").give("task:T1", approval.ApprovalGranted())
    of.give("task:T3", Created(make("T3", priority=1)))
    assert (of.state("task:T1"), of.record("task:T1").owner) == ("DONE", "")
    assert assigned(ask(of, "bob")) == [("worker/bob", "T1")]


def test_work_that_is_refused_is_tried_again_with_what_the_person_said() -> None:
    """After its rest, from the beginning: nothing is gone on from, and the next result waits for a person, too."""
    of = parked(max_retries=1).give("task:T1", approval.ApprovalRefused("no tests"))
    record = of.record("task:T1")
    assert (record.state, record.reason, record.stage, record.result) == ("FAILED", "no tests", Stage.WORK, 0)
    ask(rest(of, "T1"))
    given = brief(of)
    assert (given.failure, given.stage, given.result, given.needs_approval, given.epoch) == (
        "no tests",
        Stage.WORK,
        0,
        True,
        2,
    )
    assert given.kept == 2


def test_an_expired_approval_settles_the_task_without_a_retry() -> None:
    """However many retries it has: the same would be asked for in vain; what waits for it is blocked (E41)."""
    of = parked(make("T2", "T1"), max_retries=3, approval_ms=60_000)
    assert [(each.delay_ms) for each in of.effects(StartTimer) if isinstance(each, StartTimer)] == [60_000]
    of.elapse("task:T1", "ApprovalExpired")
    assert (of.state("task:T1"), of.record("task:T1").reason) == ("FAILED", "not approved within 60 s")
    assert of.state("task:T2") == "BLOCKED"
    assert board.finished(of.aggregate)


def test_an_operator_can_retry_a_task_whose_approval_expired() -> None:
    """When a person asks for it."""
    of = parked(make("T2", "T1"), approval_ms=60_000).elapse("task:T1", "ApprovalExpired")
    of.give("task:T1", fleet_task.RetryGranted("I am back"))
    assert states(of, "T1", "T2") == ["OPEN", "OPEN"]
    assert brief(ask(of)).failure == "not approved within 60 s"


def test_an_answer_ends_the_timer_of_the_approval() -> None:
    """No timer is left."""
    for said in (approval.ApprovalGranted(), approval.ApprovalRefused()):
        of = parked(make("T2"), approval_ms=60_000).give("task:T1", said)
        assert [each.slot for each in of.effects(CancelTimer) if isinstance(each, CancelTimer)] == ["ApprovalExpired"]


def test_no_approval_is_accepted_for_a_task_that_needs_none() -> None:
    """Neither before it is done, nor twice."""
    of = ask(opened(make("T1", needs_approval=True)))
    assert of.must_refuse("task:T1", approval.ApprovalGranted()).kind == "illegal"
    park(of, "T1").give("task:T1", approval.ApprovalGranted())
    assert of.must_refuse("task:T1", approval.ApprovalGranted()).kind == "illegal"
    assert of.must_refuse("task:T1", approval.ApprovalRefused()).kind == "illegal"


def test_work_without_a_needed_approval_is_not_parked() -> None:
    """And what was agreed to is not parked again, either."""
    of = finish(ask(opened(make("T1"))), "T1")
    assert of.dismiss("worker/ann", "task:T1", fleet_task.Parked(1)).kind == "illegal"
    agreed = ask(parked(), "bob").give("task:T1", approval.ApprovalGranted())
    assert agreed.dismiss("worker/bob", "task:T1", fleet_task.Parked(2)).kind == "illegal"


@pytest.mark.parametrize("how", ["gone", "given back"])
def test_what_is_left_of_a_task_goes_to_the_next_when_its_worker_does_not_do_it(how: str) -> None:
    """Nothing has failed by that; the work is where it was, and the next one has a number of its own (E11, E12)."""
    of = ask(parked(), "bob").give("task:T1", approval.ApprovalGranted())
    ask(of)
    if how == "gone":
        go(of, "bob")
    else:
        say(of, "T1", fleet_task.Returned, reason="no disk")
    assert happened(of, "T1") == ["Returned", "Handed"]
    record = of.record("task:T1")
    assert (record.owner, record.epoch, record.result, record.retries, record.failure) == ("ann", 3, 1, 0, "")
    assert brief(of).result == 1


def test_a_merge_that_fails_after_it_was_agreed_to_is_worked_at_again_and_asked_about_again() -> None:
    """What is merged in the end is what a person has seen."""
    of = ask(parked(max_retries=1), "bob").give("task:T1", approval.ApprovalGranted())
    say(of, "T1", task.Rejected, reason="conflict")
    ask(rest(of, "T1"))
    assert brief(of).stage is Stage.WORK
    assert park(of, "T1").state("task:T1") == "PENDING_APPROVAL"


def test_a_worker_that_goes_leaves_work_that_waits_for_an_approval() -> None:
    """It was not in anybody's hand."""
    of = go(parked(), "ann")
    assert of.state("task:T1") == "PENDING_APPROVAL"


# Plans


PLANNED: dict[str, Any] = {"state": task.State.PLANNED}


def proposed() -> Hand:
    """Return a board with a plan of three tasks without an approval, and two waiting workers."""
    tasks = (make("T1", ordinal=0, **PLANNED), make("T2", "T1", ordinal=1, **PLANNED), make("T3", ordinal=2, **PLANNED))
    return ask(opened(*tasks, plan=plan_approval.Proposal()), "ann", "bob")


def test_nothing_is_begun_before_a_plan_is_approved_and_then_all_of_it() -> None:
    """In one step (E43); each waiting worker gets a task."""
    of = proposed()
    assert (states(of, "T1", "T2", "T3"), board.finished(of.aggregate)) == (["PLANNED"] * 3, False)
    of.give("plan", plan_approval.PlanApproved("go"))
    assert states(of, "T1", "T2", "T3") == ["CLAIMED", "OPEN", "CLAIMED"]
    assert sorted(assigned(of)) == [("worker/ann", "T1"), ("worker/bob", "T3")]


def test_a_plan_that_is_declined_ends_the_fleet() -> None:
    """All of it is cancelled, and every worker is released."""
    of = proposed().give("plan", plan_approval.PlanDeclined("too expensive"))
    assert states(of, "T1", "T2", "T3") == ["CANCELLED"] * 3
    assert [to for to, _, event in of.told() if isinstance(event, desired_state.StopWanted)] == [
        "worker/ann",
        "worker/bob",
    ]


def test_a_plan_can_be_decided_task_by_task_and_the_rest_as_a_whole() -> None:
    """What was decided stays so; the plan is decided once."""
    of = proposed().give("task:T3", task.Declined("not this one"))
    assert states(of, "T1", "T3") == ["PLANNED", "CANCELLED"]
    of.give("plan", plan_approval.PlanApproved())
    assert states(of, "T1", "T2", "T3") == ["CLAIMED", "OPEN", "CANCELLED"]
    for again in (plan_approval.PlanApproved(), plan_approval.PlanDeclined()):
        assert of.must_refuse("plan", again).kind == "illegal"


@pytest.mark.parametrize(
    ("decision", "state"), [(plan_approval.PlanApproved("go"), "OPEN"), (plan_approval.PlanDeclined("no"), "CANCELLED")]
)
def test_a_task_that_comes_when_the_plan_is_decided_is_decided_with_it(decision: Event, state: str) -> None:
    """The operator that added it may not know of the decision."""
    of = proposed().give("plan", decision)
    of.give("task:T4", Created(make("T4", "T1", **PLANNED)))
    assert of.state("task:T4") == state


def test_a_task_that_comes_before_the_plan_is_decided_waits_with_it() -> None:
    """It is a part of the plan."""
    of = proposed().give("task:T4", Created(make("T4", **PLANNED)))
    assert of.state("task:T4") == "PLANNED"
    assert of.give("plan", plan_approval.PlanApproved()).state("task:T4") == "CLAIMED"


def test_a_task_that_is_approved_alone_is_begun_alone() -> None:
    """No worker waits for the other tasks."""
    of = proposed().give("task:T1", task.Approved())
    assert assigned(of) == [("worker/ann", "T1")]
    assert of.give("plan", plan_approval.PlanDeclined()).state("task:T1") == "CLAIMED"
    assert states(of, "T2", "T3") == ["CANCELLED", "CANCELLED"]


# Doors


def test_a_fleet_that_waits_for_more_tasks_is_not_over_when_it_has_none() -> None:
    """Until an operator finishes the intake; then every worker is released at once."""
    assert intake.REF == "intake"
    of = close(ask(opened(make("T1"), intake=intake.Intake())), "T1")
    assert (of.told(), board.finished(of.aggregate)) == ([], False)
    of.give(intake.REF, intake.LastTaskIn("that is all"))
    assert {type(event) for _, _, event in of.told()} == {desired_state.StopWanted}
    assert board.finished(of.aggregate)


def test_a_fleet_that_takes_no_more_tasks_goes_on_with_those_that_it_has() -> None:
    """No worker is released before they are settled."""
    of = ask(opened(make("T1"), intake=intake.Intake())).give(intake.REF, intake.LastTaskIn())
    assert of.told() == []
    assert close(of, "T1").told() != []
    assert not any(isinstance(event, assignment.Assigned) for _, _, event in of.told())
