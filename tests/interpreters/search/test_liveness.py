"""Fair runs on which something never comes to be: found if and only if there are any, and shown as they are."""

from collections.abc import Iterable, Iterator
from itertools import chain, combinations, pairwise
from types import SimpleNamespace
from typing import Any, Final, NamedTuple, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lifefold.core.kernel import (
    Aggregate,
    AggregateType,
    Created,
    Dispatch,
    Envelope,
    Event,
    Machine,
    Opened,
    Property,
    Record,
    State,
    System,
    TimerFired,
    Transition,
    after,
    eventually,
    leads_to,
    row,
    rule,
    strongly,
    weakly,
)
from lifefold.interpreters.check import Bounds, Report, check
from lifefold.interpreters.replay import Replay
from lifefold.interpreters.search.liveness import Assumption, Lasso, Steps, never


class Place(State):
    HERE = "Here"
    THERE = "There"
    AWAY = "Away"


class Driven(Event, frozen=True):
    """It is driven to the other place."""


class Pushed(Event, frozen=True):
    """It is pushed there."""


class Stolen(Event, frozen=True):
    """It is taken away."""


class Cart(Record, frozen=True):
    state: Place = Place.HERE


MANY: Final = 8 * settings().max_examples
"""How many graphs are looked at: they are small."""


class Edge(NamedTuple):
    source: int
    target: int
    label: int


class Case(NamedTuple):
    """A graph, where something is due, where it holds, and what is fair."""

    states: int
    edges: tuple[Edge, ...]
    due: frozenset[int]
    holds: frozenset[int]
    fair: tuple[Assumption, ...]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    states = draw(st.integers(1, 7))
    state = st.integers(0, states - 1)
    edges = draw(st.lists(st.builds(Edge, state, state, st.integers(0, 3)), max_size=16, unique=True))
    some = st.frozensets(state)
    labels = st.frozensets(st.integers(0, 3), min_size=1, max_size=2)
    weak = st.builds(Assumption, labels, st.just(value=False), st.just(frozenset[int]()) | labels)
    fair = draw(st.lists(weak | st.builds(Assumption, labels, st.just(value=True)), max_size=3))
    restarts = frozenset[int]().union(*(each.restarts for each in fair))
    kept = tuple(edge for edge in edges if edge.source != edge.target or edge.label in restarts)
    return Case(states, kept, draw(some), draw(some), tuple(fair))


def steps_of(case: Case) -> Steps:
    edges = sorted(case.edges)
    first = np.searchsorted([edge.source for edge in edges], np.arange(case.states + 1))
    graph = SimpleNamespace(
        count=case.states,
        first=first.astype(np.int64),
        targets=np.array([edge.target for edge in edges], dtype=np.int64),
        labels=np.array([edge.label for edge in edges], dtype=np.int64),
    )
    return Steps(cast("Any", graph))


def found(case: Case) -> Lasso | None:
    every = range(case.states)
    due, holds = (np.array([state in those for state in every]) for those in (case.due, case.holds))
    return never(steps_of(case), due, holds, case.fair, lambda _: np.zeros(case.states, dtype=np.bool_))


def enabled(case: Case, fair: Assumption) -> frozenset[int]:
    return frozenset(edge.source for edge in case.edges if edge.label in fair.labels)


def subsets(items: Iterable[Assumption]) -> Iterable[tuple[Assumption, ...]]:
    every = tuple(items)
    return chain.from_iterable(combinations(every, size) for size in range(len(every) + 1))


def has_unfulfilled_run(case: Case) -> bool:
    """Say the same by fixed points, as the textbooks do, with the runs that stutter written out as loops.

    Of what is strongly fair it is guessed what is possible only finitely often; the rest has to be done for ever.
    """
    strong = [fair for fair in case.fair if fair.strong]
    weak = [fair for fair in case.fair if not fair.strong]
    begins = case.due - case.holds
    return any(
        begins & _can_reach(case, _fair_states(case, weak, [each for each in strong if each not in avoided], avoided))
        for avoided in subsets(strong)
    )


