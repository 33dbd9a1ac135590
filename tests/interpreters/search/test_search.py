"""The search against one that does it all by hand: the same states, the same steps, the shortest ways, no more."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from hypothesis import given, settings

from alone import next_inputs
from kiln import kiln
from lifefold.core.kernel import (
    Aggregate,
    Entity,
    Envelope,
    Event,
    Machine,
    Property,
    Reaction,
    Record,
    RunnerRecovered,
    State,
    Transition,
    alone,
    always,
    always_step,
    react,
    row,
)
from lifefold.interpreters.check import Bounds, Outcome, check
from lifefold.interpreters.search.configuration import Judge
from lifefold.interpreters.search.graph import explore
from lifefold.interpreters.search.product_system import ProductSystem
from random_machines import machines

POSTPONED = 1


class Found(NamedTuple):
    """What a search by hand comes to: how far each state is, by its meaning, and how many steps there are."""

    depths: dict[Any, int]
    steps: int
    stuck: int


def meaning(machine: Machine[Any], aggregate: Aggregate) -> Any:
    """Return what is left of an entity when numbers are replaced by who is older than whom."""
    entity: Entity[Any] = aggregate.entities[machine.name]
    older = sorted({part.generation for part in entity.running})
    running = tuple((p.slot, older.index(p.generation), p.activity, p.phase) for p in entity.running)
    return entity.record, running, tuple(type(each.event) for each in entity.postponed)


def by_hand(machine: Machine[Any]) -> Found:
    """Walk through all that can happen, with nothing but the kernel."""
    system, openings = alone(machine)
    of = system.type_of(machine.name)
    born = react(of, of.start(machine.name), openings[machine.name])
    assert isinstance(born, Reaction)
    depths = {meaning(machine, born.aggregate): 0}
    todo, steps, stuck = [born.aggregate], 0, 0
    for aggregate in todo:
        here = meaning(machine, aggregate)
        leaves = False
        for envelope in inputs(machine, aggregate):
            came = react(of, aggregate, envelope)
            if isinstance(came, Reaction) and len(came.aggregate.entities[machine.name].postponed) <= POSTPONED:
                steps += 1
                there = meaning(machine, came.aggregate)
                leaves = leaves or there != here
                if there not in depths:
                    depths[there] = depths[here] + 1
                    todo.append(came.aggregate)
        stuck += not leaves
    return Found(depths, steps, stuck)


def inputs(machine: Machine[Any], aggregate: Aggregate) -> Iterator[Envelope]:
    entity = aggregate.entities[machine.name]
    yield from next_inputs(machine, entity, entity.entered_ms)
    if entity.running:
        yield Envelope("", RunnerRecovered(0), entity.entered_ms, "engine")


@given(machine=machines())
def test_the_search_meets_what_can_be_met_and_nothing_else(machine: Machine[Any]) -> None:
    """States, how deep they lie, steps, and the states that nothing leaves."""
    found = by_hand(machine)
    system, openings = alone(machine)
    graph = explore(ProductSystem(system, tuple(openings.items()), Judge(system), Bounds(postponed=POSTPONED)))
    assert graph.count == len(found.depths)
    assert graph.steps == found.steps
    assert graph.depth == max(found.depths.values())
    assert len(graph.stuck) == found.stuck
    assert [end - begin for begin, end in zip(graph.levels, [*graph.levels[1:], graph.count], strict=True)] == [
        sum(depth == level for depth in found.depths.values()) for level in range(graph.depth + 1)
    ]


@given(machine=machines())
def test_a_counterexample_is_as_short_as_can_be_and_can_be_walked(machine: Machine[Any]) -> None:
    """What is said never to be so is found where it first is so, and nowhere if it never is."""
    found = by_hand(machine)
    bad = [depth for (record, *_), depth in found.depths.items() if record.count == 2]
    report = check(
        machine, properties=[always("the count is low", low)], bounds=Bounds(postponed=POSTPONED, compared=50)
    )
    verdict = next(each for each in report.verdicts if each.name == "the count is low")
    if not bad:
        assert verdict.outcome is Outcome.HOLDS
        return
    assert verdict.outcome is Outcome.BROKEN
    assert verdict.trace is not None
    assert len(verdict.trace.steps) == min(bad)
    last = verdict.trace.steps[-1].reaction.aggregate if verdict.trace.steps else None
    assert last is None or not low(last.entities[machine.name])


def low(entity: Entity[Any]) -> bool:
    return bool(entity.record.count < 2)


@settings(max_examples=5)
@given(machine=machines())
def test_the_beginning_is_a_step_like_any_other(machine: Machine[Any]) -> None:
    """What is promised of steps is promised of the one with which an entity begins."""
    report = check(machine, properties=[always_step("it was there before", was_there)], bounds=Bounds(compared=0))
    verdict = next(each for each in report.verdicts if each.name == "it was there before")
    assert verdict.outcome is Outcome.BROKEN
    assert verdict.trace is not None
    assert verdict.trace.steps == ()


def was_there(step: Transition) -> bool:
    return step.before is not None


def test_a_property_that_cannot_be_judged_is_named() -> None:
    """The report names the rule and the error; nothing else is decided."""
    broken: Property[Any] = always("it adds up", lambda entity: bool(1 // entity.version))
    report = check(kiln, properties=[broken])
    (verdict,) = report.broken()
    assert "the property of kiln, 'it adds up', cannot be judged: ZeroDivisionError" in " ".join(verdict.way(200))
    assert {each.outcome for each in report.verdicts if each is not verdict} == {Outcome.UNDECIDED}


class Fall(Event, frozen=True):
    """The door falls shut."""


class Slam(Event, frozen=True):
    """The door is slammed."""


class Leaf(State):
    """Whether a door is open."""

    OPEN = "Open"
    SHUT = "Shut"


class Door(Record, frozen=True):
    """A door."""

    state: Leaf = Leaf.OPEN


def test_of_two_steps_to_one_state_a_way_ends_with_the_one_that_breaks_the_property() -> None:
    """The other one is allowed, and would show nothing."""
    door = Machine(
        "door",
        Door(),
        rows=(row(Leaf.OPEN, Fall, Leaf.SHUT), row(Leaf.OPEN, Slam, Leaf.SHUT)),
        final={Leaf.SHUT},
        properties=(always_step("nobody slams it", lambda t: not isinstance(t.event, Slam)),),
    )
    (found,) = check(door).broken()
    assert found.trace is not None
    assert [type(each.envelope.event) for each in found.trace.steps] == [Slam]
