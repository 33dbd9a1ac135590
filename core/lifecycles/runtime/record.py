"""An agent as data: its twelve states, its limits, and its record."""

from typing import ClassVar, Final

import msgspec

from lifefold.core.kernel import Record, replace
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.lifecycles.runtime.preemption import Preemption
from lifefold.core.policy.limits import at_least
from lifefold.core.policy.recovery import Retry


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
