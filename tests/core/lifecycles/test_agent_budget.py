"""An agent and its leases: money is spent only while RUNNING, and a restart does not extend a budget."""

from typing import Final

from hypothesis import example, given
from hypothesis import strategies as st

from lifefold.core.kernel import Aggregate, Envelope, Event, Opened, Reaction, TimerFired, react
from lifefold.core.lifecycles import status
from lifefold.core.lifecycles.budget import agent as agent_budget
from lifefold.core.lifecycles.budget import lease
from lifefold.core.lifecycles.budget.agent import ADDED, COST, STATUS, agent_type, left_microusd
from lifefold.core.lifecycles.budget.lease import (
    AddBudget,
    Close,
    Expire,
    GraceExceeded,
    Lease,
    Refresh,
    Refund,
    Reserve,
    Revoke,
    Settle,
)
from lifefold.core.lifecycles.status import FatalError, PiiDetected, Spawn, Status, Stop
from lifefold.effects import ReturnBudget

AGENT: Final = Status(agent_id="agent_1", budget_microusd=100, lease_ms=1_000)


def opened() -> Aggregate:
    reaction = react(
        agent_type, agent_type.start("agent/agent_1"), Envelope("", Opened(agent_budget.opening(AGENT)), 0)
    )
    assert isinstance(reaction, Reaction)
    return reaction.aggregate


def after(*inputs: tuple[str, Event]) -> Aggregate:
    """Return an agent after these events, all of them accepted."""
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
    assert the_lease(opened()).account.free == 100
    assert the_lease(opened()).limits.duration_ms == 1_000
    assert agent_budget.granted(Status(), 5).limits == lease.Limits()


def test_stopping_and_failing_close_the_lease_and_return_what_is_left() -> None:
    """In the same step (B19)."""
    for event in (Stop(), FatalError()):
        reaction = react(agent_type, after(("lease:1", Reserve("a", 30))), Envelope(STATUS, event, 0))
        assert isinstance(reaction, Reaction)
        assert the_lease(reaction.aggregate).state is lease.State.CLOSED
        assert ReturnBudget("agent_1", 70) in [asked.effect for asked in reaction.effects]


def test_what_was_reserved_is_settled_after_a_failure_and_the_failed_agent_stays_as_it_is() -> None:
    """The report finds the lease; the record of the agent is immutable (B4, B12)."""
    failed = after(("lease:1", Reserve("a", 30)), (STATUS, FatalError("boom")))
    settled = after(("lease:1", Reserve("a", 30)), (STATUS, FatalError("boom")), ("lease:1", Settle("a", 20)))
    assert settled.entities[STATUS] == failed.entities[STATUS]
    assert settled.views[COST] == 20
    assert the_lease(settled).account.returned == 80


def test_a_restart_is_granted_what_is_left() -> None:
    """Neither spent nor still reserved; so the ceiling is that of all incarnations (B7)."""
    agent = after(
        ("lease:1", Reserve("a", 30)), ("lease:1", Reserve("b", 10)), ("lease:1", Settle("a", 25)),
        (STATUS, Stop()), (STATUS, Spawn()),
    )  # fmt: skip
    assert the_lease(agent, 2).account.cap == 65
    assert [each.ref for each in agent_budget.leases(agent)] == ["lease:2", "lease:1"]
    assert not agent_budget.is_settled(the_lease(agent, 1))
    assert not agent_budget.is_settled(the_lease(agent, 2))


def test_an_overrun_is_a_debt_of_the_next_incarnation() -> None:
    """It is granted nothing and owes the excess; added budget pays that first (B7)."""
    inputs = (
        ("lease:1", Reserve("a", 90)), ("lease:1", Reserve("b", 10)), ("lease:1", Settle("a", 120)),
        ("lease:1", Refund("b")), (STATUS, Stop()),
    )  # fmt: skip
    agent = after(*inputs)
    assert left_microusd(agent) == -20
    assert agent.views[COST] == 120
    assert agent_budget.is_settled(the_lease(agent))
    again = after(*inputs, (STATUS, Spawn()), ("lease:2", AddBudget(50)))
    assert the_lease(again, 2).account.free == left_microusd(again) == 30
    assert again.views[COST] == 120


