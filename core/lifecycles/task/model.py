"""What a task is made of: its states, the events that reach it, its record, and what a worker gets to know of it."""

from enum import StrEnum
from typing import Any, ClassVar, Self

import msgspec

from lifefold.core.kernel import Event, Record, replace
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.lifecycles.budget.amounts import Amounts
from lifefold.core.policy.ends import Diagnosed, Diagnosis, Trouble, diagnosis
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

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""


class Declined(Event, frozen=True):
    """A person rejects the planned task."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""


class Claimed(Event, frozen=True):
    """A worker claims the task."""

    owner: str = "worker"


class OwnerReport(Event, frozen=True):
    """Reported by the owner of claim number ``epoch``."""

    epoch: int = 1

    @classmethod
    def examples(cls) -> tuple["OwnerReport", ...]:
        """Return the first claim's report, one of a claim that never was, and the second claim's."""
        return cls(epoch=1), cls(epoch=0), cls(epoch=2)

    @classmethod
    def examples_for(cls, record: Any) -> tuple["OwnerReport", ...]:
        """Return the present claim's report, one of no claim, and another claim's."""
        return cls(epoch=record.epoch), cls(epoch=0), cls(epoch=record.epoch + 1)


class Started(OwnerReport, frozen=True):
    """The owner begins to work."""


class Released(OwnerReport, frozen=True):
    """The owner gives the task back, or it is taken away."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""


class Completed(OwnerReport, frozen=True):
    """The owner reports success, of a session that took so long, where that is asked for."""

    transition_reason: ClassVar = TransitionReason.COMPLETED

    took_ms: int = 0


class Failed(OwnerReport, Diagnosed, frozen=True):
    """The owner reports failure; without a ``diagnosis`` the reason is judged."""

    reason: str = ""
    diagnosis: Diagnosis | None = None

    @property
    def trouble(self) -> Trouble:
        """What kind of failure it is: by this it is decided how often the task is tried again (E5)."""
        return (self.diagnosis or diagnosis(self.reason)).trouble

    @classmethod
    def examples_for(cls, record: Any) -> tuple["Failed", ...]:
        """Return those of every report, and the present claim's with a trouble that cannot pass."""
        present, nobody, other = (cls(epoch=epoch) for epoch in (record.epoch, 0, record.epoch + 1))
        return present, nobody, other, cls(record.epoch, "permission denied")


class Decomposed(OwnerReport, frozen=True):
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


class Orphaned(OwnerReport, Diagnosed, frozen=True):
    """The owner is dead, or the session in which it worked."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""
    diagnosis: Diagnosis | None = None


class Salvaged(OwnerReport, frozen=True):
    """What the dead owner left was enough: it was verified."""

    transition_reason: ClassVar = TransitionReason.ORPHAN_RECOVERED


class SubtasksCompleted(Event, frozen=True):
    """All subtasks are completed."""


class SubtasksOverdue(Event, frozen=True):
    """The subtasks take too long."""


class Verified(OwnerReport, frozen=True):
    """The result was verified and merged as ``commit``."""

    transition_reason: ClassVar = TransitionReason.COMPLETED
    opaque: ClassVar[tuple[str, ...]] = ("commit",)

    commit: str = ""


class Rejected(OwnerReport, frozen=True):
    """Verification or merge rejected the result."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""


class Retried(Event, frozen=True):
    """The task is to be tried again."""

    transition_reason: ClassVar = TransitionReason.RETRY


class Cancelled(Event, frozen=True):
    """Somebody does not want the task any more."""

    transition_reason: ClassVar = TransitionReason.ABORTED

    reason: str = ""


class Task(Record, frozen=True):
    """A task. ``priority`` 1 is the highest; ``retries`` counts how often it was opened again after a failure.

    ``reason`` is why it is where it is, ``failure`` why the last attempt that failed has failed: a task that was given
    back has a reason, and only what had failed before is its failure. One that is retried keeps the reason until it is
    claimed: that is why it is open again. ``trouble`` is what kind of failure the last one was.

    ``kept`` is the claim under whose number sessions keep what a later one goes on from: the first since the work was
    last said to be done, or, before any claim, 0 (D28).
    """

    identifiers: ClassVar[tuple[str, ...]] = ("epoch", "kept")
    opaque: ClassVar[tuple[str, ...]] = ("prompt", "reason", "failure", "commit", "kept")

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
    trouble: Trouble = Trouble.OTHER
    commit: str = ""
    kept: int = 0

    def normal_form(self) -> Self:
        """Return it without the reason, which is for people, and without what only a further attempt would need."""
        if self.state in _OVER:
            return replace(self, owner="", reason="", failure="", trouble=Trouble.OTHER, commit="", kept=0)
        exhausted = self.state is State.FAILED and self.retries >= self.allowed_retries
        return replace(self, reason="", kept=0 if exhausted else self.kept)

    @property
    def allowed_retries(self) -> int:
        """How often the task may be opened again after its failures (E5)."""
        return self.max_retries


_OVER = frozenset({State.CLOSED, State.CANCELLED})


class Stage(StrEnum):
    """What is left to be done of a task: all of it; to verify it, its subtasks being closed; to merge it."""

    WORK = "work"
    VERIFY = "verify"
    MERGE = "merge"


class OnNothing(StrEnum):
    """What becomes of a task without verification commands whose session says it is done, and has changed nothing.

    It fails, and is retried as after any failure; or it is closed, because it is meant to change nothing.
    """

    FAIL = "fail"
    CLOSE = "close"


class OnDeath(StrEnum):
    """What becomes of a task whose session has died while it worked at it (E40).

    It fails, and is retried as after any failure; or it is given back, and no retry is counted; or what the session has
    left is verified, and the task fails only if that is not the work.
    """

    FAIL = "fail"
    REQUEUE = "requeue"
    VERIFY = "verify"


class Brief(msgspec.Struct, frozen=True):
    """What a worker gets to know of its task.

    ``failure`` is why an earlier attempt failed, if one did; ``kept`` is the claim whose state is gone on from (D28).
    ``asks``: a person has to agree before it is merged. ``stage`` is where to begin, and ``result`` the claim under
    whose number the work is kept, if it only is to be merged, as the commit ``collected``. ``share`` is what its
    sessions may cost; 0 is no limit. ``orphaned`` is what becomes of it if its session dies. ``timeout_ms`` is for how
    long a session of it may take, if that is said by how long others took; else 0. ``token`` is what a session shows
    when it speaks of its claim. ``on_nothing`` is what becomes of it if nothing is changed and no command tells.
    """

    opaque: ClassVar[tuple[str, ...]] = ("prompt", "failure", "kept", "result", "token", "collected")

    task: str = ""
    epoch: int = 0
    prompt: str = ""
    verify: tuple[tuple[str, ...], ...] = ()
    failure: str = ""
    kept: int = 0
    asks: bool = False
    stage: Stage = Stage.WORK
    result: int = 0
    share: Amounts = Amounts()
    orphaned: OnDeath = OnDeath.FAIL
    timeout_ms: int = 0
    token: str = ""
    collected: str = ""
    on_nothing: OnNothing = OnNothing.FAIL
