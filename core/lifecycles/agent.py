"""A worker: starting, working, idle, dead. The table is document 004's, six lines.

*The first heartbeat makes an agent WORKING.* Until then it is only spawned. A warm agent without a task must pass
WORKING to become IDLE (E22). Further heartbeats change nothing but ``heartbeat_at_ms``. A dead agent has no heartbeat:
a later one is refused (E23).

*Silence is measured from the last sign of life*, or from the start of an agent without one (E31, E32). The watcher
sends ``Watched`` from time to time. The answer is a ladder of steps. Each is taken once when its silence is reached
(``>=``), and all of them are possible again after a heartbeat. A task also has a time limit, which is extended while
the agent gives signs of life. Both request effects and leave the state alone. An agent is dead when its process has
ended, and not because of its silence.

*The parent is set at spawn* (E38). Aborts propagate along it; see ``abort``.

``supervised`` is the profile with timers: a launch that takes too long fails, and an idle agent is recycled. Both
request the end of the session (``AbortSession``), so that a dead agent leaves no process behind. The profile also
accepts ``Died`` in every state, over the edges of the document.
"""

from typing import Final, Never

from lifefold.core.kernel import STAY, Machine, Row, Step, after, replace, row
from lifefold.core.lifecycles.agent_model import (
    LADDER,
    Agent,
    Died,
    Heartbeat,
    Limits,
    Recycled,
    SpawnFailed,
    SpawnOverdue,
    State,
    TaskAssigned,
    TaskFinished,
    Watched,
    silent_ms,
    spawned,
)
from lifefold.core.lifecycles.agent_properties import (
    PROPERTIES,
    SUPERVISED_PROPERTIES,
    ends_with_a_reason_only_when_dead,
    is_idle_without_a_task,
)
from lifefold.core.lifecycles.property_forms import follows_table
from lifefold.effects import AbortSession, EscalateSilence, KillOverdue

__all__ = [
    "LADDER", "Agent", "Died", "Heartbeat", "Limits", "Recycled", "SpawnFailed", "SpawnOverdue", "State",
    "TaskAssigned", "TaskFinished", "Watched", "assign", "die", "expire", "hear", "idle_timeout", "machine", "recycle",
    "rest", "silent_ms", "spawn_timeout", "spawned", "supervised", "watch",
]  # fmt: skip

# Actions


def hear(a: Agent, _e: Heartbeat) -> Step[Agent, Never]:
    """Record the sign of life; the ladder starts again."""
    return Step(replace(a, heartbeat_at_ms=a.at_ms, escalated=0))


def rest(a: Agent, _e: TaskFinished) -> Step[Agent, Never]:
    """Leave the agent without a task."""
    return Step(replace(a, task="", escalated=0, allowed_ms=0, overdue=False))


def assign(a: Agent, e: TaskAssigned) -> Step[Agent, Never]:
    """Give the agent a task. The assignment counts as a sign of life: the agent was idle on purpose."""
    return Step(replace(a, task=e.task, task_at_ms=a.at_ms, heartbeat_at_ms=a.at_ms))


def die(a: Agent, e: SpawnFailed | Died | Recycled) -> Step[Agent, Never]:
    """Keep the reason of the end."""
    return Step(replace(a, reason=e.reason, abort_reason=e.abort_reason))


def expire(a: Agent, e: SpawnOverdue) -> Step[Agent, AbortSession]:
    """Record that the launch took too long, and end the launched session: it may exist and hang."""
    reason = f"not started within {a.limits.spawn_timeout_ms} ms"
    return Step(replace(a, reason=reason, abort_reason=e.abort_reason), (AbortSession(a.id, a.task),))


def recycle(a: Agent, e: Recycled) -> Step[Agent, AbortSession]:
    """Keep the reason of the recycling, and end the session."""
    reason = e.reason or f"idle for {a.limits.idle_ms} ms"
    return Step(replace(a, reason=reason, abort_reason=e.abort_reason), (AbortSession(a.id, a.task),))


def watch(a: Agent, _e: Watched) -> Step[Agent, EscalateSilence | KillOverdue]:
    """Take the due steps of the ladder, and apply the time limit of the task."""
    silent = silent_ms(a, a.at_ms)
    due = max(a.escalated, sum(silent >= step_ms for step_ms in a.limits.silence_ms))
    steps = tuple(EscalateSilence(a.id, tier, silent) for tier in LADDER[a.escalated : due])
    held, kill = _limit_time(a, silent)
    return Step(replace(held, escalated=due), (*steps, *kill))


def _limit_time(a: Agent, silent: int) -> tuple[Agent, tuple[KillOverdue, ...]]:
    limits, worked_ms = a.limits, a.at_ms - a.task_at_ms
    allowed_ms = a.allowed_ms or limits.wall_clock_ms
    if worked_ms < allowed_ms or a.overdue:
        return a, ()
    if silent < limits.fresh_ms and worked_ms < limits.longest_ms:
        return replace(a, allowed_ms=min(allowed_ms + limits.extension_ms, limits.longest_ms)), ()
    return replace(a, overdue=True), (KillOverdue(a.id, worked_ms),)


def spawn_timeout(a: Agent) -> int:
    """Return the time limit of a launch, in milliseconds."""
    return a.limits.spawn_timeout_ms


def idle_timeout(a: Agent) -> int:
    """Return the time limit of idleness, in milliseconds."""
    return a.limits.idle_ms


ROWS: Final[tuple[Row[Agent], ...]] = (
    row(State.STARTING, Heartbeat, State.WORKING, hear),
    row(State.STARTING, SpawnFailed, State.DEAD, die),
    row(State.WORKING, TaskFinished, State.IDLE, rest),
    row(State.WORKING, Died, State.DEAD, die),
    row(State.IDLE, TaskAssigned, State.WORKING, assign),
    row(State.IDLE, Recycled, State.DEAD, die),
    row((State.WORKING, State.IDLE), Heartbeat, STAY, hear),
    row(State.WORKING, Watched, STAY, watch),
)

machine = Machine(
    "agent",
    Agent(),
    about="a worker: starting, working, idle, dead",
    rows=ROWS,
    final={State.DEAD},
    invariants=(ends_with_a_reason_only_when_dead, is_idle_without_a_task),
    properties=(*PROPERTIES, *follows_table(ROWS)),
)


supervised = (
    machine.without_rows((State.IDLE, Recycled))
    .with_rows(
        row(State.STARTING, SpawnOverdue, State.DEAD, expire),
        row(State.IDLE, Recycled, State.DEAD, recycle),
        row((State.STARTING, State.IDLE), Died, State.DEAD, die),
        during={State.STARTING: after(spawn_timeout, SpawnOverdue), State.IDLE: after(idle_timeout, Recycled)},
        name="agent-supervised",
    )
    .with_properties(*SUPERVISED_PROPERTIES)
)
"""The profile with timers, in which a process may die in any state."""
