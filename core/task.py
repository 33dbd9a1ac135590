"""A unit of work: planned, claimed, done, verified, closed. The table is document 004's, thirty lines.

*Ownership is an epoch.* Each claim raises ``epoch`` by one, and what its owner reports carries it. A report of an
earlier epoch fits no row: a worker that was given up for dead can complete nothing (E12). What somebody else may say,
too, carries epoch 0 then: a planner splits a task that nobody has claimed, and whoever gives tasks out blocks one.

*Settled is not a state* (E18): a task is settled when nothing will happen to it any more unless somebody asks for it.
That is so for CLOSED and CANCELLED, for FAILED when it may not be retried, and for BLOCKED, which only somebody's
``Unblocked`` leads out of. BLOCKED means whatever is not there, a person's word in the middle of the work included; a
person's word on *finished* work is PENDING_APPROVAL (E4).

PENDING_APPROVAL is not entered or left by any row (E2); it belongs to the approval operation.
"""

from typing import Any, ClassVar, Final, Never

import msgspec

from lifefold.core.kernel import (
    Event,
    Machine,
    Property,
    Record,
    Step,
    Transition,
    always,
    always_step,
    leads_to,
    replace,
    row,
    sometimes,
    strongly,
    weakly,
)
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
        """Return the first claim's report, one of a claim that never was, and the second claim's."""
        return cls(epoch=1), cls(epoch=0), cls(epoch=2)

    @classmethod
    def examples_for(cls, record: Any) -> tuple["_Owned", ...]:
        """Return the present claim's report, one of no claim, and another claim's."""
        return cls(epoch=record.epoch), cls(epoch=0), cls(epoch=record.epoch + 1)


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

    @classmethod
    def examples_for(cls, record: Any) -> tuple["Failed", ...]:
        """Return those of every report, and the present claim's with a trouble that cannot pass."""
        present, nobody, other = (cls(epoch=epoch) for epoch in (record.epoch, 0, record.epoch + 1))
        return present, nobody, other, cls(record.epoch, "permission denied")


class Decomposed(_Owned, frozen=True):
    """The task was split into subtasks, by the owner of claim ``epoch``; or by a planner, with 0, before any claim."""


class Blocked(Event, frozen=True):
    """The task needs something that is not there: the owner of claim ``epoch`` says so, or with 0 who is no owner."""

    reason: str = ""
    epoch: int = 0

    @classmethod
    def examples(cls) -> tuple["Blocked", ...]:
        """Return what the board says, what the first claim's owner says, and one of a claim that never was."""
        return cls(), cls(epoch=1), cls(epoch=-1)

    @classmethod
    def examples_for(cls, record: Any) -> tuple["Blocked", ...]:
        """Return what the present claim's owner says, who is no owner, and another claim's."""
        return cls(epoch=record.epoch), cls(), cls(epoch=record.epoch + 1)


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
    back has a reason, and only what had failed before is its failure. One that is retried keeps the reason until it is
    claimed: that is why it is open again.

    ``kept`` is the claim under whose number sessions keep what a later one goes on from: the first since the work was
    last said to be done, or, before any claim, 0 (D28).
    """

    serials: ClassVar[tuple[str, ...]] = ("epoch", "kept")

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
    kept: int = 0

    @property
    def allowed_retries(self) -> int:
        """How often the task may be opened again after its failures (E5)."""
        return self.max_retries


class Brief(msgspec.Struct, frozen=True):
    """What a worker gets to know of its task.

    ``failure`` is why an earlier attempt failed, if one did; ``kept`` is the claim whose state is gone on from (D28).
    """

    task: str = ""
    epoch: int = 0
    prompt: str = ""
    verify: tuple[tuple[str, ...], ...] = ()
    failure: str = ""
    kept: int = 0


def is_owner(t: Task, e: _Owned) -> bool:
    """The report is the present claim's (E12)."""
    return e.epoch == t.epoch


def is_not_of_another_claim(t: Task, e: Blocked) -> bool:
    """The present owner says it, or somebody who is no owner (E12)."""
    return e.epoch in {0, t.epoch}


def is_of_no_claim(_t: Task, e: Decomposed | Blocked) -> bool:
    """Nobody says it as an owner: there is none (E12)."""
    return e.epoch == 0


def retries_left(t: Task, _e: Retried) -> bool:
    """The task may be tried once more (E5)."""
    return t.retries < t.allowed_retries


