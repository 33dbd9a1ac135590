"""What triggers the rules of a fleet: no rule that is not asked would have had anything to ask for."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from board_life import must_survive_steps, plans
from lifefold.core.fleet import Plan, system
from lifefold.core.kernel import Aggregate, AggregateType, Created, Rule, System, Transition, replace
from lifefold.core.kernel.rule import RuleAction
from lifefold.interpreters.check import check
from lifefold.interpreters.targets.check_targets import named

NARROWED: Final = frozenset(
    {
        ("task", "gather"),
        ("worker_slot", "lose_role"),
        ("worker_slot", "gain_role"),
        ("task", "earn"),
        ("worker_slot", "trust_again"),
        ("worker_slot", "withdraw"),
        ("assignment", "leave_to_others"),
        ("assignment", "begin_inspection"),
        ("assignment", "drained"),
    }
)
"""Rules whose function would ask for nothing elsewhere. For the others the triggers are a condition of their own."""


class Spied:
    """Rules that note for which transitions they have something to ask for, triggered or not."""

    def __init__(self) -> None:
        self.asked: Counter[tuple[str, str]] = Counter()
        self.answered: Counter[tuple[str, str]] = Counter()
        self.missed: list[tuple[str, Transition]] = []

    def type(self, of: AggregateType) -> AggregateType:
        """Return a type whose narrowed rules are asked about every transition."""
        rules = [self._spied(each) if (each.on, each.name) in NARROWED else each for each in of.rules]
        return AggregateType(
            of.kind,
            machines=of.machines.values(),
            rules=rules,
            views=of.views,
            commands=of.commands,
            properties=of.properties,
        )

    def _spied(self, of: Rule) -> Rule:
        key = (of.on, of.name)

        def follow(aggregate: Aggregate, transition: Transition) -> Iterable[RuleAction]:
            if isinstance(transition.event, Created) and Created not in of.events and of.events:
                return ()  # an event of the machine is what lets the function look at the record before
            if not of.is_in(aggregate):
                return ()  # the function looks at the entity beside which it is a rule
            actions = list(of.follow(aggregate, transition))
            self.asked[key] += 1
            self.answered[key] += bool(actions)
            if actions and not of.is_triggered(transition):
                self.missed.append((of.name, transition))
            return actions

        return Rule(of.name, of.on, follow)


def test_the_rules_that_are_narrowed_are_there_and_have_triggers() -> None:
    """Else nothing would be compared."""
    there = {
        (each.on, each.name)
        for of in system.aggregates.values()
        for each in of.rules
        if each.events or each.leaves or each.enters
    }
    assert there >= NARROWED


@given(plans(), st.integers(0, 2**32))
def test_a_rule_of_the_board_that_is_not_asked_has_nothing_to_ask_for(plan: Plan, seed: int) -> None:
    """In long histories, whatever is said to the board."""
    spied = Spied()
    must_survive_steps(plan, seed, 100, spied.type(system.aggregates["board"]).among(system.aggregates))
    assert spied.missed == []


CHECKED: Final = (
    "fleet",
    "fleet-governed",
    "fleet-restarts",
    "fleet-preempting",
    "fleet-aborts",
    "fleet-drained",
    "fleet-trusted",
    "fleet-quota",
    "fleet-sharing",
    "fleet-orphans",
    "fleet-turns",
    "fleet-changing",
    "fleet-talking",
    "fleet-asking",
    "fleet-steering",
    "fleet-telling",
    "fleet-resting",
    "fleet-resuming",
    "fleet-outages",
)


@pytest.mark.no_cover
@pytest.mark.parametrize("name", CHECKED)
def test_a_rule_of_a_checked_fleet_that_is_not_asked_has_nothing_to_ask_for(name: str) -> None:
    """In the nearest states of each fleet that is checked."""
    spied, target = Spied(), named(name)
    assert isinstance(target.subject, System)
    types = [spied.type(each) for each in target.subject.aggregates.values()]
    check(System("fleet", *types), opening=target.opening, bounds=replace(target.bounds, compared=0, states=2_000))
    assert spied.missed == []
    assert spied.asked
