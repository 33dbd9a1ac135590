"""A snapshot and the entries after it give what all entries give, in any store and of any part of a run."""

import logging
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple, cast

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kiln
from benchmarks.pure_world import World, plan
from engine_harness import Pottery
from kiln import Called, Lit, Smashed
from lifefold.core.fleet import system
from lifefold.core.fleet.system import worker
from lifefold.core.kernel import Aggregate, Envelope, Reaction, Refusal
from lifefold.effects import Tell
from lifefold.interpreters.cli.account import Account
from lifefold.interpreters.engine import Decision, Ledger, snapshots
from lifefold.interpreters.engine.snapshots import Loaded, SnapshotTaker, load
from lifefold.interpreters.store import Batch, Entry, EventStore, MemoryStore, Shelf, SqliteStore

pytestmark = pytest.mark.anyio

RULES = "of-today"


class Run(NamedTuple):
    """The decisions of a run, and what all of them give."""

    decisions: list[Decision]
    aggregates: dict[str, Aggregate]


@cache
def fleet_run() -> Run:
    """Run a fleet of three agents and nine tasks purely."""
    ledger, world = Ledger(system, rules=RULES), World(plan(3, 9))
    decisions: list[Decision] = []
    while world.inputs:
        decision = ledger.decide(*world.inputs.popleft())
        if isinstance(decision, Decision):
            decisions.append(decision)
            for requested in decision.reaction.effects:
                world.perform(decision.entry.stream, requested)
    return Run(decisions, ledger.aggregates)


class Gathered(NamedTuple):
    """What a start gathers from a log."""

    aggregates: dict[str, Aggregate]
    untold: dict[tuple[str, str, int], Tell]
    account: Account
    last_ms: int


def gathered(ledger: Ledger, loaded: Loaded) -> Gathered:
    """Fold what a snapshot does not have."""
    taker, account = SnapshotTaker(ledger, MemoryStore()), Account.restored(loaded)
    assert account is not None
    taker.begin(loaded)
    for decision in ledger.fold(loaded.entries):
        taker.note(decision)
        account.observe(decision.entry.stream, decision.reaction)
    return Gathered(ledger.aggregates, taker.untold, account, ledger.last_ms)


def no_failures(_aggregate: Aggregate) -> Iterable[Envelope]:
    """Return no reports of failed handlers."""
    return ()


async def written(store: MemoryStore | SqliteStore, decisions: Iterable[Decision], points: dict[int, set[str]]) -> None:
    """Write decisions to a store, with snapshots of all but some streams before these positions."""
    ledger, account = Ledger(system, rules=RULES), Account()
    taker = SnapshotTaker(ledger, store)
    taker.notes = account.notes
    for position, decision in enumerate(decisions):
        snapshot = None
        if position in points and taker.is_due:
            quiet = {name for name in ledger.aggregates if name not in points[position]}
            snapshot = taker.taken(quiet.__contains__, no_failures)
        await store.append(Batch((decision.entry,), snapshot=snapshot))
        list(ledger.fold([decision.entry]))
        taker.note(decision)
        account.observe(decision.entry.stream, decision.reaction)


STREAMS = ("board", "worker/agent-000", "worker/agent-001", "worker/agent-002")
POINTS = st.dictionaries(st.integers(0, 200), st.sets(st.sampled_from(STREAMS)), max_size=6)


@given(POINTS, st.integers(1, 250))
def test_a_snapshot_and_the_entries_after_it_give_what_all_entries_give(
    points: dict[int, set[str]], length: int
) -> None:
    """Of any prefix of a run, with snapshots at any points, whichever streams had waiting effects there."""

    async def both() -> tuple[Gathered, Gathered, int]:
        store, decisions = MemoryStore(), fleet_run().decisions[:length]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(snapshots, "EVERY", 1)
            await written(store, decisions, points)
        ledger, whole = Ledger(system), Ledger(system)
        loaded = await load(ledger, store, sampled=True)
        return gathered(ledger, loaded), gathered(whole, Loaded({}, [], [], await store.read())), len(decisions)

    by_snapshot, by_fold, count = anyio.run(both)
    assert by_snapshot.aggregates == by_fold.aggregates
    assert sum(each.version for each in by_snapshot.aggregates.values()) == count
    assert by_snapshot.untold == by_fold.untold
    assert by_snapshot.last_ms == by_fold.last_ms
    mine, all_of_it = by_snapshot.account, by_fold.account
    assert mine.attempts == all_of_it.attempts
    assert mine.spending == all_of_it.spending
    assert (mine.paused_by, mine.stopped_by) == (all_of_it.paused_by, all_of_it.stopped_by)
    for kept in (each for each in by_fold.aggregates.values() if each.kind == worker.KIND):
        assert mine.notes(kept) == all_of_it.notes(kept)


async def test_a_snapshot_of_other_rules_serves_readers_only(tmp_path: Path) -> None:
    """The value of a view can mean something else under other rules, so a writer folds the log."""
    decisions = fleet_run().decisions
    with SqliteStore.create(tmp_path / "fleet.db", {}) as store, pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshots, "EVERY", 1)
        await written(store, decisions[:100], {60: set()})
        for rules, count in (("", 40), (RULES, 40), ("of-tomorrow", 100)):
            ledger = Ledger(system, rules=rules)
            loaded = await load(ledger, store)
            assert len(list(ledger.fold(loaded.entries))) == count
            assert ledger.aggregates == fold_of(decisions[:100])


