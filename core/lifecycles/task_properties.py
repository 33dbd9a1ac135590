"""The properties of a task, for its owner and its dependents: at all times, and of every transition."""

from typing import Any, Final

from lifefold.core.kernel import Event, Property, Transition, always, always_step, leads_to, sometimes, strongly, weakly
from lifefold.core.lifecycles.property_forms import asks_once
from lifefold.core.lifecycles.task_model import (
    Blocked,
    Cancelled,
    Claimed,
    Completed,
    Declined,
    Decomposed,
    Failed,
    Orphaned,
    OwnerReport,
    Rejected,
    Released,
    Retried,
    Started,
    State,
    SubtasksCompleted,
    SubtasksOverdue,
    Task,
    Unblocked,
    Verified,
    settled,
)
from lifefold.core.policy.ends import Trouble
from lifefold.effects import KeepDeadLetter

OWNED: Final = frozenset({State.CLAIMED, State.IN_PROGRESS, State.ORPHANED})
"""The states with a standing claim: the task has an owner, or had one that died."""


def retries_are_bounded(t: Task) -> bool:
    """A task is not retried more often than its limit (E5)."""
    return t.retries <= t.max_retries


def is_owned_only_by_a_claim(t: Task) -> bool:
    """A task without work has no owner, and a task at work has been claimed."""
    if t.state in OWNED:
        return bool(t.owner) and t.epoch > 0
    return not t.owner or t.state in {State.DONE, State.PENDING_APPROVAL, State.WAITING_FOR_SUBTASKS}


def other_claims_change_nothing(step: Transition) -> bool:
    """Only the present owner's reports move a task; a report without a claim (0) splits or blocks it at most (E12)."""
    if not isinstance(step.event, OwnerReport | Blocked):
        return True
    before: Task = step.was
    unclaimed = step.event.epoch == 0 and isinstance(step.event, Decomposed | Blocked)
    unchanged: bool = before == step.after.record
    return unchanged or unclaimed or step.event.epoch == before.epoch


def claims_are_numbered(step: Transition) -> bool:
    """Every claim has a number of its own: it is one above the last, and no number comes back (E12)."""
    grown: int = step.after.record.epoch - step.was.epoch
    return grown == 1 if isinstance(step.event, Claimed) else grown == isinstance(step.event, Orphaned) or grown == 0


def claims_an_unclaimed_task(step: Transition) -> bool:
    """A claimed task cannot be claimed again (E21)."""
    return not step.was.owner


def reports_while_it_has_the_task(step: Transition) -> bool:
    """An owner that has lost its task, by a lease for instance, begins, ends and gives back nothing (E11, E12)."""
    return bool(step.was.owner) or step.entered is None


def kept_is_not_forgotten(step: Transition) -> bool:
    """The kept state of a task is continued from until the work is done, by any owner (D28)."""
    if not isinstance(step.event, Claimed | Started | Failed | Released | Orphaned):
        return True
    before: int = step.was.kept
    after: int = step.after.record.kept
    return after == before if before else not isinstance(step.event, Claimed) or after == step.after.record.epoch


def settled_stays_settled(step: Transition) -> bool:
    """Neither a report nor a retry reopens a settled task; a request has to (E18)."""
    before = step.before
    if before is None or not settled(before.record) or settled(step.after.record):
        return True
    return not isinstance(step.event, OwnerReport | Blocked | Retried | SubtasksCompleted | SubtasksOverdue)


def done_before_closed(step: Transition) -> bool:
    """A task is closed by the verification of its finished work only."""
    before = step.before
    verified = isinstance(step.event, Verified) and before is not None and before.state is State.DONE
    return step.entered is not State.CLOSED or verified


def failures_are_retried_one_by_one(step: Transition) -> bool:
    """A failed task is reopened by a counted retry (E5)."""
    if step.was.state is not State.FAILED or step.entered is None:
        return True
    counted: bool = step.after.record.retries == step.was.retries + 1
    return step.entered is State.OPEN and isinstance(step.event, Retried) and counted


def is_kept(step: Transition) -> bool:
    """The report is only kept: it is of a claim that is over (E12)."""
    return any(isinstance(each, KeepDeadLetter) for each in step.effects)


def keeps_what_was_reported(step: Transition) -> bool:
    """A task has its owner, the reason of its state, the failure of the last attempt, and the commit of its merge."""
    t: Task = step.after.record
    match step.event:
        case Claimed(owner=owner):
            as_reported = (t.owner, t.reason) == (owner, "")
        case Released(reason=reason) | Blocked(reason=reason) | Cancelled(reason=reason) | Declined(reason=reason):
            as_reported = (t.owner, t.reason) == ("", reason)
        case Failed(reason=reason) | Rejected(reason=reason):
            fresh = not isinstance(step.event, Rejected) or not t.kept
            trouble = step.event.trouble if isinstance(step.event, Failed) else Trouble.OTHER
            as_reported = (t.owner, t.reason, t.failure, t.trouble) == ("", reason, reason, trouble) and fresh
        case Verified(commit=commit, branch=branch):
            as_reported = (t.owner, t.reason, t.commit, t.branch) == ("", "", commit, branch)
        case SubtasksOverdue():
            as_reported = not t.owner and bool(t.reason)
        case _:
            as_reported = not isinstance(step.event, Unblocked) or not t.reason
    return is_kept(step) or as_reported


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always("no task is retried more often than its limit", lambda e: retries_are_bounded(e.record)),
    always("a task without work has no owner", lambda e: is_owned_only_by_a_claim(e.record)),
    always_step("a report of another claim changes nothing", other_claims_change_nothing, on=Event),
    always_step("every claim has a number of its own", claims_are_numbered, on=Event),
    always_step(
        "an owner that has lost its task begins, ends and gives back nothing",
        reports_while_it_has_the_task,
        on=Started | Completed | Failed | Released,
    ),
    always_step("the kept state of unfinished work is continued from", kept_is_not_forgotten, on=Event),
    always_step("a claimed task cannot be claimed again", claims_an_unclaimed_task, on=Claimed),
    always_step("a settled task stays settled without a request", settled_stays_settled),
    always_step("a task knows its owner, its reason and its commit", keeps_what_was_reported),
    asks_once(),
    sometimes("a task is retried as often as it may be", lambda e: e.record.retries == e.record.max_retries),
    always_step("only finished and verified work is closed", done_before_closed),
    always_step(
        "a failed task is reopened by a retry, and every retry is counted", failures_are_retried_one_by_one, on=Event
    ),
    leads_to(
        "every claim ends, if its owner or its watcher reports the failure in the end",
        lambda e: e.state in OWNED,
        lambda e: e.state not in OWNED,
        given=weakly(Failed),
    ),
    leads_to(
        "finished work is closed or has failed, if it is verified",
        lambda e: e.state is State.DONE,
        lambda e: e.state in {State.CLOSED, State.FAILED},
        given=strongly(Verified),
    ),
    leads_to(
        "a wait for subtasks ends, if the time limit is watched",
        lambda e: e.state is State.WAITING_FOR_SUBTASKS,
        lambda e: e.state is not State.WAITING_FOR_SUBTASKS,
        given=weakly(SubtasksOverdue),
    ),
    sometimes("a task is closed", lambda e: e.state is State.CLOSED),
    sometimes("a task is closed after a failure", lambda e: e.state is State.CLOSED and e.record.retries > 0),
    sometimes("a task fails for good", lambda e: e.state is State.FAILED and settled(e.record)),
    sometimes("a task is cancelled", lambda e: e.state is State.CANCELLED),
)
