"""The parts of an agent's coarse status: its states, its events, its record, the names of its hooks."""

from typing import ClassVar, Final, Self

from lifefold.core.kernel import Event, Record
from lifefold.core.kernel import State as AnyLifecycleState

LAUNCH: Final = "launch"
"""The hook that begins the agent's work, called with its id and incarnation; it prevents a start by failing."""

RELEASE: Final = "release"
"""The hook that ends the agent's work and frees its resources, called with the same when it has stopped or failed."""

UNKNOWN: Final = "unknown"
"""The reason of a failure without a reported one (B14)."""

ORPHANED: Final = "orphaned"
"""The reason of an agent that was RUNNING in the store without any living process (B17)."""


class State(AnyLifecycleState):
    """The three states of an agent."""

    RUNNING = "RUNNING"
    STOPPED = "STOPPED"
    FAILED = "FAILED"


class Spawn(Event, frozen=True):
    """The agent is to run again."""


class Stop(Event, frozen=True):
    """The agent is to stop: once its tasks are done (``drain``), or at once (``force``), or if it has none.

    Only the profile ``draining`` knows how to wait.
    """

    drain: bool = False
    force: bool = False

    @classmethod
    def examples(cls) -> tuple["Stop", ...]:
        """Return one of each kind."""
        return cls(), cls(drain=True), cls(force=True)


class FatalError(Event, frozen=True):
    """The agent crashed, or cannot continue. ``exit_code`` is None if there is none."""

    reason: str = ""
    exit_code: int | None = None

    @classmethod
    def examples(cls) -> tuple["FatalError", ...]:
        """Return one with a reason and one without."""
        return cls("out of memory", 137), cls()


class _OfTask(Event, frozen=True):
    """Base of the reports about a task of the agent."""

    task: str = "task"

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Return two tasks."""
        return cls("a"), cls("b")


class TaskBegan(_OfTask, frozen=True):
    """The agent has begun a task."""


class TaskEnded(_OfTask, frozen=True):
    """The agent has ended a task, with any outcome."""


class PiiDetected(Event, frozen=True):
    """Personal data was found in the agent's input or output."""


class Status(Record, frozen=True):
    """An agent. ``reason`` is the reason of its state; ``late_reports`` counts fatal errors reported after a stop.

    ``budget_microusd`` is the budget of all incarnations together, ``lease_ms`` the duration of one lease.
    """

    identifiers: ClassVar[tuple[str, ...]] = ("incarnation", "pii_detections", "late_reports")

    state: State = State.RUNNING
    agent_id: str = ""
    name: str = ""
    incarnation: int = 1
    tasks: tuple[str, ...] = ()
    draining: bool = False
    reason: str = ""
    exit_code: int | None = None
    replaces: str = ""
    pii_detections: int = 0
    late_reports: int = 0
    last_late_report: str = ""
    budget_microusd: int = 0
    lease_ms: int | None = None
