"""A unit of work: planned, claimed, done, verified, closed. The table is document 004's, thirty lines.

*Ownership is an epoch.* Each claim raises ``epoch`` by one, and what its owner reports carries it. A report of an
earlier epoch fits no row: a worker that was given up for dead can complete nothing (E12).

*Settled is not a state* (E18): a task is settled when nothing will happen to it any more unless somebody asks for it.
That is so for CLOSED and CANCELLED, for FAILED when its retries are used up, and for BLOCKED when what it depends on
has failed.

PENDING_APPROVAL is not entered or left by any row (E2); it belongs to the approval operation.
"""

from typing import ClassVar, Never

import msgspec

from lifefold.core.kernel import Event, Machine, Record, Step, replace, row
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.policy.reasons import TransitionReason


class State(AnyLifecycleState):
    """The twelve states of a task."""

    PLANNED = "PLANNED"
    OPEN = "OPEN"
    CLAIMED = "CLAIMED"
    IN_PROGRESS = "IN_PROGRESS"
    DONE = "DONE"
    CLOSED = "CLOSED"
    FAILED = "FAILED"
    BLOCKED = "BLOCKED"
    WAITING_FOR_SUBTASKS = "WAITING_FOR_SUBTASKS"
    CANCELLED = "CANCELLED"
    ORPHANED = "ORPHANED"
    PENDING_APPROVAL = "PENDING_APPROVAL"


class Approved(Event, frozen=True):
    """A person approves the planned task."""


class Declined(Event, frozen=True):
    """A person rejects the planned task."""


class Claimed(Event, frozen=True):
    """A worker claims the task."""

    owner: str = "worker"


class _Owned(Event, frozen=True):
    """Reported by the owner of claim number ``epoch``."""

    epoch: int = 1

    @classmethod
    def examples(cls) -> tuple["_Owned", ...]:
        """Return the first claim's report and one of a claim that never was."""
        return cls(epoch=1), cls(epoch=0)


class Started(_Owned, frozen=True):
    """The owner begins to work."""


class Released(_Owned, frozen=True):
    """The owner gives the task back, or it is taken away."""

    reason: str = ""


class Completed(_Owned, frozen=True):
    """The owner reports success."""

    transition_reason: ClassVar = TransitionReason.COMPLETED


class Failed(_Owned, frozen=True):
    """The owner reports failure."""

    reason: str = ""


class Decomposed(_Owned, frozen=True):
    """The task was split into subtasks."""


class Blocked(Event, frozen=True):
    """The task needs something that is not there."""

    reason: str = ""


class Unblocked(Event, frozen=True):
    """What the task needed is there."""


class Orphaned(_Owned, frozen=True):
    """The owner is dead."""


class Salvaged(_Owned, frozen=True):
    """What the dead owner left was enough: verified and merged."""

    transition_reason: ClassVar = TransitionReason.ORPHAN_RECOVERED


class SubtasksCompleted(Event, frozen=True):
    """All subtasks are completed."""


class SubtasksOverdue(Event, frozen=True):
    """The subtasks take too long."""


class Verified(_Owned, frozen=True):
    """The result was verified and merged as ``commit``."""

    commit: str = ""


class Rejected(_Owned, frozen=True):
    """Verification or merge rejected the result."""

    reason: str = ""


class Retried(Event, frozen=True):
    """The task is to be tried again."""

    transition_reason: ClassVar = TransitionReason.RETRY


class Cancelled(Event, frozen=True):
    """Somebody does not want the task any more."""

    reason: str = ""


class Task(Record, frozen=True):
    """A task. ``priority`` 1 is the highest; ``retries`` counts how often it was opened again after a failure.

    ``reason`` is why it is where it is, ``failure`` why the last attempt that failed has failed: a task that was given
    back has a reason, and only what had failed before is its failure.
    """

    state: State = State.PLANNED
    id: str = ""
    prompt: str = ""
    verify: tuple[tuple[str, ...], ...] = ()
    depends_on: tuple[str, ...] = ()
    priority: int = 2
    ordinal: int = 0
    max_retries: int = 3
    retries: int = 0
    epoch: int = 0
    owner: str = ""
    reason: str = ""
    failure: str = ""
    commit: str = ""


class Brief(msgspec.Struct, frozen=True):
    """What a worker gets to know of its task. ``failure`` is why an earlier attempt failed, if one did."""

    task: str = ""
    epoch: int = 0
    prompt: str = ""
    verify: tuple[tuple[str, ...], ...] = ()
    failure: str = ""


def is_owner(t: Task, e: _Owned) -> bool:
    """The report is the present claim's (E12)."""
    return e.epoch == t.epoch


