"""A small system of one's own with a defect, and logs of it: a lobby with a door, and a lamp that a rule lights.

The key of the door may be turned too often: ``turned at most twice`` is broken by the sixth entry of the usual run.
"""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, Final, Never

import anyio

from lifefold import (
    AggregateType,
    Envelope,
    Event,
    Ledger,
    Machine,
    Record,
    SqliteStore,
    State,
    Step,
    System,
    after,
    always,
    replace,
    row,
)
from lifefold.core.kernel import Created
from lifefold.interpreters.engine import Decision
from lifefold.interpreters.store import Batch, Entry

BEGIN_MS: Final = 1_795_800_000_000
"""The time of the first entry; each further one is a second later."""


class Door(State):
    """The states of a door."""

    OPEN = "Open"
    CLOSED = "Closed"
    LOCKED = "Locked"


class Pulled(Event, frozen=True):
    """The door is opened."""


class Pushed(Event, frozen=True):
    """The door is closed."""


class Turned(Event, frozen=True):
    """The key is turned."""


class Shut(Event, frozen=True):
    """The door shuts by itself."""


class Lobby(Record, frozen=True):
    """A lobby. ``turns`` counts the turns of the key."""

    state: Door = Door.CLOSED
    at_ms: int = 0
    turns: int = 0


def turn(of: Lobby, _event: Turned) -> Step[Lobby, Never]:
    """Count the turn."""
    return Step(replace(of, turns=of.turns + 1))


def turn_twice(of: Lobby, _event: Turned) -> Step[Lobby, Never]:
    """Count the turn as two, which other rules do."""
    return Step(replace(of, turns=of.turns + 2))


def lobby(turning: Any = turn) -> System:
    """Return the system, with this action for a turn of the key."""
    machine = Machine(
        "door",
        Lobby(),
        rows=(
            row(Door.CLOSED, Pulled, Door.OPEN),
            row(Door.OPEN, Pushed, Door.CLOSED),
            row(Door.OPEN, Shut, Door.CLOSED),
            row((Door.CLOSED, Door.OPEN), Turned, Door.LOCKED, turning),
            row(Door.LOCKED, Turned, Door.CLOSED, turning),
        ),
        during={Door.OPEN: after(5_000, Shut)},
        properties=(always("turned at most twice", lambda of: of.record.turns <= 2),),
    )
    return System("lobby", AggregateType("lobby", machines=(machine,)))


system: Final = lobby()
"""The system."""

RUN: Final[tuple[Event, ...]] = (Created(Lobby()), Pulled(), Turned(), Turned(), Pulled(), Turned(), Turned())
"""The usual run."""

ALLOWED: Final = RUN[:5]
"""Its part before the defect shows."""


def entries_of(events: Iterable[Event] = RUN, of: System = system, rules: str = "") -> list[Entry]:
    """Return the entries of a run of the door."""
    ledger = Ledger(of, rules=rules)
    decisions = [
        ledger.decide("lobby", Envelope("door", event, BEGIN_MS + number * 1_000, "me"))
        for number, event in enumerate(events)
    ]
    assert all(isinstance(each, Decision) for each in decisions), decisions
    return [each.entry for each in decisions if isinstance(each, Decision)]


def written(path: Path, events: Iterable[Event] = RUN, of: System = system, rules: str = "") -> Path:
    """Write the log of a run."""
    with SqliteStore.create(path, {}) as store:
        anyio.run(partial(store.append, Batch(entries_of(events, of, rules))))
    return path