def _region(case: Case) -> frozenset[int]:
    return frozenset(range(case.states)) - case.holds


def _can_reach(case: Case, goal: frozenset[int]) -> frozenset[int]:
    found_states = goal
    while True:
        more = {e.source for e in case.edges if e.target in found_states and e.source in _region(case)} - found_states
        if not more:
            return found_states
        found_states |= more


def _fair_states(
    case: Case, weak: list[Assumption], done: list[Assumption], avoided: tuple[Assumption, ...]
) -> frozenset[int]:
    """Return where a run can begin that never meets what is avoided and does everything else again and again."""
    inside = _region(case).difference(*(enabled(case, each) for each in avoided))
    loops = tuple(Edge(state, state, -1) for state in inside)
    edges = [edge for edge in (*case.edges, *loops) if edge.source in inside and edge.target in inside]

    def satisfies(edge: Edge, fair: Assumption) -> bool:
        idle = not fair.strong and edge.source not in enabled(case, fair)
        return edge.label in fair.labels | fair.restarts or idle

    alive = inside
    while True:
        kept = alive
        for fair in (*weak, *done):
            good = {e.source for e in edges if satisfies(e, fair) and e.target in kept and e.source in kept}
            while more := {e.source for e in edges if e.target in good and e.source in kept} - good:
                good |= more
            kept = kept & good
        kept = frozenset(e.source for e in edges if e.source in kept and e.target in kept)
        if kept == alive:
            return alive
        alive = kept


@settings(max_examples=MANY)
@given(case=cases())
def test_there_is_a_lasso_exactly_where_there_is_an_unfulfilled_fair_run(case: Case) -> None:
    """Two ways to say it, which have nothing in common: components here, fixed points there."""
    assert (found(case) is not None) is has_unfulfilled_run(case)


@settings(max_examples=MANY)
@given(case=cases())
def test_a_lasso_is_a_run_that_is_fair_and_unfulfilled(case: Case) -> None:
    """It begins where something is due, goes along steps, and does in its round whatever it has to."""
    lasso = found(case)
    if lasso is None:
        return
    links = {(edge.source, edge.target) for edge in case.edges}
    round_ = (lasso.stem[-1], *lasso.cycle)
    walked = [*pairwise(lasso.stem), *pairwise(round_)]
    assert links.issuperset(walked)
    assert lasso.stem[0] in case.due
    assert not case.holds.intersection(lasso.stem, lasso.cycle)
    assert not lasso.cycle or lasso.cycle[-1] == lasso.stem[-1]
    shown = list(zip(pairwise(round_), lasso.labels, strict=True))
    assert {(*pair, label) for pair, label in shown if label >= 0} <= set(case.edges)
    labels = {label for _, label in shown}
    for fair in case.fair:
        possible = enabled(case, fair).intersection(round_)
        idle = not possible if fair.strong else not possible.issuperset(round_)
        assert idle or labels & (fair.labels | fair.restarts)


def test_strong_fairness_forbids_to_pass_by_for_ever_and_weak_fairness_does_not() -> None:
    """Between two states and past the way out of one of them: what is possible again and again, and then not."""
    edges = (Edge(0, 1, 0), Edge(1, 0, 0), Edge(1, 2, 1))
    going = Assumption(frozenset({0}), strong=False)
    strong, weak = (Assumption(frozenset({1}), strong=each) for each in (True, False))
    case = Case(3, edges, frozenset({0}), frozenset({2}), (going, strong))
    assert found(case) is None
    lasso = found(case._replace(fair=(going, weak)))
    assert lasso is not None
    assert {*lasso.cycle} == {0, 1}


