"""A check must not call a broken property kept, or a reachable state unreachable. Each of these was once said."""

from typing import Any, ClassVar, Final, Never

import pytest

from lifefold.core.kernel import (
    ANY,
    STAY,
    AggregateType,
    Created,
    Dispatch,
    Envelope,
    Event,
    Machine,
    Opened,
    Property,
    Record,
    Row,
    State,
    Step,
    System,
    after,
    always,
    always_step,
    leads_to,
    replace,
    row,
    rule,
    sometimes,
    weakly,
)
from lifefold.interpreters.check import Bounds, Outcome, Report, check


class Place(State):
    A = "A"
    B = "B"
    C = "C"


class Side(State):
    LEFT = "Left"
    RIGHT = "Right"


class Break(Event, frozen=True):
    pass


class Fix(Event, frozen=True):
    pass


class Later(Event, frozen=True):
    pass


class Thing(Record, frozen=True):
    state: Place = Place.A


def outcome(report: Report, name: str) -> Outcome:
    (found,) = [each.outcome for each in report.verdicts if each.name == name]
    return found


def breaks(*properties: Property[Any]) -> Machine[Any]:
    """Return what breaks, and is fixed only where it is not broken."""
    rows: tuple[Row[Any], ...] = (
        row(Place.A, Break, Place.B),
        row(Place.A, Fix, Place.C),
        row(Place.B, Later, Place.C),
    )
    return Machine("thing", Thing(), rows=rows, final={Place.C}, properties=properties, rests=lambda _: True)


FIXED: Final[Property[Any]] = leads_to(
    "it is fixed", lambda e: e.state is Place.B, lambda e: e.state is Place.C, given=weakly(Fix)
)


@pytest.mark.parametrize("commands", [None, 1, 2, 3])
def test_exhausted_commands_do_not_excuse_liveness_without_them(commands: int | None) -> None:
    """What is assumed to be said is not possible where it breaks, so the assumption changes nothing there."""
    assert outcome(check(breaks(FIXED), bounds=Bounds(commands=commands)), "it is fixed") is Outcome.BROKEN


def test_an_exhausted_command_under_weak_fairness_does_not_stay_enabled() -> None:
    """A run on which something assumed is possible for ever, and the bounds alone forbid it, is not fair."""
    rows: tuple[Row[Any], ...] = (row(Place.A, Break, Place.B), row(Place.B, Fix, Place.C))
    machine = Machine("thing", Thing(), rows=rows, final={Place.C}, properties=(FIXED,), rests=lambda _: True)
    assert outcome(check(machine, bounds=Bounds(commands=1)), "it is fixed") is Outcome.HOLDS


def test_something_possible_is_seen_where_it_is_reached() -> None:
    """Be it that the first state of an aggregate in which it is, as the tables come to it, cannot be reached."""
    rows: tuple[Row[Any], ...] = (
        row(Place.A, Break, Place.B),
        row(Place.B, Fix, Place.C),
        row(Place.B, Later, Place.C, lambda r, _e: Step(replace(r, by=1))),
    )
    machine = Machine(
        "timed",
        Timed(),
        rows=rows,
        final={Place.C},
        during={Place.B: after(10, Later)},
        properties=(sometimes("it is over", lambda e: e.state is Place.C),),
    )
    assert outcome(check(machine, bounds=Bounds(commands=1)), "it is over") is Outcome.HOLDS


class Timed(Record, frozen=True):
    state: Place = Place.A
    by: int = 0


class Pendulum(Record, frozen=True):
    state: Side = Side.LEFT


SWINGS: Final[tuple[Row[Any], ...]] = (row(Side.LEFT, Break, Side.RIGHT), row(Side.RIGHT, Break, Side.LEFT))


class Count(Record, frozen=True):
    state: Side = Side.LEFT
    number: int = 0


def count(c: Count, _e: Event) -> Step[Count, Never]:
    return Step(replace(c, number=c.number + 1))


def few(c: Count) -> bool:
    return c.number <= 3


