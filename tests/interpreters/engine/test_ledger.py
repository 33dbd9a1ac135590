"""Folding a log detects rules that decide differently, and changed bytes."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Never, cast

import anyio
import pytest

from engine_harness import Log, Pottery, SqliteLog
from kiln import Called, Doused, Fired, Heat, Kiln, Lit, Stoked, kiln, opened, system, tally, tell_pots
from lifefold.core.kernel import (
    AggregateType,
    Envelope,
    Event,
    Machine,
    Opened,
    Record,
    Refusal,
    State,
    Step,
    System,
    replace,
    row,
)
from lifefold.interpreters.engine import Decision, Ledger, LogMismatchError
from lifefold.interpreters.store import Batch, Damaged, Entry

pytestmark = pytest.mark.anyio


def written() -> list[Entry]:
    """Return a log in which something of everything happens."""
    ledger = Ledger(system)
    entries: list[Entry] = []

    def take(name: str, envelope: Envelope) -> Decision:
        decision = ledger.decide(name, envelope)
        assert isinstance(decision, Decision), decision.reason
        entries.append(decision.entry)
        return decision

    def kiln_takes(at_ms: int, *events: Any, **source: Any) -> None:
        for event in events:
            take("kiln/a", Envelope("kiln", event, at_ms, "potter", **source))

    for name, envelope in opened(1_000):
        take(name, envelope)
    kiln_takes(1_100, Called("é"), key="k1")
    kiln_takes(1_200, Lit())
    kiln_takes(1_300, Stoked(), Fired(2), slot="Fire", generation=3)
    kiln_takes(1_400, Doused(), Lit())
    return entries


def fold(entries: Sequence[Entry], rules: System = system) -> Ledger:
    """Fold a log to its end."""
    ledger = Ledger(rules)
    for _ in ledger.fold(entries):
        pass
    return ledger


def verify(entries: Sequence[Entry], rules: System = system) -> None:
    """Decide on a log again to its end."""
    for _ in Ledger(rules).verify(entries):
        pass


def test_a_log_folds_to_the_state_it_was_written_from() -> None:
    """The same aggregates, the same time, and the same entry for every further input."""
    entries = written()
    ledger = fold(entries)
    record: Kiln = ledger.record("kiln/a", "kiln")
    assert (record.state, record.firings, record.stoked) == (Heat.FIRING, 2, 1)
    assert ledger.last_ms == 1_400
    assert ledger.aggregates["kiln/a"].version == 7


@pytest.mark.parametrize("damaged", range(len(written())))
def test_no_byte_of_a_decision_can_change_unnoticed(damaged: int) -> None:
    """Whichever byte of an outcome is flipped, ``verify`` stops there and names stream and entry."""
    entries = written()
    entry = entries[damaged]
    for at in range(len(entry.outcome)):
        bad = entry.outcome[:at] + bytes((entry.outcome[at] ^ 1,)) + entry.outcome[at + 1 :]
        entries[damaged] = replace(entry, outcome=bad)
        with pytest.raises(LogMismatchError, match=f"^{entry.stream}, entry {entry.version}: "):
            verify(entries)


@pytest.mark.parametrize("change", [{"at_ms": 9}, {"key": "other"}, {"version": 9}, {"stream": "kiln/b"}], ids=str)
def test_no_field_of_an_entry_can_change_unnoticed(change: dict[str, Any]) -> None:
    """Time, key, version and stream are held against the envelope and the entries before."""
    entries = written()
    entries[3] = replace(entries[3], **change)
    with pytest.raises(LogMismatchError, match=f"^{entries[3].stream}, entry {entries[3].version}: "):
        verify(entries)


@pytest.mark.parametrize("missing", range(len(written()) - 1))
def test_a_missing_entry_is_noticed(missing: int) -> None:
    """Without one of its entries a log does not fold; what follows in that stream is named."""
    entries = written()
    stream = entries.pop(missing).stream
    if stream == "tally" or not any(each.stream == stream for each in entries[missing:]):
        fold(entries)  # no later entry of the stream depends on it: the chain of a store detects this
        return
    with pytest.raises(LogMismatchError, match=r"^kiln/a, entry "):
        fold(entries)


def test_entries_in_the_wrong_order_are_noticed() -> None:
    """Two entries that changed places do not fold, also where each alone would be possible."""
    entries = written()
    for at in range(1, len(entries) - 1):
        swapped = [*entries[:at], entries[at + 1], entries[at], *entries[at + 2 :]]
        with pytest.raises(LogMismatchError, match=r"^kiln/a, entry "):
            verify(swapped)


def test_an_entry_that_cannot_be_read_is_named() -> None:
    """Bytes that are no envelope of this system are reported with stream and entry, and with what they are."""
    entries = written()
    for bad in (b"", b"{", b"\xff", b'{"entity":"","event":{"type":"Melted"},"at_ms":1,"actor":"x"}', b"[]"):
        entries[4] = replace(entries[4], envelope=bad)
        with pytest.raises(LogMismatchError, match=r"^kiln/a, entry 4: .*cannot read"):
            fold(entries)


def test_a_log_folds_to_what_its_own_rules_decided_also_under_other_rules() -> None:
    """Rules that would refuse an input, or decide otherwise, do not change the past."""
    for other in (STRICT, SILENT):
        assert fold(written(), other).aggregates == fold(written()).aggregates


STRICT = System(
    "pottery",
    AggregateType("kiln", machines=(kiln.without_rows((Heat.COLD, Called)),), rules=(tell_pots,)),
    AggregateType("tally", machines=(tally,)),
)
SILENT = System("pottery", AggregateType("kiln", machines=(kiln,)), AggregateType("tally", machines=(tally,)))


def test_rules_that_refuse_what_the_log_has_accepted_are_named() -> None:
    """A log is not verified by rules that refuse one of its inputs: the entry and the refusal are in the message."""
    with pytest.raises(
        LogMismatchError, match=r"^kiln/a, entry 2: .*refuse an input that the log has accepted: .*Called"
    ):
        verify(written(), STRICT)


def test_rules_that_decide_otherwise_are_named() -> None:
    """If the same input comes to something else under these rules, the first such entry is in the message."""
    with pytest.raises(LogMismatchError, match=r"^kiln/a, entry 4: .*other rules wrote it, or it is damaged"):
        verify(written(), SILENT)


def test_a_system_without_the_aggregate_is_named() -> None:
    """A log of another system says which stream it has that this one has not."""
    with pytest.raises(LogMismatchError, match=r"^kiln/a, entry 1: "):
        fold(written(), System("counting", AggregateType("tally", machines=(tally,))))


def test_a_refused_input_changes_nothing() -> None:
    """Not the state, not the time, not the entry of what comes after."""
    one, two = fold(written()), fold(written())
    for event, key in ((Lit(), ""), (Called(), "k1"), (Doused(), "opened")):
        assert isinstance(two.decide("kiln/a", Envelope("kiln", event, 9_000, key=key)), Refusal)
    assert two.aggregates == one.aggregates
    envelope = Envelope("kiln", Doused(), 1_500)
    assert two.decide("kiln/a", envelope) == one.decide("kiln/a", envelope)


@pytest.mark.parametrize("field", ["envelope", "outcome"])
def test_an_engine_does_not_start_on_a_damaged_file(tmp_path: Path, field: str) -> None:
    """A byte that changed on the disk is a mismatch of its entry, before anything is performed or written."""
    path = tmp_path / "pottery.db"
    log = SqliteLog(path)
    anyio.run(log.open().append, Batch(written()))
    log.close()
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute(f"SELECT {field} FROM entries WHERE stream = 'kiln/a' AND version = 3")  # noqa: S608
        ((good,),) = found
        bad = good[:-3] + bytes((good[-3] ^ 4,)) + good[-2:]
        connection.execute(f"UPDATE entries SET {field} = ? WHERE stream = 'kiln/a' AND version = 3", (bad,))  # noqa: S608
        connection.commit()

    async def start(log: Log) -> None:
        await Pottery(log).prepare()

    with pytest.raises(Damaged, match=r"entry \d+ \(kiln/a, version 3\) is not as it was written"):
        anyio.run(start, log)
    log.close()


class Melted(State):
    """A pot of wax is warm."""

    WARM = "Warm"


class Wax(Record, frozen=True):
    """How warm it is."""

    state: Melted = Melted.WARM
    degrees: float = 20.0


class Heated(Event, frozen=True):
    """It gets warmer."""

    by: float


def warm(wax: Wax, event: Heated) -> Step[Wax, Never]:
    """Add it."""
    return Step(replace(wax, degrees=wax.degrees + event.by))


HEATS = (row(Melted.WARM, Heated, Melted.WARM, warm),)
WAX = System("wax", AggregateType("wax", machines=(Machine("wax", Wax(), rows=HEATS, final=set(Melted)),)))


def test_whole_numbers_where_others_are_expected_fold_again() -> None:
    """A 0 for 0.0, which Python accepts as a float, gives a log that can be read again."""
    ledger, taken = Ledger(WAX), list[Entry]()
    for event in (Opened({"wax": Wax(degrees=20)}), Heated(2), Heated(0.5)):
        decision = ledger.decide("wax", Envelope("" if isinstance(event, Opened) else "wax", event, 1))
        assert isinstance(decision, Decision)
        taken.append(decision.entry)
    assert [each.entry for each in Ledger(WAX).fold(taken)] == taken


def test_an_input_that_cannot_be_decoded_again_is_refused() -> None:
    """An input with wrong types would make a log that no engine can load."""
    ledger = Ledger(WAX)
    ledger.decide("wax", Envelope("", Opened({"wax": Wax()}), 1))
    wrong: Any = "hot"
    refused = ledger.decide("wax", Envelope("wax", Heated(wrong), 1))
    assert isinstance(refused, Refusal)
    assert refused.kind == "unknown"
    assert ledger.record("wax", "wax").degrees == 20.0


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("kiln/a", {"event": Called("\udcff")}),
        ("kiln/a", {"actor": "\udcff"}),
        ("kiln/a", {"key": "\udcff"}),
        ("kiln/a", {"event": Called(cast("str", object()))}),
        ("kiln/\udcff", {"entity": "", "event": Opened({"kiln": Kiln()})}),
        ("kiln/b", {"entity": "", "event": Opened({"kiln": Kiln(firings=cast("int", object()))})}),
    ],
    ids=["text", "actor", "key", "object", "name", "record"],
)
def test_what_could_not_be_written_is_refused(name: str, changes: dict[str, Any]) -> None:
    """A lone surrogate, an object of no known type: no log can say it, and it must not end the engine."""
    ledger, before = fold(written()), fold(written())
    refused = ledger.decide(name, replace(Envelope("kiln", Called("x"), 9_000), **changes))
    assert isinstance(refused, Refusal)
    assert refused.kind == "unknown"
    assert "could not be" in refused.reason
    assert (ledger.aggregates, ledger.last_ms) == (before.aggregates, before.last_ms)
