"""What is kept of an agent's coarse status: states, events, its record, the names of its hooks."""

from typing import ClassVar, Final

from lifefold.core.kernel import Event, Record
from lifefold.core.kernel import State as AnyLifecycleState

LAUNCH: Final = "launch"
"""The hook that begins the agent's work, called with its id and incarnation; it prevents a start by failing."""

RELEASE: Final = "release"
"""The hook that ends the agent's work and frees its resources, called with the same when it has stopped or failed."""

UNKNOWN: Final = "unknown"
"""The reason of a failure about which nothing was said (B14)."""

ORPHANED: Final = "orphaned"
"""The reason of an agent that was RUNNING in the store when nothing of it was alive any more (B17)."""


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
    """The agent crashed, or met something that it cannot go on with. ``exit_code`` is None if there is none."""

    reason: str = ""
    exit_code: int | None = None

    @classmethod
    def examples(cls) -> tuple["FatalError", ...]:
        """Return one with a reason and one without."""
        return cls("out of memory", 137), cls()


class TaskBegan(Event, frozen=True):
    """The agent is at work on a task."""

    task: str = "task"

    @classmethod
    def examples(cls) -> tuple["TaskBegan", ...]:
        """Return two tasks."""
        return cls("a"), cls("b")


class TaskEnded(Event, frozen=True):
    """The agent is done with a task, whatever came of it."""

    task: str = "task"

    @classmethod
    def examples(cls) -> tuple["TaskEnded", ...]:
        """Return the ends of two tasks."""
        return cls("a"), cls("b")


class PiiDetected(Event, frozen=True):
    """Personal data was found in what the agent sends or gets."""


class Status(Record, frozen=True):
    """An agent. ``reason`` says why it is where it is; ``late_reports`` counts fatal errors reported after a stop.

    ``budget_microusd`` is what all incarnations together may spend, ``lease_ms`` how long the lease of one lasts.
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
