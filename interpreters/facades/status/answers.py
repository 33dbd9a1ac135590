"""Answers from a stored agent: due timers, the lease of a reservation, and the reasons of refusals."""

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
    """Yield the due timers of an agent's leases, the earliest first, each with its deadline.

    A timer fires at its deadline, even if a call notices it later. A lease that expired a day ago was closed at the end
    of its grace.
    """
    timers = [(part.deadline_ms, each.ref, part) for each in state.leases for part in each.running]
    for deadline_ms, ref, part in sorted(timers, key=lambda timer: timer[:2]):
        if deadline_ms <= now_ms:
            yield ref, TimerFired(part.slot, part.generation), deadline_ms


def is_same_run(now: AgentState, then: AgentState) -> bool:
    """Tell whether an agent runs in the same incarnation as before."""
    return now.status is State.RUNNING and now.incarnation == then.incarnation


def holder_of(state: AgentState, name: str) -> str:
    """Return the reference of the lease with an open reservation of this name, or else of the present lease."""
    holding: Iterator[Entity[Any]] = (each for each in state.leases if each.record.account.held(name))
    return next((each.ref for each in holding), lease_ref(state.incarnation))


def must_not_have_failed(state: AgentState) -> None:
    """Raise ``AgentFailed`` for an agent that has failed (B8)."""
    if state.status is State.FAILED:
        raise AgentFailed(state.agent_id, state.reason, state.exit_code)


def not_running(state: AgentState) -> AgentError:
    """Return the error for an agent that does not run."""
    if state.status is State.FAILED:
        return AgentFailed(state.agent_id, state.reason, state.exit_code)
    return NotRunning(state.agent_id, "has stopped; restart it first")


def refused_task(state: AgentState, task: str) -> AgentError:
    """Return the error for a task that an agent cannot begin or end."""
    if state.status is not State.RUNNING:
        return not_running(state)
    known = "has a task" if task in state.tasks else "has no task"
    return TaskRefused(state.agent_id, f"{known} {task!r}{', and accepts none any more' if state.draining else ''}")


def denied(state: AgentState, requested: lease.Reserve) -> AgentError:
    """Return the error for a refused reservation: the agent does not run, or its budget does not permit it."""
    if state.status is not State.RUNNING:
        return not_running(state)
    of = _present_lease(state) or lease.Lease()
    verdict = lease.verdict(of, requested.name, requested.amount_microusd)
    return BudgetRefused(state.agent_id, requested.name, requested.amount_microusd, verdict, of.account.free)


def not_refreshed(state: AgentState) -> AgentError:
    """Return the error for a lease that is not refreshed: the agent does not run, or the lease forbids it."""
    if state.status is not State.RUNNING:
        return not_running(state)
    found = _present_lease(state)
    return RefreshRefused(state.agent_id, found.state if found else None)


def _present_lease(state: AgentState) -> lease.Lease | None:
    return next((each.record for each in state.leases if each.ref == lease_ref(state.incarnation)), None)
