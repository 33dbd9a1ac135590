"""The states, the events and the record of an assignment."""

from typing import Any, ClassVar, Final, Self

from lifefold.core.kernel import Event, Record, replace
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.lifecycles.task import Brief, KeptConversation, OnDeath, Stage
from lifefold.core.policy.ends import Diagnosed, Diagnosis
from lifefold.core.policy.reasons import AbortReason


class State(AnyLifecycleState):
    """The ten states of an assignment."""

    IDLE = "Idle"
    WANTING = "Wanting"
    PREPARING = "Preparing"
    WORKING = "Working"
    ORPHANED = "Orphaned"
    INSPECTING = "Inspecting"
    VERIFYING = "Verifying"
    PARKING = "Parking"
    MERGING = "Merging"
    DISPUTED = "Disputed"


ORPHANED: Final = frozenset({State.ORPHANED, State.INSPECTING})
"""In these states a session has died, and its worktree has not been inspected yet."""

ON_ITS_WAY: Final = frozenset({*ORPHANED, State.VERIFYING, State.PARKING, State.MERGING, State.DISPUTED})
"""In these states the session is over, and its work is verified or merged next."""


class WorkRequested(Event, frozen=True):
    """The worker has asked the board for a task."""


class Assigned(Event, frozen=True):
    """The board gives the worker a task, and the conversation that its agent had about it, if there was one."""

    brief: Brief = Brief()
    conversation: KeptConversation | None = None

    @classmethod
    def examples(cls) -> tuple["Assigned", ...]:
        """Return tasks to work at, with and without approval and orphans, and tasks with only one stage left."""
        return tuple(cls(brief) for brief in (Brief(), Brief(needs_approval=True), *_WITH_ORPHANS, *_LATER))


_WITH_ORPHANS: Final = (
    Brief(orphaned=OnDeath.REQUEUE),
    Brief(orphaned=OnDeath.VERIFY),
    Brief(verify=(("true",),), orphaned=OnDeath.VERIFY),
)
_LATER: Final = (Brief(stage=Stage.VERIFY), Brief(stage=Stage.MERGE, needs_approval=True, result=1))


class CheckedOut(Event, frozen=True):
    """The worktree of the task is ready."""


class CheckoutFailed(Event, frozen=True):
    """The worktree of the task could not be prepared."""

    reason: str = ""


class Prompted(Event, frozen=True):
    """A session has a prompt for the task."""


class WorkContinued(Event, frozen=True):
    """A session has completed, but its claim goes on with another one: an urgent message came too late for it."""


class WorkFinished(Event, frozen=True):
    """The session reports its work as done. ``took_ms`` is its duration, for adaptive time limits; 0 without."""

    took_ms: int = 0


class WorkFailed(Event, Diagnosed, frozen=True):
    """The session failed."""

    reason: str = ""
    diagnosis: Diagnosis | None = None


class SessionDied(Event, Diagnosed, frozen=True):
    """The session has died, and its task handles that without a failure (E40)."""

    reason: str = ""
    diagnosis: Diagnosis | None = None


class SessionGone(Event, frozen=True):
    """No process of the session is alive any more: its worktree will not change."""


class Inspected(Event, frozen=True):
    """The worktree was inspected: it ``differs`` from the start of the claim, or does not (E40).

    ``hidden`` are files that git ignores, and so are not counted as work. ``said`` are the agent's last words, if
    nothing differs.
    """

    differs: bool = False
    hidden: tuple[str, ...] = ()
    said: str = ""

    @classmethod
    def examples(cls) -> tuple["Inspected", ...]:
        """Return an inspection that found a difference, and one that found none."""
        return cls(differs=True), cls()


class Verified(Event, frozen=True):
    """Every verification command succeeded."""


class Rejected(Event, frozen=True):
    """A verification command failed."""

    reason: str = ""


class Parked(Event, frozen=True):
    """The work is kept as ``commit``, for a later merge."""

    opaque: ClassVar[tuple[str, ...]] = ("commit",)

    commit: str = ""


class ParkingFailed(Event, frozen=True):
    """The work could not be kept."""

    reason: str = ""


