"""The search with bits against the one that meets state after state: the same of everything, where it may be used."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple, Never

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kiln import opened
from kiln import system as pottery
from lifefold.core.kernel import (
    Aggregate,
    AggregateType,
    Created,
    Envelope,
    Fairness,
    Machine,
    Property,
    Record,
    Row,
    State,
    Step,
    System,
    Transition,
    after,
    always,
    always_step,
    eventually,
    leads_to,
    replace,
    row,
    sometimes,
    strongly,
    weakly,
)
from lifefold.core.lifecycles import session
from lifefold.interpreters.check import Bounds, Outcome, Progress, Report, check
from lifefold.interpreters.search.bitset_search import BLOCK_WORDS, Product, search
from lifefold.interpreters.search.configuration import Judge
from lifefold.interpreters.search.findings import Findings
from lifefold.interpreters.search.graph import Graph, explore
from lifefold.interpreters.search.product_system import ProductSystem
from random_machines import Go, Push, Ring, Tick, Work, machines

Opening = tuple[tuple[str, Envelope], ...]


class Case(NamedTuple):
    """Aggregates that have nothing to do with each other, and what is asked of them."""

    system: System
    opening: Opening
    bounds: Bounds

    def product_system(self) -> ProductSystem:
        return ProductSystem(self.system, self.opening, Judge(self.system), self.bounds)

    def report(self, *of_system: Property[Any]) -> Report:
        return check(self.system, opening=self.opening, properties=of_system, bounds=self.bounds)


def low(ring: Ring) -> bool:
    """Tell whether the count is below its most."""
    return ring.count < 2


def ring_of(aggregate: Aggregate) -> Ring:
    (entity,) = aggregate.entities.values()
    ring: Ring = entity.record
    return ring


Holds = Callable[[Aggregate], bool]


def counts(much: int) -> Holds:
    def holds(aggregate: Aggregate) -> bool:
        return ring_of(aggregate).count == much

    return holds


def is_in(place: int) -> Holds:
    def holds(aggregate: Aggregate) -> bool:
        return bool(ring_of(aggregate).state == f"S{place}")

    return holds


def is_not_in(place: int) -> Holds:
    def holds(aggregate: Aggregate) -> bool:
        return bool(ring_of(aggregate).state != f"S{place}")

    return holds


def not_from(place: int) -> Callable[[Transition], bool]:
    def holds(step: Transition) -> bool:
        return step.before is None or step.before.record.state != f"S{place}"

    return holds


FAIRNESS = st.sampled_from([(), weakly(Go), strongly(Go), strongly(Push), weakly(Work), (*weakly(Tick), *strongly(Go))])


@st.composite
def properties(draw: st.DrawFn) -> tuple[Property[Any], ...]:
    """Draw properties of all kinds; some of them hold, by chance."""
    place, much = st.integers(0, 4), st.integers(0, 2)
    given: tuple[Fairness, ...] = draw(FAIRNESS)
    one, other = draw(place), draw(place)
    return (
        always("it is not there", is_not_in(draw(place))),
        always_step("it does not go from there", not_from(draw(place))),
        sometimes("it counts so much", counts(draw(much))),
        leads_to("from here it comes there", is_in(one), is_in(other), given=given),
        leads_to("from so much it comes to so much", counts(draw(much)), counts(draw(much)), given=draw(FAIRNESS)),
        eventually("it comes there", is_in(draw(place)), given=draw(FAIRNESS)),
    )


@st.composite
def cases(draw: st.DrawFn, most: int = 3) -> Case:
    """Draw two kinds of machines, and a few aggregates of them that begin somewhere."""
    kinds: dict[str, AggregateType] = {}
    for name in ("ring", "loop"):
        machine = draw(machines())
        machine = machine.starting(machine.initial, name)
        kinds[name] = AggregateType(name, machines=(machine,), properties=draw(properties()))
    opening = tuple(
        (f"{kind}/{number}", Envelope(kind, Created(draw(records(kinds[kind].machines[kind]))), 0))
        for number, kind in enumerate(draw(st.lists(st.sampled_from(["ring", "loop"]), min_size=2, max_size=most)))
    )
    within = {"ring": low} if draw(st.booleans()) else {}
    return Case(System("rings", *kinds.values()), opening, Bounds(postponed=1, within=within, compared=30))


def records(machine: Machine[Any]) -> st.SearchStrategy[Ring]:
    states: list[State] = list(machine.states)
    return st.builds(Ring, st.sampled_from(states), st.integers(0, 1))


def figures(found: Findings) -> dict[str, Any]:
    """Return everything that two searches must have in common."""
    return {
        "states": found.count,
        "steps": found.steps,
        "levels": found.levels,
        "depth": found.depth,
        "stuck": sorted(found.world(state) for state in found.stuck),
        "broken": {prop: (len(found.way(each.state)), each.after is None) for prop, each in found.broken.items()},
        "witnesses": {prop: len(found.way(state)) for prop, state in found.witnesses.items()},
        "coverage": (
            found.product_system.coverage.used,
            found.product_system.refused,
            [part.cut for part in found.product_system.components],
        ),
        "truncated": found.truncated,
    }


@pytest.mark.parametrize("most", [2, pytest.param(3, marks=pytest.mark.campaign)])
@settings(max_examples=settings().max_examples // 10)
@given(data=st.data(), block_words=st.sampled_from([1, 20, BLOCK_WORDS]))
def test_both_searches_meet_the_same(most: int, data: st.DataObject, block_words: int) -> None:
    """States, steps and levels; stuck and wrong states with their distances; used rows."""
    case = data.draw(cases(most))
    found = search(case.product_system(), block_words=block_words)
    assert isinstance(found, Product)
    assert figures(found) == figures(explore(case.product_system()))


@settings(max_examples=15, deadline=None)
@given(case=cases(most=2), depth=st.integers(0, 6))
def test_both_searches_end_at_the_same_depth(case: Case, depth: int) -> None:
    """A search that is to go so far only has met the same until then, and says why it ended."""
    case = case._replace(bounds=Bounds(postponed=1, depth=depth))
    assert figures(search(case.product_system())) == figures(explore(case.product_system()))


def walked(found: Findings, state: int) -> tuple[int, ...]:
    """Return where the way to a state leads."""
    world = found.product_system.initial()
    for wanted in found.way(state):
        world = next(after for move, after, _ in found.product_system.successors(world) if move == wanted)
    return world


@settings(max_examples=15, deadline=None)
@given(case=cases())
def test_a_way_leads_where_it_is_said_to_lead(case: Case) -> None:
    """Traces to a stuck state, to a wrong one, and to a seen one."""
    found = search(case.product_system())
    states = [*found.stuck[:20], *found.witnesses.values(), *(each.state for each in found.broken.values())]
    assert [walked(found, state) for state in states] == [found.world(state) for state in states]
    for each in found.broken.values():
        assert each.after is None or len(found.moves((each.state, each.after))) == 1


def is_a_property(_scene: object) -> bool:
    """Say so of every system state: asked of the whole, it has every state looked at."""
    return True


def outcomes(report: Report) -> list[tuple[str, str, Outcome, int]]:
    """Return what is said of every property, and how long the way there is, where only the nearest will do."""
    return [
        (each.owner, each.name, each.outcome, len(each.trace.steps) if each.trace and each.trace.cycle is None else 0)
        for each in report.verdicts
        if each.name != "it is so"
    ]


@settings(max_examples=settings().max_examples // 4)
@given(case=cases(most=2))
def test_both_searches_come_to_the_same_verdicts(case: Case) -> None:
    """Also of what should follow: each aggregate by itself, and all states of all of them, say the same."""
    assert outcomes(case.report()) == outcomes(case.report(always("it is so", is_a_property)))


@pytest.mark.campaign
@settings(max_examples=5, deadline=None)
@given(case=cases())
def test_both_searches_come_to_the_same_verdicts_of_three(case: Case) -> None:
    """Where there is more than one neighbour."""
    assert outcomes(case.report()) == outcomes(case.report(always("it is so", is_a_property)))


def sessions(count: int, errors: int = 1, **bounds: Any) -> Case:
    """Return agents that stop after so many errors."""
    limits = session.Limits(max_consecutive_errors=errors, max_total_errors=errors)
    machine = session.machine.starting(session.Session(limits=limits))
    opening = [(f"session/{n}", Envelope("session", Created(machine.initial), 0)) for n in range(count)]
    return Case(System("sessions", AggregateType("session", machines=(machine,))), tuple(opening), Bounds(**bounds))


def test_more_states_than_a_word_has_bits_are_met() -> None:
    """An aggregate may have more states than there are bits: then it has several words."""
    case = sessions(2, errors=4)
    found = search(case.product_system())
    assert isinstance(found, Product)
    assert all(len(part.states) > 64 for part in found.product_system.components)
    assert figures(found) == figures(explore(case.product_system()))


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_agents_side_by_side_are_in_all_states_that_each_can_be_in(count: int) -> None:
    """States are multiplied, depths add up, and each part's steps are taken in all states of the others."""
    one = explore(sessions(1, postponed=0).product_system())
    found = search(sessions(count, postponed=0, states=10**9).product_system())
    assert (found.count, found.depth) == (one.count**count, one.depth * count)
    assert found.steps == count * one.steps * one.count ** (count - 1)
    assert len(found.stuck) == len(one.stuck) ** count
    assert not found.truncated


