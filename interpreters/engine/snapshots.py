"""Snapshots of a ledger: taken while an engine runs, and read at its start.

An engine takes a snapshot when so many entries have been added (``EVERY``), and at its end. It writes the parts that
have changed since the last one, in the transaction of its next batch. So the cost follows the changes. A stream is left
out while effects of it wait: its older parts stay, and its newer entries are folded at the next start.

A snapshot that cannot be read, or is of other types, is dropped, and the log is folded from its first entry. Two
samples compare it with the truth. The writer decodes every sixteenth part again before it writes it. Each start of a
writer folds one stream of at most ``SAMPLED_ENTRIES`` entries from its beginning.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from lifefold.core.kernel import ENGINE, Aggregate, Envelope, RunnerRecovered, UnreadableEntry
from lifefold.core.kernel.snapshot import Kept, Restored, has_forgotten
from lifefold.effects import Tell
from lifefold.interpreters.engine.ledger import Decision, Ledger, LogMismatchError
from lifefold.interpreters.store import Entry, EventStore, Snapshot, SnapshotPart, SnapshotStore

EVERY: Final = 2_000
"""The number of entries after which a snapshot is due. With many entities it is an eighth of their number."""

LEAST: Final = 500
"""The number of entries after which an ending engine takes a snapshot."""

SAMPLED_ENTRIES: Final = 1_000
"""The longest stream that a start folds to compare its snapshot."""

SAMPLED_PARTS: Final = 16
"""One of this many written parts is decoded again."""

NOTES: Final = "(notes)"
"""The reference of what an observer has noted of a stream. No entity has such a reference."""

_logger: Final = logging.getLogger(__name__)


class Loaded(NamedTuple):
    """What a ledger got from a snapshot: the versions of its streams, and what their folds have collected."""

    versions: dict[str, int]
    untold: list[tuple[str, Tell]]
    failures: list[tuple[str, Envelope]]
    entries: Iterable[Entry]
    """The entries that are still to be folded."""
    notes: Mapping[str, bytes] = MappingProxyType({})
    """What an observer has noted of each stream; see ``SnapshotTaker.notes``."""


async def load(ledger: Ledger, store: EventStore, *, sampled: bool = False) -> Loaded:
    """Give an empty ledger the newest snapshot of a store. ``sampled`` compares one stream with its entries."""
    if not isinstance(store, SnapshotStore):
        return Loaded({}, [], [], await store.read())
    form = form_of(ledger)
    resumption = await store.resumed(form)
    try:
        every = list(restored(ledger, resumption.parts))
        if sampled and every:
            await _must_agree(ledger, store, every[resumption.position % len(every)].aggregate)
    except (UnreadableEntry, LogMismatchError) as error:
        _logger.warning("the snapshot is dropped, and the log is folded from its first entry: %s", error)
        await store.drop_snapshot()
        resumption, every = await store.resumed(form), []
    of_engine = sum(part.version for part in resumption.parts if part.stream == ENGINE)
    ledger.begin((each.aggregate for each in every), resumption.at, resumption.count, of_engine)
    return Loaded(
        {each.aggregate.name: each.aggregate.version for each in every},
        [(each.aggregate.name, tell) for each in every for tell in each.untold],
        [(each.aggregate.name, envelope) for each in every for envelope in each.failures],
        resumption.entries,
        {part.stream: part.data for part in resumption.parts if part.ref == NOTES},
    )


def form_of(ledger: Ledger) -> str:
    """Return the form of the snapshots that a ledger can use: its types, and its rules if it decides.

    The rules decide what the value of a view means. A ledger that only reads uses a snapshot of any rules.
    """
    return f"{ledger.snapshots.form}-{ledger.rules}"


def restored(ledger: Ledger, parts: Sequence[SnapshotPart]) -> Iterator[Restored]:
    """Yield the aggregates of a snapshot, without those that only have an empty head.

    ``parts`` are all parts of some streams. Raises ``UnreadableEntry``.
    """
    heads: dict[str, bytes] = {}
    live: dict[str, dict[str, bytes]] = {}
    archived: dict[str, dict[str, bytes]] = {}
    for part in parts:
        if not part.ref:
            if part.version and part.stream != ENGINE:
                heads[part.stream] = part.data
        elif part.ref != NOTES:
            (live if part.is_live else archived).setdefault(part.stream, {})[part.ref] = part.data
    for name, head in heads.items():
        if name.partition("/")[0] not in ledger.system.aggregates:
            raise UnreadableEntry(f"the system {ledger.system.name!r} has no aggregate {name!r}")
        yield ledger.snapshots.restored(name, head, live.get(name, {}), archived.get(name, {}))


async def _must_agree(ledger: Ledger, store: EventStore, kept: Aggregate) -> None:
    """Raise ``LogMismatchError`` if the entries of a short stream fold to another aggregate."""
    if kept.version > SAMPLED_ENTRIES:
        return
    folded = Ledger(ledger.system, ledger.codec)
    for decision in folded.fold(await store.read(kept.name)):
        if decision.entry.version == kept.version:
            break
    if folded.aggregates.get(kept.name) != kept:
        message = f"{kept.name}: the snapshot differs from the fold of its entries"
        raise LogMismatchError(message)


class SnapshotTaker:
    """Collects what has changed in a ledger since its last snapshot, and the messages that are not accepted yet."""

    def __init__(self, ledger: Ledger, store: EventStore, every: int | None = None) -> None:
        """Take snapshots of this ledger after ``every`` entries, for this store if it keeps them."""
        self._ledger: Final = ledger
        self._every: Final = EVERY if every is None else every
        self._least: Final = min(self._every, LEAST)
        self._is_kept = isinstance(store, SnapshotStore)
        self._changed: Final[dict[str, set[str]]] = {}
        self._headed: Final[set[str]] = set()
        self._news = 0
        self._written = 0
        self.is_due = False
        """Whether enough entries have been added since the last snapshot for the next one."""
        self.notes: Callable[[Aggregate], bytes] | None = None
        """Returns what an observer has noted of an aggregate, which its snapshot keeps; nothing if it is empty."""
        self.untold: Final[dict[tuple[str, str, int], Tell]] = {}
        """The messages whose receivers have not accepted them, by sender, receiver and number; in their order."""

    def begin(self, loaded: Loaded) -> None:
        """Continue after a snapshot."""
        self._headed.update(loaded.versions)
        for sender, tell in loaded.untold:
            self._tell(sender, tell)

    def _tell(self, sender: str, tell: Tell) -> None:
        """Note a message. The snapshot of its receiver can be newer than that of its sender, and have it already."""
        receiver = self._ledger.aggregates.get(tell.aggregate)
        if receiver is None or receiver.received.get(sender, 0) < tell.ordinal:
            self.untold[sender, tell.aggregate, tell.ordinal] = tell

    def note(self, decision: Decision) -> None:
        """Take a decision into account that is in the log."""
        name, envelope, reaction = decision.entry.stream, decision.envelope, decision.reaction
        if name == ENGINE:
            return
        self._news += 1
        self.is_due = self._is_due()
        self._changed.setdefault(name, set()).update(reaction.changed)
        if type(envelope.event) is RunnerRecovered:
            self._changed[name].update(reaction.aggregate.entities.unarchived())
        for requested in reaction.effects:
            if isinstance(requested.effect, Tell):
                self._tell(name, requested.effect)
        # A message is delivered if its receiver has it in the log.
        if envelope.sender:
            self.untold.pop((envelope.sender, name, envelope.ordinal), None)

    @property
    def is_due_at_end(self) -> bool:
        """Whether an engine that ends is to take a snapshot."""
        return self._is_kept and self._news >= self._least

    def taken(
        self, is_quiet: Callable[[str], bool], failures: Callable[[Aggregate], Iterable[Envelope]]
    ) -> Snapshot | None:
        """Return what has changed since the last snapshot; None if that cannot be written.

        ``is_quiet`` tells whether all effects of a stream are performed. ``failures`` returns the failed attempts of
        its running activities.
        """
        try:
            parts = list(self._changed_parts(is_quiet, failures))
        except (UnreadableEntry, TypeError) as error:
            _logger.warning("no snapshots are taken, and the next start folds more entries: %s", error)
            self._is_kept = self.is_due = False
            return None
        self._news, self.is_due = 0, False
        return Snapshot(form_of(self._ledger), parts)

    def _changed_parts(
        self, is_quiet: Callable[[str], bool], failures: Callable[[Aggregate], Iterable[Envelope]]
    ) -> Iterator[SnapshotPart]:
        if self._ledger.of_engine:
            yield SnapshotPart(ENGINE, "", b"", version=self._ledger.of_engine)
        for name in list(self._changed):
            aggregate, refs = self._ledger.aggregates[name], self._changed[name]
            if is_quiet(name) and self._ledger.snapshots.can_keep(name) and not has_forgotten(aggregate, refs):
                yield from self._parts(aggregate, refs, failures(aggregate))
                del self._changed[name]
            elif name not in self._headed:
                yield SnapshotPart(name, "", b"")
            self._headed.add(name)

    def _noted(self, aggregate: Aggregate) -> Iterator[SnapshotPart]:
        noted = b"" if self.notes is None else self.notes(aggregate)
        if noted:
            yield SnapshotPart(aggregate.name, NOTES, noted, is_live=False)

    def _must_be_readable(self, aggregate: Aggregate, kept: Kept) -> None:
        if self._ledger.snapshots.entity(aggregate.name, kept.ref, kept.data) != aggregate.entities[kept.ref]:
            raise UnreadableEntry(f"{aggregate.name}: {kept.ref} is read back as another value")

    def _is_due(self) -> bool:
        if not self._is_kept or self._news < self._every:
            return False
        aggregates = self._ledger.aggregates.values()
        return self._news >= sum(len(each.entities) for each in aggregates) // 8

    def _parts(self, aggregate: Aggregate, refs: Iterable[str], failures: Iterable[Envelope]) -> Iterator[SnapshotPart]:
        snapshots, name = self._ledger.snapshots, aggregate.name
        untold = [tell for (sender, _, _), tell in self.untold.items() if sender == name]
        yield SnapshotPart(name, "", snapshots.head(aggregate, untold, failures), version=aggregate.version)
        yield from self._noted(aggregate)
        for kept in snapshots.entities(aggregate, refs):
            self._written += 1
            if not self._written % SAMPLED_PARTS:
                self._must_be_readable(aggregate, kept)
            yield SnapshotPart(name, kept.ref, kept.data, kept.is_live)
