"""The states, the events and the record of an assignment."""

from typing import Any, ClassVar, Final, Self

from lifefold.core.kernel import Event, Record, replace
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.lifecycles.task import Brief, OnDeath, Stage
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
"""In these a session has died, and nobody knows yet whether it has left anything."""

ON_ITS_WAY: Final = frozenset({*ORPHANED, State.VERIFYING, State.PARKING, State.MERGING, State.DISPUTED})
"""In these the work is done, and on its way home; or it may turn out to be."""


class WorkRequested(Event, frozen=True):
    """The board was asked for work."""


class Assigned(Event, frozen=True):
    """The board gives the worker a task."""

    brief: Brief = Brief()

    @classmethod
    def examples(cls) -> tuple["Assigned", ...]:
        """Return a task to be worked at, others that differ in what follows, and some of which only a part is left."""
        return tuple(cls(brief) for brief in (Brief(), Brief(asks=True), *_WITH_ORPHANS, *_LATER))


_WITH_ORPHANS: Final = (
    Brief(orphaned=OnDeath.REQUEUE),
    Brief(orphaned=OnDeath.VERIFY),
    Brief(verify=(("true",),), orphaned=OnDeath.VERIFY),
)
_LATER: Final = (Brief(stage=Stage.VERIFY), Brief(stage=Stage.MERGE, asks=True, result=1))


class CheckedOut(Event, frozen=True):
    """The task's place is ready."""


class CheckoutFailed(Event, frozen=True):
    """The task's place could not be made."""

    reason: str = ""


class Prompted(Event, frozen=True):
    """A session was given a prompt for the task."""


class WorkFinished(Event, frozen=True):
    """The session says that the work is done. It took so long, where that is asked for."""

    took_ms: int = 0


class WorkFailed(Event, Diagnosed, frozen=True):
    """The session failed."""

    reason: str = ""
    diagnosis: Diagnosis | None = None


class SessionDied(Event, Diagnosed, frozen=True):
    """The session has died, and what becomes of its task is not that it has failed."""

    reason: str = ""
    diagnosis: Diagnosis | None = None


class Buried(Event, frozen=True):
    """Nothing of the session is alive any more: what it has left will not change."""


class Inspected(Event, frozen=True):
    """What is in the task's place ``differs`` from where the claim began, or does not (E40).

    ``hidden`` are what is there besides, and is no work because a rule ignores it.
    """

    differs: bool = False
    hidden: tuple[str, ...] = ()

    @classmethod
    def examples(cls) -> tuple["Inspected", ...]:
        """Return one of a session that has left something, and one of a session that has not."""
        return cls(differs=True), cls()


class Verified(Event, frozen=True):
    """Every verification command agreed."""


class Rejected(Event, frozen=True):
    """A verification command did not agree."""

    reason: str = ""


class Parked(Event, frozen=True):
    """The work is kept, as ``commit``, where whoever merges it finds it."""

    opaque: ClassVar[tuple[str, ...]] = ("commit",)

    commit: str = ""


class ParkingFailed(Event, frozen=True):
    """The work cannot be kept as it is."""

    reason: str = ""


class Guarded(Event, frozen=True):
    """Base of what is reported only where the work is merged into a branch of a repository."""

    @classmethod
    def examples_for(cls, record: Any) -> tuple[Self, ...]:
        """Return one where there is such a branch."""
        return (cls(),) if record.guarded else ()


class Collected(Guarded, frozen=True):
    """What is to be merged is committed, as ``commit``: from now on that is merged, and nothing else."""

    opaque: ClassVar[tuple[str, ...]] = ("commit",)

    commit: str = "c0ffee"


class Displaced(Guarded, frozen=True):
    """An agent has moved the fleet's branch to commit ``found``; ``reason`` says what is known of it."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    found: str = "bad"
    reason: str = ""


class BranchBack(Event, frozen=True):
    """The fleet's branch is not where it was found any more, or lifefold knows that commit by now."""


class BranchAccepted(Event, frozen=True):
    """The operator accepts the fleet's branch as it was found."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    found: str = "bad"
    reason: str = ""

    @classmethod
    def examples_for(cls, record: Any) -> tuple["BranchAccepted", ...]:
        """Return one of the commit that was found, and one of another one; none where there is no such branch."""
        return (cls(record.found), cls("other")) if record.guarded else ()


class Merged(Event, frozen=True):
    """The work is in the fleet's branch, as ``commit``; empty where there is no repository or nothing was changed."""

    commit: str = ""


class Conflicted(Event, frozen=True):
    """The work does not fit what others have merged meanwhile."""

    reason: str = ""


class Dropped(Event, frozen=True):
    """The worker stops before the work is done."""

    reason: str = ""


class Recalled(Event, frozen=True):
    """The board has taken the task from its owner: claim number ``epoch`` of it is over (E20).

    Its session may take ``within_ms`` to end; with 0 it has its agent's grace. ``abort_reason`` is why it is ended.
    """

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    task: str = ""
    epoch: int = 0
    reason: str = ""
    within_ms: int = 0
    abort_reason: AbortReason = AbortReason.SHUTDOWN_SIGNAL

    @classmethod
    def examples(cls) -> tuple["Recalled", ...]:
        """Return the recall of a claim, and that of another one."""
        return cls(epoch=0), cls(epoch=1)


class Rebriefed(Event, frozen=True):
    """The plan has other verification commands for the task in hand: the next verification runs them."""

    task: str = ""
    epoch: int = 0
    verify: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def examples(cls) -> tuple["Rebriefed", ...]:
        """Return commands for a claim, and those for another one."""
        return cls(epoch=0, verify=(("true",),)), cls(epoch=1)


class VerifyTimeoutChanged(Event, frozen=True):
    """From its next verification on one command may take so long."""

    timeout_ms: int = 600_000


class Assignment(Record, frozen=True):
    """The task in hand: its brief. ``sessions`` counts the prompts written for it: none, one, or 2 for more.

    ``is_orphan``: its session has died, by ``death``, which means ``diagnosis``, and what it has left is not known to
    be the work. ``guarded``:
    the work is merged into a branch of a repository. ``collected`` is the commit that is merged, once it is made;
    ``found`` where an agent has moved that branch to, and ``accepted`` where the operator accepts it.
    """

    opaque: ClassVar[tuple[str, ...]] = ("collected",)

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

    def normal_form(self) -> "Assignment":
        """Return it without the task that is not in hand any more, and without what only sessions need to know."""
        if self.state in {State.IDLE, State.WANTING}:
            gone = replace(self, brief=Brief(), sessions=0, is_orphan=False, death="", diagnosis=None)
            return replace(gone, collected="", found="", accepted="")
        if self.state in ON_ITS_WAY:
            return replace(self, brief=replace(self.brief, failure="", kept=0), sessions=0)
        return self