def claim(t: Task, e: Claimed) -> Step[Task, Never]:
    """Make the worker the owner, under a new epoch. Why an earlier claim ended is no reason of this one."""
    epoch = t.epoch + 1
    return Step(replace(t, owner=e.owner, epoch=epoch, reason="", kept=t.kept or epoch))


def give_back(t: Task, e: Released) -> Step[Task, Never]:
    """Leave the task without an owner; the epoch stays used. No attempt has failed by that."""
    return Step(replace(t, owner="", reason=e.reason))


def fail(t: Task, e: Failed | Rejected) -> Step[Task, Never]:
    """Keep the reason for the next attempt, and for people. One after a rejection is not to go on from what is done."""
    return Step(failed(t, e.reason, kept=0 if isinstance(e, Rejected) else t.kept))


def failed(t: Task, reason: str, *, kept: int) -> Task:
    """Return the task without an owner, the reason of its failure, and what the next claim may go on from."""
    return replace(t, owner="", reason=reason, failure=reason, kept=kept)


def explain(t: Task, e: Blocked | Cancelled) -> Step[Task, Never]:
    """Keep the reason."""
    return Step(replace(t, owner="", reason=e.reason))


def close(t: Task, e: Verified) -> Step[Task, Never]:
    """Keep the commit that the work was merged as."""
    return Step(replace(t, owner="", commit=e.commit, reason=""))


def resume(t: Task, _e: Unblocked) -> Step[Task, Never]:
    """Forget what was not there: it is."""
    return Step(replace(t, reason=""))


def lose_patience(t: Task, _e: SubtasksOverdue) -> Step[Task, Never]:
    """Say what the task is blocked by."""
    return Step(replace(t, owner="", reason="its subtasks take too long"))


def retry(t: Task, _e: Retried) -> Step[Task, Never]:
    """Count the retry."""
    return Step(replace(t, retries=t.retries + 1))


def settled(t: Task) -> bool:
    """Nothing will happen to this task any more by itself (E18)."""
    given_up = t.state is State.FAILED and not retries_left(t, Retried())
    return given_up or t.state in {State.CLOSED, State.CANCELLED, State.BLOCKED}


def rests(t: Task) -> bool:
    """Nothing more need happen: the task is settled, or open, and who gives tasks out knows for how long."""
    return settled(t) or t.state is State.OPEN


# What holds of every task, and of every step

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
    if step.before is None or not isinstance(step.event, _Owned | Blocked):
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


def settled_stays_settled(step: Transition) -> bool:
    """Neither a report nor a retry opens again what is settled; somebody has to ask for it (E18)."""
    before = step.before
    if before is None or not settled(before.record) or settled(step.after.record):
        return True
    return not isinstance(step.event, _Owned | Blocked | Retried | SubtasksCompleted | SubtasksOverdue)


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


PROMISES: Final[tuple[Property[Any], ...]] = (
    always("no task is retried more often than it may be", lambda e: retries_are_bounded(e.record)),
    always("what nobody works at belongs to nobody", lambda e: is_owned_only_by_a_claim(e.record)),
    always_step("a report of another claim changes nothing", other_claims_change_nothing),
    always_step("every claim has a number of its own", claims_are_numbered),
    always_step("settled stays settled, unless somebody asks for it", settled_stays_settled),
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


machine = Machine(
    "task",
    Task(),
    about="a unit of work: planned, claimed, done, verified, closed",
    rows=(
        row(State.PLANNED, Approved, State.OPEN),
        row(State.PLANNED, Declined, State.CANCELLED),
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
        row(State.WAITING_FOR_SUBTASKS, SubtasksOverdue, State.BLOCKED, lose_patience),
        row(State.WAITING_FOR_SUBTASKS, Cancelled, State.CANCELLED, explain),
        row(State.FAILED, Retried, State.OPEN, retry, when=retries_left),
        row(State.DONE, Verified, State.CLOSED, close, when=is_owner),
        row(State.DONE, Rejected, State.FAILED, fail, when=is_owner),
    ),
    final={State.CLOSED, State.CANCELLED},
    detached={State.PENDING_APPROVAL},
    properties=PROMISES,
    rests=rests,
)

in_fleet = machine.with_rows(row(State.OPEN, Blocked, State.BLOCKED, explain, when=is_of_no_claim))
"""The profile for a fleet: a task that nobody has claimed is blocked when what it depends on fails (E19)."""
