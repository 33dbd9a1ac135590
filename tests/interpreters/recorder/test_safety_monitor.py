"""The monitors with less work find the same entry with the same words as the monitor that evaluates everything."""

from collections.abc import Callable
from functools import lru_cache
from operator import eq
from typing import Any, Never

import pytest

from lifefold.core import fleet
from lifefold.core.fleet.dispatch.task_index import work_of
from lifefold.core.fleet.system import board, worker
from lifefold.core.kernel import (
    Aggregate,
    AggregateType,
    Envelope,
    Event,
    Machine,
    Projection,
    Record,
    State,
    Step,
    System,
    always,
    projected,
    replace,
    row,
)
from lifefold.core.kernel.entity import Created
from lifefold.core.kernel.persistent_map import PersistentMap
from lifefold.core.lifecycles import session
from lifefold.interpreters.engine import Decision, Ledger
from lifefold.interpreters.recorder.audit import Audit, Fault, audit
from lifefold.interpreters.recorder.recording import recorded
from lifefold.interpreters.recorder.safety_monitor import SafetyMonitor, SparingMonitor
from lifefold.interpreters.recorder.watched import EVERYTHING, VIEW, watched
from lifefold.interpreters.simulate import simulate
from lifefold.interpreters.simulate.on_engine import log_of
from lifefold.interpreters.simulate.property_monitor import PropertyMonitor, Violation
from lifefold.interpreters.store import Entry
from lifefold.interpreters.store.chain import Anchor, linked
from lifefold.interpreters.store.reading import Chain
from lifefold.interpreters.targets.simulation_targets import fleet_of
from lost_rules import without

TARGET = fleet_of(2, 3)


@lru_cache(maxsize=32)
def run_of(lost: str, seed: int) -> tuple[System, list[Entry]]:
    """Return a fleet that may have lost the rules of a name, and the log of its run."""
    system = without(lost) if lost else fleet.system
    run = simulate(system, opening=TARGET.opening, environment=TARGET.environment, seed=seed)
    return system, log_of(system, run.entries)


def first_broken(system: System, entries: list[Entry], monitor: PropertyMonitor) -> tuple[int, str] | None:
    """Return the first entry after which the monitor finds a property broken, and its words."""
    names = dict.fromkeys(each.stream for each in entries)
    monitor.begin({name: system.type_of(name) for name in names})
    for each in recorded(system, entries):
        of = system.type_of(each.entry.stream)
        try:
            monitor.look(of, each.step.reaction, each.world.system_state, len(each.world.in_flight))
        except Violation as broken:
            return each.seq, str(broken)
    return None


def compared(system: System, entries: list[Entry]) -> tuple[int, str] | None:
    """Return what all monitors find. The sparing one also knows the same due and reached properties."""
    every, sparing = PropertyMonitor(system), SparingMonitor(system)
    plain = first_broken(system, entries, every)
    assert first_broken(system, entries, SafetyMonitor(system)) == plain
    assert first_broken(system, entries, sparing) == plain
    assert (sparing.owed, sparing.seen, sparing.asked) == (every.owed, every.seen, every.asked)
    return plain


LOST = ("", "hand_over", "work_begins", "obey", "reap_turn", "close_mailbox", "release", "leave", "measure")


def test_both_monitors_find_the_same_break_of_a_lost_rule() -> None:
    """Of the first broken property; a run in which none is broken is allowed by both."""
    found = [compared(*run_of(lost, seed)) for lost in LOST for seed in (1, 6)]
    assert sum(each is not None for each in found) >= len(LOST) // 2
    assert found[0] is None


def with_property(kind: str, holds: Callable[[Aggregate], bool]) -> System:
    """Return the fleet with one property of one kind of aggregate, and no other of an aggregate."""
    types = [
        AggregateType(
            of.kind,
            machines=of.machines.values(),
            rules=of.rules,
            views=of.views,
            commands=of.commands,
            properties=(always("it is not so yet", holds),) if of.kind == kind else (),
        )
        for of in fleet.system.aggregates.values()
    ]
    return System("fleet", *types)


BROKEN: dict[str, tuple[str, Callable[[Aggregate], bool]]] = {
    "a record": (worker.KIND, lambda of: of.record("session").state is not session.State.RUNNING),
    "a version": (worker.KIND, lambda of: of.version < 6),
    "all entities": (worker.KIND, lambda of: sum(each.version for each in of.entities.values()) < 30),
    "a count": (board.NAME, lambda of: len(of.entities) < 100 and of.record("task:T2").epoch < 1),
    "an entity that may be missing": (board.NAME, lambda of: of.entities.get("task:T9") is None),
    "one of two entities": (
        worker.KIND,
        lambda of: of.record("session").state is not session.State.RUNNING or of.record("assignment").sessions < 1,
    ),
    "messages": (worker.KIND, lambda of: sum(of.sent.values()) < 4),
    "received messages": (board.NAME, lambda of: sum(of.received.values()) < 5),
    "a view": (board.NAME, lambda of: not work_of(of).waiting),
    "quarantined entities": (worker.KIND, lambda of: not of.quarantined),
}


@pytest.mark.parametrize("name", BROKEN)
def test_both_monitors_find_the_same_break_of_an_added_property(name: str) -> None:
    """Whatever a property reads, it is evaluated again when that has changed."""
    _, entries = run_of("", 6)
    found = compared(with_property(*BROKEN[name]), entries)
    assert (found is None) == (name in {"an entity that may be missing", "quarantined entities"}), found


