"""An agent and its leases: money is spent only while RUNNING, and a restart is no way around a budget."""

from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from lifefold.core import status
from lifefold.core.budget import agent as agent_budget
from lifefold.core.budget import lease
from lifefold.core.budget.agent import COST, agent_type, left_microusd
from lifefold.core.budget.lease import Close, Lease, Refund, Reserve, Settle
from lifefold.core.kernel import Aggregate, Elapsed, Envelope, Event, Opened, Reaction, react
from lifefold.core.status import FatalError, PiiDetected, Spawn, Status, Stop
from lifefold.effects import ReturnBudget

AGENT: Final = Status(agent_id="agent_1", budget_microusd=100, lease_ms=1_000)


def opened() -> Aggregate:
    reaction = react(
        agent_type, agent_type.start("agent/agent_1"), Envelope("", Opened(agent_budget.opening(AGENT)), 0)
    )
    assert isinstance(reaction, Reaction)
    return reaction.aggregate


def after(*inputs: tuple[str, Event]) -> Aggregate:
    """Return an agent to which this has happened, each of it taken."""
    agent = opened()
    for ref, event in inputs:
        reaction = react(agent_type, agent, Envelope(ref, event, 0))
        assert isinstance(reaction, Reaction), str(reaction)
        assert reaction.refusals == ()
        agent = reaction.aggregate
    return agent


def the_lease(agent: Aggregate, incarnation: int = 1) -> Lease:
    found: Lease = agent.record(agent_budget.lease_ref(incarnation))
    return found


def test_an_agent_begins_with_a_lease_of_its_whole_budget() -> None:
    """For as long as its configuration says."""
    assert the_lease(opened()).account.free_microusd == 100
    assert the_lease(opened()).limits.duration_ms == 1_000
    assert agent_budget.granted(Status(), 5).limits == lease.Limits()


def test_stopping_and_failing_close_the_lease_and_return_what_is_left() -> None:
    """In the same step (B19)."""
    for event in (Stop(), FatalError()):
        reaction = react(agent_type, after(("lease:1", Reserve("a", 30))), Envelope("status", event, 0))
        assert isinstance(reaction, Reaction)
        assert the_lease(reaction.aggregate).state is lease.State.CLOSED
        assert ReturnBudget("agent_1", 70) in [asked.effect for asked in reaction.effects]


def test_what_was_reserved_is_settled_after_a_failure_and_the_failed_agent_stays_as_it_is() -> None:
    """The report finds the lease; the record of the agent is immutable (B4, B12)."""
    failed = after(("lease:1", Reserve("a", 30)), ("status", FatalError("boom")))
    settled = after(("lease:1", Reserve("a", 30)), ("status", FatalError("boom")), ("lease:1", Settle("a", 20)))
    assert settled.entities["status"] == failed.entities["status"]
    assert settled.views[COST] == 20
    assert the_lease(settled).account.returned_microusd == 80


def test_a_restart_is_granted_what_is_left() -> None:
    """Neither spent nor still reserved; so the ceiling is that of all incarnations (B7)."""
    agent = after(
        ("lease:1", Reserve("a", 30)), ("lease:1", Reserve("b", 10)), ("lease:1", Settle("a", 25)),
        ("status", Stop()), ("status", Spawn()),
    )  # fmt: skip
    assert the_lease(agent, 2).account.cap_microusd == 65
    assert [each.ref for each in agent_budget.leases(agent)] == ["lease:2", "lease:1"]
    assert not agent_budget.is_settled(the_lease(agent, 1))
    assert not agent_budget.is_settled(the_lease(agent, 2))


def test_an_overrun_leaves_nothing_for_a_restart() -> None:
    """Nobody gets less than nothing, either (B7)."""
    agent = after(
        ("lease:1", Reserve("a", 90)), ("lease:1", Reserve("b", 10)), ("lease:1", Settle("a", 120)),
        ("lease:1", Refund("b")), ("status", Stop()),
    )  # fmt: skip
    assert left_microusd(agent) == 0
    assert agent.views[COST] == 120
    assert agent_budget.is_settled(the_lease(agent))


def test_news_that_change_no_status_change_no_lease() -> None:
    """Only entering a state does."""
    assert after(("status", PiiDetected())).entities["lease:1"] == opened().entities["lease:1"]


INPUTS: Final = st.one_of(
    st.tuples(st.just("status"), st.sampled_from([each for kind in status.EVENTS for each in kind.examples()])),
    st.tuples(
        st.sampled_from(["lease:1", "lease:2", "lease:3"]),
        st.one_of(
            st.builds(Reserve, st.sampled_from("abc"), st.integers(0, 60)),
            st.builds(Settle, st.sampled_from("abc"), st.integers(0, 60)),
            st.builds(Refund, st.sampled_from("abc")),
            st.just(Close()),
            st.builds(Elapsed, st.sampled_from(["Expire", "GraceExceeded"]), st.integers(1, 4)),
        ),
    ),
)


@given(st.lists(INPUTS, max_size=40))
def test_money_is_reserved_only_while_running_and_no_restart_raises_the_ceiling(
    inputs: list[tuple[str, Event]],
) -> None:
    """A lease that is ACTIVE belongs to an agent that is RUNNING (I2), and the budget is one for all of them (B7)."""
    agent, now_ms = opened(), 0
    for ref, event in inputs:
        now_ms += 500
        before = left_microusd(agent)
        reaction = react(agent_type, agent, Envelope(ref, event, now_ms))
        agent = reaction.aggregate if isinstance(reaction, Reaction) else agent
        leases = [each.record for each in agent_budget.leases(agent)]
        active = [each for each in leases if each.state is lease.State.ACTIVE]
        assert len(active) <= (agent.record("status").state is status.State.RUNNING)
        spent = sum(each.account.spent_microusd + each.account.reserved_microusd for each in leases)
        assert spent <= AGENT.budget_microusd
        assert agent.views[COST] == sum(each.account.cost_microusd for each in leases)
        assert left_microusd(agent) >= 0 if before else True
