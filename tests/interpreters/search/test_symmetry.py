"""Of equal aggregates, one state stands for all permutations: nothing else is left out."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyrsistent import pmap, pset, pvector

from lifefold.core import fleet
from lifefold.core.kernel import (
    Aggregate,
    AggregateType,
    Created,
    Envelope,
    Event,
    Machine,
    Property,
    Record,
    Row,
    State,
    Step,
    System,
    SystemState,
    Transition,
    always,
    eventually,
    replace,
    row,
    rule,
    sometimes,
)
from lifefold.core.lifecycles import session
from lifefold.effects import Tell
from lifefold.interpreters.check import Bounds, Outcome, check
from lifefold.interpreters.cli.app import main
from lifefold.interpreters.search.configuration import Judge
from lifefold.interpreters.search.graph import Graph, explore
from lifefold.interpreters.search.product_system import ProductSystem
from lifefold.interpreters.search.symmetry import NotAlike, Renaming, Symmetry
from lifefold.interpreters.search.unreduced import Unreduced
from lifefold.interpreters.targets.bounded import one_undelivered
from random_machines import RINGS, Go, Push, Ring, machines


class Open(State):
    """Whether a counter is open."""

    OPEN = "Open"
    SHUT = "Shut"


class Came(Event, frozen=True):
    """A guest comes to the counter."""

    name: str


class Called(Event, frozen=True):
    """An operator has a guest called."""


class Line(Record, frozen=True):
    """Who stands in line."""

    state: Open = Open.OPEN
    names: tuple[str, ...] = ()


def join(line: Line, event: Came) -> Step[Line, Any]:
    """Stand in line, once."""
    return Step(line if event.name in line.names else replace(line, names=(*line.names, event.name)))


def first(line: Line, _event: Called) -> Step[Line, Tell]:
    """Call the first guest."""
    return Step(replace(line, names=line.names[1:]), (Tell(f"guest/{line.names[0]}", "ring", Go()),))


def favourite(line: Line, _event: Called) -> Step[Line, Tell]:
    """Call the guest whose name comes first."""
    name = min(line.names)
    names = tuple(each for each in line.names if each != name)
    return Step(replace(line, names=names), (Tell(f"guest/{name}", "ring", Go()),))


def has_guests(line: Line, _event: Called) -> bool:
    """A guest stands in line."""
    return bool(line.names)


NAMES: Final = ("ann", "anna", "ben")


class Inn(NamedTuple):
    """A counter and guests, the machines of whom are drawn."""

    system: System
    opening: tuple[tuple[str, Envelope], ...]

    def product_system(self, *, symmetry: bool) -> ProductSystem:
        bounds = Bounds(postponed=1, commands=3, symmetry=symmetry, states=4_000)
        return ProductSystem(self.system, self.opening, Judge(self.system), bounds)


def inn(guest: Machine[Any], calls: Any, places: frozenset[State], guests: int) -> Inn:
    """Return one in which guests who are pushed to one of these places come to the counter."""
    counter = Machine(
        "counter",
        Line(),
        rows=(
            *(row(each, Came, each, join) for each in Open),
            row(Open.OPEN, Called, Open.SHUT, calls, when=has_guests),
            row(Open.SHUT, Called, Open.OPEN),
        ),
    )

    @rule(on=guest)
    def come(who: Aggregate, transition: Transition) -> Iterator[Tell]:
        if isinstance(transition.event, Push) and transition.after.record.state in places:
            yield Tell("counter", "counter", Came(who.key))

    system = System(
        "inn",
        AggregateType("counter", machines=(counter,), commands={"counter": (Called,)}),
        AggregateType(
            "guest",
            machines=(guest,),
            rules=(come,),
            commands={"ring": (Push,)},
            properties=(always("nobody counts to two", lambda g: g.record("ring").count < 2),),
        ),
        properties=(
            sometimes("two stand in line", lambda system_state: len(line_of(system_state)) > 1),
            always("not all stand in line", lambda system_state: len(line_of(system_state)) < guests),
            eventually("a guest is in line", lambda system_state: bool(line_of(system_state))),
        ),
    )
    opened = [("counter", Envelope("counter", Created(Line()), 0))]
    opened += [(f"guest/{name}", Envelope("ring", Created(guest.initial), 0)) for name in NAMES[:guests]]
    return Inn(system, tuple(opened))


def line_of(system_state: SystemState) -> tuple[str, ...]:
    line: Line = system_state.aggregates["counter"].record("counter")
    return line.names


@st.composite
def inns(draw: st.DrawFn) -> Inn:
    """Draw one."""
    guest = draw(machines())
    places = frozenset(draw(st.sets(st.sampled_from(list(guest.states)), min_size=1)))
    return inn(guest, first, places, draw(st.integers(2, 3)))


def far(graph: Graph) -> dict[str, dict[int, int]]:
    """Return how far it is to what is broken, and to what is possible."""
    broken = {prop: len(graph.way(found.state)) for prop, found in graph.broken.items()}
    return {"broken": broken, "seen": {prop: len(graph.way(state)) for prop, state in graph.witnesses.items()}}


@settings(max_examples=settings().max_examples // 7)
@given(drawn=inns())
def test_symmetry_omits_only_the_names(drawn: Inn) -> None:
    """Every state has one that stands for it and was met, and nothing else was met; what is found is as near."""
    every = explore(drawn.product_system(symmetry=False))
    assume(not every.truncated)
    few = explore(drawn.product_system(symmetry=True))
    symmetry = Symmetry(every.product_system, every.world(0))
    worlds = [every.world(state) for state in range(every.count)]
    kinds = {min(symmetry.images(world)) for world in worlds}
    assert len(kinds) <= few.count <= len({symmetry.of(world) for world in worlds})
    assert few.depth == every.depth
    assert far(few) == far(every)
    assert bool(few.stuck) == bool(every.stuck)
    assert few.symmetry is not None
    few.symmetry.hold(1_000)
    met = {
        form(few.product_system, image) for state in range(few.count) for image in few.symmetry.images(few.world(state))
    }
    assert met == {form(every.product_system, world) for world in worlds}


def form(product_system: ProductSystem, world: tuple[int, ...]) -> object:
    """Return a state as what it is, without the numbers of a house."""
    system_state = product_system.system_state(world)
    return (
        tuple((name, each.entities) for name, each in system_state.aggregates.items()),
        system_state.in_flight,
        world[-1],
    )


@settings(max_examples=10, deadline=None)
@given(drawn=inns(), data=st.data())
def test_a_way_leads_by_the_rules_to_the_state_that_it_is_to(drawn: Inn, data: st.DataObject) -> None:
    """It can be replayed, whatever was exchanged on it, and it ends in that state."""
    product_system = drawn.product_system(symmetry=True)
    graph = explore(product_system)
    state = data.draw(st.integers(0, graph.count - 1))
    world, _ = Unreduced(product_system).walk(graph.way(state))
    assert product_system.form(world) == graph.world(state)


def a_ring() -> Machine[Any]:
    one, other = RINGS[2]
    rows: list[Row[Ring]] = [
        row(place, event, to) for place, to in ((one, other), (other, one)) for event in (Go, Push)
    ]
    return Machine("ring", Ring(one), rows=rows)


@pytest.mark.parametrize("guests", [2, 3])
def test_rules_that_treat_some_otherwise_are_found_out(guests: int) -> None:
    """Here a name decides who is called."""
    of = inn(a_ring(), favourite, frozenset(RINGS[2]), guests)
    bounds = Bounds(commands=3, symmetry=True)
    with pytest.raises(NotAlike, match=r"if names are exchanged .*ann for .* not alike"):
        check(of.system, opening=of.opening, bounds=bounds)


@pytest.mark.parametrize("name", NAMES[:2])
def test_a_property_that_treats_some_otherwise_is_found_out(name: str) -> None:
    """A property may name no part."""
    of = inn(a_ring(), first, frozenset(RINGS[2]), 2)
    ours: Property[Any] = always(
        "this guest does not stand in line alone", lambda system_state: line_of(system_state) != (name,)
    )
    report = check(of.system, opening=of.opening, properties=(ours,), bounds=Bounds(commands=2, symmetry=True))
    assert next(each.outcome for each in report.verdicts if each.name == ours.name) is Outcome.UNSOUND


def test_aggregates_with_other_openings_are_not_symmetric() -> None:
    """And without parts there is no symmetry."""
    of = inn(a_ring(), first, frozenset(RINGS[2]), 2)
    opening = (*of.opening[:2], ("guest/anna", Envelope("ring", Created(Ring(RINGS[2][1])), 0)))
    with pytest.raises(NotAlike, match="no two aggregates of the opening are alike"):
        check(of.system, opening=opening, bounds=Bounds(commands=1, symmetry=True))


def test_what_follows_is_not_asked_and_not_claimed() -> None:
    """The report says so, and who was taken for whom."""
    of = inn(a_ring(), first, frozenset(RINGS[2]), 3)
    report = check(of.system, opening=of.opening, bounds=Bounds(commands=3, symmetry=True))
    assert report.alike is not None
    assert report.alike.groups == (("guest/ann", "guest/anna", "guest/ben"),)
    assert report.alike.unasked == ("a guest is in line",)
    assert report.alike.compared > 0
    assert "not checked: liveness (1 properties)" in " ".join(str(report).split())
    assert report.conclusion().endswith("; 1 not checked")
    every = check(of.system, opening=of.opening, bounds=Bounds(commands=3))
    assert every.alike is None
    outcomes = {(each.owner, each.name): each.outcome for each in every.verdicts}
    del outcomes["inn", "a guest is in line"]
    assert {(each.owner, each.name): each.outcome for each in report.verdicts} == outcomes
    assert every.states > 3 * report.states


@pytest.mark.campaign
def test_of_a_fleet_every_property_about_states_and_steps_is_answered_alike() -> None:
    """Two agents with two tasks: half of the states, the same answers."""
    once = session.Limits(max_consecutive_errors=1, max_total_errors=1)
    plan = fleet.Plan(
        "small",
        tuple(fleet.AgentPlan(name, once) for name in ("ann", "ben")),
        tuple(fleet.TaskPlan(f"T{number}", "do it", max_retries=0) for number in (1, 2)),
    )
    opening = tuple(fleet.opening(plan, 0))
    bounds = Bounds(within={"mailbox": one_undelivered}, commands=0, compared=200)
    every = check(fleet.system, opening=opening, bounds=bounds, crashes=None)
    few = check(fleet.system, opening=opening, bounds=replace_symmetry(bounds))
    outcomes = {(each.owner, each.name): each.outcome for each in every.verdicts}
    assert {(each.owner, each.name): each.outcome for each in few.verdicts}.items() <= outcomes.items()
    assert few.states < 0.52 * every.states
    assert Outcome.BROKEN not in outcomes.values()


def replace_symmetry(bounds: Bounds) -> Bounds:
    return Bounds(within=bounds.within, commands=bounds.commands, compared=bounds.compared, symmetry=True)


class Outgoing(NamedTuple):
    """Something with a name in it that is no record."""

    to: str
    state: State


def test_names_are_exchanged_wherever_they_stand_as_words() -> None:
    """In keys and texts and whatever has parts; not within longer names, and not in what only looks like one."""
    swap = Renaming({"ann": "ben", "ben": "ann"})
    held = pmap({"worker_slot:ann": pvector(["ben", "anna"]), "worker_slot:ben": pset(["ann-1", "ann"])})
    assert swap(held) == pmap({"worker_slot:ben": pvector(["ann", "anna"]), "worker_slot:ann": pset(["ann-1", "ben"])})
    assert swap((Outgoing("worker/ann", Open.OPEN), 3, frozenset({"ben is gone"}))) == (
        Outgoing("worker/ben", Open.OPEN),
        3,
        frozenset({"ann is gone"}),
    )
    line = Line(names=("ann", "ben", "dan"))
    assert swap(line) == Line(names=("ben", "ann", "dan"))
    assert swap(swap(line)) == line
    assert Renaming({})(line) == line


TOWN = """
from lifefold.core.kernel import AggregateType, Created, Envelope, Event, Machine, Record, State, System, row


class Door(State):
    OPEN = "Open"
    SHUT = "Shut"


class Pushed(Event, frozen=True):
    pass


class House(Record, frozen=True):
    state: Door = Door.SHUT


machine = Machine("door", House(), rows=(row(Door.SHUT, Pushed, Door.OPEN), row(Door.OPEN, Pushed, Door.SHUT)))
system = System("town", AggregateType("house", machines=(machine,)))
target = system, [(f"house/{name}", Envelope("door", Created(House()), 0)) for name in ("a", "b", "c")]
"""


def test_the_command_line_looks_at_one_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three doors, each open or shut: four states instead of eight; without equal parts that is bad input."""
    (tmp_path / "town.py").write_text(TOWN)
    monkeypatch.chdir(tmp_path)
    assert main(["check", "town:target", "--symmetry", "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert (told["states"], told["alike"]["groups"]) == (4, [["house/a", "house/b", "house/c"]])
    assert main(["check", "fleet", "--symmetry"]) == 2
    assert "fleet cannot be checked: no two aggregates of the opening are alike" in capsys.readouterr().err
    assert main(["check", "town:target", "--symmetry", "--certificate", "x.json", "--verify"]) == 2
    assert "--symmetry means nothing with --verify" in capsys.readouterr().err
