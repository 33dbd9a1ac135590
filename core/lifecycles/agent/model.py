"""What an agent is made of: its states, the events that reach it, its limits, its record, how one begins."""

from typing import ClassVar

import msgspec

from lifefold.core.kernel import Event, Record, replace
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.policy.limits import at_least
from lifefold.core.policy.reasons import AbortReason, TransitionReason
from lifefold.core.policy.silence import last_sign_ms
from lifefold.effects.supervision import Tier


class State(AnyLifecycleState):
    """The four states of an agent."""

    STARTING = "starting"
    WORKING = "working"
    IDLE = "idle"
    DEAD = "dead"


class Heartbeat(Event, frozen=True):
    """The process is alive and says so."""


class _End(Event, frozen=True):
    """The agent is gone, and why."""

    reason: str = ""
    transition_reason: TransitionReason | None = None
    abort_reason: AbortReason | None = None


class SpawnFailed(_End, frozen=True):
    """The process could not be started, was refused by its provider, or ended at once."""


class Died(_End, frozen=True):
    """The process has ended: a crash, a kill, a timeout, a circuit breaker."""


class Recycled(_End, frozen=True):
    """The idle agent is not needed any more."""


class TaskFinished(Event, frozen=True):
    """The agent is done with its task and still there."""


class TaskAssigned(Event, frozen=True):
    """The idle agent gets a new task."""

    task: str = ""


class Watched(Event, frozen=True):
    """Somebody has looked at the clock."""


class SpawnOverdue(Event, frozen=True):
    """The launch takes too long (profile ``supervised``)."""

    @property
    def abort_reason(self) -> AbortReason:
        """Why the agent ends by this."""
        return AbortReason.TIMEOUT


LADDER: tuple[Tier, ...] = ("warn", "usr1", "term", "kill")


class Limits(msgspec.Struct, frozen=True):
    """What a fleet may set, in milliseconds. ``silence_ms`` are the four steps of the ladder, in order.

    A task may take ``wall_clock_ms``. If the agent was heard of less than ``fresh_ms`` ago then, ``extension_ms`` are
    added, up to ``longest_ms`` in all.
    """

    spawn_timeout_ms: int = 60_000
    idle_ms: int = 300_000
    silence_ms: tuple[int, int, int, int] = (60_000, 90_000, 120_000, 150_000)
    wall_clock_ms: int = 1_800_000
    fresh_ms: int = 120_000
    extension_ms: int = 600_000
    longest_ms: int = 5_400_000

    def __post_init__(self) -> None:
        """Refuse what could never work. Raises ``ValueError`` naming the field."""
        at_least(1, self, "spawn_timeout_ms", "idle_ms", "wall_clock_ms", "fresh_ms", "extension_ms", "longest_ms")
        if self.silence_ms[0] < 1 or list(self.silence_ms) != sorted(set(self.silence_ms)):
            message = f"silence_ms must be positive and grow from step to step, not {self.silence_ms}"
            raise ValueError(message)
        if self.longest_ms < self.wall_clock_ms:
            message = f"longest_ms must be at least wall_clock_ms, {self.wall_clock_ms}, not {self.longest_ms}"
            raise ValueError(message)


class Agent(Record, frozen=True):
    """A worker. ``heartbeat_at_ms`` is None before the first one; ``escalated`` counts the steps of the ladder taken.

    ``allowed_ms`` is how long the present task may take, extensions included, or 0 if it was not extended;
    ``overdue`` says that it has taken longer and that its end was asked for.
    """

    timestamps: ClassVar[tuple[str, ...]] = ("at_ms", "started_at_ms", "task_at_ms", "heartbeat_at_ms")

    state: State = State.STARTING
    id: str = ""
    parent: str = ""
    task: str = ""
    started_at_ms: int = 0
    task_at_ms: int = 0
    heartbeat_at_ms: int | None = None
    escalated: int = 0
    allowed_ms: int = 0
    overdue: bool = False
    reason: str = ""
    abort_reason: AbortReason | None = None
    limits: Limits = Limits()
    at_ms: int = 0

    def pauses_ms(self) -> tuple[int, ...]:
        """Return no time, the time to the first step of the ladder, and that which a task may take."""
        return 0, self.limits.silence_ms[0], self.limits.wall_clock_ms

    def horizon_ms(self) -> int:
        """Return how long a task may take at most, and an agent may be silent."""
        return max(self.limits.longest_ms, self.limits.silence_ms[-1], self.limits.fresh_ms)


def spawned(name: str, at_ms: int, *, parent: str = "", task: str = "", like: Agent | None = None) -> Agent:
    """Return a new agent, its parent and its baseline for every timeout set (E31, E38); all else as in ``like``."""
    born = like or Agent()
    return replace(born, id=name, parent=parent, task=task, started_at_ms=at_ms, task_at_ms=at_ms, at_ms=at_ms)


def silent_ms(a: Agent, now_ms: int) -> int:
    """Return for how long nothing was heard of an agent; from its start if there never was anything (E32)."""
    return now_ms - last_sign_ms(a.started_at_ms, a.heartbeat_at_ms)
