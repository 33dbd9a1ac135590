"""The events of an agent: the methods of document 000, its timers, and preemption."""

from typing import Any, ClassVar, Final

from lifefold.core.kernel import Event


class Start(Event, frozen=True):
    """Initialisation is over."""


class Schedule(Event, frozen=True):
    """The scheduler assigns a task."""

    task_id: str

    @classmethod
    def examples(cls) -> tuple["Schedule", ...]:
        """Return one task: its name decides nothing."""
        return (cls("T1"),)


class Run(Event, frozen=True):
    """Execution begins or continues: a message, resources or a resumption have arrived."""


class Wait(Event, frozen=True):
    """The agent needs a message or an event."""


class WaitResources(Event, frozen=True):
    """The agent needs memory, capacity, or an external service."""


class Suspend(Event, frozen=True):
    """The agent yields."""


class Resume(Event, frozen=True):
    """The agent gets its turn again."""


class Complete(Event, frozen=True):
    """The task is finished, successfully."""


class Ready(Event, frozen=True):
    """The completed task is reported; the next one may come (A3)."""


class _Because(Event, frozen=True):
    """An event with a reason."""

    reason: str = ""


class Fail(_Because, frozen=True):
    """An error occurred."""


class Shutdown(Event, frozen=True):
    """The agent is to end gracefully."""


class Recover(Event, frozen=True):
    """Recovery is to be tried."""


class CompleteRecovery(Event, frozen=True):
    """Recovery succeeded."""


class FailRecovery(_Because, frozen=True):
    """Recovery failed."""


class TimedOut(Event, frozen=True):
    """A state lasted too long; ``error_code`` is the code that the record keeps."""

    error_code: ClassVar[str] = ""


class InitTimedOut(TimedOut, frozen=True):
    """INITIALIZING lasted too long."""

    error_code: ClassVar[str] = "init_timeout"


class ResourceTimedOut(TimedOut, frozen=True):
    """WAITING_RESOURCES lasted too long."""

    error_code: ClassVar[str] = "resource_timeout"


class SuspendTimedOut(TimedOut, frozen=True):
    """SUSPENDED lasted too long."""

    error_code: ClassVar[str] = "suspend_timeout"


class ShutdownTimedOut(TimedOut, frozen=True):
    """SHUTTING_DOWN lasted too long."""

    error_code: ClassVar[str] = "agent_shutdown_timeout"


class RecoveryTimedOut(TimedOut, frozen=True):
    """RECOVERING lasted too long."""

    error_code: ClassVar[str] = "recovery_timeout"


class PreemptionRequested(_Because, frozen=True):
    """A request that the agent yields at its next safe point (A25)."""


class PreemptionForced(_Because, frozen=True):
    """A request without a deadline, because resources are critically low: the grace period begins now."""


_SECTIONS: Final = 2
"""The number of simultaneous sections in examples: the earliest of two limits counts, as it does of more."""


def _keys(record: Any) -> tuple[int, ...]:
    return tuple(section.key for section in record.preemption.sections)


class SectionEntered(Event, frozen=True):
    """The agent begins work that must not be interrupted, for ``within_ms`` at most if that is declared."""

    key: int
    within_ms: int | None = None

    @classmethod
    def examples(cls) -> tuple["SectionEntered", ...]:
        """Return a section without a limit, and one with a limit that is reached at once."""
        return cls(1), cls(1, 0)

    @classmethod
    def examples_for(cls, record: Any) -> tuple["SectionEntered", ...]:
        """Return sections with and without a limit, up to two at a time, and one that is entered twice."""
        keys = _keys(record)
        inside = tuple(cls(key) for key in keys[:1])
        new = max(keys, default=0) + 1
        return inside if len(keys) == _SECTIONS else (*inside, cls(new), cls(new, record.limits.preemption_grace_ms))


class SectionLeft(Event, frozen=True):
    """The work that must not be interrupted is over."""

    key: int

    @classmethod
    def examples(cls) -> tuple["SectionLeft", ...]:
        """Return the end of the section that the examples enter."""
        return (cls(1),)

    @classmethod
    def examples_for(cls, record: Any) -> tuple["SectionLeft", ...]:
        """Return the end of each running section, and of none."""
        keys = _keys(record)
        return (*map(cls, keys), cls(max(keys, default=0) + 1))


class DeadlinePassed(Event, frozen=True):
    """A deadline of preemption may have passed; the time of this event decides it."""
