"""What the owner of a task, and whoever waits for it, can rely on: at any time, and of every step."""

from collections.abc import Mapping
from typing import Any, Final

from lifefold.core.kernel import (
    Event,
    Property,
    Transition,
    accepts,
    always,
    always_step,
    leads_to,
    sometimes,
    strongly,
    weakly,
)
from lifefold.core.lifecycles.property_forms import asks_once
from lifefold.core.lifecycles.task.model import (
    Approved,
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
    Salvaged,
    Started,
    State,
    SubtasksCompleted,
    SubtasksOverdue,
    Task,
    Unblocked,
    Verified,
)
from lifefold.core.lifecycles.task.rules import settled
from lifefold.core.policy.ends import Trouble
from lifefold.effects import KeepDeadLetter

OWNED: Final = frozenset({State.CLAIMED, State.IN_PROGRESS, State.ORPHANED})
"""In these a claim stands: somebody has the task, or had it when it died."""


def retries_are_bounded(t: Task) -> bool:
    """A task is not tried again more often than it may be (E5)."""
    return t.retries <= t.max_retries


def is_owned_only_by_a_claim(t: Task) -> bool:
    """What nobody works at belongs to nobody, and what somebody works at has been claimed."""
    if t.state in OWNED:
        return bool(t.owner) and t.epoch > 0
    return not t.owner or t.state in {State.DONE, State.PENDING_APPROVAL, State.WAITING_FOR_SUBTASKS}


def other_claims_change_nothing(step: Transition) -> bool:
    """Only the present owner moves a task by a report; nobody's word (0) splits or blocks it at most (E12)."""
    if step.before is None or not isinstance(step.event, OwnerReport | Blocked):
        return True
    before: Task = step.before.record
    nobody = step.event.epoch == 0 and isinstance(step.event, Decomposed | Blocked)
    unchanged: bool = before == step.after.record
    return unchanged or nobody or step.event.epoch == before.epoch


def claims_are_numbered(step: Transition) -> bool:
    """Every claim has a number of its own: it is one above the last, and no number comes back (E12)."""
    if step.before is None:
        return True
    grown: int = step.after.record.epoch - step.before.record.epoch
    return grown == 1 if isinstance(step.event, Claimed) else grown == isinstance(step.event, Orphaned) or grown == 0


def claims_what_nobody_has(step: Transition) -> bool:
    """Who comes second finds the task claimed (E21)."""
    return step.before is None or not isinstance(step.event, Claimed) or not step.before.record.owner


def reports_while_it_has_the_task(step: Transition) -> bool:
    """Whoever has lost a task, by a lease for instance, begins, ends and gives back nothing any more (E11, E12)."""
    if step.before is None or not isinstance(step.event, Started | Completed | Failed | Released):
        return True
    return bool(step.before.record.owner) or step.entered is None


def kept_is_not_forgotten(step: Transition) -> bool:
    """What a session has kept of a task is gone on from until the work is done, whoever goes on (D28)."""
    if step.before is None or not isinstance(step.event, Claimed | Started | Failed | Released | Orphaned):
        return True
    before: int = step.before.record.kept
    after: int = step.after.record.kept
    return after == before if before else not isinstance(step.event, Claimed) or after == step.after.record.epoch


def settled_stays_settled(step: Transition) -> bool:
    """Neither a report nor a retry opens again what is settled; somebody has to ask for it (E18)."""
    before = step.before
    if before is None or not settled(before.record) or settled(step.after.record):
        return True
    return not isinstance(step.event, OwnerReport | Blocked | Retried | SubtasksCompleted | SubtasksOverdue)


def done_before_closed(step: Transition) -> bool:
    """A task is closed by the verification of what is done, and of nothing else."""
    before = step.before
    verified = isinstance(step.event, Verified) and before is not None and before.state is State.DONE
    return step.entered is not State.CLOSED or verified


def failures_are_retried_one_by_one(step: Transition) -> bool:
    """A task that has failed is opened by a retry that is counted (E5)."""
    if step.before is None or step.before.state is not State.FAILED or step.entered is None:
        return True
    counted: bool = step.after.record.retries == step.before.record.retries + 1
    return step.entered is State.OPEN and isinstance(step.event, Retried) and counted


def leads_where_it_says(step: Transition) -> bool:
    """Every event leads where the document says, wherever it is taken; what is only kept for people leads nowhere."""
    kept = any(isinstance(each, KeepDeadLetter) for each in step.effects)
    return step.before is None or kept or step.after.state is _AFTER.get(type(step.event), step.after.state)


