"""A small system for the engine's tests: kilns that are fired and cool down, and a tally that counts their pots."""

from collections.abc import Iterator
from typing import Final, Never

from lifefold.core.kernel import (
    ANY,
    Aggregate,
    AggregateType,
    Envelope,
    Event,
    Machine,
    Opened,
    Record,
    State,
    Step,
    System,
    Transition,
    after,
    does,
    replace,
    row,
    rule,
)
from lifefold.effects import Activity, Effect, Tell

COOLING_MS: Final = 500
RESTING_MS: Final = 200


class Heat(State):
    """Where a kiln can be in its life."""

    COLD = "Cold"
    FIRING = "Firing"
    COOLING = "Cooling"
    BROKEN = "Broken"


class Lit(Event, frozen=True):
    """The fire is lit."""


class Stoked(Event, frozen=True):
    """Wood was put on."""


class Fired(Event, frozen=True):
    """The pots are done."""

    pots: int = 1


class Doused(Event, frozen=True):
    """The fire is put out, or water is poured on the hot pots."""


class Cooled(Event, frozen=True):
    """The pots can be taken out."""


class Rested(Event, frozen=True):
    """The hands have rested."""


class Called(Event, frozen=True):
    """A word is called, and is to be announced."""

    word: str = "hello"


class Smashed(Event, frozen=True):
    """That was it."""


class Counted(Event, frozen=True):
    """A kiln has something to be counted."""

    pots: int = 1


class PutAway(Event, frozen=True):
    """There is nothing to be counted any more."""


class Fire(Activity, frozen=True):
    """Keep the fire of the n-th firing."""

    firing: int


class Announce(Effect, frozen=True):
    """Announce a word."""

    word: str


class Kiln(Record, frozen=True):
    """A kiln, and how often it was lit and stoked."""

    state: Heat = Heat.COLD
    firings: int = 0
    stoked: int = 0


class Counting(State):
    """A tally counts until it is put away."""

    OPEN = "Open"
    AWAY = "Away"


class Tally(Record, frozen=True):
    """What was counted, in order."""

    state: Counting = Counting.OPEN
    counted: tuple[int, ...] = ()


def light(kiln: Kiln, _event: Lit) -> Step[Kiln, Announce]:
    """Count the firing and announce it."""
    return Step(replace(kiln, firings=kiln.firings + 1), (Announce(f"lit {kiln.firings + 1}"),))


def stoke(kiln: Kiln, _event: Stoked) -> Step[Kiln, Never]:
    """Count the log."""
    return Step(replace(kiln, stoked=kiln.stoked + 1))


def announce(kiln: Kiln, event: Called) -> Step[Kiln, Announce]:
    """Announce the word, twice if it is an echo."""
    return Step(kiln, (Announce(event.word),) * (2 if event.word == "echo" else 1))


def count(tally: Tally, event: Counted) -> Step[Tally, Never]:
    """Write it down."""
    return Step(replace(tally, counted=(*tally.counted, event.pots)))


def fire(kiln: Kiln) -> Fire:
    """Return what goes on while it burns."""
    return Fire(kiln.firings)


kiln: Final = Machine(
    "kiln",
    Kiln(),
    rows=(
        row(Heat.COLD, Lit, Heat.FIRING, light),
        row(Heat.FIRING, Stoked, Heat.FIRING, stoke),
        row(Heat.FIRING, Fired, Heat.COOLING),
        row((Heat.FIRING, Heat.COOLING), Doused, Heat.COLD),
        row(Heat.COOLING, Cooled, Heat.COLD),
        row(Heat.COOLING, Rested, Heat.COOLING),
        row(Heat.COLD, Called, Heat.COLD, announce),
        row(Heat.FIRING, Called, Heat.FIRING, announce),
        row(ANY, Smashed, Heat.BROKEN),
    ),
    final={Heat.BROKEN},
    during={
        Heat.FIRING: does(fire, yields=Stoked, last=Fired),
        Heat.COOLING: (after(COOLING_MS, Cooled), after(RESTING_MS, Rested, restore="restart")),
    },
)

tally: Final = Machine(
    "tally",
    Tally(),
    rows=(row(Counting.OPEN, Counted, Counting.OPEN, count), row(Counting.OPEN, PutAway, Counting.AWAY)),
    final={Counting.AWAY},
)


@rule(on=kiln)
def tell_pots(_kilns: Aggregate, transition: Transition) -> Iterator[Tell]:
    """The tally hears of every log and of every pot."""
    match transition.event:
        case Fired(pots=pots):
            yield Tell("tally", "tally", Counted(pots))
        case Stoked():
            yield Tell("tally", "tally", Counted(0))
        case _:
            pass


system: Final = System(
    "pottery",
    AggregateType("kiln", machines=(kiln,), rules=(tell_pots,)),
    AggregateType("tally", machines=(tally,)),
)


def opened(at_ms: int = 0, *kilns: str) -> Iterator[tuple[str, Envelope]]:
    """Yield the inputs that bring the tally and the kilns to life."""
    yield "tally", Envelope("", Opened({"tally": Tally()}), at_ms, "test", key="opened")
    for name in kilns or ("a",):
        yield f"kiln/{name}", Envelope("", Opened({"kiln": Kiln()}), at_ms, "test", key="opened")
