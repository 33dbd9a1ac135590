"""SPIN, another model checker, as a witness: as many states, as many steps, as far away, and what is wrong as soon."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kiln import Kiln, opened
from kiln import system as pottery
from lifefold.core.kernel import (
    Aggregate,
    AggregateType,
    Created,
    Entity,
    Envelope,
    Event,
    Machine,
    Property,
    Record,
    Row,
    State,
    System,
    SystemState,
    Transition,
    always,
    always_step,
    row,
    rule,
)
from lifefold.core.lifecycles import session
from lifefold.effects import Tell
from lifefold.interpreters.search.bitset_search import Product, search
from lifefold.interpreters.search.configuration import Bounds, Judge
from lifefold.interpreters.search.findings import Findings
from lifefold.interpreters.search.graph import Graph, explore
from lifefold.interpreters.search.product_system import ProductSystem
from promela import ALL, NEAREST_FIRST, Model, OutOfMemory, Situation, Verifier, available, model

pytestmark = pytest.mark.skipif(
    not available(), reason="needs SPIN and gcc (on Debian and Ubuntu: apt install spin gcc)"
)

Opening = Sequence[tuple[str, Envelope]]


def few_firings(kiln: Kiln) -> bool:
    return kiln.stoked < 2 and kiln.firings < 2


FEW = Bounds(within={"kiln": few_firings}, commands=2)
"""So few firings that a search takes no time."""


def searched(system: System, opening: Opening, bounds: Bounds) -> tuple[ProductSystem, Graph]:
    product_system = ProductSystem(system, tuple(opening), Judge(system), bounds)
    graph = explore(product_system)
    assert not graph.truncated
    return product_system, graph


def sessions(
    count: int, *, properties: tuple[Property[Any], ...] = (), of_system: tuple[Property[Any], ...] = ()
) -> tuple[System, Opening]:
    """Return agents that have nothing to do with each other, and stop at the first error."""
    limits = session.Limits(max_consecutive_errors=1, max_total_errors=1)
    machine = session.machine.starting(session.Session(limits=limits))
    of = AggregateType("session", machines=(machine,), properties=properties)
    opening = [(f"session/{n}", Envelope("session", Created(machine.initial), 0)) for n in range(count)]
    return System("sessions", of, properties=of_system), opening


def assert_agrees(product_system: ProductSystem, graph: Findings, folder: Path) -> None:
    found = Verifier(model(product_system), folder, level="-O0").run()
    assert (found.states, found.steps, found.depth) == (graph.count, graph.steps, graph.depth)


@pytest.mark.parametrize(
    ("count", "bounds"),
    [(1, Bounds()), (2, Bounds(postponed=1)), (2, Bounds(postponed=0, commands=2)), (3, Bounds(postponed=0))],
    ids=["one", "two", "two with few commands", "three"],
)
def test_spin_meets_as_many_states_of_agents_side_by_side(count: int, bounds: Bounds, tmp_path: Path) -> None:
    """The product of what has been tabulated once, also where people may say only so much."""
    assert_agrees(*searched(*sessions(count), bounds), tmp_path)


def test_spin_meets_as_many_states_as_the_search_with_bits(tmp_path: Path) -> None:
    """Three agents, all of whose states are bits: as many states, steps, and as far away."""
    system, opening = sessions(3)
    product_system = ProductSystem(system, tuple(opening), Judge(system), Bounds(postponed=0))
    found = search(product_system)
    assert isinstance(found, Product)
    assert_agrees(product_system, found, tmp_path)


def test_spin_meets_as_many_states_where_aggregates_talk(tmp_path: Path) -> None:
    """Two kilns and a tally: messages under way are part of a state, in the order in which they were sent."""
    product_system, graph = searched(
        pottery, list(opened(0, "a", "b")), Bounds(within={"kiln": few_firings}, commands=3)
    )
    assert len(product_system.messages) > 1
    assert_agrees(product_system, graph, tmp_path)


class Place(State):
    A = "A"
    B = "B"
    C = "C"


class Pushed(Event, frozen=True):
    """The door is pushed."""


class Pulled(Event, frozen=True):
    """The door is pulled."""


class Heard(Event, frozen=True):
    """The other one has said a word."""

    word: int = 0

    @classmethod
    def examples(cls) -> tuple["Heard", ...]:
        return (cls(0), cls(1))


class Puppet(Record, frozen=True):
    """Something that is somewhere."""

    state: Place = Place.A


def puppet(random: Random, name: str, other: str) -> AggregateType:
    """Return an aggregate that goes and talks as chance has it; it listens everywhere."""
    places = list(Place)
    rows: list[Row[Any]] = [
        row(place, Pushed, places[(number + 1) % len(places)]) for number, place in enumerate(places)
    ]
    rows += [row(place, kind, random.choice(places)) for place in places for kind in (Heard, Pulled)]
    machine: Machine[Any] = Machine(name, Puppet(), rows=tuple(rows))
    kinds: tuple[type[Event], ...] = (Created, Pushed, Pulled, Heard)
    said: dict[tuple[State, type[Event]], int | None] = {
        (place, kind): random.choice((None, 0, 1)) for place in places for kind in kinds
    }

    @rule(on=machine)
    def talk(_aggregate: Aggregate, transition: Transition) -> Iterator[Tell]:
        """Say a word, or nothing."""
        word = said[transition.after.record.state, type(transition.event)]
        if word is not None:
            yield Tell(other, other, Heard(word))

    return AggregateType(name, machines=(machine,), rules=(talk,))


@pytest.mark.parametrize("seed", range(6))
def test_spin_meets_as_many_states_of_chance_systems(seed: int, tmp_path: Path) -> None:
    """Two that push each other about with words, some of which are under way from the beginning."""
    random = Random(seed)  # noqa: S311 - chance, not secrecy
    system = System("theatre", puppet(random, "judy", "punch"), puppet(random, "punch", "judy"))
    opening = [(name, Envelope(name, Created(Puppet()), 0)) for name in ("judy", "punch")]
    product_system, graph = searched(system, opening, Bounds(commands=3))
    assert_agrees(product_system, graph, tmp_path)


def broken_after(graph: Graph, prop: int) -> int:
    """Return how many steps it takes until a property is broken."""
    found = graph.broken[prop]
    return len(graph.way(found.state)) + (found.after is not None)


def test_spin_breaks_a_property_about_an_agent_after_as_many_steps(tmp_path: Path) -> None:
    """The way that the search shows is a shortest one: nearest first, SPIN needs as many."""
    prop: Property[Any] = always("no errors", lambda agent: agent.record("session").total_errors == 0)
    product_system, graph = searched(*sessions(2, properties=(prop,)), Bounds(postponed=0))
    number = next(n for n, each in enumerate(product_system.judge.properties) if each.property is prop)
    found = Verifier(model(product_system, prop=number), tmp_path, level="-O0").run()
    assert found.broken_at == broken_after(graph, number)


def test_spin_breaks_a_property_about_a_step_after_as_many_steps(tmp_path: Path) -> None:
    """It is the step that is wrong here, wherever it leads."""
    prop: Property[Any] = always_step("nothing fails", lambda step: not isinstance(step.event, session.FatalError))
    product_system, graph = searched(*sessions(2, properties=(prop,)), Bounds(postponed=0))
    number = next(n for n, each in enumerate(product_system.judge.properties) if each.property is prop)
    found = Verifier(model(product_system, prop=number), tmp_path, level="-O0").run()
    assert found.broken_at == broken_after(graph, number)


def running(agent: Aggregate) -> bool:
    entity: Entity[session.Session] = agent.entities["session"]
    return entity.state is session.State.RUNNING


def test_spin_breaks_a_property_about_two_agents_after_as_many_steps(tmp_path: Path) -> None:
    """A property of the whole system, for SPIN an assertion about where both processes are."""

    def one_at_a_time(system_state: SystemState) -> bool:
        return sum(map(running, system_state.aggregates.values())) < 2

    prop = always("one at a time", one_at_a_time)
    product_system, graph = searched(*sessions(2, of_system=(prop,)), Bounds(postponed=0))
    (number,) = product_system.judge.of_system
    where = [[n for n, agent in enumerate(part.states) if running(agent)] for part in product_system.components]
    forbidden: list[Situation] = [{0: one, 1: other} for one in where[0] for other in where[1]]
    found = Verifier(model(product_system, forbidden=forbidden), tmp_path, level="-O0").run()
    assert found.broken_at == broken_after(graph, number)


def test_spin_would_tell_of_states_that_are_missing(tmp_path: Path) -> None:
    """Without one of the steps in which a message is taken it meets fewer states: the witness does say no."""
    product_system, graph = searched(pottery, list(opened(0, "a")), FEW)
    whole = model(product_system).text
    taking = next(line for line in whole.splitlines() if "?" in line and "nempty" not in line)
    less = Verifier(Model(whole.replace(f"{taking}\n", "", 1)), tmp_path, level="-O0").run()
    assert less.states < graph.count


def test_spin_would_tell_of_a_message_that_the_search_has_not_met(tmp_path: Path) -> None:
    """It does not take the tables' word for what can be under way: where they know nothing of it, it fails."""
    product_system, _ = searched(pottery, list(opened(0, "a")), FEW)
    receptions = product_system.components[0]._receptions
    del receptions[next(iter(receptions))]
    assert Verifier(model(product_system), tmp_path, level="-O0").run().broken_at is not None


def test_spin_would_tell_of_a_state_that_the_search_has_not_met(tmp_path: Path) -> None:
    """A state without known steps is not one that is stuck."""
    product_system, _ = searched(*sessions(1), Bounds(postponed=0))
    product_system.components[0]._steps[5] = None
    assert Verifier(model(product_system), tmp_path, level="-O0").run().broken_at is not None


def test_spin_without_memory_enough_is_no_witness(tmp_path: Path) -> None:
    """What it has met until then is not taken for all that there is."""
    product_system, graph = searched(*sessions(3), Bounds(postponed=0))
    verifier = Verifier(model(product_system), tmp_path, (*NEAREST_FIRST, "-DMEMLIM=1"), level="-O0")
    with pytest.raises(OutOfMemory) as stopped:
        verifier.run("-w10")
    assert 0 < stopped.value.states < graph.count


def test_spin_without_depth_enough_is_no_witness(tmp_path: Path) -> None:
    """A search that was cut short is not taken for a whole one."""
    product_system, _ = searched(*sessions(2), Bounds(postponed=0))
    with pytest.raises(AssertionError, match="max search depth too small"):
        Verifier(model(product_system), tmp_path, ALL, level="-O0").run("-m20")
