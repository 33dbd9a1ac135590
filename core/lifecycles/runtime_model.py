"""The parts of an agent: its twelve states with their numbers, its events, its limits, its record.

Document 000 counts its states from 0. Later releases of its system, and its wire format, count from 1 and keep 0 for
"unspecified". So a number needs its numbering; the name alone identifies a state (A19).
"""

from typing import Any, ClassVar, Final

import msgspec

from lifefold.core.kernel import Event, Record, replace
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.lifecycles.runtime_preemption import Preemption
from lifefold.core.policy.limits import at_least
from lifefold.core.policy.recovery import Retry


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


class State(AnyLifecycleState):
    """The twelve states of an agent; ``numbers`` has their numbers."""

    INITIALIZING = "INITIALIZING"
    RUNNABLE = "RUNNABLE"
    SCHEDULED = "SCHEDULED"
    RUNNING = "RUNNING"
    WAITING = "WAITING"
    WAITING_RESOURCES = "WAITING_RESOURCES"
    SUSPENDED = "SUSPENDED"
    RESUMED = "RESUMED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    SHUTTING_DOWN = "SHUTTING_DOWN"
    RECOVERING = "RECOVERING"


AT_WORK: Final = (
    State.SCHEDULED, State.RUNNING, State.WAITING, State.WAITING_RESOURCES, State.SUSPENDED, State.RESUMED,
)  # fmt: skip
"""The states in which the agent has a task."""


_BEYOND_DEADLINES: Final = (State.COMPLETED, State.FAILED, State.SHUTTING_DOWN, State.RECOVERING)
"""The states that lead only to states without a request to yield."""


class Limits(msgspec.Struct, frozen=True):
    """The settings. Times in milliseconds; those of states are the defaults of the document's system (A6)."""

    init_timeout_ms: int = 60_000
    resource_timeout_ms: int = 300_000
    suspend_timeout_ms: int = 3_600_000
    shutdown_timeout_ms: int = 30_000
    recovery_timeout_ms: int = 120_000
    preemption_timeout_ms: int = 30_000
    preemption_grace_ms: int = 5_000
    stuck_after_ms: int = 3_600_000
    max_recoveries: int = 5
    retry: Retry = Retry()

    def __post_init__(self) -> None:
        """Refuse values that cannot work. Raises ``ValueError``, which names the field."""
        at_least(1, self, "init_timeout_ms", "resource_timeout_ms", "suspend_timeout_ms", "shutdown_timeout_ms")
        at_least(1, self, "recovery_timeout_ms", "stuck_after_ms")
        at_least(0, self, "preemption_timeout_ms", "preemption_grace_ms", "max_recoveries")

    def within(self, grace_ms: int) -> "Limits":
        """Return limits by which an agent with a request has yielded or failed before ``grace_ms`` are over.

        They are for an agent that is killed then. It is signalled after three fifths of the grace at the latest, and
        failed after four fifths: the rest is for the report.
        """
        return replace(
            self,
            preemption_timeout_ms=min(self.preemption_timeout_ms, grace_ms * 3 // 5),
            preemption_grace_ms=min(self.preemption_grace_ms, grace_ms // 5),
        )


class Runtime(Record, frozen=True):
    """An agent. ``failure_reason`` and ``error_code`` are those of its last failure, until it has recovered.

    ``is_over``: it has shut down and completed, and accepts no further task (profile ``graceful``).
    """

    identifiers: ClassVar[tuple[str, ...]] = ("key",)
    timestamps: ClassVar[tuple[str, ...]] = (
        "at_ms", "asked_ms", "since_ms", "signalled_ms", "spared_ms", "entered_ms", "until_ms",
    )  # fmt: skip

    state: State = State.INITIALIZING
    agent_id: str = ""
    at_ms: int = 0
    task_id: str | None = None
    failure_reason: str | None = None
    error_code: str = ""
    recoveries: int = 0
    is_over: bool = False
    preemption: Preemption = Preemption()
    limits: Limits = Limits()

    def pauses_ms(self) -> tuple[int, ...]:
        """Return no time, and the times after which a deadline of preemption is reached."""
        return tuple(sorted({0, self.limits.preemption_grace_ms, self.limits.preemption_timeout_ms}))

    def normal_form(self) -> "Runtime":
        """Return it without texts, and with its deadlines as near as they matter: not at all outside of work."""
        timeout_ms, grace_ms = self.limits.preemption_timeout_ms, self.limits.preemption_grace_ms
        if self.state in _BEYOND_DEADLINES:
            preemption = self.preemption.without_deadlines(self.at_ms)
        else:
            preemption = self.preemption.normal_form(self.at_ms, timeout_ms, grace_ms)
        reason = None if self.failure_reason is None else ""
        return replace(self, preemption=preemption, failure_reason=reason)

    def relieved(self) -> "Runtime":
        """Return it without its task, and without the data of the task only (A23)."""
        return replace(self, task_id=None, failure_reason=None, error_code="", preemption=Preemption())

    def failed(self, reason: str, error_code: str = "") -> "Runtime":
        """Return it with the reason of its failure."""
        return replace(self, failure_reason=reason, error_code=error_code)


def safe_point(a: Runtime) -> bool:
    """Tell whether the agent should yield: preemption is requested, and nothing defers it."""
    return a.preemption.is_wanted


def due_ms(a: Runtime) -> int | None:
    """Return the time from which ``DeadlinePassed`` counts next, in Unix milliseconds; None without a deadline."""
    if a.state is not State.RUNNING:
        return None
    return a.preemption.due_ms(a.limits.preemption_timeout_ms, a.limits.preemption_grace_ms)


_STATES: Final = tuple(State)


class Numbering(msgspec.Struct, frozen=True):
    """States as consecutive integers in the document's order, ``first`` being INITIALIZING."""

    name: str
    first: int

    def number(self, state: State) -> int:
        """Return a state's number."""
        return _STATES.index(state) + self.first

    def state(self, number: int) -> State | None:
        """Return the state of a number; None without one, as for 0 in the later numbering."""
        index = number - self.first
        return _STATES[index] if 0 <= index < len(_STATES) else None


SEED: Final = Numbering("seed", 0)
"""The document's own: INITIALIZING is 0, RECOVERING 11."""

SDK: Final = Numbering("sdk", 1)
"""The later one: 0 is unspecified, INITIALIZING is 1, RECOVERING 12."""
