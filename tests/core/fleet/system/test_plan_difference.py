"""What differs between two plans is a value, and applying it makes one plan of the other."""

from hypothesis import given
from hypothesis import strategies as st

from lifefold.core.fleet import AgentPlan, Plan, ServicePlan, TaskPlan
from lifefold.core.fleet.system.plan_difference import (
    AgentChange,
    FleetChange,
    ServiceChange,
    TaskChange,
    changed,
    difference,
)
from lifefold.core.kernel import replace
from lifefold.core.lifecycles.session import Limits

NAMES = ("a", "b", "c", "d")
TASKS = st.lists(
    st.builds(TaskPlan, st.sampled_from(NAMES), st.sampled_from(("do it", "do it well")), priority=st.integers(1, 2)),
    unique_by=lambda each: each.id,
)
AGENTS = st.lists(
    st.builds(AgentPlan, st.sampled_from(NAMES), st.sampled_from((Limits(), Limits(grace_ms=1)))),
    unique_by=lambda each: each.name,
)
SERVICES = st.lists(
    st.builds(ServicePlan, st.sampled_from(("s", "t")), takes_messages=st.booleans()), unique_by=lambda each: each.name
)
PLANS = st.builds(
    Plan,
    st.just("f"),
    AGENTS.map(tuple),
    TASKS.map(tuple),
    approval_ms=st.integers(1, 2),
    services=SERVICES.map(tuple),
)


def in_order(plan: Plan) -> Plan:
    """Return a plan whose agents and services stand in the order of their names: that order is no difference."""
    agents = tuple(sorted(plan.agents, key=lambda each: each.name))
    return replace(plan, agents=agents, services=tuple(sorted(plan.services, key=lambda each: each.name)))


@given(PLANS, PLANS)
def test_a_plan_with_the_difference_applied_is_the_other_plan(old: Plan, new: Plan) -> None:
    """And the reverse leads back."""
    there = changed(old, difference(old, new))
    assert in_order(there) == in_order(new)
    assert in_order(changed(there, difference(new, old))) == in_order(old)


@given(PLANS, PLANS)
def test_a_task_that_the_board_has_already_is_a_change_also_with_the_same_terms(old: Plan, new: Plan) -> None:
    """Then the plan in force has that task, at its place, and the other differences are the same."""
    there = {each.id for each in old.tasks}
    added = {each.id: each for each in new.tasks if each.id not in there}
    found = difference(old, new, added)
    assert in_order(changed(old, found)) == in_order(new)
    assert [each.was for each in found if isinstance(each, TaskChange) and each.name in added] == [*added.values()]


@given(PLANS)
def test_a_plan_that_was_not_changed_has_no_difference(plan: Plan) -> None:
    """Also one that was changed and changed back, and one with another display."""
    assert difference(plan, plan) == ()
    assert difference(plan, replace(plan, watch=True)) == ()
    assert changed(plan, ()) == plan


def test_every_change_has_the_name_of_what_it_is_about() -> None:
    """Whatever of the two sides there is."""
    a, b = AgentPlan("a"), ServicePlan("b")
    named = (TaskChange(None, TaskPlan("t", "do it")), AgentChange(a, None), ServiceChange(None, b))
    assert [each.name for each in named] == ["t", "a", "b"]
    assert FleetChange(Plan("f", (), ()), Plan("g", (), ())).name == "f"
    assert TaskChange(None, None).name == ""
