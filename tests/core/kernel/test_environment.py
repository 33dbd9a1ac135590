"""Possible inputs: timers cannot be put off, but for those that are restarted."""

from typing import Any

import pytest

from lifefold.core.kernel import (
    Aggregate,
    AggregateType,
    Created,
    Envelope,
    Event,
    Machine,
    Reaction,
    TimerFired,
    react,
    restarted,
    row,
)
from oven import Baked, Doused, Lit, Oven, Place, Stirred, machine

ANEW: Machine[Any] = machine.replacing(row(Place.COOLING, Lit, Place.COOLING, restart=True))
OF = AggregateType("kitchen", machines=(ANEW,))


def taken(aggregate: Aggregate, event: Event, at_ms: int = 0, slot: str = "", generation: int = 0) -> Reaction:
    envelope = Envelope("oven", event, at_ms, "test", slot=slot, generation=generation)
    found = react(OF, aggregate, envelope)
    assert isinstance(found, Reaction)
    return found


def cooling() -> Aggregate:
    aggregate = taken(OF.start("kitchen"), Created(Oven())).aggregate
    aggregate = taken(aggregate, Lit()).aggregate
    return taken(aggregate, Baked(), 0, "Bake", 2).aggregate


def test_the_timers_are_told_that_a_reaction_begins_again() -> None:
    """All that go on in the state, with the entity that they are of."""
    before = cooling()
    assert {*restarted(before, taken(before, Lit()))} == {("oven", "Cooled"), ("oven", "Warned"), ("oven", "Swept")}


def test_a_timer_that_elapses_or_goes_on_is_not_begun_again() -> None:
    """One is over then, and the others have the generation that they had."""
    before = cooling()
    assert not [*restarted(before, taken(before, TimerFired("Warned", 3), 10_000))]


@pytest.mark.parametrize("event", [Stirred(), Doused()])
def test_an_activity_is_no_timer_that_is_begun_again(event: Event) -> None:
    before = taken(taken(OF.start("kitchen"), Created(Oven())).aggregate, Lit()).aggregate
    where = ("Bake", 2) if isinstance(event, Stirred) else ("", 0)
    assert not [*restarted(before, taken(before, event, 0, *where))]


def test_what_is_created_has_no_timer_that_went_on_before() -> None:
    before = OF.start("kitchen")
    assert not [*restarted(before, taken(before, Created(Oven(Place.COOLING))))]
