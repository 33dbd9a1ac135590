"""The machines that views are tried on: all that are known, and a few made to be awkward."""

from itertools import pairwise
from typing import Any

import pytest

from lifefold.core.kernel import (
    ANY,
    Event,
    Machine,
    Pattern,
    Record,
    Row,
    State,
    Step,
    after,
    does,
    replace,
    row,
)
from lifefold.core.lifecycles import session
from lifefold.effects import Activity, Effect
from lifefold.interpreters.views import machines


class Awkward(State):
    BEGIN = "to begin: with"
    ALSO = "to begin; with"
    BUSY = 'busy "now"'
    LATE = "50% <late>"
    END = "end"


class Poked(Event, frozen=True):
    hard: bool = False

    @classmethod
    def examples(cls) -> tuple["Poked", ...]:
        return cls(hard=False), cls(hard=True)


class Ticked(Event, frozen=True):
    pass


class Tocked(Event, frozen=True):
    pass


class Reset(Event, frozen=True):
    pass


class Rung(Effect, frozen=True):
    pass


class Humming(Activity, frozen=True):
    pass


class Whistling(Activity, frozen=True):
    pass


class Odd(Record, frozen=True):
    state: Awkward = Awkward.BEGIN
    pokes: int = 0


HARD = Pattern(Poked, "a|b: #1;", lambda e: e.hard)
SOFT = Pattern(Poked, "soft", lambda e: not e.hard)


def count(o: Odd, _e: Event) -> Step[Odd, Rung]:
    return Step(replace(o, pokes=min(o.pokes + 1, 3)), (Rung(),))


def often(o: Odd, _e: Event) -> bool:
    return o.pokes > 1


def hum(_o: Odd) -> Humming:
    return Humming()


def whistle(_o: Odd) -> Whistling:
    return Whistling()


def patience(o: Odd) -> int:
    return 10 * o.pokes


ROWS: tuple[Row[Odd], ...] = (
    row(ANY, Poked, Awkward.END, count, when=lambda o, _e: o.pokes == 3),
    row((Awkward.BEGIN, Awkward.BUSY), HARD, Awkward.LATE, when=often),
    row(Awkward.BEGIN, Poked, Awkward.BUSY, count),
    row((Awkward.BUSY, Awkward.LATE), Poked, Awkward.BUSY, count),
    row((Awkward.BUSY, Awkward.LATE), Ticked, Awkward.ALSO),
    row((Awkward.ALSO, Awkward.BUSY), Tocked, Awkward.LATE),
    row(Awkward.LATE, Tocked, Awkward.LATE),
    row(ANY, Reset, Awkward.END, count),
)

AWKWARD = Machine(
    "awkward",
    Odd(),
    rows=ROWS,
    final={Awkward.END},
    during={
        (Awkward.BUSY, Awkward.LATE): (after(patience, Ticked), does(hum)),
        (Awkward.ALSO, Awkward.BUSY, Awkward.LATE): does(whistle, yields=Tocked),
        Awkward.LATE: after(1_500, Tocked),
    },
    postpone={Awkward.BEGIN: (Ticked, Tocked)},
)
"""Names that no language takes, rows of any state before rows of one, timers and activities that nest."""

OVERLAPPING = Machine(
    "overlapping",
    Odd(),
    rows=ROWS,
    final={Awkward.END},
    during={
        (Awkward.ALSO, Awkward.BUSY): does(whistle),
        (Awkward.BUSY, Awkward.LATE): (after(patience, Ticked), does(hum)),
    },
)
"""Activities that overlap without nesting."""

ENDLESS = Machine(
    "endless",
    Odd(),
    rows=(
        row(ANY, HARD, Awkward.BEGIN, count, when=often),
        row(Awkward.BEGIN, Poked, Awkward.BUSY, count),
        row(Awkward.BUSY, Tocked, Awkward.LATE),
        row(Awkward.LATE, Tocked, Awkward.BUSY),
        row(Awkward.BUSY, Ticked, Awkward.ALSO),
        row(Awkward.LATE, Ticked, Awkward.END),
        row(Awkward.END, SOFT, Awkward.LATE),
        row(Awkward.LATE, Reset, Awkward.BEGIN),
        row(ANY, Reset, Awkward.BUSY),
    ),
    during={(Awkward.BUSY, Awkward.LATE): (does(hum), after(60_000, Ticked))},
)
"""No final state, and rows of any state that lead to where something goes on."""


class Reserved(State):
    NODE = "Node"
    DEFAULT = "default"
    STATE = "state"
    ROOT = "root"
    GRAPH = "graph"
    END = "end"


class Plain(Record, frozen=True):
    state: Reserved = Reserved.NODE


RESERVED = Machine(
    "reserved",
    Plain(),
    rows=[row(source, Ticked, to) for source, to in pairwise(Reserved)],
    final={Reserved.END},
)
"""Names that mean something in the languages themselves."""

IMPATIENT = session.machine.starting(session.Session(limits=session.Limits(max_total_errors=2)), "session-impatient")
"""A session that gives up soon, so that few steps take every row."""

NESTED = {**machines(), "awkward": AWKWARD, "endless": ENDLESS, "reserved": RESERVED, "session-impatient": IMPATIENT}


@pytest.fixture(params=[*NESTED, "overlapping"])
def machine(request: pytest.FixtureRequest) -> Machine[Any]:
    return {**NESTED, "overlapping": OVERLAPPING}[request.param]


@pytest.fixture(params=NESTED)
def nested_machine(request: pytest.FixtureRequest) -> Machine[Any]:
    """Return a machine whose activities nest, so that a statechart can say exactly when they begin and end."""
    return NESTED[request.param]


@pytest.fixture
def awkward() -> Machine[Any]:
    return AWKWARD


@pytest.fixture
def endless() -> Machine[Any]:
    return ENDLESS
