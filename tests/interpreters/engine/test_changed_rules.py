"""A log that other rules wrote: the present rules go on from a recorded seam, or refuse and change nothing."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kiln import Called, Doused, Lit, opened, system
from lifefold.core.kernel import (
    ENGINE,
    AggregateType,
    Created,
    Envelope,
    Property,
    RulesChanged,
    System,
    SystemState,
    always,
    replace,
)
from lifefold.interpreters.engine import Engine, Interpreter, Ledger, LogMismatchError, LogWriter, WallClock
from lifefold.interpreters.engine.command_queue import CommandQueue
from lifefold.interpreters.engine.inputs import Input
from lifefold.interpreters.rules import rules_version
from lifefold.interpreters.store import Entry, MemoryStore, Shelf, SqliteStore
from street_lamp import Lamp, Light, Switched, lamp

pytestmark = pytest.mark.anyio

SYSTEM = System("street", AggregateType("room", machines=(lamp(),)))


def is_off(of: Lamp) -> bool:
    """It is off."""
    return of.state is Light.OFF


STRICT = System("street", AggregateType("room", machines=(lamp(invariants=(is_off,)),)))


async def written(store: Any, rules: str, *events: Any) -> None:
    """Write a log of a lamp."""
    writer = LogWriter(Ledger(SYSTEM, rules=rules), store, WallClock())
    await writer.commit([Input("room", Envelope("lamp", event, 1)) for event in events])


async def lived(shelf: Shelf, system: System = SYSTEM) -> Sequence[Entry]:
    """Run an engine on a log until it has nothing to do; return the log."""
    await Engine(system, MemoryStore(shelf), Interpreter()).run(until=lambda _engine: True)
    return shelf.entries


async def test_a_runner_of_other_rules_records_the_seam_once_and_goes_on() -> None:
    """The stream of the room has no entry more than its inputs; a fold knows the rules of each entry."""
    shelf, now = Shelf(), rules_version(SYSTEM)
    await written(MemoryStore(shelf), "v1", Created(Lamp()))
    entries = [*await lived(shelf)]
    assert [(each.stream, each.version, each.rules) for each in entries] == [
        ("room", 1, "v1"),
        (ENGINE, 1, now),
        ("room", 2, now),
    ]
    ledger = Ledger(SYSTEM)
    decisions = list(ledger.fold(entries))
    assert decisions[1].envelope.event == RulesChanged("v1", now)
    assert list(ledger.aggregates) == ["room"]
    assert ledger.entries == 3
    assert [each.stream for each in await lived(shelf)] == ["room", ENGINE, "room", "room"]


async def test_an_empty_log_and_one_of_the_same_rules_have_no_seam() -> None:
    shelf = Shelf()
    assert not await lived(shelf)
    await written(MemoryStore(shelf), rules_version(SYSTEM), Created(Lamp()))
    assert [each.stream for each in await lived(shelf)] == ["room", "room"]


async def test_a_state_that_breaks_an_invariant_is_refused_and_nothing_is_written() -> None:
    """The rules that wrote the log go on."""
    shelf = Shelf()
    await written(MemoryStore(shelf), rules_version(SYSTEM), Created(Lamp()), Switched())
    before = [*shelf.entries]
    with pytest.raises(LogMismatchError, match=r"do not hold of its present state; nothing was changed:\n  room, lamp"):
        await lived(shelf, STRICT)
    assert shelf.entries == before
    assert await lived(shelf) == before  # a settled room needs no recovery


async def test_a_command_without_a_runner_records_the_seam_or_stores_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lamp.db"
    with SqliteStore.create(path, {}) as store:
        await written(store, "v1", Created(Lamp(Light.ON)))
    with SqliteStore.peek(path) as store:
        switched = [("room", Envelope("lamp", Switched(), 2))]
        refusing = CommandQueue(store, STRICT, lambda _of, event: event, lambda _of: "accepted")
        with pytest.raises(LogMismatchError, match="nothing was changed"):
            await refusing.give(switched, 5)
        assert not await store.commands(unanswered=False)
        queue = CommandQueue(store, SYSTEM, lambda _of, event: event, lambda _of: "accepted")
        (answer,) = await queue.give(switched, 60)
        assert answer is not None
        assert answer.startswith("refused")  # it is on already
        assert [each.stream for each in await store.read()] == ["room", ENGINE]


async def test_verify_decides_again_what_the_present_rules_decided_and_folds_the_rest() -> None:
    """Other rules would decide otherwise on the first entries; a change in the last ones is found."""
    now = rules_version(system)
    ledger, entries = Ledger(system, rules="v1"), list[Entry]()
    inputs = [*opened(1), ("kiln/a", Envelope("kiln", Lit(), 2, "potter"))]
    for name, envelope in inputs:
        decision: Any = ledger.decide(name, envelope)
        entries.append(decision.entry)
    ledger.rules = now
    entries.append(ledger.change_rules(3).entry)
    for event in (Called("x"), Doused()):
        decision = ledger.decide("kiln/a", Envelope("kiln", event, 4, "potter"))
        entries.append(decision.entry)
    again = Ledger(system, rules=now)
    assert len(list(again.verify(entries))) == len(entries)
    assert again.only_folded == len(inputs)
    assert again.aggregates == ledger.aggregates
    wrong = replace(entries[-1], outcome=entries[-2].outcome)
    with pytest.raises(LogMismatchError, match="these rules decide otherwise"):
        list(Ledger(system, rules=now).verify([*entries[:-1], wrong]))
    with pytest.raises(LogMismatchError, match="the entry before it is missing"):
        list(Ledger(system).fold([*entries[:-3], replace(entries[-3], version=2)]))


async def test_properties_of_the_whole_system_are_asked_with_its_messages_in_flight() -> None:
    shelf = Shelf()
    await written(MemoryStore(shelf), "v1", Created(Lamp()))
    none: Property[SystemState] = always("nothing is in flight", lambda state: not state.in_flight)
    no_room: Property[SystemState] = always("there is no room", lambda state: "room" not in state.aggregates)
    assert await lived(shelf, SYSTEM.with_properties(none))
    shelf.entries[:] = shelf.entries[:1]
    with pytest.raises(LogMismatchError, match="street: there is no room"):
        await lived(shelf, SYSTEM.with_properties(no_room))
