"""The parts of a process: its states, its events, its record."""

from enum import StrEnum
from typing import Final

from lifefold.core.kernel import Event, Record, replace
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.lifecycles.process_restart import Comeback, Limits


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
"""The states without a live part of a process, in which it may be removed (C16)."""

SERVING = (State.RUNNING, State.AWAITING, State.SUSPENDED)
DOWN = (State.STOPPED, State.FAILED)


class SuspendReason(StrEnum):
    """The reason of a suspension."""

    MANUAL = "manual"
    IDLE = "idle"
    BUDGET = "budget"
    HEALTH = "health"
    REWIND = "rewind"


class MoveRequested(Event, frozen=True):
    """A request for a state by its name; with ``expected_from``, only if the process is in that state (C2)."""

    target: State
    reason: str = ""
    expected_from: State | None = None

    @classmethod
    def examples(cls) -> tuple["MoveRequested", ...]:
        """Return a request for every state, and one with an expectation that may be false."""
        return (*(cls(target) for target in State), cls(State.STOPPING, expected_from=State.RUNNING))

    @classmethod
    def examples_for(cls, record: "Process") -> tuple["MoveRequested", ...]:
        """Return a request for every state, and each with a false expectation."""
        wrong = State.STOPPED if record.state is State.CREATED else State.CREATED
        return tuple(cls(target, expected_from=expected) for target in State for expected in (None, wrong))


class StartRequested(Event, frozen=True):
    """A request that the process runs."""

    reason: str = ""


class StopRequested(Event, frozen=True):
    """A request that the process stops, and stays stopped."""

    reason: str = ""


class SuspendRequested(Event, frozen=True):
    """A request that the process begins no more runs, for a named reason."""

    why: SuspendReason = SuspendReason.MANUAL

    @classmethod
    def examples(cls) -> tuple["SuspendRequested", ...]:
        """Return the one reason that a trigger ends, and another one."""
        return cls(SuspendReason.MANUAL), cls(SuspendReason.IDLE)


class ResumeRequested(Event, frozen=True):
    """A request that the process continues, for any reason of its suspension."""

    reason: str = ""


class StartSucceeded(Event, frozen=True):
    """The agent is built and connected."""


class StartFailed(Event, frozen=True):
    """The start sequence failed."""

    reason: str = ""


class TriggerArrived(Event, frozen=True):
    """A trigger is in the queue."""

    reason: str = ""


class QueueEmptied(Event, frozen=True):
    """Nothing is queued, and no run is in flight."""


class RunSucceeded(Event, frozen=True):
    """A run succeeded."""


class RunFailed(Event, frozen=True):
    """A run failed."""

    reason: str = ""


class Crashed(Event, frozen=True):
    """The process itself failed, not one of its runs."""

    reason: str = ""


class Drained(Event, frozen=True):
    """No run is in flight any more."""


class SuspendDue(Event, frozen=True):
    """The process has reached RUNNING on its way to SUSPENDED (C6)."""


class IdleElapsed(Event, frozen=True):
    """No trigger has come during the idle timeout."""


class LifetimeElapsed(Event, frozen=True):
    """The process has reached its lifetime."""


class DrainElapsed(Event, frozen=True):
    """The runs in flight have had their time."""


class BackoffElapsed(Event, frozen=True):
    """The pause before a restart is over; there is none before a recycle."""


class Orphaned(Event, frozen=True):
    """The runner of the process is gone: the record's state is not true any more (C12)."""


class Process(Record, frozen=True):
    """A process. ``failure`` is the reason of the last one; ``suspended_for`` is set once a suspension is planned.

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
        """Return it without texts, and without the failed runs of a process that is not up: they no longer count."""
        failures = self.consecutive_failures if self.state in SERVING else 0
        return replace(self, stop_reason="", failure="", consecutive_failures=failures)


def found(state: State) -> Process:
    """Return a process found in this state, with an unknown history."""
    why = SuspendReason.MANUAL if state is State.SUSPENDED else None
    return Process(state, suspended_for=why, stop_requested=state is State.STOPPING)