def test_agents_side_by_side_keep_what_each_of_them_keeps() -> None:
    """What should follow among it, in more states than could be looked at one by one in this time."""
    report = sessions(4, postponed=0, compared=30).report()
    assert report.states == prod(report.components.values())
    assert outcomes(report) == outcomes(sessions(1, postponed=0, compared=30).report())


class Place(State):
    """Where walker is."""

    HERE = "Here"
    OUT = "Out"
    AWAY = "Away"


class Walker(Record, frozen=True):
    """Walker who is somewhere."""

    state: Place = Place.HERE


def is_known(walker: Walker) -> bool:
    """Tell whether it is where it is looked at."""
    return walker.state is not Place.OUT


def is_here(aggregate: Aggregate) -> bool:
    return "Here" in [entity.state for entity in aggregate.entities.values()]


def is_away(aggregate: Aggregate) -> bool:
    return not is_here(aggregate)


@pytest.mark.parametrize("way_out", [False, True], ids=["nowhere else", "elsewhere"])
def test_a_neighbour_at_the_bounds_has_no_run_but_elsewhere(*, way_out: bool) -> None:
    """Its timer leads out of the bounds: a trace that stays there for ever is not fair, and one that leaves is."""
    rows: tuple[Row[Walker], ...] = (
        row(Place.HERE, Tick, Place.OUT),
        row(Place.OUT, Go, Place.AWAY),
        row(Place.AWAY, Go, Place.HERE),
        row(Place.HERE, Go, Place.AWAY),
    )
    one = Machine("one", Walker(), rows=rows)
    rows = rows if way_out else rows[:-1]
    other = Machine("other", Walker(), rows=rows, during={Place.HERE: after(10, Tick)})
    declared = (leads_to("who is here goes away", is_here, is_away), eventually("it goes away", is_away))
    types = (AggregateType("one", machines=(one,), properties=declared), AggregateType("other", machines=(other,)))
    opening = tuple((name, Envelope(name, Created(Walker()), 0)) for name in ("one", "other"))
    case = Case(System("both", *types), opening, Bounds(within={"other": is_known}, compared=30))
    said = {each.name: each.outcome for each in case.report().verdicts}
    assert said["who is here goes away"] is (Outcome.BROKEN if way_out else Outcome.HOLDS)
    assert said["it goes away"] is (Outcome.BROKEN if way_out else Outcome.HOLDS)
    assert outcomes(case.report()) == outcomes(case.report(always("it is so", is_a_property)))


