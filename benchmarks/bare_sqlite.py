"""The lower bound of durable dispatch: SQLite alone, with the rows of an engine's run, in the same transactions.

The rows are made before the measurement. The schema, the indexes, the journal and the flushes are those of the store.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from lifefold.interpreters.store import Batch, Entry, SqliteStore, StoredCommand
from lifefold.interpreters.store.chain import Anchor, linked

ENTRIES = (
    "INSERT INTO entries (stream, version, at_ms, key, envelope, outcome, rules, link) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
ANCHOR = "UPDATE meta SET value = ? WHERE name = 'anchor'"
PERFORMED = "INSERT INTO performed VALUES (?, ?) ON CONFLICT DO UPDATE SET version = excluded.version"


class Recorder:
    """A store that records the number of entries and the other contents of each batch, and passes all calls on.

    The entries are read from the file afterwards, because keeping them would give the garbage collector more work.
    """

    def __init__(self, store: SqliteStore) -> None:
        """Record what goes to ``store``."""
        self._batches: list[tuple[int, Mapping[str, int]]] = []
        self._store = store

    async def append(self, batch: Batch) -> None:
        """Write a batch, and record its size."""
        await self._store.append(batch)
        self._batches.append((len(batch.entries), batch.performed))

    async def batches(self) -> list[Batch]:
        """Return the recorded batches."""
        entries = iter(await self._store.read())
        return [Batch(list(islice(entries, size)), performed) for size, performed in self._batches]

    async def read(self, stream: str | None = None, after: int = 0) -> Sequence[Entry]:
        """Pass the call on."""
        return await self._store.read(stream, after)

    async def performed(self) -> Mapping[str, int]:
        """Pass the call on."""
        return await self._store.performed()

    async def submit(self, stream: str, envelope: bytes) -> int:
        """Pass the call on."""
        return await self._store.submit(stream, envelope)

    async def commands(self, *, unanswered: bool = True) -> Sequence[StoredCommand]:
        """Pass the call on."""
        return await self._store.commands(unanswered=unanswered)


class Rows(NamedTuple):
    """A batch as rows, with the anchor of the log after it."""

    entries: list[tuple[str, int, int, str, bytes, bytes, str, bytes]]
    anchor: Anchor
    performed: list[tuple[str, int]]


def rows_of(batch: Batch, anchor: Anchor) -> Rows:
    """Return the rows of a batch that follows an anchor."""
    written = list(linked(anchor, batch.entries))
    entries = [(e.stream, e.version, e.at_ms, e.key, e.envelope, e.outcome, e.rules, link) for e, link in written]
    newest = Anchor(anchor.entries + len(written), written[-1][1]) if written else anchor
    return Rows(entries, newest, list(batch.performed.items()))


def transactions_of(batches: Sequence[Batch]) -> Iterator[Rows]:
    """Yield the rows of all batches of a new log."""
    anchor = Anchor()
    for batch in batches:
        rows = rows_of(batch, anchor)
        anchor = rows.anchor
        yield rows


def replay(path: Path, batches: Sequence[Batch]) -> float:
    """Write the batches to a new file, one transaction each; return the time in seconds."""
    transactions = list(transactions_of(batches))
    with SqliteStore.create(path, {}) as store:
        connection = store._connection  # noqa: SLF001 - with the store's own settings, but past the store
        start = perf_counter()
        for entries, anchor, performed in transactions:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(ENTRIES, entries)
            connection.execute(ANCHOR, (f"{anchor.entries} {anchor.link.hex()}",))
            connection.executemany(PERFORMED, performed)
            connection.execute("COMMIT")
        return perf_counter() - start


async def replay_in_store(path: Path, batches: Sequence[Batch]) -> float:
    """Write the batches through the store, as the engine does; return the time in seconds."""
    with SqliteStore.create(path, {}) as store:
        start = perf_counter()
        for batch in batches:
            await store.append(batch)
        return perf_counter() - start
