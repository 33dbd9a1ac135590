"""The properties of a task on a board, and of the small machines of a fleet, hold in all states, and find mistakes."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from declared import COMPARED, Mutants, instead, must_break, must_hold, rebuilt
from lifefold.core.fleet.board import fleet_task, intake, worker_slot
from lifefold.core.fleet.board.fleet_task import rules
from lifefold.core.fleet.board.fleet_task.properties import reports_of_aborts_move_nothing
from lifefold.core.fleet.dispatch import plan_approval
from lifefold.core.fleet.worker import desired_state, supervisor
from lifefold.core.kernel import STAY, Entity, Machine, Row, Step, Transition, replace, row
from lifefold.core.lifecycles import approval, task
from lifefold.core.lifecycles.task import Claimed, Failed, Retried, Stage, State, SubtasksCompleted
from lifefold.core.policy.abort import AbortPolicy
from lifefold.core.policy.access import Trust
from lifefold.interpreters.check import Bounds, check

SMALL: Final[tuple[Machine[Any], ...]] = (
    desired_state.machine,
    worker_slot.machine.starting(worker_slot.WorkerSlot(trust=Trust())),
    plan_approval.machine,
    intake.machine,
    supervisor.machine,
)

CERTIFICATES: Final = Path(__file__).parents[4] / "docs" / "certificates"
"""Searches of larger machines. Tests of certificates verify that they are of these rules, and repeat them."""


@pytest.mark.parametrize("machine", SMALL, ids=lambda machine: machine.name)
def test_a_small_machine_of_a_fleet_has_all_its_properties(machine: Machine[Any]) -> None:
    """In all of its states, with every row used. Whether a fleet gates anything, or guards a branch, never changes."""
    never_change = ("has_trust", "is_guarded")
    missing = must_hold(machine, SHORT).missing
    assert [each for each in missing if not any(name in each for name in never_change)] == []


def short_record(s: worker_slot.WorkerSlot) -> bool:
    """Tell whether a worker slot has a record that is long enough for every level, and no longer."""
    most_successes, most_violations = 10, 1
    trust = s.trust or Trust()
    return trust.successes <= most_successes and trust.violations <= most_violations


SHORT: Final = Bounds(within={"worker_slot": short_record}, compared=COMPARED)

ASKING: Final = fleet_task.FleetTask(max_retries=1, limit=1, needs_approval=True, approval_ms=3_600_000)
ABORTING: Final = replace(ASKING, fate=fleet_task.Fate(AbortPolicy(tool_to_sibling=True)))
TALKING: Final = fleet_task.FleetTask(max_retries=1, limit=1, anew=True)
SPLITTING: Final = fleet_task.FleetTask(max_retries=1, limit=1, most_subtasks=2)


def few_parts(t: fleet_task.FleetTask) -> bool:
    """Tell whether a task is small enough to be looked at in all its states."""
    most_retries, most_parts = 3, 2
    return t.max_retries <= most_retries and t.parts <= most_parts


FEW: Final = Bounds(within={"task": few_parts}, compared=COMPARED)


def starting(record: fleet_task.FleetTask, machine: Machine[Any] = fleet_task.machine) -> Machine[Any]:
    """Return a machine that begins so."""
    return machine.starting(record, machine.name)


@pytest.mark.parametrize(
    ("name", "never_change"),
    [("assignment", {"is_guarded"}), ("task-in-fleet", {"has_aborts", "is_of_its_agent", "is_trusted"})],
)
def test_the_certificate_of_a_larger_machine_uses_every_row(name: str, never_change: set[str]) -> None:
    """And every guard both ways, but those of what never changes in the fleet that it is of."""
    unused = json.loads((CERTIFICATES / f"{name}.json").read_text())["unused"]
    assert [each for each in unused if not any(guard in each for guard in never_change)] == []


NEAREST_STATES: Final = 500
"""How many states of a task that may be aborted are looked at always; there is a certificate of all of them."""


@pytest.mark.cover
def test_a_task_that_may_be_aborted_has_its_properties_in_the_nearest_states() -> None:
    """Among them those of a task that was aborted while it rests."""
    report = check(starting(ABORTING), bounds=replace(FEW, states=NEAREST_STATES, compared=0))
    assert report.broken() == (), report


@pytest.mark.no_cover
def test_a_task_with_conversations_has_its_properties_in_the_nearest_states() -> None:
    """Among them those in which a conversation is kept, replaced, and forgotten."""
    report = check(starting(TALKING), bounds=replace(FEW, states=NEAREST_STATES, compared=0))
    assert report.broken() == (), report
    assert [each for each in report.missing if "is_of_its_agent" in each] == []


def _keeps_any(t: fleet_task.FleetTask, e: fleet_task.ConversationKept) -> Step[fleet_task.FleetTask, Any]:
    return Step(replace(t, conversation=e.conversation))


def _keeps_none(t: fleet_task.FleetTask, _e: fleet_task.ConversationKept) -> Step[fleet_task.FleetTask, Any]:
    return Step(replace(t, conversation=None))


def _fails_and_keeps_it(t: fleet_task.FleetTask, e: Failed) -> Step[fleet_task.FleetTask, Any]:
    return Step(replace(rules.fail(t, e).record, conversation=t.conversation))


def _is_deaf(_t: fleet_task.FleetTask, _e: fleet_task.ConversationKept) -> bool:
    return False


def _keeps_its_owner(t: fleet_task.FleetTask, e: fleet_task.Parked) -> Step[fleet_task.FleetTask, Any]:
    return Step(replace(rules.park(t, e).record, owner=t.owner))


def _forgets_the_abort(t: fleet_task.FleetTask, _e: fleet_task.Aborted) -> Step[fleet_task.FleetTask, Any]:
    return Step(t)


def _keeps_the_abort(t: fleet_task.FleetTask, e: fleet_task.RetryGranted) -> Step[fleet_task.FleetTask, Any]:
    return Step(replace(rules.grant(t, e).record, fate=t.fate))


def _forgets_the_scope(t: fleet_task.FleetTask, _e: fleet_task.ToolAborted) -> Step[fleet_task.FleetTask, Any]:
    return Step(t)


def _all_of_it(t: fleet_task.FleetTask, e: SubtasksCompleted) -> Step[fleet_task.FleetTask, Any]:
    return Step(replace(rules.gather(t, e).record, stage=Stage.WORK))


def _has_failed_like_any_other(t: fleet_task.FleetTask, e: Failed) -> Step[fleet_task.FleetTask, Any]:
    return Step(replace(rules.fail(t, e).record, limit=t.max_retries))


def _has_failed_as_it_is(t: fleet_task.FleetTask, e: task.Rejected) -> Step[fleet_task.FleetTask, Any]:
    return Step(replace(rules.fail(t, e).record, stage=t.stage, result=t.result))


def _is_worked_at_by(t: fleet_task.FleetTask, e: fleet_task.Handed) -> Step[fleet_task.FleetTask, Any]:
    return Step(rules.take(t, e).record)


def _again(t: fleet_task.FleetTask, _e: approval.ApprovalExpired) -> Step[fleet_task.FleetTask, Any]:
    return Step(replace(rules.approval_expired(t, approval.ApprovalExpired()).record, limit=t.max_retries))


def _is_said_by_its_owner(t: fleet_task.FleetTask, e: fleet_task.Split) -> bool:
    return task.is_owner(t, e)


def _as_often_as_wanted(t: fleet_task.FleetTask, _e: fleet_task.RetryGranted) -> Step[fleet_task.FleetTask, Any]:
    return Step(replace(t, limit=t.limit + 2, max_retries=t.max_retries + 2))


def _is_counted_at_once(t: fleet_task.FleetTask, e: fleet_task.RetryGranted) -> Step[fleet_task.FleetTask, Any]:
    return Step(replace(rules.grant(t, e).record, retries=t.retries + 1))


def _anything_is_back(_t: fleet_task.FleetTask, _e: fleet_task.DependencyBack) -> bool:
    return True


def _still_lacks_it(t: fleet_task.FleetTask, _e: fleet_task.DependencyBack) -> Step[fleet_task.FleetTask, Any]:
    return Step(replace(t, reason=""))


def _with(new: Row[Any], record: fleet_task.FleetTask = ASKING) -> Machine[Any]:
    return starting(record, instead(fleet_task.machine, new))


def _without_timer(state: State) -> Machine[Any]:
    left = {states: timer for states, timer in fleet_task.machine.during.items() if state not in states}
    return starting(ASKING, rebuilt(fleet_task.machine, during=left))


DONE, PENDING, FAILED = State.DONE, State.PENDING_APPROVAL, State.FAILED
WAITING = State.WAITING_FOR_SUBTASKS
WORKED_AT: Final = (State.CLAIMED, State.IN_PROGRESS)

MUTANTS: Final[Mutants] = {
    "work that waits for approval keeps its owner": (
        "has no owner, and is kept",
        lambda: _with(row(DONE, fleet_task.Parked, PENDING, _keeps_its_owner, when=rules.is_to_be_agreed)),
    ),
    "work without need of approval is parked": (
        "has no owner, and is kept",
        lambda: _with(row(DONE, fleet_task.Parked, PENDING, rules.park, when=task.is_owner), SPLITTING),
    ),
    "the result of the parts is worked at": (
        "verified as one",
        lambda: _with(row(WAITING, SubtasksCompleted, DONE, _all_of_it), SPLITTING),
    ),
    "a permanent failure is retried": (
        "the cause of a failure decides",
        lambda: _with(row(State.IN_PROGRESS, Failed, FAILED, _has_failed_like_any_other, when=task.is_owner)),
    ),
    "approved work that has failed is merged by the next attempt": (
        "has the whole task to do",
        lambda: _with(row(DONE, task.Rejected, FAILED, _has_failed_as_it_is, when=task.is_owner)),
    ),
    "approved work is done again by its new owner": (
        "handed to one worker",
        lambda: _with(row(DONE, fleet_task.Handed, STAY, _is_worked_at_by, when=rules.has_no_owner)),
    ),
    "an owned task is handed to another worker": (
        "a claimed task cannot be claimed again",
        lambda: _with(row(DONE, fleet_task.Handed, STAY, rules.take_over)),
    ),
    "work without an answer in time is done again": (
        "is not retried by itself",
        lambda: _with(row(PENDING, approval.ApprovalExpired, FAILED, _again)),
    ),
    "an approval is awaited for ever": (
        "waits for a person for ever",
        lambda: _without_timer(PENDING),
    ),
    "a task is split without end": (
        "within its limits",
        lambda: _with(row(WORKED_AT, fleet_task.Split, WAITING, rules.split, when=_is_said_by_its_owner), SPLITTING),
    ),
    "a granted retry allows two attempts": (
        "allows one more attempt",
        lambda: _with(row(FAILED, fleet_task.RetryGranted, STAY, _as_often_as_wanted)),
    ),
    "a retry that is granted is used up by that": (
        "allows one more attempt",
        lambda: _with(row(FAILED, fleet_task.RetryGranted, STAY, _is_counted_at_once)),
    ),
    "a task goes on when anything is back": (
        "when its blocker is resolved",
        lambda: _with(
            row(State.BLOCKED, fleet_task.DependencyBack, State.OPEN, rules.find_again, when=_anything_is_back)
        ),
    ),
    "a task that goes on still lacks something": (
        "when its blocker is resolved",
        lambda: _with(
            row(State.BLOCKED, fleet_task.DependencyBack, State.OPEN, _still_lacks_it, when=rules.is_blocked_by_it)
        ),
    ),
    "the abort of a tool ends the session": (
        "does not move the task",
        lambda: _with(row(WORKED_AT, fleet_task.ToolAborted, State.OPEN, when=rules.is_by_the_owner), ABORTING),
    ),
    "how far an abort reached is forgotten": (
        "does not move the task",
        lambda: _with(
            row(WORKED_AT, fleet_task.ToolAborted, STAY, _forgets_the_scope, when=rules.is_by_the_owner), ABORTING
        ),
    ),
    "an abort during a rest is forgotten": (
        "or marked until it can be",
        lambda: _with(
            row(rules.NOT_NOW, fleet_task.Aborted, STAY, _forgets_the_abort, when=rules.may_come_again), ABORTING
        ),
    ),
    "an aborted task goes on": (
        "or marked until it can be",
        lambda: _with(
            row(rules.CANCELLABLE, fleet_task.Aborted, STAY, rules.mark_aborted, when=rules.has_aborts), ABORTING
        ),
    ),
    "a retried task stays aborted": (
        "until an operator retries it",
        lambda: _with(row(FAILED, fleet_task.RetryGranted, STAY, _keeps_the_abort), ABORTING),
    ),
    "a conversation of another claim is kept": (
        "keeps the last conversation about it",
        lambda: _with(row(WORKED_AT, fleet_task.ConversationKept, STAY, _keeps_any), TALKING),
    ),
    "a conversation is not kept": (
        "keeps the last conversation about it",
        lambda: _with(
            row(WORKED_AT, fleet_task.ConversationKept, STAY, _keeps_none, when=rules.is_of_its_agent), TALKING
        ),
    ),
    "no conversation is accepted": (
        "can report its conversation",
        lambda: _with(row(WORKED_AT, fleet_task.ConversationKept, STAY, when=_is_deaf), TALKING),
    ),
    "a retry begins with the conversation although it is to begin anew": (
        "keeps the last conversation about it",
        lambda: _with(row(State.CLAIMED, Failed, State.FAILED, _fails_and_keeps_it, when=task.is_owner), TALKING),
    ),
    "a failed task does not rest": (
        "opened again after its rest",
        lambda: _without_timer(FAILED),
    ),
}


@pytest.mark.no_cover
@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_a_mistake_in_the_rules_of_a_task_on_a_board_breaks_a_property(mutant: Any) -> None:
    """Each of these mutants is killed."""
    words, make = mutant
    must_break(words, make(), FEW)


def test_a_retry_is_no_other_than_the_documents() -> None:
    """What the document says of a retry is true of one after a rest."""
    assert issubclass(fleet_task.Rested, Retried)
    assert issubclass(fleet_task.Handed, Claimed)


def test_an_abort_in_a_fleet_without_aborts_breaks_a_property() -> None:
    """Such a task has no field for it: before the report, or after it."""
    with_aborts = fleet_task.FleetTask(State.IN_PROGRESS, "T1", fate=fleet_task.Fate())
    without = replace(with_aborts, fate=None)
    for before, after in ((without, with_aborts), (with_aborts, without)):
        entities = Entity("task:T1", before), Entity("task:T1", after)
        step = Transition("task", *entities, fleet_task.AbortWanted(), 0, "operator", ())
        assert reports_of_aborts_move_nothing(step) is False