_AFTER: Final[Mapping[type[Event], State]] = {
    Approved: State.OPEN,
    Declined: State.CANCELLED,
    Claimed: State.CLAIMED,
    Started: State.IN_PROGRESS,
    Released: State.OPEN,
    Completed: State.DONE,
    Failed: State.FAILED,
    Rejected: State.FAILED,
    Verified: State.CLOSED,
    Retried: State.OPEN,
    Blocked: State.BLOCKED,
    Unblocked: State.OPEN,
    Cancelled: State.CANCELLED,
    Decomposed: State.WAITING_FOR_SUBTASKS,
    SubtasksCompleted: State.DONE,
    SubtasksOverdue: State.BLOCKED,
    Orphaned: State.ORPHANED,
    Salvaged: State.DONE,
}
"""Where the document's events lead."""


def keeps_what_was_said(step: Transition) -> bool:
    """A task knows who has it, why it was put away, what the last attempt failed at, and how its work was merged."""
    t: Task = step.after.record
    kept = any(isinstance(each, KeepDeadLetter) for each in step.effects)
    match step.event:
        case Claimed(owner=owner):
            said = (t.owner, t.reason) == (owner, "")
        case Released(reason=reason) | Blocked(reason=reason) | Cancelled(reason=reason) | Declined(reason=reason):
            said = (t.owner, t.reason) == ("", reason)
        case Failed(reason=reason) | Rejected(reason=reason):
            fresh = not isinstance(step.event, Rejected) or not t.kept
            trouble = step.event.trouble if isinstance(step.event, Failed) else Trouble.OTHER
            said = (t.owner, t.reason, t.failure, t.trouble) == ("", reason, reason, trouble) and fresh
        case Verified(commit=commit):
            said = (t.owner, t.reason, t.commit) == ("", "", commit)
        case SubtasksOverdue():
            said = not t.owner and bool(t.reason)
        case _:
            said = not isinstance(step.event, Unblocked) or not t.reason
    return kept or said


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always("no task is retried more often than it may be", lambda e: retries_are_bounded(e.record)),
    always("what nobody works at belongs to nobody", lambda e: is_owned_only_by_a_claim(e.record)),
    always_step("a report of another claim changes nothing", other_claims_change_nothing),
    always_step("every claim has a number of its own", claims_are_numbered),
    always_step("who has lost a task begins, ends and gives back nothing", reports_while_it_has_the_task),
    always_step("what is kept of unfinished work is gone on from", kept_is_not_forgotten),
    always_step("nobody claims what somebody has", claims_what_nobody_has),
    always_step("settled stays settled, unless somebody asks for it", settled_stays_settled),
    always_step("every event leads where the document says", leads_where_it_says),
    accepts(
        "what the document lists for a state is taken there",
        {
            State.PLANNED: (Approved, Declined),
            State.OPEN: (Decomposed, Cancelled),
            State.CLAIMED: (Started, Released, Completed, Failed, Cancelled, Decomposed, Blocked),
            State.IN_PROGRESS: (Completed, Failed, Blocked, Decomposed, Released, Cancelled, Orphaned),
            State.ORPHANED: (Salvaged, Failed, Released),
            State.BLOCKED: (Unblocked, Cancelled),
            State.WAITING_FOR_SUBTASKS: (SubtasksCompleted, SubtasksOverdue, Cancelled),
            State.DONE: (Verified, Rejected),
        },
    ),
    always_step("a task knows its owner, its reason and its commit", keeps_what_was_said),
    asks_once(),
    sometimes("a task is retried as often as it may be", lambda e: e.record.retries == e.record.max_retries),
    always_step("only what is done and verified is closed", done_before_closed),
    always_step("what has failed is opened by a retry, and every retry is counted", failures_are_retried_one_by_one),
    leads_to(
        "every claim ends, if its owner or who watches it says at last that it has failed",
        lambda e: e.state in OWNED,
        lambda e: e.state not in OWNED,
        given=weakly(Failed),
    ),
    leads_to(
        "what is done is closed or has failed, if it is verified",
        lambda e: e.state is State.DONE,
        lambda e: e.state in {State.CLOSED, State.FAILED},
        given=strongly(Verified),
    ),
    leads_to(
        "who waits for subtasks does not wait for ever, if somebody has an eye on the time",
        lambda e: e.state is State.WAITING_FOR_SUBTASKS,
        lambda e: e.state is not State.WAITING_FOR_SUBTASKS,
        given=weakly(SubtasksOverdue),
    ),
    sometimes("a task is closed", lambda e: e.state is State.CLOSED),
    sometimes("a task is closed after a failure", lambda e: e.state is State.CLOSED and e.record.retries > 0),
    sometimes("a task fails for good", lambda e: e.state is State.FAILED and settled(e.record)),
    sometimes("a task is cancelled", lambda e: e.state is State.CANCELLED),
)
