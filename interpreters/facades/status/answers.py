"""What a stored agent answers to those who ask: what is due, who holds what, and why something is refused."""

from collections.abc import Iterator
from typing import Any

from lifefold.core.kernel import Entity, Event, TimerFired
from lifefold.core.lifecycles.budget import lease
from lifefold.core.lifecycles.budget.agent import lease_ref
from lifefold.core.lifecycles.status import State
from lifefold.interpreters.facades.status.errors import (
    AgentError,
    AgentFailed,
    BudgetRefused,
    NotRunning,
    RefreshRefused,
    TaskRefused,
)
from lifefold.interpreters.facades.status.store import AgentState


def due_timers(state: AgentState, now_ms: int) -> Iterator[tuple[str, Event, int]]:
    """Yield the timers of an agent's leases that are due, the earliest first, each with its deadline.

    A timer has happened at its deadline, however late that is noticed: a lease that expired a day ago has been closed
    since its grace was over.
    """
    timers = [(part.deadline_ms, each.ref, part) for each in state.leases for part in each.running]
    for deadline_ms, ref, part in sorted(timers, key=lambda timer: timer[:2]):
        if deadline_ms <= now_ms:
            yield ref, TimerFired(part.slot, part.generation), deadline_ms


def is_same_run(now: AgentState, then: AgentState) -> bool:
    """Tell whether an agent still runs as it did then."""
    return now.status is State.RUNNING and now.incarnation == then.incarnation


def holder_of(state: AgentState, name: str) -> str:
    """Return the reference of the lease that has an open reservation of this name, or else of the present one."""
    holding: Iterator[Entity[Any]] = (each for each in state.leases if each.record.account.held(name))
    return next((each.ref for each in holding), lease_ref(state.incarnation))


def must_not_have_failed(state: AgentState) -> None:
    """Raise ``AgentFailed`` for an agent that has failed (B8)."""
    if state.status is State.FAILED:
        raise AgentFailed(state.agent_id, state.reason, state.exit_code)


def not_running(state: AgentState) -> AgentError:
    """Return what is wrong with an agent that does not run."""
    if state.status is State.FAILED:
        return AgentFailed(state.agent_id, state.reason, state.exit_code)
    return NotRunning(state.agent_id, "has stopped; restart it first")


def refused_task(state: AgentState, task: str) -> AgentError:
    """Return why an agent does not begin or end a task."""
    if state.status is not State.RUNNING:
        return not_running(state)
    known = "has a task" if task in state.tasks else "has no task"
    return TaskRefused(state.agent_id, f"{known} {task!r}{', and accepts none any more' if state.draining else ''}")


def denied(state: AgentState, asked: lease.Reserve) -> AgentError:
    """Return why an agent may not reserve: it does not run, or the gate says no."""
    if state.status is not State.RUNNING:
        return not_running(state)
    of = _present_lease(state) or lease.Lease()
    verdict = lease.verdict(of, asked.name, asked.amount_microusd)
    return BudgetRefused(state.agent_id, asked.name, asked.amount_microusd, verdict, of.account.free)


def not_refreshed(state: AgentState) -> AgentError:
    """Return why an agent's lease is not refreshed: it does not run, or the lease need or can not be."""
    if state.status is not State.RUNNING:
        return not_running(state)
    found = _present_lease(state)
    return RefreshRefused(state.agent_id, found.state if found else None)


def _present_lease(state: AgentState) -> lease.Lease | None:
    return next((each.record for each in state.leases if each.ref == lease_ref(state.incarnation)), None)
