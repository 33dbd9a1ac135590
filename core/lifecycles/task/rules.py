"""The guards and the actions of a task, and the condition of being settled."""

from typing import Final, Never, TypeVar

from lifefold.core.kernel import Step, replace
from lifefold.core.lifecycles.task.model import (
    Blocked,
    Cancelled,
    Claimed,
    Declined,
    Decomposed,
    Failed,
    OwnerReport,
    Rejected,
    Released,
    Retried,
    State,
    SubtasksOverdue,
    Task,
    Unblocked,
    Verified,
)
from lifefold.core.policy.ends import Trouble

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
    """Keep the commit of the merge."""
    return Step(replace(t, owner="", commit=e.commit, reason=""))


def resume(t: T, _e: Unblocked) -> Step[T, Never]:
    """Drop the reason: the missing thing is there."""
    return Step(replace(t, reason=""))


def block_overdue(t: T, _e: SubtasksOverdue) -> Step[T, Never]:
    """Keep the reason of the block."""
    return Step(replace(t, owner="", reason="its subtasks take too long"))


def retry(t: T, _e: Retried) -> Step[T, Never]:
    """Count the retry."""
    return Step(replace(t, retries=t.retries + 1))


# When nothing more must happen


def settled(t: Task) -> bool:
    """Nothing more happens to this task by itself (E18)."""
    if t.state is State.FAILED:
        return not retries_left(t, Retried())
    return t.state in _SETTLED


_SETTLED: Final = frozenset({State.CLOSED, State.CANCELLED, State.BLOCKED})


def rests(t: Task) -> bool:
    """Nothing more must happen: the task is settled, or open until the board gives it out."""
    return settled(t) or t.state is State.OPEN
