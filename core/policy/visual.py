"""The document's seven visual states of an agent, derived for a screen and never stored.

A status word of either vocabulary is understood, in any case (E30). One has the four words of the agent's own
lifecycle, the other those of tasks and process monitors. An agent whose task is closed or orphaned is gone. An agent is
not at work if its task is planned, is blocked, or waits for a person or for its subtasks. The decision, in this order:

1. a word for the end is DEAD, a word for waiting is IDLE;
2. a word for launching is SPAWNING until the launch has taken *longer* than the spawn timeout, then DEAD, with or
   without a process id (E29, E31);
3. without a process id everything else is DEAD, except that the agent's own word ``working`` stands without one;
4. merging is MERGING; running is RUNNING until the silence is *longer* than the stall threshold, then STALLED (E29);
5. any other word is UNKNOWN.

The silence of an agent without any sign is measured from its start (E32). A merge never becomes STALLED, but
``Classification.stalled`` reports one that hangs (E32).
"""

from enum import StrEnum
from typing import Final

import msgspec

from lifefold.core.policy.limits import at_least
from lifefold.core.policy.silence import last_sign_ms


class VisualState(StrEnum):
    """The seven classifications, each with the document's indicator and colour."""

    SPAWNING = "SPAWNING"
    RUNNING = "RUNNING"
    STALLED = "STALLED"
    MERGING = "MERGING"
    DEAD = "DEAD"
    IDLE = "IDLE"
    UNKNOWN = "UNKNOWN"

    @property
    def indicator(self) -> str:
        """The one character of the state."""
        return _LOOKS[self][0]

    @property
    def colour(self) -> str:
        """The colour of the state, in the document's words."""
        return _LOOKS[self][1]


_LOOKS: Final = {
    VisualState.SPAWNING: ("◔", "yellow"),
    VisualState.RUNNING: ("●", "green"),
    VisualState.STALLED: ("◐", "dark orange"),
    VisualState.MERGING: ("⇄", "blue"),
    VisualState.DEAD: ("○", "red"),
    VisualState.IDLE: ("□", "gray"),
    VisualState.UNKNOWN: ("◌", "dim"),
}

ENDED: Final = frozenset({"dead", "done", "completed", "closed", "failed", "cancelled", "killed", "orphaned"})
WAITING: Final = frozenset(
    {"idle", "waiting", "paused", "planned", "blocked", "waiting_for_subtasks", "pending_approval"}
)
LAUNCHING: Final = frozenset({"starting", "claimed", "spawning"})
MERGES: Final = frozenset({"merging", "committing", "pushing"})
RUNS: Final = frozenset({"working", "in_progress", "running"})


class Thresholds(msgspec.Struct, frozen=True):
    """The silence that a screen shows, in milliseconds; both limits are exceeded strictly (E29)."""

    stall_ms: int = 300_000
    spawn_timeout_ms: int = 60_000

    def __post_init__(self) -> None:
        """Refuse negative thresholds. Raises ``ValueError``, which names the field."""
        at_least(0, self, "stall_ms", "spawn_timeout_ms")


class Observation(msgspec.Struct, frozen=True):
    """The facts known of an agent from outside: Unix times in milliseconds, None for what was never seen."""

    status: str
    started_at_ms: int = 0
    heartbeat_at_ms: int | None = None
    pid: int | None = None


class Classification(msgspec.Struct, frozen=True):
    """The visual state, and whether an active agent has been silent for longer than the stall threshold."""

    state: VisualState
    stalled: bool = False


DEFAULT: Final = Thresholds()


def classify(seen: Observation, now_ms: int, thresholds: Thresholds = DEFAULT) -> Classification:
    """Return the visual state of an agent at ``now_ms``."""
    stalled = now_ms - last_sign_ms(seen.started_at_ms, seen.heartbeat_at_ms) > thresholds.stall_ms
    state = _state(seen, now_ms - seen.started_at_ms > thresholds.spawn_timeout_ms)
    if state is VisualState.RUNNING and stalled:
        return Classification(VisualState.STALLED, stalled=True)
    return Classification(state, stalled=stalled and state is VisualState.MERGING)


def _state(seen: Observation, launch_overdue: bool) -> VisualState:  # noqa: FBT001 - the one thing time decides here
    word, absent = seen.status.lower(), seen.pid is None
    if word in ENDED:
        return VisualState.DEAD
    if word in WAITING:
        return VisualState.IDLE
    if word in LAUNCHING or (word == "open" and absent):
        return VisualState.DEAD if launch_overdue else VisualState.SPAWNING
    if absent and word != "working":
        return VisualState.DEAD
    if word in MERGES:
        return VisualState.MERGING
    return VisualState.RUNNING if word in RUNS else VisualState.UNKNOWN