def fold_of(decisions: Iterable[Decision]) -> dict[str, Aggregate]:
    """Return the aggregates that decisions fold to."""
    ledger = Ledger(system)
    list(ledger.fold(each.entry for each in decisions))
    return ledger.aggregates


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE snapshots SET data = x'00' WHERE ref = 'task:T0001'",
        "UPDATE snapshots SET is_live = 1 - is_live WHERE ref = 'task:T0001'",
        "UPDATE meta SET value = replace(value, ' ', ' 00') WHERE name = 'snapshot'",
        "UPDATE meta SET value = 'nonsense' WHERE name = 'snapshot'",
        "DELETE FROM snapshots WHERE stream = 'board' AND ref = ''; DELETE FROM meta WHERE name = 'snapshot'",
    ],
)
async def test_a_damaged_snapshot_is_ignored(tmp_path: Path, damage: str) -> None:
    """The log is the truth, and it is folded instead."""
    with SqliteStore.create(tmp_path / "fleet.db", {}) as store, pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshots, "EVERY", 1)
        await written(store, fleet_run().decisions[:100], {60: set()})
        store._connection.executescript(damage)
        ledger = Ledger(system)
        loaded = await load(ledger, store)
        assert not loaded.versions
        assert len(list(ledger.fold(loaded.entries))) == 100
        assert ledger.aggregates == fold_of(fleet_run().decisions[:100])


async def test_a_snapshot_that_differs_from_its_entries_is_dropped_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Each start of a writer compares one short stream."""
    shelf = Shelf()
    store, decisions = MemoryStore(shelf), fleet_run().decisions[:101]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshots, "EVERY", 1)
        await written(store, decisions, {100: set()})
    for key, part in shelf.parts.items():
        if key[1] in {"session", "task:T0001"}:
            shelf.parts[key] = type(part)(*key, part.data.replace(b'"version":', b'"version":9'), part.is_live)
    read, compared = Ledger(system), Ledger(system)
    assert (await load(read, store)).versions
    with caplog.at_level(logging.WARNING):
        loaded = await load(compared, store, sampled=True)
    assert "the snapshot differs from the fold of its entries" in caplog.text
    assert (loaded.versions, shelf.parts) == ({}, {})
    list(compared.fold(loaded.entries))
    assert compared.aggregates == fold_of(decisions)


async def test_a_restarted_engine_goes_on_from_its_snapshot(pottery: Pottery, monkeypatch: pytest.MonkeyPatch) -> None:
    """It resumes the running activity and refuses the key of an old input, and reads the newest entries only."""
    monkeypatch.setattr(snapshots, "EVERY", 2)
    keyed = Envelope("kiln", Called("hello"), 0, key="once")
    async with pottery.running("a", "b"):
        await pottery.engine.send("kiln/b", Envelope("kiln", Smashed(), 0))
        await pottery.engine.send("kiln/a", keyed)
        await pottery.engine.send("kiln/a", Envelope("kiln", Lit(), 0))
        await pottery.quiet()
        count = sum(each.version for each in pottery.engine.aggregates.values())
    loaded = await load(Ledger(kiln.system), pottery.log.open())
    assert "kiln/b" in loaded.versions
    assert 0 < sum(loaded.versions.values()) <= count
    async with pottery.running():
        assert pottery.hands.fires[-1].resumed
        again = await pottery.engine.send("kiln/a", keyed)
        assert isinstance(again, Refusal)
        assert again.kind == "duplicate"


async def test_settled_aggregates_get_no_entry_at_a_restart(pottery: Pottery) -> None:
    """Nothing is running in a broken kiln, and nothing is expected of it."""
    async with pottery.running("a", "b"):
        await pottery.say(Lit(), "kiln/a")
        await pottery.say(Smashed(), "kiln/b")
    pottery.seen.clear()
    async with pottery.running():
        back = [name for name, seen in pottery.seen if isinstance(seen, Reaction)]
    assert "kiln/a" in back
    assert "kiln/b" not in back


async def test_an_ending_engine_takes_a_snapshot(pottery: Pottery, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next start folds nothing."""
    monkeypatch.setattr(snapshots, "LEAST", 1)
    engine = await pottery.prepare()
    for name, envelope in kiln.opened(0, "a"):
        engine.offer(name, envelope)
    engine.offer("kiln/a", Envelope("kiln", Called("bye"), 0))
    await engine.run(until=lambda _: True)
    ledger = Ledger(kiln.system)
    loaded = await load(ledger, pottery.log.open())
    assert list(loaded.entries) == []
    assert ledger.aggregates == engine.aggregates


async def test_a_store_without_snapshots_is_folded() -> None:
    """A store of a user's own need not keep any."""

    class Plain:
        """A store with the methods of ``EventStore`` only."""

        async def read(self, stream: str | None = None, after: int = 0) -> Sequence[Entry]:
            return [each.entry for each in fleet_run().decisions if stream in {None, each.entry.stream} and after >= 0]

    ledger = Ledger(system)
    loaded = await load(ledger, cast("EventStore", Plain()))
    list(ledger.fold(loaded.entries))
    assert ledger.aggregates == fleet_run().aggregates
