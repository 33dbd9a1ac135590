"""The state of all aggregates in memory: deciding on inputs, and folding a log.

A decision changes memory only. It must be persisted before any of its effects is performed. If that fails, the ledger
is ahead of the log and must be discarded.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from lifefold.core.kernel import (
    ActivityEnded,
    Aggregate,
    Codec,
    DecisionError,
    Envelope,
    Reaction,
    Refusal,
    RunnerRecovered,
    System,
    TimerFired,
    UnreadableEntry,
    decide,
    digest,
    encode,
    replace,
)
from lifefold.interpreters.store import Entry


class LogMismatchError(Exception):
    """A log does not fold to its recorded digests: other rules wrote it, or it is damaged."""


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

    def __init__(self, system: System) -> None:
        """Start without aggregates."""
        self.system: Final = system
        self.codec: Final = Codec(system)
        self.aggregates: Final[dict[str, Aggregate]] = {}
        self.last_ms = 0
        self._digests: Final[dict[str, bytes]] = {}
        self._keys: Final[set[tuple[str, str]]] = set()

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
        envelope = replace(envelope, at_ms=max(envelope.at_ms, self.last_ms))
        if (name, envelope.key) in self._keys:
            return Refusal(envelope, "duplicate", f"{name} has taken an input with the key {envelope.key!r} already")
        of = self.system.type_of(name)
        try:
            reaction = decide(of, self.aggregates.get(name) or of.start(name), envelope)
        except DecisionError as failed:
            if envelope.sender or envelope.slot or isinstance(envelope.event, _WITHOUT_SENDER):
                raise
            return Refusal(envelope, "failed", f"{name}: {failed}")
        if isinstance(reaction, Refusal):
            return reaction
        return Decision(envelope, self._accept(name, envelope, reaction), reaction)

    def fold(self, entries: Iterable[Entry]) -> Iterator[Decision]:
        """Fold the entries of a log, one by one. Raises ``LogMismatchError`` where log and rules disagree."""
        return (self._again(entry) for entry in entries)

    def _again(self, entry: Entry) -> Decision:
        """Decide on the input of an entry again. The result must equal the entry in every field."""
        where = f"{entry.stream}, entry {entry.version}"
        try:
            envelope = self.codec.decode(entry.stream, entry.envelope)
        except UnreadableEntry as error:
            message = f"{where}: {error}"
            raise LogMismatchError(message) from error
        try:
            decision = self._decide(entry.stream, envelope)
        except DecisionError as failed:
            message = f"{where}: these rules raise an error for an input that the log has accepted: {failed}"
            raise LogMismatchError(message) from failed
        if isinstance(decision, Refusal):
            message = f"{where}: these rules refuse an input that the log has accepted: {decision.reason}"
            raise LogMismatchError(message)
        if decision.entry.version != entry.version:
            message = f"{where}: the entry before it is missing"
            raise LogMismatchError(message)
        if decision.entry != entry:
            message = f"{where}: folds to another state than recorded; other rules wrote the log, or it is damaged"
            raise LogMismatchError(message)
        return decision

    def _accept(self, name: str, envelope: Envelope, reaction: Reaction) -> Entry:
        """Make a decision the present state, and return its entry."""
        self.aggregates[name] = reaction.aggregate
        self.last_ms = envelope.at_ms
        if envelope.key:
            self._keys.add((name, envelope.key))
        wire, effects = encode(envelope), encode([[each.entity, each.effect] for each in reaction.effects])
        chained = self._digests[name] = digest(self._digests.get(name, b""), wire, reaction)
        return Entry(name, reaction.aggregate.version, envelope.at_ms, envelope.key, wire, effects, chained)

    def record(self, name: str, ref: str) -> Any:
        """Return the record of an entity. Raises ``KeyError`` if there is none."""
        return self.aggregates[name].record(ref)


_WITHOUT_SENDER: Final = (TimerFired, ActivityEnded, RunnerRecovered)
"""The inputs of the engine itself: no sender waits for an answer."""
