"""The parts of a task: its states, its events, its record, and the brief of its worker."""

from enum import StrEnum
from typing import Any, ClassVar, Self

import msgspec

from lifefold.core.kernel import Event, Record, replace
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.lifecycles.budget.amounts import Amounts
from lifefold.core.lifecycles.session_model import Usage
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
    """A report of the owner of claim number ``epoch``."""

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
    """The owner reports success, and the duration of its session if that is recorded."""

    transition_reason: ClassVar = TransitionReason.COMPLETED

    took_ms: int = 0


class Failed(OwnerReport, Diagnosed, frozen=True):
    """The owner reports failure; without a ``diagnosis`` the reason is classified."""

    reason: str = ""
    diagnosis: Diagnosis | None = None

    @property
    def trouble(self) -> Trouble:
        """The kind of the failure, which decides the number of retries (E5)."""
        return (self.diagnosis or diagnosis(self.reason)).trouble

    @classmethod
    def examples_for(cls, record: Any) -> tuple["Failed", ...]:
        """Return those of every report, and the present claim's with a trouble that cannot pass."""
        present, unclaimed, other = (cls(epoch=epoch) for epoch in (record.epoch, 0, record.epoch + 1))
        return present, unclaimed, other, cls(record.epoch, "permission denied")


class Decomposed(OwnerReport, frozen=True):
    """The task was split into subtasks, by the owner of claim ``epoch``; or by a planner, with 0, before any claim."""


class Blocked(Event, frozen=True):
    """The task needs something that is missing. The owner of claim ``epoch`` reports it, or with 0 another process."""

    reason: str = ""
    epoch: int = 0

    @classmethod
    def examples(cls) -> tuple["Blocked", ...]:
        """Return the board's report, that of the first claim's owner, and one of a claim that never was."""
        return cls(), cls(epoch=1), cls(epoch=-1)

    @classmethod
    def examples_for(cls, record: Any) -> tuple["Blocked", ...]:
        """Return the report of the present claim's owner, one of no owner, and another claim's."""
        return cls(epoch=record.epoch), cls(), cls(epoch=record.epoch + 1)


class Unblocked(Event, frozen=True):
    """The missing thing is there."""


class Orphaned(OwnerReport, Diagnosed, frozen=True):
    """The owner is dead, or the session in which it worked."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""
    diagnosis: Diagnosis | None = None


class Salvaged(OwnerReport, frozen=True):
    """The work of the dead owner was enough: it was verified."""

    transition_reason: ClassVar = TransitionReason.ORPHAN_RECOVERED


class SubtasksCompleted(Event, frozen=True):
    """All subtasks are completed."""


class SubtasksOverdue(Event, frozen=True):
    """The subtasks take too long."""


class Verified(OwnerReport, frozen=True):
    """The result was verified, and merged as ``commit``; or it is that commit on the ready branch ``branch``."""

    transition_reason: ClassVar = TransitionReason.COMPLETED
    opaque: ClassVar[tuple[str, ...]] = ("commit", "branch")

    commit: str = ""
    branch: str = ""


class Rejected(OwnerReport, frozen=True):
    """Verification or merge rejected the result."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""


class Retried(Event, frozen=True):
    """The task is to be tried again."""

    transition_reason: ClassVar = TransitionReason.RETRY


class Cancelled(Event, frozen=True):
    """The task is not wanted any more."""

    transition_reason: ClassVar = TransitionReason.ABORTED

    reason: str = ""