def test_a_property_is_evaluated_again_only_if_it_has_read_what_has_changed() -> None:
    """A property of the session's state is not evaluated for each entry of the worker."""
    evaluated: list[int] = []

    def holds(of: Aggregate) -> bool:
        evaluated.append(1)
        return bool(of.record("session").total_errors >= 0)

    _, entries = run_of("", 6)
    system = with_property(worker.KIND, holds)
    assert first_broken(system, entries, SafetyMonitor(system)) is None
    of_worker = sum(each.stream.startswith(worker.KIND) for each in entries)
    assert len({each.stream for each in entries if each.stream.startswith(worker.KIND)}) <= len(evaluated) < of_worker


READERS: dict[str, Callable[[PersistentMap[Any]], object]] = {
    "iter": list,
    "len": len,
    "keys": lambda of: list(of.keys()),
    "values": lambda of: list(of.values()),
    "items": lambda of: list(of.items()),
    "unarchived": lambda of: dict(of.unarchived()),
    "equality": lambda of: eq(of, {}),
    "hash": hash,
    "repr": repr,
    "set": lambda of: of.set("b", 2)["b"],
    "draft": lambda of: dict(of.draft()),
}


@pytest.mark.parametrize("name", READERS)
def test_looking_at_a_whole_map_reads_everything(name: str) -> None:
    """Each way to see more than one entry says what the map itself says, and is noted."""
    of = Aggregate("a", 1, views=PersistentMap({"b": 1}))
    seen = watched(of)
    assert READERS[name](seen.views) == READERS[name](of.views)
    assert seen.read == {EVERYTHING}


def test_looking_at_one_entry_reads_that_part() -> None:
    """Also if there is none; fields that every step can change are everything."""
    of = Aggregate("a/b", 3, views=PersistentMap({"b": 1}))
    seen = watched(of)
    assert (seen.name, seen.kind, seen.key) == ("a/b", "a", "b")
    assert "task:x" not in seen.entities
    assert seen.entities.get("task:y", 5) == 5
    assert seen.views["b"] == 1
    assert seen.read == {"task:x", "task:y", f"{VIEW}b"}
    seen.read.clear()
    assert (seen.version, seen.sent, seen.received, seen.quarantined) == (3, of.sent, of.received, of.quarantined)
    assert seen.read == {EVERYTHING}


class Pan(State):
    """The states of a pan of scales."""

    EMPTY = "Empty"
    LADEN = "Laden"


class Laden(Event, frozen=True):
    """A weight is laid on."""


class Cleared(Event, frozen=True):
    """All weights are taken away."""


class Load(Record, frozen=True):
    """The load of a pan."""

    state: Pan = Pan.EMPTY
    weight: int = 0


def laden(of: Load, _event: Laden) -> Step[Load, Never]:
    """Lay a weight on."""
    return Step(replace(of, weight=of.weight + 1))


def weight_of(of: Aggregate) -> int:
    """Return the weight on a side."""
    return int(of.record("pan").weight)


def is_level(of: Projection) -> bool:
    """The sides differ by one weight at most."""
    return bool(abs(of.aggregates["left"] - of.aggregates["right"]) <= 1)


def cleared(of: Load, _event: Cleared) -> Step[Load, Never]:
    """Take all weights away."""
    return Step(replace(of, weight=0))


PAN = Machine(
    "pan",
    Load(),
    rows=(
        row((Pan.EMPTY, Pan.LADEN), Laden, Pan.LADEN, laden),
        row(Pan.LADEN, Cleared, Pan.EMPTY, cleared),
    ),
)
SCALES = System(
    "scales",
    AggregateType("left", machines=(PAN,)),
    AggregateType("right", machines=(PAN,)),
    properties=projected(weight_of, always("the scales are level", is_level)),
)


def weighed(*sides: tuple[str, str]) -> Audit:
    """Return the audit of a run: the side of each weight, and the rules that decided."""
    entries: list[Entry] = []
    ledger = Ledger(SCALES)
    for number, (side, rules) in enumerate((("left", "now"), ("right", "now"), *sides)):
        ledger.rules = rules
        event: Event = Created(Load()) if number < 2 else Laden()
        decision = ledger.decide(side, Envelope("pan", event, 1_000 + number))
        assert isinstance(decision, Decision)
        entries.append(decision.entry)
    rows = list(linked(Anchor(), entries))
    return audit(SCALES, Chain(Anchor(), rows, Anchor(len(rows), rows[-1][1])), None, "now")


def test_what_other_rules_have_changed_is_seen_at_the_next_entry_of_these() -> None:
    """Otherwise scales that are level would be found out of balance, by the load before."""
    level = weighed(("left", "now"), ("right", "older"), ("left", "now"))
    assert level.is_allowed, level.fault
    fault = weighed(("left", "now"), ("left", "older"), ("left", "older"), ("right", "now")).fault
    assert fault is not None
    assert (fault.kind, fault.seq, fault.name) == ("property", 6, "the scales are level")


def test_a_break_by_other_rules_that_is_over_is_the_past() -> None:
    """The run is allowed, and the entry is named."""
    found = weighed(("left", "older"), ("left", "older"), ("right", "now"))
    assert found.is_allowed
    assert found.past == Fault(
        "property",
        4,
        "scales: the scales are level: not so of scales",
        "left",
        3,
        "scales",
        "the scales are level",
        "scales",
    )