@pytest.mark.parametrize("timed", [False, True])
def test_a_state_at_the_bounds_is_no_deadlock(*, timed: bool) -> None:
    """It could go on, and is only not looked at any further."""
    rows: tuple[Row[Any], ...] = (
        row(ANY, Break, STAY, count),
        row(Side.LEFT, Later, Side.RIGHT, count),
        row(Side.RIGHT, Later, Side.LEFT, count),
    )
    machine = Machine(
        "count", Count(), rows=rows[1:] if timed else rows, during={ANY: after(10, Later)} if timed else None
    )
    report = check(machine, bounds=Bounds(within={"count": few}))
    assert report.cut
    assert outcome(report, "what is not settled can go on") is Outcome.HOLDS


class Note(Event, frozen=True):
    text: str = ""

    @classmethod
    def examples(cls) -> tuple["Note", ...]:
        return cls("a"), cls("b")


class Paper(Record, frozen=True):
    """A sheet whose text is declared as opaque."""

    opaque: ClassVar[tuple[str, ...]] = ("text",)
    state: Side = Side.LEFT
    text: str = "a"


def write(p: Paper, e: Note) -> Step[Paper, Never]:
    return Step(replace(p, text=e.text))


OF_TEXTS: Final[tuple[Property[Any], ...]] = (
    sometimes("it says what nobody writes", lambda e: e.record.text not in {"a", "b"}),
    always("it says what somebody writes", lambda e: e.record.text in {"a", "b"}),
    always_step("only what is said is written", lambda t: t.before is None or t.before.record.text in {"a", "b"}),
)


@pytest.mark.parametrize("prop", OF_TEXTS, ids=lambda each: str(each.property_kind))
@pytest.mark.parametrize("states", [2, 1_000])
def test_what_a_search_finds_is_asked_of_the_rules_before_it_is_said(prop: Property[Any], states: int) -> None:
    """A record that says too much of its texts is found out also where nothing was compared."""
    machine = Machine("paper", Paper(), rows=(*SWINGS, row(ANY, Note, STAY, write)), properties=(prop,))
    report = check(machine, bounds=Bounds(states=states, compared=0))
    assert outcome(report, prop.name) is Outcome.UNSOUND


CIRCLE: Final = Machine("thing", Pendulum(), rows=SWINGS)


@rule(on=CIRCLE)
def again(_aggregate: Any, transition: Any) -> Any:
    """Go on for ever, once it has begun."""
    if transition.before is not None:
        yield Dispatch("thing", Break())


def test_rules_that_run_in_a_circle_are_reported() -> None:
    """The input that begins it is accepted."""
    system = System("circle", AggregateType("circle", machines=(CIRCLE,), rules=(again,)))
    report = check(system, opening=[("circle", Envelope("thing", Created(Pendulum()), 0))])
    assert [each.name for each in report.broken()] == ["rules and properties raise no error"]


class Clocked(Record, frozen=True):
    state: Side = Side.LEFT
    at_ms: int = 0


CLOCK: Final = Machine("clock", Clocked(), rows=SWINGS)
TOLD: Final = Machine("told", Pendulum(), rows=SWINGS)


@rule(on=TOLD)
def tells(_aggregate: Any, _transition: Any) -> Any:
    """Tell the clock."""
    yield Dispatch("clock", Break())


def test_a_clock_that_hears_from_rules_is_refused() -> None:
    """It would be told of everything at the time when it was opened."""
    system = System("both", AggregateType("both", machines=(CLOCK, TOLD), rules=(tells,)))
    opening = [("both", Envelope("", Opened({"clock": Clocked(), "told": Pendulum()}), 0))]
    with pytest.raises(ValueError, match=r"clock reads the time, and there are rules.*check clock by itself"):
        check(system, opening=opening)


def test_several_of_one_clock_are_refused() -> None:
    """Each would have a time of its own."""
    system = System("both", AggregateType("both", machines=(CLOCK,)))
    opening = [("both", Envelope("", Opened({"clock:a": Clocked(), "clock:b": Clocked()}), 0))]
    with pytest.raises(ValueError, match="there are several of it"):
        check(system, opening=opening)


def test_a_dozen_aggregates_are_searched() -> None:
    """Their states have more columns than a word has bits."""
    prop: Property[Any] = always("it is so", lambda _scene: True)
    system = System("dozen", AggregateType("thing", machines=(breaks(),)), properties=(prop,))
    opening = [(f"thing/{n}", Envelope("thing", Created(Thing()), 0)) for n in range(12)]
    report = check(system, opening=opening, bounds=Bounds(states=2_000, compared=10))
    assert report.states > 2_000