@pytest.mark.parametrize(
    "case",
    [
        Case(pottery, tuple(opened(0, "a", "b")), Bounds(states=500)),
        sessions(1, postponed=0),
        sessions(2, postponed=0, commands=2),
        sessions(5, postponed=0, states=1_000),
    ],
    ids=["who talk", "one alone", "who hear only so much", "with less room than they need"],
)
def test_others_are_searched_state_by_state(case: Case) -> None:
    """The bits are for aggregates that are apart, and for what does not take more memory than states one by one."""
    assert isinstance(search(case.product_system()), Graph)


class Count(State):
    """What it has counted to."""

    EVEN = "Even"
    ODD = "Odd"


class Counter(Record, frozen=True):
    """Something that counts to a limit."""

    state: Count = Count.EVEN
    count: int = 0


def one_more(counter: Counter, _event: Go) -> Step[Counter, Never]:
    """Count."""
    return Step(replace(counter, count=counter.count + 1))


def few(counter: Counter) -> bool:
    """Tell whether it has not counted further than is looked at."""
    return counter.count < 520


@pytest.mark.parametrize(("begins", "kind"), [((518, 8), Product), ((518, 7), Graph), ((7, 518), Graph)])
def test_aggregates_with_very_many_states_are_searched_state_by_state(
    begins: Sequence[int], kind: type[Findings]
) -> None:
    """There the tables are what takes long, and bits are of no use: an aggregate has 512 at most."""
    machine = Machine(
        "counter", Counter(), rows=(row(Count.EVEN, Go, Count.ODD, one_more), row(Count.ODD, Go, Count.EVEN, one_more))
    )
    opening = tuple(
        (f"counter/{number}", Envelope("counter", Created(Counter(count=count)), 0))
        for number, count in enumerate(begins)
    )
    of = AggregateType("counter", machines=(machine,))
    found = search(Case(System("counters", of), opening, Bounds(within={"counter": few})).product_system())
    assert type(found) is kind
    assert found.count == prod(520 - count for count in begins)