def retries_left(t: Task, _e: Retried) -> bool:
    """The task may be tried once more (E5)."""
    return t.retries < t.max_retries


def claim(t: Task, e: Claimed) -> Step[Task, Never]:
    """Make the worker the owner, under a new epoch. Why an earlier claim ended is no reason of this one."""
    return Step(replace(t, owner=e.owner, epoch=t.epoch + 1, reason=""))


def give_back(t: Task, e: Released) -> Step[Task, Never]:
    """Leave the task without an owner; the epoch stays used. No attempt has failed by that."""
    return Step(replace(t, owner="", reason=e.reason))


def fail(t: Task, e: Failed | Rejected) -> Step[Task, Never]:
    """Keep the reason for the next attempt, and for people."""
    return Step(replace(t, owner="", reason=e.reason, failure=e.reason))


def explain(t: Task, e: Blocked | Cancelled) -> Step[Task, Never]:
    """Keep the reason."""
    return Step(replace(t, owner="", reason=e.reason))


def close(t: Task, e: Verified) -> Step[Task, Never]:
    """Keep the commit that the work was merged as."""
    return Step(replace(t, owner="", commit=e.commit, reason=""))


def retry(t: Task, _e: Retried) -> Step[Task, Never]:
    """Count the retry."""
    return Step(replace(t, retries=t.retries + 1))


machine = Machine(
    "task",
    Task(),
    about="a unit of work: planned, claimed, done, verified, closed",
    rows=(
        row(State.PLANNED, Approved, State.OPEN),
        row(State.PLANNED, Declined, State.CANCELLED),
        row(State.OPEN, Claimed, State.CLAIMED, claim),
        row(State.OPEN, Decomposed, State.WAITING_FOR_SUBTASKS),
        row(State.OPEN, Cancelled, State.CANCELLED, explain),
        row(State.CLAIMED, Started, State.IN_PROGRESS, when=is_owner),
        row(State.CLAIMED, Released, State.OPEN, give_back, when=is_owner),
        row(State.CLAIMED, Completed, State.DONE, when=is_owner),
        row(State.CLAIMED, Failed, State.FAILED, fail, when=is_owner),
        row(State.CLAIMED, Cancelled, State.CANCELLED, explain),
        row(State.CLAIMED, Decomposed, State.WAITING_FOR_SUBTASKS, when=is_owner),
        row(State.CLAIMED, Blocked, State.BLOCKED, explain),
        row(State.IN_PROGRESS, Completed, State.DONE, when=is_owner),
        row(State.IN_PROGRESS, Failed, State.FAILED, fail, when=is_owner),
        row(State.IN_PROGRESS, Blocked, State.BLOCKED, explain),
        row(State.IN_PROGRESS, Decomposed, State.WAITING_FOR_SUBTASKS, when=is_owner),
        row(State.IN_PROGRESS, Released, State.OPEN, give_back, when=is_owner),
        row(State.IN_PROGRESS, Cancelled, State.CANCELLED, explain),
        row(State.IN_PROGRESS, Orphaned, State.ORPHANED, when=is_owner),
        row(State.ORPHANED, Salvaged, State.DONE, when=is_owner),
        row(State.ORPHANED, Failed, State.FAILED, fail, when=is_owner),
        row(State.ORPHANED, Released, State.OPEN, give_back, when=is_owner),
        row(State.BLOCKED, Unblocked, State.OPEN),
        row(State.BLOCKED, Cancelled, State.CANCELLED, explain),
        row(State.WAITING_FOR_SUBTASKS, SubtasksCompleted, State.DONE),
        row(State.WAITING_FOR_SUBTASKS, SubtasksOverdue, State.BLOCKED),
        row(State.WAITING_FOR_SUBTASKS, Cancelled, State.CANCELLED, explain),
        row(State.FAILED, Retried, State.OPEN, retry, when=retries_left),
        row(State.DONE, Verified, State.CLOSED, close, when=is_owner),
        row(State.DONE, Rejected, State.FAILED, fail, when=is_owner),
    ),
    final={State.CLOSED, State.CANCELLED},
    detached={State.PENDING_APPROVAL},
)

in_fleet = machine.with_rows(row(State.OPEN, Blocked, State.BLOCKED, explain))
"""The profile for a fleet: a task that nobody has claimed is blocked when what it depends on fails (E19)."""


def settled(t: Task) -> bool:
    """Nothing will happen to this task any more by itself (E18)."""
    exhausted = t.state is State.FAILED and t.retries >= t.max_retries
    return exhausted or t.state in {State.CLOSED, State.CANCELLED, State.BLOCKED}
