"""The parts of an agent: its states, its events, its limits, its record, and its first record."""

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
    """The process reports that it is alive."""


class _End(Event, frozen=True):
    """The agent has ended, for this reason."""

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
    """The agent has finished its task and is still there."""


class TaskAssigned(Event, frozen=True):
    """The idle agent gets a new task."""

    task: str = ""


class Watched(Event, frozen=True):
    """The watcher has read the clock."""


class SpawnOverdue(Event, frozen=True):
    """The launch takes too long (profile ``supervised``)."""

    @property
    def abort_reason(self) -> AbortReason:
        """The reason of this end of the agent."""
        return AbortReason.TIMEOUT


LADDER: tuple[Tier, ...] = ("warn", "usr1", "term", "kill")


class Limits(msgspec.Struct, frozen=True):
    """The settings of a fleet, in milliseconds. ``silence_ms`` are the four steps of the ladder, in order.

    A task may take ``wall_clock_ms``. Then, if the last sign of life is less than ``fresh_ms`` old, ``extension_ms``
    are added, up to ``longest_ms`` in all.
    """

    spawn_timeout_ms: int = 60_000
    idle_ms: int = 300_000
    silence_ms: tuple[int, int, int, int] = (60_000, 90_000, 120_000, 150_000)
    wall_clock_ms: int = 1_800_000
    fresh_ms: int = 120_000
    extension_ms: int = 600_000
    longest_ms: int = 5_400_000

    def __post_init__(self) -> None:
        """Refuse values that cannot work. Raises ``ValueError``, which names the field."""
        at_least(1, self, "spawn_timeout_ms", "idle_ms", "wall_clock_ms", "fresh_ms", "extension_ms", "longest_ms")
        if self.silence_ms[0] < 1 or list(self.silence_ms) != sorted(set(self.silence_ms)):
            message = f"silence_ms must be positive and grow from step to step, not {self.silence_ms}"
            raise ValueError(message)
        if self.longest_ms < self.wall_clock_ms:
            message = f"longest_ms must be at least wall_clock_ms, {self.wall_clock_ms}, not {self.longest_ms}"
            raise ValueError(message)


class Agent(Record, frozen=True):
    """A worker. ``heartbeat_at_ms`` is None before the first one; ``escalated`` counts the steps of the ladder taken.

    ``allowed_ms`` is the time limit of the present task with its extensions, or 0 without an extension. ``overdue``:
    the task has exceeded it, and its end was requested.
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
        """Return no time, the time to the first step of the ladder, and the time limit of a task."""
        return 0, self.limits.silence_ms[0], self.limits.wall_clock_ms

    def horizon_ms(self) -> int:
        """Return the longest time that matters: of a task, or of an agent's silence."""
        return max(self.limits.longest_ms, self.limits.silence_ms[-1], self.limits.fresh_ms)


def spawned(name: str, at_ms: int, *, parent: str = "", task: str = "", like: Agent | None = None) -> Agent:
    """Return a new agent, its parent and its baseline for every timeout set (E31, E38); all else as in ``like``."""
    first = like or Agent()
    return replace(first, id=name, parent=parent, task=task, started_at_ms=at_ms, task_at_ms=at_ms, at_ms=at_ms)


def silent_ms(a: Agent, now_ms: int) -> int:
    """Return the time since an agent's last sign of life, or since its start if it gave none (E32)."""
    return now_ms - last_sign_ms(a.started_at_ms, a.heartbeat_at_ms)
