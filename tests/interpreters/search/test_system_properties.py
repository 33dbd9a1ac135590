"""A promise of a system that says what it looks at is judged as if it had been asked about every state."""

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
    Overview,
    Property,
    Record,
    Row,
    Scene,
    State,
    System,
    Temper,
    always,
    leads_to,
    row,
    seeing,
    sometimes,
    subject_of,
)
from lifefold.core.lifecycles.session import Limits
from lifefold.interpreters.check import Bounds, check
from lifefold.interpreters.search.configuration import Judge
from lifefold.interpreters.search.graph import explore
from lifefold.interpreters.search.product_system import House
from lifefold.interpreters.search.system_properties import Scenes

NEAR: Final = Limits(max_consecutive_errors=2, max_total_errors=2)
PLAN: Final = fleet.Plan("small", (fleet.AgentPlan("ann", NEAR),), (fleet.TaskPlan("T1", "do it", max_retries=1),))
SILENT: Final = Bounds(commands=0)


def opened() -> list[Any]:
    return list(fleet.opening(PLAN, 0))


def seen_states() -> tuple[House, list[Any]]:
    """Return a small fleet's house, and all of its states as columns."""
    house = House(fleet.system, opened(), Judge(fleet.system), SILENT, frozenset({"epoch", "kept", "result"}))
    graph = explore(house)
    assert not graph.truncated
    return house, [graph.seen.column(number) for number in range(house.width)]


def test_what_is_seen_of_states_that_look_alike_is_what_is_seen_of_each() -> None:
    """Every promise of the fleet says of each of its states what it says of the scene."""
    house, columns = seen_states()
    scenes = [house.scene(world) for world in zip(*(column.tolist() for column in columns), strict=True)]
    asked = Scenes(house)
    answers: set[bool] = set()
    for number in house.judge.of_system:
        promise = house.judge.promises[number]
        assert promise.property.sees is not None
        subjects = [subject_of(promise.property, scene) for scene in scenes]
        holds = [promise.holds(subject) for subject in subjects]
        assert asked.holds(number, columns).tolist() == holds
        assert asked.is_due(number, columns).tolist() == [promise.is_due(subject) for subject in subjects]
        answers.update(holds)
    assert answers == {True, False}


def test_few_questions_are_asked_about_many_states() -> None:
    """One for all states that look alike, however often they are met."""
    asked: list[Overview] = []

    def remembers(overview: Overview) -> bool:
        asked.append(overview)
        return True

    states = check(
        fleet.system, opening=opened(), properties=seeing(state_of_intent, always("asked", remembers)), bounds=UNGATED
    ).states
    assert 0 < len(asked) < states / 10


UNGATED: Final = Bounds(commands=0, compared=0)


def state_of_intent(of: Aggregate) -> str:
    """Look at nothing but what was asked of a worker."""
    return str(of.record("intent").state) if of.kind == worker.KIND else ""


def is_stopped(subject: Overview) -> bool:
    return bool(subject.aggregates["worker/ann"] == "Stop")


def is_stopped_there(scene: Scene) -> bool:
    return is_stopped(Overview({"worker/ann": state_of_intent(scene.aggregates["worker/ann"])}))


def both(name: str, temper: Temper) -> tuple[Property[Any], ...]:
    """Return a promise of a kind twice: one that says what it looks at, and one that does not."""
    match temper:
        case Temper.ALWAYS:
            return (
                *seeing(state_of_intent, always(name, lambda o: not is_stopped(o))),
                always(f"{name}, plainly", lambda scene: not is_stopped_there(scene)),
            )
        case Temper.SOMETIMES:
            return (
                *seeing(state_of_intent, sometimes(name, is_stopped)),
                sometimes(f"{name}, plainly", is_stopped_there),
            )
        case _:
            return (
                *seeing(state_of_intent, leads_to(name, lambda o: not is_stopped(o), is_stopped)),
                leads_to(f"{name}, plainly", lambda scene: not is_stopped_there(scene), is_stopped_there),
            )


@pytest.mark.campaign
def test_both_ways_to_ask_come_to_the_same_verdict_and_the_same_way() -> None:
    """Broken, possible or following: with the same outcome and as short a trace."""
    promises = [each for temper in Temper if temper is not Temper.ALWAYS_STEP for each in both(str(temper), temper)]
    report = check(fleet.system, opening=opened(), properties=promises, bounds=SILENT)
    found = {verdict.name: verdict for verdict in report.verdicts}
    for each in promises[::2]:
        one, other = found[each.name], found[f"{each.name}, plainly"]
        assert one.outcome == other.outcome
        assert one.trace is not None
        assert one.trace == other.trace


class Light(State):
    ON = "On"
    OFF = "Off"


class Turned(Event, frozen=True):
    """Somebody turns it."""


class Lamp(Record, frozen=True):
    state: Light = Light.OFF


def two_are_off(seen: Overview) -> bool:
    """Tell whether no more than one lamp is on."""
    return list(seen.aggregates.values()).count(Light.ON) <= 1


def light(of: Aggregate) -> Light:
    """Look whether a lamp is on."""
    return Light(of.record("lamp").state)


def test_what_is_seen_may_be_of_more_kinds_than_a_number_can_tell_apart() -> None:
    """Sixty-four lamps, each of which is on or off: every state is judged by its own look."""
    rows: tuple[Row[Lamp], ...] = (row(Light.OFF, Turned, Light.ON), row(Light.ON, Turned, Light.OFF))
    lamps = AggregateType("lamp", machines=(Machine("lamp", Lamp(), rows=rows),))
    system = System("street", lamps, properties=seeing(light, always("it is dark", two_are_off)))
    opening = [(f"lamp/{n}", Envelope("", Opened({"lamp": Lamp()}), 0)) for n in range(64)]
    (broken,) = check(system, opening=opening, bounds=Bounds(depth=1)).broken()
    assert broken.trace is not None
    assert [type(each.envelope.event) for each in broken.trace.steps] == [Turned, Turned]
