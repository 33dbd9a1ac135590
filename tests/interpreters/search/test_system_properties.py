"""A property of a system that says what it looks at is judged as if it had been asked about every state."""

from typing import Any, Final

import pytest

from lifefold.core import fleet
from lifefold.core.fleet.system import worker
from lifefold.core.kernel import (
    Aggregate,
    AggregateType,
    Envelope,
    Event,
    Machine,
    Opened,
    Projection,
    Property,
    PropertyKind,
    Record,
    Row,
    State,
    System,
    SystemState,
    always,
    leads_to,
    projected,
    row,
    sometimes,
    subject_of,
)
from lifefold.core.lifecycles.session import Limits
from lifefold.interpreters.check import Bounds, check
from lifefold.interpreters.search.configuration import Judge
from lifefold.interpreters.search.graph import explore
from lifefold.interpreters.search.product_system import ProductSystem
from lifefold.interpreters.search.system_properties import SystemProperties

NEAR: Final = Limits(max_consecutive_errors=2, max_total_errors=2)
PLAN: Final = fleet.Plan("small", (fleet.AgentPlan("ann", NEAR),), (fleet.TaskPlan("T1", "do it", max_retries=1),))
SILENT: Final = Bounds(commands=0)


def opened() -> list[Any]:
    return list(fleet.opening(PLAN, 0))


def seen_states() -> tuple[ProductSystem, list[Any]]:
    """Return a small fleet's house, and all of its states as columns."""
    product_system = ProductSystem(
        fleet.system, tuple(opened()), Judge(fleet.system), SILENT, frozenset({"epoch", "kept", "result"})
    )
    graph = explore(product_system)
    assert not graph.truncated
    return product_system, [graph.seen.column(number) for number in range(product_system.width)]


def test_what_is_seen_of_states_that_look_alike_is_what_is_seen_of_each() -> None:
    """Every property of the fleet says of each of its states what it says of the system_state."""
    product_system, columns = seen_states()
    system_states = [
        product_system.system_state(world) for world in zip(*(column.tolist() for column in columns), strict=True)
    ]
    asked = SystemProperties(product_system)
    answers: set[bool] = set()
    for number in product_system.judge.of_system:
        prop = product_system.judge.properties[number]
        assert prop.property.projection is not None
        subjects = [subject_of(prop.property, system_state) for system_state in system_states]
        holds = [prop.holds(subject) for subject in subjects]
        assert asked.holds(number, columns).tolist() == holds
        assert asked.is_due(number, columns).tolist() == [prop.is_due(subject) for subject in subjects]
        answers.update(holds)
    assert answers == {True, False}


def test_few_questions_are_asked_about_many_states() -> None:
    """One for all states that look alike, however often they are met."""
    asked: list[Projection] = []

    def remembers(overview: Projection) -> bool:
        asked.append(overview)
        return True

    states = check(
        fleet.system,
        opening=opened(),
        properties=projected(state_of_intent, always("asked", remembers)),
        bounds=UNGATED,
    ).states
    assert 0 < len(asked) < states / 10


UNGATED: Final = Bounds(commands=0, compared=0)


def state_of_intent(of: Aggregate) -> str:
    """Look at nothing but what was asked of a worker."""
    return str(of.record("desired_state").state) if of.kind == worker.KIND else ""


def is_stopped(subject: Projection) -> bool:
    return bool(subject.aggregates["worker/ann"] == "Stop")


def is_stopped_there(system_state: SystemState) -> bool:
    return is_stopped(Projection({"worker/ann": state_of_intent(system_state.aggregates["worker/ann"])}))


def both(name: str, property_kind: PropertyKind) -> tuple[Property[Any], ...]:
    """Return a property of a kind twice: with a projection, and without one."""
    match property_kind:
        case PropertyKind.ALWAYS:
            return (
                *projected(state_of_intent, always(name, lambda o: not is_stopped(o))),
                always(f"{name}, plainly", lambda system_state: not is_stopped_there(system_state)),
            )
        case PropertyKind.SOMETIMES:
            return (
                *projected(state_of_intent, sometimes(name, is_stopped)),
                sometimes(f"{name}, plainly", is_stopped_there),
            )
        case _:
            return (
                *projected(state_of_intent, leads_to(name, lambda o: not is_stopped(o), is_stopped)),
                leads_to(f"{name}, plainly", lambda system_state: not is_stopped_there(system_state), is_stopped_there),
            )


@pytest.mark.campaign
def test_both_ways_to_ask_come_to_the_same_verdict_and_the_same_way() -> None:
    """Broken, possible or following: with the same outcome and as short a trace."""
    properties = [
        each
        for property_kind in PropertyKind
        if property_kind is not PropertyKind.ALWAYS_STEP
        for each in both(str(property_kind), property_kind)
    ]
    report = check(fleet.system, opening=opened(), properties=properties, bounds=SILENT)
    found = {verdict.name: verdict for verdict in report.verdicts}
    for each in properties[::2]:
        one, other = found[each.name], found[f"{each.name}, plainly"]
        assert one.outcome == other.outcome
        assert one.trace is not None
        assert one.trace == other.trace


class Light(State):
    ON = "On"
    OFF = "Off"


class Turned(Event, frozen=True):
    """It is turned."""


class Lamp(Record, frozen=True):
    state: Light = Light.OFF


def two_are_off(seen: Projection) -> bool:
    """Tell whether no more than one lamp is on."""
    return list(seen.aggregates.values()).count(Light.ON) <= 1


def light(of: Aggregate) -> Light:
    """Look whether a lamp is on."""
    return Light(of.record("lamp").state)


def test_what_is_seen_may_be_of_more_kinds_than_a_number_can_tell_apart() -> None:
    """Sixty-four lamps, each of which is on or off: every state is judged by its own look."""
    rows: tuple[Row[Lamp], ...] = (row(Light.OFF, Turned, Light.ON), row(Light.ON, Turned, Light.OFF))
    lamps = AggregateType("lamp", machines=(Machine("lamp", Lamp(), rows=rows),))
    system = System("street", lamps, properties=projected(light, always("it is dark", two_are_off)))
    opening = [(f"lamp/{n}", Envelope("", Opened({"lamp": Lamp()}), 0)) for n in range(64)]
    (broken,) = check(system, opening=opening, bounds=Bounds(depth=1)).broken()
    assert broken.trace is not None
    assert [type(each.envelope.event) for each in broken.trace.steps] == [Turned, Turned]