@pytest.mark.parametrize("fairly", [weakly, strongly])
def test_a_round_is_shown_with_the_steps_that_make_it_fair(fairly: Any) -> None:
    """Where two steps lead to the same, the one that has to happen is shown, and so the way can be gone again."""
    machine = Machine(
        "cart",
        Cart(),
        rows=(
            row(Place.HERE, Driven, Place.THERE),
            row(Place.THERE, Driven, Place.HERE),
            row(Place.HERE, Pushed, Place.THERE),
            row(Place.THERE, Pushed, Place.HERE),
            row((Place.HERE, Place.THERE), Stolen, Place.AWAY),
        ),
        final={Place.AWAY},
        properties=(eventually("it is away", lambda cart: cart.state is Place.AWAY, given=fairly(Pushed)),),
    )
    (broken,) = check(machine).broken()
    assert broken.trace is not None
    assert broken.trace.cycle is not None
    assert Pushed in [type(happening.envelope.event) for happening in broken.trace.cycle]


class Tea(State):
    HOT = "Hot"
    MILKY = "Milky"
    COLD = "Cold"


class Cooled(Event, frozen=True):
    """It has stood for so long."""


class Stirred(Event, frozen=True):
    """An operator stirs."""


class Sugared(Event, frozen=True):
    """A rule answers stirring with sugar."""


class Cup(Record, frozen=True):
    state: Tea = Tea.HOT


COOLS: Final[Property[Any]] = leads_to("it cools", lambda cup: cup.state is Tea.HOT, lambda cup: cup.state is Tea.COLD)


def mug(*, restart: bool) -> Machine[Cup]:
    """Return a machine with one row back to its state, which changes nothing but the timer."""
    return Machine(
        "mug",
        Cup(),
        rows=(row(Tea.HOT, Stirred, Tea.HOT, restart=restart), row(Tea.HOT, Cooled, Tea.COLD)),
        final={Tea.COLD},
        detached={Tea.MILKY},
        during={Tea.HOT: after(60_000, Cooled)},
        properties=(COOLS,),
    )


def cup(*, restart: bool) -> Machine[Cup]:
    """Return a machine whose timer lasts for two states that lead to each other."""
    return Machine(
        "cup",
        Cup(),
        rows=(
            row(Tea.HOT, Stirred, Tea.MILKY),
            row(Tea.MILKY, Stirred, Tea.HOT, restart=restart),
            row((Tea.HOT, Tea.MILKY), Cooled, Tea.COLD),
        ),
        final={Tea.COLD},
        during={(Tea.HOT, Tea.MILKY): after(60_000, Cooled)},
        properties=(COOLS,),
    )


def broken_round(report: Report) -> list[type[Event]] | None:
    """Return the events of the round on which the one broken property is never fulfilled; None if none is broken."""
    if report.ok:
        return None
    (broken,) = report.broken()
    assert broken.trace is not None
    assert broken.trace.cycle is not None
    return [type(each.envelope.event) for each in broken.trace.cycle]


@pytest.mark.parametrize(("machine", "events"), [(mug, [Stirred]), (cup, [Stirred, Stirred])])
def test_a_timer_that_is_restarted_for_ever_need_not_elapse(machine: Any, events: list[type[Event]]) -> None:
    """The round has the row that restarts it, also where that row changes nothing else."""
    assert broken_round(check(machine(restart=True))) == events


@pytest.mark.parametrize("machine", [mug, cup])
def test_a_timer_that_can_be_restarted_only_so_often_elapses(machine: Any) -> None:
    """An operator that may stir twice cannot put it off for ever."""
    assert broken_round(check(machine(restart=True), bounds=Bounds(commands=2))) is None


