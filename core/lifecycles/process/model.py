"""What a process is made of: its states, the events that reach it, its record."""

from enum import StrEnum
from typing import Final

from lifefold.core.kernel import Event, Record, replace
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.lifecycles.process.restart import Comeback, Limits


class State(AnyLifecycleState):
    """The eight states of a process."""

    CREATED = "created"
    STARTING = "starting"
    RUNNING = "running"
    SUSPENDED = "suspended"
    AWAITING = "awaiting"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"


AT_REST: Final = frozenset({State.CREATED, State.STOPPED, State.FAILED})
"""Where nothing of a process is alive, so that it may be removed (C16)."""

SERVING = (State.RUNNING, State.AWAITING, State.SUSPENDED)
DOWN = (State.STOPPED, State.FAILED)


class SuspendReason(StrEnum):
    """Why a process is suspended."""

    MANUAL = "manual"
    IDLE = "idle"
    BUDGET = "budget"
    HEALTH = "health"
    REWIND = "rewind"


class MoveRequested(Event, frozen=True):
    """Somebody asks for a state by its name; with ``expected_from``, only if the process is in that one (C2)."""

    target: State
    reason: str = ""
    expected_from: State | None = None

    @classmethod
    def examples(cls) -> tuple["MoveRequested", ...]:
        """Return a request for every state, and one that expects what may not be so."""
        return (*(cls(target) for target in State), cls(State.STOPPING, expected_from=State.RUNNING))

    @classmethod
    def examples_for(cls, record: "Process") -> tuple["MoveRequested", ...]:
        """Return a request for every state, and each by somebody who expects what is not so."""
        wrong = State.STOPPED if record.state is State.CREATED else State.CREATED
        return tuple(cls(target, expected_from=expected) for target in State for expected in (None, wrong))


class StartRequested(Event, frozen=True):
    """Somebody wants the process to run."""

    reason: str = ""


class StopRequested(Event, frozen=True):
    """Somebody wants the process to stop, and to stay stopped."""

    reason: str = ""


class SuspendRequested(Event, frozen=True):
    """Somebody wants the process to begin no more runs, for a reason that has a name."""

    why: SuspendReason = SuspendReason.MANUAL

    @classmethod
    def examples(cls) -> tuple["SuspendRequested", ...]:
        """Return the one reason that a trigger ends, and another one."""
        return cls(SuspendReason.MANUAL), cls(SuspendReason.IDLE)


class ResumeRequested(Event, frozen=True):
    """Somebody wants the process to go on, whatever it is suspended for."""

    reason: str = ""


class StartSucceeded(Event, frozen=True):
    """The agent is built and connected."""


class StartFailed(Event, frozen=True):
    """The start sequence came to nothing."""

    reason: str = ""


class TriggerArrived(Event, frozen=True):
    """Something to do is in the queue."""

    reason: str = ""


class QueueEmptied(Event, frozen=True):
    """Nothing is queued, and nothing is in flight."""


class RunSucceeded(Event, frozen=True):
    """A run came to a good end."""


class RunFailed(Event, frozen=True):
    """A run failed."""

    reason: str = ""


class Crashed(Event, frozen=True):
    """The process itself broke, not one of its runs."""

    reason: str = ""


class Drained(Event, frozen=True):
    """Nothing is in flight any more."""


class SuspendDue(Event, frozen=True):
    """The process has come by way of RUNNING to where it can be suspended (C6)."""


class IdleElapsed(Event, frozen=True):
    """Nothing has come for the idle timeout."""


class LifetimeElapsed(Event, frozen=True):
    """The process has been up for as long as it may."""


class DrainElapsed(Event, frozen=True):
    """What is in flight has had its time."""


class BackoffElapsed(Event, frozen=True):
    """The pause before a restart is over; there is none before a recycle."""


class Orphaned(Event, frozen=True):
    """Whoever ran the process is gone: what the record says of it is not so any more (C12)."""


class Process(Record, frozen=True):
    """A process. ``failure`` is the last one's reason; ``suspended_for`` stands as soon as a suspension is to come.

    A successful run clears both counts. A start clears ``consecutive_failures``, but never ``restart_count``.
    """

    state: State = State.CREATED
    name: str = ""
    stop_requested: bool = False
    stop_reason: str = ""
    suspended_for: SuspendReason | None = None
    comeback: Comeback = Comeback.NONE
    restart_count: int = 0
    consecutive_failures: int = 0
    failure: str = ""
    limits: Limits = Limits()

    def normal_form(self) -> "Process":
        """Return it without texts, and without the failed runs of who is not up: he begins anew."""
        failures = self.consecutive_failures if self.state in SERVING else 0
        return replace(self, stop_reason="", failure="", consecutive_failures=failures)


def found(state: State) -> Process:
    """Return a process that is met in this state, of whose life before nothing is known."""
    why = SuspendReason.MANUAL if state is State.SUSPENDED else None
    return Process(state, suspended_for=why, stop_requested=state is State.STOPPING)
