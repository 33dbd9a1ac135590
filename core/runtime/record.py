"""An agent as data: its twelve states, what may be set, and its record."""

from collections.abc import Mapping
from typing import Final

import msgspec

from lifefold.core.kernel import Record, replace
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.policy.recovery import Retry
from lifefold.core.runtime.preemption import Preemption


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
"""The states in which the agent has a task in hand."""


class Limits(msgspec.Struct, frozen=True):
    """What may be set. Times in milliseconds; those of states are the defaults of the document's system (A6)."""

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
        """Refuse what could never work. Raises ``ValueError`` naming the field."""
        for field, least in _LEAST.items():
            if getattr(self, field) < least:
                message = f"{field} must be at least {least}, not {getattr(self, field)}"
                raise ValueError(message)


_LEAST: Final[Mapping[str, int]] = {
    "init_timeout_ms": 1,
    "resource_timeout_ms": 1,
    "suspend_timeout_ms": 1,
    "shutdown_timeout_ms": 1,
    "recovery_timeout_ms": 1,
    "preemption_timeout_ms": 0,
    "preemption_grace_ms": 0,
    "stuck_after_ms": 1,
    "max_recoveries": 0,
}


class Runtime(Record, frozen=True):
    """An agent. ``failure_reason`` and ``error_code`` say why it failed, until it has recovered.

    ``is_over``: it has shut down and completed, and takes no further task (profile ``graceful``).
    """

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

    def relieved(self) -> "Runtime":
        """Return it without its task, and without what concerned only the task (A23)."""
        return replace(self, task_id=None, failure_reason=None, error_code="", preemption=Preemption())

    def failed(self, reason: str, error_code: str = "") -> "Runtime":
        """Return it with the reason of its failure."""
        return replace(self, failure_reason=reason, error_code=error_code)


def safe_point(a: Runtime) -> bool:
    """Tell whether the agent should yield: preemption is requested, and nothing defers it."""
    return a.preemption.is_wanted


def due_ms(a: Runtime) -> int | None:
    """Return when ``DeadlinePassed`` counts next, in Unix milliseconds; None if nothing is due."""
    if a.state is not State.RUNNING:
        return None
    return a.preemption.due_ms(a.limits.preemption_timeout_ms, a.limits.preemption_grace_ms)