def test_a_timer_that_another_one_restarts_need_not_elapse() -> None:
    """The other one goes on by itself, so no operator has to say anything."""
    machine = Machine(
        "mug",
        Cup(),
        rows=(row(Tea.HOT, Stirred, Tea.HOT, restart=True), row(Tea.HOT, Cooled, Tea.COLD)),
        final={Tea.COLD},
        detached={Tea.MILKY},
        during={Tea.HOT: (after(60_000, Cooled), after(1_000, Stirred))},
        properties=(COOLS,),
    )
    system = System("mugs", AggregateType("mug", machines=(machine,), commands={"mug": ()}))
    found = broken_round(check(system, opening=[("mug", Envelope("mug", Created(Cup()), 0))]))
    assert found is not None
    assert set(found) == {TimerFired}


@pytest.mark.parametrize("machine", [mug, cup])
def test_a_timer_that_goes_on_elapses_whatever_else_happens(machine: Any) -> None:
    assert broken_round(check(machine(restart=False))) is None


@pytest.mark.parametrize(("entity", "events"), [("mug", [Stirred]), ("cup", None)])
def test_restarting_one_timer_puts_off_no_other_one(entity: str, events: list[type[Event]] | None) -> None:
    """Of two entities in an aggregate, the one whose timer is restarted never cools, and the other one does."""

    def state(aggregate: Aggregate) -> State:
        return aggregate.entities[entity].state

    cools: Property[Aggregate] = leads_to(
        f"the {entity} cools", lambda it: state(it) is Tea.HOT, lambda it: state(it) is Tea.COLD
    )
    machines = (mug(restart=True), cup(restart=False))
    system = System("table", AggregateType("table", machines=machines, properties=(cools,)))
    opening = [("table", Envelope("", Opened({"mug": Cup(), "cup": Cup()}), 0))]
    found = broken_round(check(system, opening=opening))
    assert found == events if events is None else found is not None and set(events) <= set(found)


def answering() -> System:
    """Return a system in which a rule leads a state back to where it was, so that its timer begins again."""
    machine = Machine(
        "cup",
        Cup(),
        rows=(
            row(Tea.HOT, Stirred, Tea.MILKY),
            row(Tea.MILKY, Sugared, Tea.HOT),
            row(Tea.HOT, Cooled, Tea.COLD),
        ),
        final={Tea.COLD},
        during={Tea.HOT: after(60_000, Cooled)},
        properties=(COOLS,),
    )

    @rule(on=machine)
    def sugar(_table: Aggregate, step: Transition) -> Iterator[Dispatch]:
        if isinstance(step.event, Stirred):
            yield Dispatch("cup", Sugared())

    return System("tea", AggregateType("table", machines=(machine,), rules=(sugar,), commands={"cup": (Stirred,)}))


def test_a_state_that_is_left_and_entered_again_in_one_step_restarts_its_timer() -> None:
    """No state of the search shows it, so the step does."""
    opening = [("table", Envelope("cup", Created(Cup()), 0))]
    assert broken_round(check(answering(), opening=opening)) == [Stirred]


@pytest.mark.parametrize("restart", [True, False])
def test_a_timer_is_restarted_among_aggregates_that_are_apart(*, restart: bool) -> None:
    """Each is looked at alone there, and its rounds are joined."""
    system = System("mugs", AggregateType("mug", machines=(mug(restart=restart),)))
    opening = [(f"mug/{number}", Envelope("mug", Created(Cup()), 0)) for number in range(2)]
    report = check(system, opening=opening)
    assert broken_round(report) == ([Stirred, Stirred] if restart else None)


@pytest.mark.parametrize(("machine", "times"), [(mug, 1), (cup, 2)])
def test_a_test_of_a_restarted_timer_fails_until_it_is_not_restarted(machine: Any, times: int) -> None:
    """What ``--emit-test`` writes goes the round twice, and asks whether the property was kept."""

    def is_kept(*, restart: bool) -> bool:
        run = Replay(machine(restart=restart))
        for _ in range(2):
            run.goes_round()
            for _ in range(times):
                run.command(Stirred())
        return run.keeps("it cools", of=machine(restart=restart).name)

    assert not is_kept(restart=True)
    assert is_kept(restart=False)