def test_a_property_of_the_whole_is_asked_state_by_state() -> None:
    """A property of the whole system needs each of its states."""
    case = sessions(2, postponed=0)
    of_system = (always("it is so", is_a_property),)
    judge = Judge(case.system, of_system)
    assert isinstance(search(ProductSystem(case.system, case.opening, judge, case.bounds)), Graph)


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ({"states": 3_000}, "more than 3,000 states"),
        ({"seconds": 0.0}, "more than 0 seconds"),
        ({"memory_mib": 1}, "more than 1 MiB of memory"),
    ],
    ids=["states", "seconds", "memory"],
)
def test_a_search_ends_at_its_limits(bounds: dict[str, Any], said: str) -> None:
    """And what it says of the properties then is that it does not know."""
    report = sessions(3, postponed=0, **bounds).report()
    assert report.truncated == said
    assert {each.outcome for each in report.verdicts} <= {Outcome.UNDECIDED, Outcome.HOLDS}
    assert Outcome.UNDECIDED in {each.outcome for each in report.verdicts}


def test_a_search_that_is_interrupted_says_what_it_has_met() -> None:
    """Ctrl-C ends it, and nothing is lost."""

    def stop(progress: Progress) -> None:
        if progress.depth > 5:
            raise KeyboardInterrupt

    found = search(sessions(3, postponed=0).product_system(), tell=stop)
    assert isinstance(found, Product)
    assert found.truncated == "it was interrupted"
    assert found.depth > 5
    assert found.count > 100


def test_progress_is_reported_during_the_search() -> None:
    """The states that are not looked at yet are among those that were met."""
    told: list[Progress] = []
    found = search(sessions(3, postponed=0).product_system(), tell=told.append)
    assert [each.depth for each in told] == [*range(1, found.depth + 1)]
    assert [each.states for each in told] == [*found.levels[2:], found.count]
    assert all(each.states - each.frontier == level for each, level in zip(told, found.levels[1:], strict=True))
    assert told[-1].steps <= found.steps


@pytest.mark.parametrize("way", ["bits", "one by one"])
def test_a_search_can_begin_with_tables_that_are_there(way: str) -> None:
    """What is known of the aggregates from another search changes nothing."""
    case: Case = sessions(2, postponed=0)
    product_system = case.product_system()
    finds: Sequence[Findings] = (
        [explore(product_system), search(product_system)]
        if way == "bits"
        else [search(product_system), explore(product_system)]
    )
    first, second = ({**figures(each), "stuck": len(each.stuck)} for each in finds)
    assert first == second
