"""The actions and the time limits of an agent: the consequences of a sign of life, of silence, and of its end."""

from typing import Never

from lifefold.core.kernel import Step, replace
from lifefold.core.lifecycles.agent.model import (
    LADDER,
    Agent,
    Died,
    Heartbeat,
    Recycled,
    SpawnFailed,
    SpawnOverdue,
    TaskAssigned,
    TaskFinished,
    Watched,
    silent_ms,
)
from lifefold.effects import AbortSession, EscalateSilence, KillOverdue

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
    held, kill = _hold_to_time(a, silent)
    return Step(replace(held, escalated=due), (*steps, *kill))


def _hold_to_time(a: Agent, silent: int) -> tuple[Agent, tuple[KillOverdue, ...]]:
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
