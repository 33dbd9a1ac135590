"""The floor under durable dispatch: SQLite alone, given the rows that an engine wrote, in the same transactions.

The rows are ready before the time is taken; the schema, the indexes, the journal and the flushes are the store's own.
"""

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from lifefold.interpreters.store import Batch, Entry, Post, SqliteStore

ENTRIES = "INSERT INTO entries (stream, version, at_ms, key, envelope, effects, digest) VALUES (?, ?, ?, ?, ?, ?, ?)"
PERFORMED = "INSERT INTO performed VALUES (?, ?) ON CONFLICT DO UPDATE SET version = excluded.version"


class Recorder:
    """A store that remembers how many entries each batch had, and what else; it passes everything on.

    The entries themselves are read from the file afterwards: kept, they would give the garbage collector more to do.
    """

    def __init__(self, store: SqliteStore) -> None:
        """Record what goes to ``store``."""
        self._batches: list[tuple[int, Mapping[str, int]]] = []
        self._store = store

    async def append(self, batch: Batch) -> None:
        """Write a batch, and remember its size."""
        await self._store.append(batch)
        self._batches.append((len(batch.entries), batch.performed))

    async def batches(self) -> list[Batch]:
        """Return the batches as they were."""
        entries = iter(await self._store.read())
        return [Batch(list(islice(entries, size)), performed) for size, performed in self._batches]

    async def read(self, stream: str | None = None, after: int = 0) -> Sequence[Entry]:
        """Pass it on."""
        return await self._store.read(stream, after)

    async def performed(self) -> Mapping[str, int]:
        """Pass it on."""
        return await self._store.performed()

    async def post(self, stream: str, envelope: bytes) -> int:
        """Pass it on."""
        return await self._store.post(stream, envelope)

    async def posts(self, *, unanswered: bool = True) -> Sequence[Post]:
        """Pass it on."""
        return await self._store.posts(unanswered=unanswered)


class Rows(NamedTuple):
    """A batch as rows."""

    entries: list[tuple[str, int, int, str, bytes, bytes, bytes]]
    performed: list[tuple[str, int]]


def rows_of(batch: Batch) -> Rows:
    """Return what is to be inserted for a batch."""
    entries = [(e.stream, e.version, e.at_ms, e.key, e.envelope, e.effects, e.digest) for e in batch.entries]
    return Rows(entries, list(batch.performed.items()))


def replay(path: Path, batches: Sequence[Batch]) -> float:
    """Write the batches to a new file, a transaction each; return how many seconds that took."""
    transactions = [rows_of(batch) for batch in batches]
    with SqliteStore.create(path, {}) as store:
        connection = store._connection  # noqa: SLF001 - with the store's own settings, but past the store
        start = perf_counter()
        for entries, performed in transactions:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(ENTRIES, entries)
            connection.executemany(PERFORMED, performed)
            connection.execute("COMMIT")
        return perf_counter() - start


async def replay_in_store(path: Path, batches: Sequence[Batch]) -> float:
    """Write the batches through the store, as the engine does; return how many seconds that took."""
    with SqliteStore.create(path, {}) as store:
        start = perf_counter()
        for batch in batches:
            await store.append(batch)
        return perf_counter() - start
