"""The state of all aggregates in memory: deciding on inputs, and folding a log.

An entry of a log keeps what was decided on its input. So a fold decides nothing: it makes the same reactions again, and
also those of other rules. ``verify`` decides again, and compares.

A decision changes memory only. It must be persisted before any of its effects is performed. If that fails, the ledger
is ahead of the log and must be discarded.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any, Final

import msgspec

from lifefold.core.kernel import (
    ENGINE,
    ActivityEnded,
    Aggregate,
    Codec,
    DecisionError,
    Envelope,
    Outcomes,
    Reaction,
    Refusal,
    RulesChanged,
    RunnerRecovered,
    System,
    TimerFired,
    UnreadableEntry,
    decide,
    encode,
    replace,
    written,
)
from lifefold.core.kernel.snapshot import Snapshots
from lifefold.interpreters.store import Entry, SnapshotPlace


class LogMismatchError(Exception):
    """A log cannot be read by this program, is damaged, or was decided otherwise than these rules decide."""


class Decision(msgspec.Struct, frozen=True, gc=False):
    """An accepted input, its log entry, and its reaction."""

    envelope: Envelope
    entry: Entry
    reaction: Reaction


class Ledger:
    """The present state of every aggregate of one system.

    >>> from lifefold import Ledger, alone
    >>> from lifefold.core.fleet.board import intake
    >>> system, opening = alone(intake.machine)
    >>> ledger = Ledger(system)
    >>> ledger.decide("intake", opening["intake"]).reaction
    <Reaction of 'intake', version 1: intake Created → Open>
    >>> ledger.aggregates["intake"]
    <Aggregate 'intake': version 1, 1 intake>
    """

    def __init__(self, system: System, codec: Codec | None = None, *, rules: str = "") -> None:
        """Start without aggregates. ``codec`` is one of this system, if there is one already.

        ``rules`` is the version that its decisions are written with (``lifefold.interpreters.rules``).
        """
        self.system: Final = system
        self.rules = rules
        self.codec: Final = codec or _codec_of(system)
        self._outcomes: Final = Outcomes(self.codec)
        self.aggregates: Final[dict[str, Aggregate]] = {}
        self.entries = 0
        """The number of entries up to now, those about the log itself among them."""
        self.newest_rules = ""
        """The version of the rules that decided the newest entry."""
        self.only_folded = 0
        """The number of entries that ``verify`` has folded, because other rules decided them."""
        self.last_ms = 0
        self.of_engine = 0
        """The number of entries about the log itself."""
        self._older = 0
        """The number of entries to come that are older than the newest one of a snapshot."""
        self._keys: Final[set[tuple[str, str]]] = set()

    @cached_property
    def snapshots(self) -> Snapshots:
        """Writes and reads snapshots of the aggregates."""
        return Snapshots(self.system, self.codec)

    def begin(self, aggregates: Iterable[Aggregate], at: SnapshotPlace, entries: int, of_engine: int) -> None:
        """Start with the aggregates of a snapshot, which has this number of entries, and of entries about the log.

        The keys of their inputs are unknown then: ``know`` adds those that matter.
        """
        self.aggregates.update((each.name, each) for each in aggregates)
        self.last_ms, self.newest_rules, self._older = at.last_ms, at.rules, at.older
        self.entries, self.of_engine = entries, of_engine

    def know(self, keys: Iterable[tuple[str, str]]) -> None:
        """Add streams and keys of earlier inputs: the same inputs are then refused as duplicates."""
        self._keys.update(keys)

    def has_taken(self, name: str, key: str) -> bool:
        """Tell whether an input with this key is known to be in the log."""
        return (name, key) in self._keys

    def beginning(self, aggregates: Mapping[str, Aggregate]) -> "Ledger":
        """Return another ledger of the same system, with these aggregates and without the keys of their inputs."""
        other = Ledger(self.system, self.codec, rules=self.rules)
        other.aggregates.update(aggregates)
        other.of_engine = self.of_engine
        return other

    def decide(self, name: str, envelope: Envelope) -> Decision | Refusal:
        """Decide on an input for an aggregate.

        The input is encoded and decoded first, so that a replay decides on the same value: a Python 0 may be read as
        0.0. Values that cannot be encoded are refused, such as a text with half a surrogate pair. Timestamps never go
        backwards in a log, even if the clock does. If a rule raises, an input from outside is refused as ``failed``.
        For any other input no sender waits for an answer, so ``DecisionError`` is raised.
        """
        if name.partition("/")[0] not in self.system.aggregates:
            return Refusal(envelope, "unknown", f"the system {self.system.name!r} has no aggregate {name!r}")
        try:
            name.encode()
            wire = encode(envelope)
        except (UnicodeEncodeError, TypeError) as error:
            return Refusal(envelope, "unknown", f"it could not be written: {error}")
        try:
            envelope = self.codec.decode(name, wire)
        except UnreadableEntry as error:
            # An event that no machine reads is refused by the rules below, with a better reason.
            if self.system.type_of(name).reads(envelope.entity, envelope.event):
                return Refusal(envelope, "unknown", f"it could not be read again: {error}")
        return self._decide(name, envelope)

    def _decide(self, name: str, envelope: Envelope) -> Decision | Refusal:
        if envelope.at_ms < self.last_ms:
            envelope = replace(envelope, at_ms=self.last_ms)
        if (name, envelope.key) in self._keys:
            return Refusal(envelope, "duplicate", f"{name} has taken an input with the key {envelope.key!r} already")
        before = self.aggregates.get(name) or self.system.type_of(name).start(name)
        try:
            reaction = decide(self.system.type_of(name), before, envelope)
        except DecisionError as failed:
            if envelope.sender or envelope.slot or isinstance(envelope.event, _WITHOUT_SENDER):
                raise
            return Refusal(envelope, "failed", f"{name}: {failed}")
        if isinstance(reaction, Refusal):
            return reaction
        outcome = written(before, envelope, reaction)
        version, wire = reaction.aggregate.version, encode(envelope)
        entry = Entry(name, version, envelope.at_ms, envelope.key, wire, outcome, self.rules)
        self._take(entry, reaction.aggregate)
        return Decision(envelope, entry, reaction)

    @property
    def is_at_seam(self) -> bool:
        """Whether other rules decided the newest entry."""
        return self.entries > 0 and self.newest_rules != self.rules

    def change_rules(self, at_ms: int) -> Decision:
        """Return the entry which says that the rules of this ledger decide from here on."""
        event = RulesChanged(self.newest_rules, self.rules)
        envelope = Envelope("", event, max(at_ms, self.last_ms), "engine")
        version = self.of_engine + 1
        return self._seam(envelope, Entry(ENGINE, version, envelope.at_ms, "", encode(envelope), b"{}", self.rules))

    def _seam(self, envelope: Envelope, entry: Entry) -> Decision:
        """Take an entry about the log itself: it changes no aggregate."""
        self.of_engine = entry.version
        self._take(entry)
        return Decision(envelope, entry, Reaction(Aggregate(ENGINE, entry.version)))

    def fold(self, entries: Iterable[Entry]) -> Iterator[Decision]:
        """Fold the entries of a log, one by one. Raises ``LogMismatchError`` where an entry cannot be read."""
        return (self._again(entry) for entry in entries)

    def effects_of(self, entry: Entry) -> Decision:
        """Return the decision of an entry with its effects only. The aggregate before it need not be known.

        Nothing is folded. Raises ``LogMismatchError`` if the entry cannot be read.
        """
        envelope, name = self._read(entry), entry.stream
        before = Aggregate(name, entry.version - 1)
        try:
            reaction = self._outcomes.applied(self.system.type_of(name), before, envelope, entry.outcome, only=())
        except UnreadableEntry as error:
            raise _unreadable(entry, error) from error
        return Decision(envelope, entry, reaction)

    def verify(self, entries: Iterable[Entry]) -> Iterator[Decision]:
        """Decide on the inputs of a log again, one by one; fold those on which other rules decided.

        A ledger without a version of its rules decides on all. Raises ``LogMismatchError`` where a decision differs
        from the written one. ``only_folded`` counts the entries that are folded.
        """
        return (self._verified(entry) for entry in entries)

    def _verified(self, entry: Entry) -> Decision:
        if entry.stream == ENGINE:
            return self._again(entry)
        if self.rules and entry.rules != self.rules:
            self.only_folded += 1
            return self._again(entry)
        return self._decided_again(entry)

    def _again(self, entry: Entry) -> Decision:
        """Make the reaction of an entry again."""
        name = entry.stream
        envelope = self._read(entry)
        if name == ENGINE:
            self._must_follow(entry, self.of_engine + 1)
            return self._seam(envelope, entry)
        of = self.system.type_of(name)
        before = self.aggregates.get(name) or of.start(name)
        self._must_follow(entry, before.version + 1)
        try:
            reaction = self._outcomes.applied(of, before, envelope, entry.outcome)
        except UnreadableEntry as error:
            raise _unreadable(entry, error) from error
        self._take(entry, reaction.aggregate)
        return Decision(envelope, entry, reaction)

    def _decided_again(self, entry: Entry) -> Decision:
        """Decide on the input of an entry again. The result must equal the entry in every field."""
        where = _where(entry)
        try:
            decision = self._decide(entry.stream, self._read(entry))
        except DecisionError as failed:
            message = f"{where}: these rules raise an error for an input that the log has accepted: {failed}"
            raise LogMismatchError(message) from failed
        if isinstance(decision, Refusal):
            message = f"{where}: these rules refuse an input that the log has accepted: {decision.reason}"
            raise LogMismatchError(message)
        self._must_follow(entry, decision.entry.version)
        if decision.entry != entry and replace(decision.entry, rules=entry.rules) != entry:
            message = f"{where}: these rules decide otherwise than the log says; other rules wrote it, or it is damaged"
            raise LogMismatchError(message)
        return decision

    def _read(self, entry: Entry) -> Envelope:
        try:
            envelope = self.codec.decode(entry.stream, entry.envelope, is_past=True)
        except UnreadableEntry as error:
            raise _unreadable(entry, error) from error
        if (envelope.at_ms, envelope.key) != (entry.at_ms, entry.key):
            message = f"{_where(entry)}: its time or its key is not that of its input"
            raise LogMismatchError(message)
        return envelope

    def _must_follow(self, entry: Entry, version: int) -> None:
        if version != entry.version:
            message = f"{_where(entry)}: the entry before it is missing"
            raise LogMismatchError(message)

    def _take(self, entry: Entry, became: Aggregate | None = None) -> None:
        """Count an entry, and make its aggregate the present one; an entry about the log itself has none."""
        if became is not None:
            self.aggregates[entry.stream] = became
        self.last_ms = max(self.last_ms, entry.at_ms)
        if entry.key:
            self._keys.add((entry.stream, entry.key))
        self.entries += 1
        if self._older:
            self._older -= 1
        else:
            self.newest_rules = entry.rules

    def record(self, name: str, ref: str) -> Any:
        """Return the record of an entity. Raises ``KeyError`` if there is none."""
        return self.aggregates[name].record(ref)


@lru_cache(maxsize=8)  # a process has many readers of the logs of one system, and a codec is slow to make
def _codec_of(system: System) -> Codec:
    return Codec(system)


def _unreadable(entry: Entry, error: UnreadableEntry) -> LogMismatchError:
    by = f"; the rules {entry.rules} decided it, and a program that has them can read it" if entry.rules else ""
    return LogMismatchError(f"{_where(entry)}: {error}{by}")


def _where(entry: Entry) -> str:
    return f"{entry.stream}, entry {entry.version}"


_WITHOUT_SENDER: Final = (TimerFired, ActivityEnded, RunnerRecovered)
"""The inputs of the engine itself: no sender waits for an answer."""
