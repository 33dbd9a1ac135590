"""The embedded event store: one SQLite file in WAL mode, one writer at a time, a flush to the disk for every batch.

The writer holds an advisory lock on ``<file>.lock`` and the highest epoch in the file. The lock ends with its process,
so a crashed writer blocks no other one. The epoch stops a writer that lost the lock without noticing. Readers need
neither.

Another program may lock the file, such as a backup or a shell. A patient store that is open for writing waits until it
is done, and logs that. Any other store raises ``Busy``.

``synchronous=FULL`` makes every commit wait for the disk. A disk that acknowledges writes before they are durable is
not covered.
"""

import logging
import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Final, Self, TypeVar

import anyio
import msgspec
from anyio import to_thread
from anyio.lowlevel import checkpoint

from lifefold.interpreters.store import descriptors
from lifefold.interpreters.store.anchor_file import drop_anchor, keep_anchor
from lifefold.interpreters.store.base import Base
from lifefold.interpreters.store.chain import Anchor
from lifefold.interpreters.store.errors import damaged, of_disk, translated
from lifefold.interpreters.store.keeping import drop, known_keys, resumed
from lifefold.interpreters.store.lock import is_taken, take_lock
from lifefold.interpreters.store.meta import meta_of
from lifefold.interpreters.store.place import (
    OVERWRITTEN,
    Displaced,
    Place,
    backed_up,
    recover,
)
from lifefold.interpreters.store.protocol import Batch, Busy, Entry, StoredCommand, StoreError
from lifefold.interpreters.store.reading import (
    BUSY_TIMEOUT_S,
    Chain,
    Known,
    Placed,
    answers,
    between,
    chain,
    connect,
    excerpt,
    is_intact,
    known_of,
    moment_of,
    position_at,
    read_on,
    stored_commands,
)
from lifefold.interpreters.store.schema import migrate, must_be_free, select, write_new
from lifefold.interpreters.store.snapshot import Resumption
from lifefold.interpreters.store.writing import next_epoch, submit, transaction, write

_logger: Final = logging.getLogger(__name__)

T = TypeVar("T")

BUSY_PAUSE_S: Final = 0.2
"""The pause of a patient store before the next try."""

QUICK_S: Final = 0.005
"""Work that takes less is done by the thread of the event loop."""

SMALL_ENTRIES: Final = 200
"""The largest batch that is written by the thread of the event loop."""

COPY_TRIES: Final = 3
"""The number of tries to copy a displaced log and open the copy, which may be deleted in between."""


