"""An agent's budget: a limit, spent only while running, returned when it is not needed."""

from typing import Final

import pytest

from lifefold.core.lifecycles.budget.account import Verdict
from lifefold.core.lifecycles.budget.lease import State as LeaseState
from lifefold.core.lifecycles.status import State
from lifefold.interpreters.facades.status import (
    AgentConfig,
    AgentState,
    BudgetRefused,
    MemoryStateManager,
    NotReserved,
    NotRunning,
    RefreshRefused,
    Runtime,
)
from recorded_runtime import RecordedRuntime

CONFIG: Final = AgentConfig("coder", budget_microusd=1_000)


def test_leases_expire_and_are_refreshed_within_their_grace(recorded: RecordedRuntime) -> None:
    """Usage requires ACTIVE; after 60 seconds the lease closes and returns what is left (B19)."""
    agent_id = recorded.runtime.spawn_agent(AgentConfig(budget_microusd=100, lease_ms=500))
    recorded.now_ms = 1_500
    with pytest.raises(BudgetRefused) as caught:
        recorded.runtime.reserve(agent_id, "w", 1)
    assert caught.value.verdict is Verdict.EXPIRED
    assert recorded.runtime.refresh(agent_id).free_microusd == 100
    recorded.runtime.reserve(agent_id, "w", 1)
    recorded.now_ms = 2_000 + 59_999
    recorded.runtime.tick()
    assert recorded.runtime.get_agent(agent_id).leases[0].state is LeaseState.EXPIRED
    recorded.now_ms += 60_000
    recorded.runtime.tick()
    assert recorded.runtime.get_agent(agent_id).leases[0].state is LeaseState.CLOSED
    assert recorded.told[-1] == f"{agent_id} returns 99"
    with pytest.raises(RefreshRefused, match="its lease is CLOSED; only one that has expired, with something left,"):
        recorded.runtime.refresh(agent_id)


def test_a_lease_that_expired_a_day_ago_is_closed_whenever_it_is_looked_at(recorded: RecordedRuntime) -> None:
    """Its grace counts from when it expired, not from when that was noticed: nothing is refreshed or spent (B19)."""
    agent_id = recorded.runtime.spawn_agent(AgentConfig(budget_microusd=100, lease_ms=500))
    recorded.now_ms += 86_400_000
    with pytest.raises(RefreshRefused, match="its lease is CLOSED"):
        recorded.runtime.refresh(agent_id)
    with pytest.raises(BudgetRefused):
        recorded.runtime.reserve(agent_id, "w", 1)
    assert recorded.told[-1] == f"{agent_id} returns 100"


def test_what_a_due_lease_returns_is_told_also_when_the_call_itself_is_refused(recorded: RecordedRuntime) -> None:
    """The timer has fired and is saved; its notification does not wait for the next successful call."""
    agent_id = recorded.runtime.spawn_agent(AgentConfig(budget_microusd=100, lease_ms=500))
    recorded.now_ms = 1_500
    recorded.runtime.tick()
    recorded.now_ms = 1_500 + 60_000
    with pytest.raises(RefreshRefused):
        recorded.runtime.refresh(agent_id)
    assert recorded.told[-1] == f"{agent_id} returns 100"


def test_a_lease_that_need_not_be_refreshed_is_not(recorded: RecordedRuntime) -> None:
    """The refusal is about the lease, and has its state; no reservation was requested."""
    agent_id = recorded.runtime.spawn_agent(CONFIG)
    with pytest.raises(RefreshRefused, match="agent_1: its lease is ACTIVE; only one") as caught:
        recorded.runtime.refresh(agent_id)
    assert caught.value.lease is LeaseState.ACTIVE
    recorded.runtime.reserve(agent_id, "w", 1_000)
    recorded.runtime.settle(agent_id, "w", 1_000)
    with pytest.raises(RefreshRefused) as caught:
        recorded.runtime.refresh(agent_id)
    assert caught.value.lease is LeaseState.EXPIRED
    recorded.runtime.stop_agent(agent_id)
    with pytest.raises(NotRunning):
        recorded.runtime.refresh(agent_id)


def test_a_debt_outlives_the_lease_that_made_it(recorded: RecordedRuntime) -> None:
    """It is known from the cost alone when the lease is not kept any more (B7)."""
    agent_id = recorded.runtime.spawn_agent(CONFIG)
    recorded.runtime.reserve(agent_id, "w", 500)
    recorded.runtime.stop_agent(agent_id)
    recorded.runtime.settle(agent_id, "w", 1_200)
    recorded.runtime.restart(agent_id)
    (lease,) = recorded.runtime.get_agent(agent_id).leases
    assert (lease.record.account.free, lease.record.account.overrun) == (0, 200)
    assert recorded.another().get_agent(agent_id).spent_microusd == 1_200


def test_timers_outlive_the_runner(recorded: RecordedRuntime) -> None:
    """A lease that was due while no process ran expires at the next call (statelyai/xstate#5331)."""
    agent_id = recorded.runtime.spawn_agent(AgentConfig(budget_microusd=100, lease_ms=500))
    recorded.now_ms = 10_000
    with pytest.raises(BudgetRefused):
        recorded.another().reserve(agent_id, "w", 1)


def test_a_budget_is_a_ceiling_and_a_reservation_is_one(recorded: RecordedRuntime) -> None:
    """By its name; the refusal says why, and what is free (NousResearch/hermes-agent#91713, sortie-ai/sortie#240)."""
    agent_id = recorded.runtime.spawn_agent(CONFIG)
    assert recorded.runtime.reserve(agent_id, "w", 600) == recorded.runtime.reserve(agent_id, "w", 600)
    with pytest.raises(BudgetRefused, match="cannot reserve 401 microusd as 'v': more than is free; 400 are free") as e:
        recorded.runtime.reserve(agent_id, "v", 401)
    assert (e.value.verdict, e.value.free_microusd) == (Verdict.EXCEEDED, 400)
    recorded.runtime.settle(agent_id, "w", 100)
    with pytest.raises(NotReserved, match="there is no open reservation 'w'"):
        recorded.runtime.settle(agent_id, "w", 100)
    with pytest.raises(NotReserved, match="there is no open reservation 'w'"):
        recorded.runtime.refund(agent_id, "w")
    recorded.runtime.reserve(agent_id, "v", 900)
    assert recorded.runtime.refund(agent_id, "v").free_microusd == 900


def test_an_agent_without_a_budget_spends_nothing(recorded: RecordedRuntime) -> None:
    """Nothing is free unless something was granted."""
    agent_id = recorded.runtime.spawn_agent()
    with pytest.raises(BudgetRefused):
        recorded.runtime.reserve(agent_id, "w", 1)


def test_an_agent_of_four_fields_spends_nothing() -> None:
    """It has no lease before it is restarted (B14)."""
    store = MemoryStateManager()
    store.save_agent_state(AgentState("agent_1", State.RUNNING), 0)
    with pytest.raises(BudgetRefused):
        Runtime(store).reserve("agent_1", "w", 1)
    with pytest.raises(RefreshRefused, match="has no lease; a restart opens one"):
        Runtime(store).refresh("agent_1")
    assert Runtime(store).stop_agent("agent_1").status is State.STOPPED
