"""The properties of tasks hold in every reachable state, and detect mistakes in the rules."""

from typing import Any, Final

import pytest

from declared import COMPARED, Mutants, instead, must_be_found, must_hold, rebuilt
from lifefold.core.kernel import STAY, Machine, Step, replace, row
from lifefold.core.lifecycles import approval, task, task_profiles
from lifefold.core.lifecycles.approval import ApprovalExpired, ApprovalRequested
from lifefold.core.lifecycles.task import (
    Blocked,
    Cancelled,
    Claimed,
    Completed,
    Failed,
    Released,
    Retried,
    State,
    SubtasksOverdue,
    Task,
    Verified,
    machine,
)
from lifefold.core.lifecycles.task_profiles import GovernedTask, LeaseExpired, bernstein_1_9, governed
from lifefold.interpreters.check import Bounds

with_approval = approval.with_approval(machine, "task")
TASKS: Final[tuple[Machine[Any], ...]] = (machine, bernstein_1_9, governed, approval.machine, with_approval)


@pytest.mark.parametrize("of", TASKS, ids=["task", "bernstein-1.9", "governed", "approval", "approved"])
def test_a_task_has_all_its_properties(of: Machine[Any]) -> None:
    """In all of its states, for any number of claims, with every row and every guard used both ways."""
    assert must_hold(of).missing == ()


class Numbered(GovernedTask, frozen=True):
    """A task with each claim under its own number, not renumbered."""

    identifiers = ()


def test_reports_of_earlier_claims_are_kept_and_change_nothing() -> None:
    """Three claims and their reports, each under its own number; claims are unbounded, so the test limits them."""

    def three_claims(t: Task) -> bool:
        return t.epoch <= 3

    few = Numbered(max_retries=1)
    report = must_hold(governed.starting(few), Bounds(within={"task-governed": three_claims}, compared=COMPARED))
    assert report.missing == ()
    assert report.cut > 0


def _same_number(t: Task, e: Claimed) -> Step[Task, Any]:
    return Step(replace(t, owner=e.owner, epoch=max(1, t.epoch)))


def _still_owned(t: Task, e: Released) -> Step[Task, Any]:
    return Step(replace(task.give_back(t, e).record, owner=t.owner))


def _once_more(t: Task, _e: Retried) -> bool:
    return t.retries <= t.allowed_retries


def _uncounted(t: Task, _e: Retried) -> Step[Task, Any]:
    return Step(t)


def _dropped(t: GovernedTask, _e: Completed) -> Step[Task, Any]:
    return Step(t)


def _cancelled_only(t: GovernedTask, e: Cancelled) -> Step[Task, Any]:
    return Step(task.explain(t, e).record)


def _never_gives_up(t: GovernedTask, _e: Retried) -> bool:
    return t.retries < t.max_retries


def _has_commit(t: Task, e: Verified) -> bool:
    return task.is_owner(t, e) and bool(e.commit)


OPEN, CLAIMED, DONE = State.OPEN, State.CLAIMED, State.DONE

MUTANTS: Final[Mutants] = {
    "any report completes a task": (
        "another claim changes nothing",
        lambda: instead(machine, row(CLAIMED, Completed, DONE)),
    ),
    "any report closes a task": (
        "another claim changes nothing",
        lambda: instead(machine, row(DONE, Verified, State.CLOSED, task.close)),
    ),
    "a blocking report of any claim is accepted": (
        "another claim changes nothing",
        lambda: instead(machine, row(State.IN_PROGRESS, Blocked, State.BLOCKED, task.explain)),
    ),
    "a claim has the number of the last": (
        "number of its own",
        lambda: instead(machine, row(OPEN, Claimed, CLAIMED, _same_number)),
    ),
    "a task that is given back keeps its owner": (
        "a task without work has no owner",
        lambda: instead(machine, row(CLAIMED, Released, OPEN, _still_owned, when=task.is_owner)),
    ),
    "one retry too many": (
        "more often than its limit",
        lambda: instead(machine, row(State.FAILED, Retried, OPEN, task.retry, when=_once_more)),
    ),
    "retries are not counted": (
        "every retry is counted",
        lambda: instead(machine, row(State.FAILED, Retried, OPEN, _uncounted, when=task.retries_left)),
    ),
    "a failed task can be completed": (
        "opened by a retry",
        lambda: machine.with_rows(row(State.FAILED, Completed, DONE, when=task.is_owner)),
    ),
    "work is closed without having been done": (
        "only finished and verified work",
        lambda: machine.with_rows(row(State.IN_PROGRESS, Verified, State.CLOSED, task.close, when=task.is_owner)),
    ),
    "a blocked task is opened by its former owner": (
        "stays settled",
        lambda: machine.with_rows(row(State.BLOCKED, Released, OPEN, task.give_back, when=task.is_owner)),
    ),
    "a dead owner's work has no exit": (
        "every claim ends",
        lambda: machine.without_rows((State.ORPHANED, Failed)),
    ),
    "work without a commit is not closed": (
        "is closed or has failed",
        lambda: instead(machine, row(DONE, Verified, State.CLOSED, task.close, when=_has_commit)),
    ),
    "subtasks have no limit of time": (
        "a wait for subtasks ends",
        lambda: machine.without_rows((State.WAITING_FOR_SUBTASKS, SubtasksOverdue)),
    ),
    "a claim has no lease": (
        "CLAIMED does not last",
        lambda: rebuilt(governed, during={k: v for k, v in governed.during.items() if CLAIMED not in k}),
    ),
    "an expired lease keeps its claim": (
        "CLAIMED does not last",
        lambda: instead(governed, row(CLAIMED, LeaseExpired, STAY)),
    ),
    "a late report is dropped": (
        "is kept",
        lambda: instead(
            governed,
            row(frozenset(State) - {State.PENDING_APPROVAL}, Completed, STAY, _dropped, when=task_profiles.is_late),
            task_profiles.is_late,
        ),
    ),
    "the session of a cancelled task is not ended": (
        "cancelled task is ended",
        lambda: instead(governed, row(CLAIMED, Cancelled, State.CANCELLED, _cancelled_only)),
    ),
    "a task that rests is claimed": (
        "has to rest",
        lambda: instead(governed, row(OPEN, Claimed, CLAIMED, task.claim)),
    ),
    "a failure that cannot pass is retried": (
        "cannot pass is not retried",
        lambda: instead(governed, row(State.FAILED, Retried, OPEN, task_profiles.retry_later, when=_never_gives_up)),
    ),
    "silence is consent": (
        "by that person's grant",
        lambda: instead(approval.machine, row(State.PENDING_APPROVAL, ApprovalExpired, DONE)),
    ),
    "a task waits for a person without end": (
        "no work waits for a person for ever",
        lambda: rebuilt(approval.machine, during={}),
    ),
    "unfinished work waits for a person": (
        "only finished work waits",
        lambda: with_approval.with_rows(row(State.IN_PROGRESS, ApprovalRequested, State.PENDING_APPROVAL)),
    ),
}


@pytest.mark.no_cover
@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_a_mistake_in_the_rules_of_tasks_breaks_a_property(mutant: Any) -> None:
    """Each of these mutants breaks the property with these words."""
    must_be_found(mutant)