class SqliteStore:
    """An open log. Make one with ``create``, ``open`` or ``peek``; use it as a context manager.

    >>> import anyio, tempfile
    >>> from pathlib import Path
    >>> from lifefold import SqliteStore
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with SqliteStore.create(Path(folder) / "door.db", {}) as store:
    ...         print(anyio.run(store.read))
    []
    """

    def __init__(
        self, path: Path, connection: sqlite3.Connection, lock: int | None, epoch: int, *, patient: bool
    ) -> None:
        """Wrap a connection that the class methods have prepared."""
        self.path = path
        self.displaced: Displaced | None = None
        """What happened to the log if it is no longer at its path; ``path`` is its copy then."""
        self.past: tuple[int, int] | None = None
        """The position and the time of a log that is read as it was then (``past``); None for a log as it is."""
        self.when_displaced: Callable[[], None] = lambda: None
        """Called when the store has noticed that and continues in the copy."""
        self._connection = connection
        self._locks: Final = [] if lock is None else [lock]
        self._place = None if lock is None else Place(path)
        self._base = None if lock is None else Base(path, copies=patient)
        self._known = Known(None, Anchor()) if lock is None else translated(path, partial(known_of, path, connection))
        self._epoch: Final = epoch
        self._patient: Final = patient
        self._turn: Final = anyio.CapacityLimiter(1)
        self._took_s = QUICK_S
        """The time of the last work, in seconds."""
        descriptors.opened(self)

    @classmethod
    def create(cls, path: Path, meta: Mapping[str, str]) -> Self:
        """Make a new file and open it for writing.

        Raises ``Locked``. Raises ``FileExistsError`` if the file exists, ``StoreError`` if parts of another log remain.
        """
        lock = take_lock(path)
        try:
            must_be_free(path)
            of_disk(path, partial(drop_anchor, path))
            of_disk(path, partial(write_new, path, meta))
            return cls._writing(path, lock, patient=True)
        except BaseException:
            os.close(lock)
            raise

    @classmethod
    def open(cls, path: Path, *, patient: bool = True) -> Self:
        """Open an existing file for writing, under a new epoch. Raises ``Locked``, ``Busy``, ``NotAStore``."""
        with closing(connect(path)):  # as the last connection it would empty a write-ahead log that is not durable
            lock = take_lock(path)
            try:
                return cls._writing(path, lock, patient=patient)
            except BaseException:
                os.close(lock)
                raise

    @classmethod
    def peek(cls, path: Path) -> Self:
        """Open an existing file to read it and to leave operator commands, with or without a running writer.

        Raises ``Busy``, ``NotAStore``.
        """
        return cls(path, connect(path), None, 0, patient=False)

    @classmethod
    def _writing(cls, path: Path, lock: int, *, patient: bool) -> Self:
        connection = connect(path)
        try:
            translated(path, partial(migrate, connection))
            epoch = translated(path, partial(next_epoch, path, connection))
        except BaseException:
            connection.close()
            raise
        return cls(path, connection, lock, epoch, patient=patient)

    def __enter__(self) -> Self:
        """Return the store."""
        return self

    def __exit__(self, *_exc: object) -> None:
        """Close the store."""
        self.close()

    def close(self) -> None:
        """Close the file and release the lock. A writer leaves the anchor beside the file."""
        if self._locks:
            keep_anchor(self.path, self._connection, self._known.anchor)
        self._connection.close()
        if self._base is not None:
            self._base.close()
        descriptors.closed(self)
        while self._locks:
            os.close(self._locks.pop())

    def meta(self, name: str) -> str | None:
        """Return the value that the file's maker wrote under a name; None if there is none."""
        return translated(self.path, lambda: meta_of(self._connection, name))

    def meta_as(self, name: str, kind: type[T]) -> T | None:
        """Return the JSON value under a name, decoded as this type. Raises ``Damaged``."""
        text = self.meta(name)
        try:
            return None if text is None else msgspec.json.decode(text, type=kind)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise damaged(self.path, f"its metadata {name!r} cannot be read: {error}") from error

    def newest_rules(self) -> str | None:
        """Return the version of the rules that decided the newest entry; None for an empty log."""
        query = "ORDER BY position DESC LIMIT 1"
        found = translated(self.path, lambda: self._connection.execute(select(self._connection, query)).fetchone())
        return None if found is None else Entry(*found).rules

    def is_written(self) -> bool:
        """Tell whether a process has this file open for writing now."""
        return bool(self._locks) or is_taken(self.path)

    def position_at(self, at_ms: int) -> int:
        """Return the position of the newest entry that is not later than a Unix time; 0 if there is none."""
        return translated(self.path, lambda: position_at(self._connection, at_ms))

    def time_of(self, seq: int) -> int | None:
        """Return the time of the entry at a position, in Unix milliseconds; None if there is none."""
        return translated(self.path, lambda: moment_of(self._connection, seq))

    async def append(self, batch: Batch) -> None:
        """Write a batch in one transaction; see ``EventStore``."""
        await self._in_turn(partial(self._append, batch), is_small=len(batch.entries) <= SMALL_ENTRIES)

    async def read(self, stream: str | None = None, after: int = 0) -> Sequence[Entry]:
        """Return entries; see ``EventStore``."""
        return await self._in_turn(partial(self._read, stream, after))

    async def read_on(self, count: int) -> Sequence[Entry]:
        """Return the entries of all streams, as written, without the first ``count``."""
        return await self._in_turn(lambda: read_on(self.path, self._connection, count))

    async def chain(self) -> Chain:
        """Return all entries with their links, and the anchor, without verifying them."""
        return await self._in_turn(lambda: chain(self.path, self._connection))

    async def between(self, after: int, until: int) -> Sequence[Entry]:
        """Return the entries after one position of the log until another, of all streams."""
        return await self._in_turn(lambda: between(self._connection, after, until))

    async def excerpt(self, streams: Sequence[str], until: int, texts: Sequence[bytes] = ()) -> list[Placed]:
        """Return the entries of some streams until a position, with ``texts`` those that have one of them."""
        return await self._in_turn(lambda: excerpt(self._connection, streams, until, texts))

    async def resumed(self, form: str) -> Resumption:
        """Return the newest snapshot; see ``SnapshotStore``. Without one the entries are read while they are used."""
        return await self._in_turn(lambda: resumed(self.path, self._connection, form))

    async def drop_snapshot(self) -> None:
        """Remove the snapshot; see ``SnapshotStore``."""

        def dropped() -> None:
            with transaction(self._connection) as connection:
                drop(connection)

        await self._in_turn(dropped)

    async def known_keys(self, keys: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
        """Return the known keys; see ``SnapshotStore``."""
        return await self._in_turn(lambda: known_keys(self._connection, keys))

    async def performed(self) -> Mapping[str, int]:
        """Return the performed versions; see ``EventStore``."""
        return await self._in_turn(lambda: dict(self._connection.execute("SELECT stream, version FROM performed")))

    async def submit(self, stream: str, envelope: bytes) -> int:
        """Store an operator command for the writer; see ``EventStore``."""
        (number,) = await self.submit_all([(stream, envelope)])
        return number

    async def submit_all(self, commands: Sequence[tuple[str, bytes]]) -> list[int]:
        """Store operator commands in one transaction, and return their numbers: all are stored, or none."""
        return await self._in_turn(lambda: submit(self._connection, commands))

    async def commands(self, *, unanswered: bool = True) -> Sequence[StoredCommand]:
        """Return operator commands; see ``EventStore``."""

        def found() -> list[StoredCommand]:
            self._look()
            return stored_commands(self._connection, unanswered=unanswered)

        return await self._in_turn(found, is_small=True)

    async def answers(self, numbers: Sequence[int]) -> dict[int, str]:
        """Return the answers to these operator commands, by number, without those that have none yet."""
        return await self._in_turn(lambda: answers(self._connection, numbers))

    async def look(self) -> None:
        """Continue in a copy if the log is no longer at its path; ``append`` and ``commands`` do that too."""
        await self._in_turn(self._look)

    async def _in_turn(self, work: Callable[[], T], *, is_small: bool = False) -> T:
        """Work on the connection, one task after the other. Wait while the log is busy, if the store is patient.

        Small work is done by the thread of the event loop while the disk is quick: a change of threads takes longer
        than a quick flush. Slow work would stop the event loop, so it is done by another thread.
        """
        waited, before = False, self.displaced
        while True:
            try:
                if is_small and self._took_s < QUICK_S and not waited and not self._turn.borrowed_tokens:
                    await checkpoint()
                    done = self._at_once(work)
                else:
                    done = await to_thread.run_sync(self._timed, work, limiter=self._turn)
            except _NotNow:
                is_small = False
                continue
            except Busy as busy:
                if not self._patient:
                    raise
                if not waited:
                    _logger.warning("%s; %s", busy, busy.waits)
                waited = True
            else:
                if waited:
                    _logger.warning("%s: the log is written again; the run goes on", self.path)
                if self.displaced is not before:
                    self.when_displaced()
                return done
            await anyio.sleep(BUSY_PAUSE_S)

    def _timed(self, work: Callable[[], T]) -> T:
        start = perf_counter()
        try:
            return translated(self.path, work)
        finally:
            self._took_s = perf_counter() - start

    def _at_once(self, work: Callable[[], T]) -> T:
        """Work without a wait for other programs. Raises ``_NotNow`` if one has locked the log, or a task works."""
        if self._turn.borrowed_tokens:
            raise _NotNow
        self._connection.execute("PRAGMA busy_timeout = 0")
        try:
            return self._timed(work)
        except Busy as busy:
            raise _NotNow from busy
        finally:
            with suppress(sqlite3.Error):  # the connection of a displaced log is closed
                self._connection.execute(_WAITING)

    def _look(self) -> None:
        """Continue in a copy if the log is not at its path, or has other contents: writes to it are lost."""
        if self._place is None or self._base is None:
            return
        what = self._place.displaced()
        if what:
            self._move(what, partial(backed_up, self._connection), self._place.leave)
        elif not self._base.is_current:
            with suppress(Busy):  # the next look examines the file
                if is_intact(self.path, self._known):
                    self._base.renew()
                else:
                    self._move(OVERWRITTEN, self._base.write, self._place.abandon)

    def _move(self, what: str, write: Callable[[Path], None], leave: Callable[[sqlite3.Connection], None]) -> None:
        """Continue in a copy."""
        origin = self.path if self.displaced is None else self.displaced.path
        copy, connection = self._recovered(origin, what, write)
        leave(self._connection)
        if self._base is not None:
            self._base.close()
        self.path, self._connection, self._place, self._base = copy, connection, Place(copy), Base(copy)
        self.displaced = Displaced(origin, what, copy)

    def _recovered(self, origin: Path, what: str, write: Callable[[Path], None]) -> tuple[Path, sqlite3.Connection]:
        """Copy the log and open the copy. Try again if the copy is deleted meanwhile, as with its whole folder."""
        for tries_left in range(COPY_TRIES - 1, -1, -1):
            copy = recover(write, origin, what)
            try:
                if not is_intact(copy, self._known):
                    copy.unlink(missing_ok=True)
                    raise damaged(origin, "another program has changed it, and it cannot be recovered as a whole")
                self._locks.append(take_lock(copy))
                return copy, connect(copy)
            except (StoreError, OSError):
                if not tries_left:
                    raise
        raise AssertionError  # the last try returns or raises

    def _read(self, stream: str | None, after: int) -> list[Entry]:
        if stream is None and not after:
            return read_on(self.path, self._connection, 0)
        query = select(self._connection, "WHERE (?1 IS NULL OR stream = ?1) AND version > ?2 ORDER BY position")
        return [Entry(*each) for each in self._connection.execute(query, (stream, after))]

    def _append(self, batch: Batch) -> None:
        self._look()
        with transaction(self._connection) as connection:
            anchor = write(self.path, connection, batch, self._epoch, self._known.anchor)
        self._known = self._known._replace(anchor=anchor)
        self._look()
        if self._base is not None and self._base.is_checkpoint_due():
            with suppress(sqlite3.Error):  # the batch is written; the next one tries again
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            self._base.follow()
            keep_anchor(self.path, self._connection, self._known.anchor)


class _NotNow(Exception):
    """The work would have to wait; nothing of it is done."""


_WAITING: Final = f"PRAGMA busy_timeout = {int(1_000 * BUSY_TIMEOUT_S)}"