class Guarded(Event, frozen=True):
    """Base of reports that exist only with a target branch."""

    @classmethod
    def examples_for(cls, record: Any) -> tuple[Self, ...]:
        """Return one with a target branch, none without."""
        return (cls(),) if record.guarded else ()


class Collected(Guarded, frozen=True):
    """The work is committed as ``commit``: from now on exactly this commit is merged."""

    opaque: ClassVar[tuple[str, ...]] = ("commit",)

    commit: str = "c0ffee"


class Displaced(Guarded, frozen=True):
    """An agent has moved the target branch to commit ``found``; ``reason`` describes it."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    found: str = "bad"
    reason: str = ""


class BranchBack(Event, frozen=True):
    """The target branch has left the commit that was found, or lifefold knows that commit by now."""


class BranchAccepted(Event, frozen=True):
    """The operator accepts the target branch at commit ``found``."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    found: str = "bad"
    reason: str = ""

    @classmethod
    def examples_for(cls, record: Any) -> tuple["BranchAccepted", ...]:
        """Return one for the commit that was found, and one for another; none without a target branch."""
        return (cls(record.found), cls("other")) if record.guarded else ()


class Merged(Event, frozen=True):
    """The work is in the target branch as ``commit``, or is that commit on the ready branch ``branch``.

    Both are empty without a repository or without changes.
    """

    commit: str = ""
    branch: str = ""


class Conflicted(Event, frozen=True):
    """The work conflicts with what was merged meanwhile."""

    reason: str = ""


class Dropped(Event, frozen=True):
    """The worker gives the task back before its work is done."""

    reason: str = ""


class Recalled(Event, frozen=True):
    """The board has taken the task from its owner: claim ``epoch`` is over (E20).

    The session may take ``within_ms`` to end; 0 is the grace of its agent. ``abort_reason`` is the reason of its end.
    """

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    task: str = ""
    epoch: int = 0
    reason: str = ""
    within_ms: int = 0
    abort_reason: AbortReason = AbortReason.SHUTDOWN_SIGNAL

    @classmethod
    def examples(cls) -> tuple["Recalled", ...]:
        """Return the recalls of two claims."""
        return cls(epoch=0), cls(epoch=1)


class Rebriefed(Event, frozen=True):
    """The plan has new verification commands for the current task: the next verification runs them."""

    task: str = ""
    epoch: int = 0
    verify: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def examples(cls) -> tuple["Rebriefed", ...]:
        """Return new commands for two claims."""
        return cls(epoch=0, verify=(("true",),)), cls(epoch=1)


class VerifyTimeoutChanged(Event, frozen=True):
    """A verification command may take ``timeout_ms``, from the next verification on."""

    timeout_ms: int = 600_000


class Assignment(Record, frozen=True):
    """The current task of a worker, with its ``brief``. ``sessions`` counts its prompts: 0, 1, or 2 for more.

    ``is_orphan``: the session has died of ``death`` with ``diagnosis``, and its work is not verified yet. ``guarded``:
    there is a target branch. ``collected`` is the commit to merge. ``found`` is the commit that an agent has moved the
    target branch to, and ``accepted`` the commit that the operator accepts. The agent ``resumes``
    this conversation about the task, if there is one. ``to_branch``: verified work becomes a ready branch, and is not
    merged into the target branch. ``continues``: a session has completed, and the next one of the claim has no prompt.
    """

    opaque: ClassVar[tuple[str, ...]] = ("collected", "resumes")

    state: State = State.IDLE
    brief: Brief = Brief()
    sessions: int = 0
    verify_timeout_ms: int = 600_000
    is_orphan: bool = False
    death: str = ""
    diagnosis: Diagnosis | None = None
    guarded: bool = False
    collected: str = ""
    found: str = ""
    accepted: str = ""
    resumes: str = ""
    to_branch: bool = False
    continues: bool = False

    def normal_form(self) -> "Assignment":
        """Return the record without a task that is over, and without the fields that only sessions need."""
        if self.state in {State.IDLE, State.WANTING}:
            gone = replace(self, brief=Brief(), sessions=0, is_orphan=False, death="", diagnosis=None)
            return replace(gone, collected="", found="", accepted="", resumes="", continues=False)
        if self.state in ON_ITS_WAY:
            return replace(self, brief=replace(self.brief, failure="", kept=0), sessions=0, continues=False)
        return self
