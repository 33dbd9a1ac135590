"""A unit of work: planned, claimed, done, verified, closed. The table is document 004's, thirty lines.

*Ownership is an epoch.* Each claim raises ``epoch`` by one, and the reports of its owner carry it. A report of an
earlier epoch fits no row: a worker that was given up for dead can complete nothing (E12). A report that another process
may send, too, carries epoch 0 then. A planner splits a task before any claim, and the board blocks one.

*Settled is not a state* (E18): a task is settled when nothing more happens to it without a request. That is so for
CLOSED and CANCELLED, for FAILED without a retry left, and for BLOCKED, which only ``Unblocked`` leads out of. BLOCKED
means that anything is missing, also a person's answer in the middle of the work. A person's approval of *finished* work
is PENDING_APPROVAL (E4).

No row enters or leaves PENDING_APPROVAL (E2); it belongs to the approval operation.
"""

from typing import Final, Never, TypeVar

from lifefold.core.kernel import Machine, Row, Step, replace, row
from lifefold.core.lifecycles.property_forms import follows_table
from lifefold.core.lifecycles.task_model import (
    Approved,
    Blocked,
    Brief,
    Cancelled,
    Claimed,
    Completed,
    Declined,
    Decomposed,
    Failed,
    KeptConversation,
    OnDeath,
    OnNothing,
    Orphaned,
    OwnerReport,
    Rejected,
    Released,
    Retried,
    Salvaged,
    Stage,
    Started,
    State,
    SubtasksCompleted,
    SubtasksOverdue,
    Task,
    Unblocked,
    Verified,
    settled,
)
from lifefold.core.lifecycles.task_properties import OWNED, PROPERTIES, is_kept
from lifefold.core.policy.ends import Trouble

__all__ = [
    "OWNED", "Approved", "Blocked", "Brief", "Cancelled", "Claimed", "Completed", "Declined",
    "Decomposed", "Failed", "KeptConversation", "OnDeath", "OnNothing", "Orphaned", "OwnerReport", "Rejected",
    "Released", "Retried", "Salvaged", "Stage", "Started", "State", "SubtasksCompleted", "SubtasksOverdue", "Task",
    "Unblocked", "Verified",
    "block_overdue", "claim", "close", "explain", "fail", "failed", "give_back", "is_not_of_another_claim",
    "is_of_no_claim", "is_owner", "machine", "rests", "resume", "retries_left", "retry", "settled",
]  # fmt: skip

T = TypeVar("T", bound=Task)

# Guards


def is_owner(t: Task, e: OwnerReport) -> bool:
    """The report is the present claim's (E12)."""
    return e.epoch == t.epoch


def is_not_of_another_claim(t: Task, e: Blocked) -> bool:
    """The report is the present owner's, or one of no owner (E12)."""
    return e.epoch in {0, t.epoch}


def is_of_no_claim(_t: Task, e: Decomposed | Blocked) -> bool:
    """The report is of no owner: there is none (E12)."""
    return e.epoch == 0


def retries_left(t: Task, _e: Retried) -> bool:
    """The task may be retried once more (E5)."""
    return t.retries < t.allowed_retries


# Actions


def claim(t: T, e: Claimed) -> Step[T, Never]:
    """Make the worker the owner, under a new epoch. The reason of an earlier claim's end is dropped."""
    epoch = t.epoch + 1
    return Step(replace(t, owner=e.owner, epoch=epoch, reason="", kept=t.kept or epoch))


def give_back(t: T, e: Released) -> Step[T, Never]:
    """Leave the task without an owner; the epoch stays used. The attempt has not failed."""
    return Step(replace(t, owner="", reason=e.reason))


def fail(t: T, e: Failed | Rejected) -> Step[T, Never]:
    """Keep the reason for the next attempt, and for people. After a rejection the next attempt starts afresh.

    The text of a rejection is the output of a verification, and decides nothing.
    """
    if isinstance(e, Rejected):
        return Step(failed(t, e.reason, kept=0))
    return Step(failed(t, e.reason, kept=t.kept, trouble=e.trouble))


def failed(t: T, reason: str, *, kept: int, trouble: Trouble = Trouble.OTHER) -> T:
    """Return the failed task without an owner, with the reason, and with the state that the next claim continues."""
    return replace(t, owner="", reason=reason, failure=reason, trouble=trouble, kept=kept)


