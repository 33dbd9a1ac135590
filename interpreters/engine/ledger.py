"""The aggregates as the log has them: decide on an input, and fold a log again.

Deciding changes nothing but what is in memory; its result must be persisted before any of its effects is performed. If
persisting fails the ledger is ahead of the log and has to be thrown away.
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
    """A log does not fold to what it says: it was made by other rules, or it is damaged."""


class Decision(msgspec.Struct, frozen=True, gc=False):
    """An accepted input, its log entry, and its reaction."""

    envelope: Envelope
    entry: Entry
    reaction: Reaction


class Ledger:
    """The present state of every aggregate of one system."""

    def __init__(self, system: System) -> None:
        """Begin without any aggregate."""
        self.system: Final = system
        self.codec: Final = Codec(system)
        self.aggregates: Final[dict[str, Aggregate]] = {}
        self.last_ms = 0
        self._digests: Final[dict[str, bytes]] = {}
        self._keys: Final[set[tuple[str, str]]] = set()

    def decide(self, name: str, envelope: Envelope) -> Decision | Refusal:
        """Let an aggregate take an input, as it will be read again: what is 0 for Python may be 0.0 in a log.

        What no log can say is refused: a text with half a surrogate pair, an object of no type that is written.
        Time never goes backwards in a log, whatever the clock does. If rules raise an error, an input from outside is
        refused, as ``failed``; of any other one no sender can be told, so that it is a ``DecisionError``.
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
            if self.system.type_of(name).reads(envelope.entity, envelope.event):
                return Refusal(envelope, "unknown", f"it could not be read again: {error}")
        return self._decide(name, envelope)

    def _decide(self, name: str, envelope: Envelope) -> Decision | Refusal:
        envelope = replace(envelope, at_ms=max(envelope.at_ms, self.last_ms))
        if (name, envelope.key) in self._keys:
            return Refusal(envelope, "duplicate", f"{name} has taken an input with the key {envelope.key!r} already")
        reaction = self._react(name, envelope)
        if isinstance(reaction, Refusal):
            return reaction
        return Decision(envelope, self._accept(name, envelope, reaction), reaction)

    def fold(self, entries: Iterable[Entry]) -> Iterator[Decision]:
        """Fold a log's entries, one by one. Raises ``LogMismatchError`` where log and rules do not agree."""
        return (self._again(entry) for entry in entries)

    def _again(self, entry: Entry) -> Decision:
        """Decide once more; what comes of it must be the entry, in every field."""
        where = f"{entry.stream}, entry {entry.version}"
        try:
            envelope = self.codec.decode(entry.stream, entry.envelope)
        except UnreadableEntry as error:
            message = f"{where}: {error}"
            raise LogMismatchError(message) from error
        try:
            decision = self._decide(entry.stream, envelope)
        except DecisionError as failed:
            message = f"{where}: these rules raise an error, of what the log has accepted: {failed}"
            raise LogMismatchError(message) from failed
        if isinstance(decision, Refusal):
            message = f"{where}: these rules refuse what the log has accepted: {decision.reason}"
            raise LogMismatchError(message)
        if decision.entry.version != entry.version:
            message = f"{where}: the entry before it is missing"
            raise LogMismatchError(message)
        if decision.entry != entry:
            message = f"{where}: folds to another state than was recorded; other rules wrote the log, or it is damaged"
            raise LogMismatchError(message)
        return decision

    def _react(self, name: str, envelope: Envelope) -> Reaction | Refusal:
        of = self.system.type_of(name)
        try:
            return decide(of, self.aggregates.get(name) or of.start(name), envelope)
        except DecisionError as failed:
            if (
                envelope.sender
                or envelope.slot
                or isinstance(envelope.event, TimerFired | ActivityEnded | RunnerRecovered)
            ):
                raise
            return Refusal(envelope, "failed", f"{name}: {failed}")

    def _accept(self, name: str, envelope: Envelope, reaction: Reaction) -> Entry:
        """Take what has been decided as the present, and return its entry."""
        self.aggregates[name] = reaction.aggregate
        self.last_ms = envelope.at_ms
        if envelope.key:
            self._keys.add((name, envelope.key))
        wire, effects = encode(envelope), encode([[asked.entity, asked.effect] for asked in reaction.effects])
        chained = self._digests[name] = digest(self._digests.get(name, b""), wire, reaction)
        return Entry(name, reaction.aggregate.version, envelope.at_ms, envelope.key, wire, effects, chained)

    def record(self, name: str, ref: str) -> Any:
        """Return the record of an entity. Raises ``KeyError`` if there is none."""
        return self.aggregates[name].record(ref)