class Task(Record, frozen=True):
    """A task. ``priority`` 1 is the highest; ``retries`` counts how often it was reopened after a failure.

    ``reason`` is the reason of its present state, ``failure`` that of the last failed attempt. A task that was given
    back has a reason, and its failure is an earlier one. A retried task keeps the reason until it is claimed: it is
    why the task is open again. ``trouble`` is the kind of the last failure.

    ``kept`` is the claim under whose number sessions keep the state to continue from. It is the first claim since the
    work was last reported done, or 0 before any claim (D28). A closed task on a ready branch has its ``branch``.
    """

    identifiers: ClassVar[tuple[str, ...]] = ("epoch", "kept")
    opaque: ClassVar[tuple[str, ...]] = ("prompt", "reason", "failure", "commit", "kept", "branch")

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
    branch: str = ""

    def normal_form(self) -> Self:
        """Return it without the reason, which is for people, and without data that only a further attempt needs."""
        if self.state in _OVER:
            empty = replace(self, owner="", reason="", failure="", trouble=Trouble.OTHER, commit="", kept=0)
            return replace(empty, branch="")
        return replace(self, reason="", kept=0 if self.exhausted else self.kept)

    @property
    def exhausted(self) -> bool:
        """Whether the task has failed, and may not be retried once more (E5)."""
        return self.state is State.FAILED and self.retries >= self.allowed_retries

    @property
    def allowed_retries(self) -> int:
        """The number of times that the task may be reopened after its failures (E5)."""
        return self.max_retries


_OVER = frozenset({State.CLOSED, State.CANCELLED})


def settled(t: Task) -> bool:
    """Nothing more happens to this task by itself (E18)."""
    return t.exhausted or t.state in {*_OVER, State.BLOCKED}


class Stage(StrEnum):
    """The remaining work of a task: all of it; its verification, after its subtasks; or its merge.

    ``REVERIFY`` is the verification of kept work by commands that have changed while it waited for its approval.
    """

    WORK = "work"
    VERIFY = "verify"
    REVERIFY = "reverify"
    MERGE = "merge"


class OnNothing(StrEnum):
    """The result of a task without verification commands, whose session reports success and has changed nothing.

    It fails, and is retried as after any failure; or it is closed, because it is meant to change nothing.
    """

    FAIL = "fail"
    CLOSE = "close"


class OnDeath(StrEnum):
    """The result of a task whose session has died while it worked at it (E40).

    It fails, and is retried as after any failure. Or it is given back, and no retry is counted. Or the left work is
    verified, and the task fails only if the verification does.
    """

    FAIL = "fail"
    REQUEUE = "requeue"
    VERIFY = "verify"


class KeptConversation(msgspec.Struct, frozen=True):
    """The last conversation of ``agent`` about a task: its identifier, and the sum of what was charged for it.

    ``unsaved`` is the part of ``charged`` that the totals of the program leave out.
    """

    agent: str = ""
    id: str = ""
    charged: Usage = Usage()
    unsaved: Usage = Usage()


class Brief(msgspec.Struct, frozen=True):
    """A worker's view of its task.

    ``failure`` is the reason of an earlier failed attempt; ``kept`` is the claim whose state is continued (D28).
    ``needs_approval``: a person has to agree before the merge. ``stage`` is where to begin. If only the merge is left,
    or only the verification of kept work, ``result`` is a claim. The work is kept under its number, as the commit
    ``collected``. ``share`` is the limit of the cost of its sessions; 0 is no limit. ``orphaned`` is the result if its
    session dies. ``timeout_ms`` is the time limit of a session, if it is estimated from other tasks, and 0 otherwise.
    ``token`` proves the claim in a session's reports. ``on_nothing`` is the result if nothing is changed and no command
    decides.
    """

    opaque: ClassVar[tuple[str, ...]] = ("prompt", "failure", "kept", "result", "token", "collected")

    task: str = ""
    epoch: int = 0
    prompt: str = ""
    verify: tuple[tuple[str, ...], ...] = ()
    failure: str = ""
    kept: int = 0
    needs_approval: bool = False
    stage: Stage = Stage.WORK
    result: int = 0
    share: Amounts = Amounts()
    orphaned: OnDeath = OnDeath.FAIL
    timeout_ms: int = 0
    token: str = ""
    collected: str = ""
    on_nothing: OnNothing = OnNothing.FAIL