def explain(t: T, e: Blocked | Cancelled | Declined) -> Step[T, Never]:
    """Keep the reason."""
    return Step(replace(t, owner="", reason=e.reason))


def close(t: T, e: Verified) -> Step[T, Never]:
    """Keep the commit of the merge, or the commit of the ready branch and its name."""
    return Step(replace(t, owner="", commit=e.commit, branch=e.branch, reason=""))


def resume(t: T, _e: Unblocked) -> Step[T, Never]:
    """Drop the reason: the missing thing is there."""
    return Step(replace(t, reason=""))


def block_overdue(t: T, _e: SubtasksOverdue) -> Step[T, Never]:
    """Keep the reason of the block."""
    return Step(replace(t, owner="", reason="its subtasks take too long"))


def retry(t: T, _e: Retried) -> Step[T, Never]:
    """Count the retry."""
    return Step(replace(t, retries=t.retries + 1))


def rests(t: Task) -> bool:
    """Nothing more must happen: the task is settled, or open until the board gives it out."""
    return settled(t) or t.state is State.OPEN


ROWS: Final[tuple[Row[Task], ...]] = (
    row(State.PLANNED, Approved, State.OPEN),
    row(State.PLANNED, Declined, State.CANCELLED, explain),
    row(State.OPEN, Claimed, State.CLAIMED, claim),
    row(State.OPEN, Decomposed, State.WAITING_FOR_SUBTASKS, when=is_of_no_claim),
    row(State.OPEN, Cancelled, State.CANCELLED, explain),
    row(State.CLAIMED, Started, State.IN_PROGRESS, when=is_owner),
    row(State.CLAIMED, Released, State.OPEN, give_back, when=is_owner),
    row(State.CLAIMED, Completed, State.DONE, when=is_owner),
    row(State.CLAIMED, Failed, State.FAILED, fail, when=is_owner),
    row(State.CLAIMED, Cancelled, State.CANCELLED, explain),
    row(State.CLAIMED, Decomposed, State.WAITING_FOR_SUBTASKS, when=is_owner),
    row(State.CLAIMED, Blocked, State.BLOCKED, explain, when=is_not_of_another_claim),
    row(State.IN_PROGRESS, Completed, State.DONE, when=is_owner),
    row(State.IN_PROGRESS, Failed, State.FAILED, fail, when=is_owner),
    row(State.IN_PROGRESS, Blocked, State.BLOCKED, explain, when=is_not_of_another_claim),
    row(State.IN_PROGRESS, Decomposed, State.WAITING_FOR_SUBTASKS, when=is_owner),
    row(State.IN_PROGRESS, Released, State.OPEN, give_back, when=is_owner),
    row(State.IN_PROGRESS, Cancelled, State.CANCELLED, explain),
    row(State.IN_PROGRESS, Orphaned, State.ORPHANED, when=is_owner),
    row(State.ORPHANED, Salvaged, State.DONE, when=is_owner),
    row(State.ORPHANED, Failed, State.FAILED, fail, when=is_owner),
    row(State.ORPHANED, Released, State.OPEN, give_back, when=is_owner),
    row(State.BLOCKED, Unblocked, State.OPEN, resume),
    row(State.BLOCKED, Cancelled, State.CANCELLED, explain),
    row(State.WAITING_FOR_SUBTASKS, SubtasksCompleted, State.DONE),
    row(State.WAITING_FOR_SUBTASKS, SubtasksOverdue, State.BLOCKED, block_overdue),
    row(State.WAITING_FOR_SUBTASKS, Cancelled, State.CANCELLED, explain),
    row(State.FAILED, Retried, State.OPEN, retry, when=retries_left),
    row(State.DONE, Verified, State.CLOSED, close, when=is_owner),
    row(State.DONE, Rejected, State.FAILED, fail, when=is_owner),
)

machine = Machine(
    "task",
    Task(),
    about="a unit of work: planned, claimed, done, verified, closed",
    rows=ROWS,
    final={State.CLOSED, State.CANCELLED},
    detached={State.PENDING_APPROVAL},
    properties=(*PROPERTIES, *follows_table(ROWS, but=(Claimed, retries_left), unless=is_kept)),
    rests=rests,
)
