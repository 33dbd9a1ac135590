"""Systems in which several machines have to do with time: what the search cannot look at is refused, in clear words."""

from typing import Any, ClassVar, Never

import pytest

from lifefold.core.kernel import (
    AggregateType,
    Created,
    Envelope,
    Event,
    Machine,
    Opened,
    Record,
    Row,
    State,
    Step,
    System,
    after,
    always,
    replace,
    row,
)
from lifefold.interpreters.check import Bounds, check


class Milk(State):
    FRESH = "Fresh"
    OPEN = "Open"
    SOUR = "Sour"


class Sound(State):
    WAITED_FOR = "Waited for"
    HEARD = "Heard"


class Unsealed(Event, frozen=True):
    """The bottle is opened."""


class Smelt(Event, frozen=True):
    """The milk is smelled: it is poured away, or found sour."""


class Rung(Event, frozen=True):
    """A bell rings."""


class Bottle(Record, frozen=True):
    """Milk, and since when it is open; no wait is longer than 5 ms."""

    timestamps: ClassVar[tuple[str, ...]] = ("since_ms",)

    state: Milk = Milk.FRESH
    at_ms: int = 0
    since_ms: int = 0

    def pauses_ms(self) -> tuple[int, ...]:
        return (0, 5)


class Bell(Record, frozen=True):
    """A bell that rings once."""

    state: Sound = Sound.WAITED_FOR


def unseal(bottle: Bottle, _e: Unsealed) -> Step[Bottle, Never]:
    """Remember the time."""
    return Step(replace(bottle, since_ms=bottle.at_ms))


def is_old(bottle: Bottle, _e: Smelt) -> bool:
    """It has been open for longer than anybody waits."""
    return bottle.at_ms - bottle.since_ms > 8


def bottle(name: str) -> Machine[Any]:
    """Return a machine whose property is that it never turns sour: it holds if no other machine lets time pass."""
    return Machine(
        name,
        Bottle(),
        rows=(
            row(Milk.FRESH, Unsealed, Milk.OPEN, unseal),
            row(Milk.OPEN, Smelt, Milk.SOUR, when=is_old),
            row(Milk.OPEN, Smelt, Milk.FRESH),
        ),
        final={Milk.SOUR},
        properties=(always("it is never sour", lambda entity: entity.state is not Milk.SOUR),),
    )


RINGS: tuple[Row[Bell], ...] = (row(Sound.WAITED_FOR, Rung, Sound.HEARD),)
BELL = Machine("bell", Bell(), rows=RINGS, final={Sound.HEARD}, during={Sound.WAITED_FOR: after(60, Rung)})
SILENT = Machine("silent", Bell(), rows=RINGS, final={Sound.HEARD})
ALONE = bottle("bottle")


def beside(other: Machine[Any]) -> tuple[System, list[tuple[str, Envelope]]]:
    """Return a system of two aggregates."""
    system = System("kitchen", AggregateType("shelf", machines=(ALONE,)), AggregateType("wall", machines=(other,)))
    first = [("shelf", ALONE), ("wall", other)]
    return system, [(name, Envelope(each.name, Created(each.initial), 0)) for name, each in first]


def together(other: Machine[Any]) -> tuple[System, list[tuple[str, Envelope]]]:
    """Return a system of one aggregate with two entities."""
    system = System("kitchen", AggregateType("shelf", machines=(ALONE, other)))
    records = {"bottle": ALONE.initial, other.name: other.initial}
    return system, [("shelf", Envelope("", Opened(records), 0))]


@pytest.mark.parametrize("placed", [beside, together])
@pytest.mark.parametrize("other", [bottle("other"), BELL], ids=["a clock", "a timer"])
@pytest.mark.parametrize("compared", [0, 3_000])
def test_one_clock_is_refused_if_another_aggregate_has_timers(placed: Any, other: Machine[Any], compared: int) -> None:
    """While a bell is waited for, other milk turns sour; each is judged at its own time."""
    system, opening = placed(other)
    with pytest.raises(ValueError, match=rf"bottle reads the time, and {other.name} lets it pass"):
        check(system, opening=opening, bounds=Bounds(compared=compared))


@pytest.mark.parametrize("placed", [beside, together])
def test_one_clock_is_searched_if_no_other_aggregate_has_timers(placed: Any) -> None:
    """Then all the time that passes is its own."""
    system, opening = placed(SILENT)
    report = check(system, opening=opening)
    assert report.ok
    assert report.walked[0] > 10


def test_a_clock_with_timers_of_its_own_is_looked_at() -> None:
    """It sees its own time pass."""
    assert check(ALONE).ok


def test_timers_without_a_clock_are_looked_at() -> None:
    """They may elapse in any order: the time is not known."""
    timed = BELL.starting(Bell(), "other")
    system = System("bells", AggregateType("wall", machines=(BELL, timed)))
    opening = [("wall", Envelope("", Opened({"bell": Bell(), "other": Bell()}), 0))]
    assert check(system, opening=opening).ok