def test_what_an_earlier_lease_overruns_is_charged_to_the_present_one() -> None:
    """Nothing else would keep a restarted agent from spending it a second time; it is counted once (B7, I2)."""
    agent = after(
        ("lease:1", Reserve("a", 50)), (STATUS, Stop()), (STATUS, Spawn()), ("lease:1", Settle("a", 90))
    )  # fmt: skip
    assert the_lease(agent, 2).account.free == left_microusd(agent) == 10
    assert agent.views[COST] == 90


def test_what_is_added_outlives_a_restart() -> None:
    """More budget for a lease is more budget for its agent (B7)."""
    agent = after(
        ("lease:1", AddBudget(900)), ("lease:1", Reserve("a", 30)), ("lease:1", Expire()), ("lease:1", Refresh(7)),
        (STATUS, Stop()), (STATUS, Spawn()),
    )  # fmt: skip
    assert agent.views[ADDED] == 907
    assert the_lease(agent, 2).account.cap == 977


def test_a_stop_does_not_close_a_lease_that_is_over() -> None:
    """Nothing is refused inside the step; nor is one charged (B19)."""
    ends: tuple[tuple[Event, ...], ...] = ((Close(),), (Revoke(),), (Expire(), GraceExceeded()))
    for end in ends:
        agent = after(*(("lease:1", event) for event in end), (STATUS, Stop()), (STATUS, Spawn()))
        assert the_lease(agent, 2).state is lease.State.ACTIVE
    late = after(
        ("lease:1", Reserve("a", 50)), (STATUS, Stop()), (STATUS, Spawn()), ("lease:2", Close()),
        ("lease:1", Settle("a", 90)), (STATUS, Stop()), (STATUS, Spawn()),
    )  # fmt: skip
    assert the_lease(late, 3).account.free == 10


def test_news_that_change_no_status_change_no_lease() -> None:
    """Only entering a state does."""
    assert after((STATUS, PiiDetected())).entities["lease:1"] == opened().entities["lease:1"]


NAMES: Final = st.sampled_from("ab")
WORK: Final = st.one_of(
    st.builds(Reserve, NAMES, st.integers(0, 60)), st.builds(Settle, NAMES, st.integers(0, 120))
)  # fmt: skip
INPUTS: Final = st.one_of(
    st.tuples(st.just("lease:1"), WORK),
    st.tuples(st.just("lease:2"), WORK),
    st.tuples(st.just(STATUS), st.sampled_from([Stop(force=True), Spawn()])),
    st.tuples(st.just(STATUS), st.sampled_from([each for kind in status.EVENTS for each in kind.examples()])),
    st.tuples(
        st.sampled_from(["lease:1", "lease:2", "lease:3"]),
        st.one_of(
            WORK,
            st.builds(AddBudget, st.integers(1, 60)),
            st.builds(Refresh, st.integers(0, 60)),
            st.builds(Refund, NAMES),
            st.just(Close()),
            st.builds(TimerFired, st.sampled_from(["Expire", "GraceExceeded"]), st.integers(1, 4)),
        ),
    ),
)


@example(
    [("lease:1", Reserve("a", 50)), (STATUS, Stop()), (STATUS, Spawn()), ("lease:1", Settle("a", 90)),
     ("lease:2", Reserve("b", 50))]
)  # fmt: skip
@given(st.lists(INPUTS, max_size=40))
def test_money_is_reserved_only_while_running_and_no_restart_raises_the_ceiling(
    inputs: list[tuple[str, Event]],
) -> None:
    """A lease that is ACTIVE belongs to an agent that is RUNNING (I2); one budget is for all incarnations (B7).

    Nothing new is admitted unless it fits beside everything that has been spent or is held, whatever has overrun.
    """
    agent, now_ms = opened(), 0
    for ref, event in inputs:
        now_ms += 100
        reaction = react(agent_type, agent, Envelope(ref, event, now_ms))
        held_before = held(agent)
        agent = reaction.aggregate if isinstance(reaction, Reaction) else agent
        leases = [each.record for each in agent_budget.leases(agent)]
        active = [each for each in leases if each.state is lease.State.ACTIVE]
        assert len(active) <= (agent.record(STATUS).state is status.State.RUNNING)
        granted = AGENT.budget_microusd + agent.views[ADDED]
        assert held(agent) <= held_before or agent.views[COST] + held(agent) <= granted
        assert all(each.account.free - each.account.overrun <= left_microusd(agent) for each in active)


def held(agent: Aggregate) -> int:
    return sum(each.record.account.reserved for each in agent_budget.leases(agent))
