"""A transition property with ``on`` is asked about transitions by these events, and never about a creation."""

from typing import Any

from lamp import Failed, Lamp, Light, Shaken, Turned, lamp
from lifefold.core.kernel import Envelope, Event, Transition, advance, always_step, create, row
from lifefold.core.kernel.entity import EntityStep

machine = lamp(
    row(Light.RED, Turned, Light.GREEN),
    row(Light.GREEN, Turned, Light.RED),
    row(Light.RED, Shaken, Light.RED),
    row(Light.RED, Failed, Light.DARK),
)


def transitions() -> list[Transition]:
    """Return the creation of a lamp, a shake, and a turn."""
    born = create(machine, "lamp", Lamp(), 0, "test")
    steps = [born]
    for event in (Shaken(), Turned()):
        step = advance(machine, steps[-1].entity, Envelope("lamp", event, 1))
        assert isinstance(step, EntityStep)
        steps.append(step)
    return [transition for step in steps for transition in step.transitions]


def asked(*, on: Any) -> list[type[Event]]:
    """Return the events about whose transitions such a property is asked."""
    seen: list[type[Event]] = []

    def note(step: Transition) -> bool:
        seen.append(type(step.event))
        return step.before is None

    prop = always_step("no record was there", note, on=on)
    held = [prop.holds(each) for each in transitions()]
    assert held.count(False) == len(seen)
    return seen


def test_a_property_on_an_event_is_asked_about_that_event_only() -> None:
    assert asked(on=Turned) == [Turned]


def test_a_property_on_several_events_is_asked_about_each() -> None:
    assert asked(on=Shaken | Turned) == [Shaken, Turned]


def test_a_property_on_every_event_is_not_asked_about_the_creation() -> None:
    assert asked(on=Event) == [Shaken, Turned]
