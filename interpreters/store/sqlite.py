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
from anyio import to_thread
from anyio.lowlevel import checkpoint

from lifefold.interpreters.store import descriptors
from lifefold.interpreters.store.anchor_file import drop_anchor, keep_anchor
from lifefold.interpreters.store.base import Base
from lifefold.interpreters.store.chain import Anchor
from lifefold.interpreters.store.connection import Connection
from lifefold.interpreters.store.errors import damaged, of_disk, translated
from lifefold.interpreters.store.lock import is_taken, take_lock
from lifefold.interpreters.store.log_store import LogStore
from lifefold.interpreters.store.place import OVERWRITTEN, Displaced, Place, Sighted, backed_up, recover
from lifefold.interpreters.store.protocol import Batch, Busy, Entry, StoredCommand, StoreError
from lifefold.interpreters.store.reading import BUSY_TIMEOUT_S, Known, connect, is_intact, known_of, stored_commands
from lifefold.interpreters.store.schema import migrate, must_be_free, write_new
from lifefold.interpreters.store.unchanged import Unchanged
from lifefold.interpreters.store.writing import next_epoch, transaction, write, write_verified

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


class SqliteStore(LogStore):
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
        super().__init__(path, epoch)
        self._connection = connection
        self._locks: Final = [] if lock is None else [lock]
        self._place = None if lock is None else Place(path)
        self._base = None if lock is None else Base(path, copies=patient)
        self._known = Known(None, Anchor()) if lock is None else translated(path, partial(known_of, path, connection))
        self._unchanged = Unchanged(connection)
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
    def peek(cls, path: Path, *, patient: bool = False) -> Self:
        """Open an existing file to read it and to leave operator commands, with or without a running writer.

        Raises ``Busy``, ``NotAStore``.
        """
        return cls(path, connect(path), None, 0, patient=patient)

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

    @property
    def database(self) -> Connection:
        """The open connection; see ``LogStore``."""
        return self._connection

    def _has_writer(self) -> bool:
        return bool(self._locks) or is_taken(self.path)

    async def append(self, batch: Batch) -> None:
        """Write a batch in one transaction; see ``EventStore``."""
        await self._in_turn(partial(self._append, batch), is_small=len(batch.entries) <= SMALL_ENTRIES)

    async def commands(self, *, unanswered: bool = True) -> Sequence[StoredCommand]:
        """Return operator commands; see ``EventStore``."""

        def found() -> list[StoredCommand]:
            self._look()
            return stored_commands(self._connection, unanswered=unanswered)

        return await self._in_turn(found, is_small=True)

    async def look(self) -> None:
        """Continue in a copy if the log is no longer at its path; ``append`` and ``commands`` do that too."""
        await self._in_turn(self._look)

    def _filled(
        self, entries: Sequence[Entry], commands: Sequence[StoredCommand], performed: Mapping[str, int]
    ) -> Anchor:
        anchor = super()._filled(entries, commands, performed)
        self._known = self._known._replace(anchor=anchor)
        return anchor

    def _translated(self, work: Callable[[], T]) -> T:
        return translated(self.path, work)

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

    def _look(self) -> Sighted:
        """Continue in a copy if the log is not at its path, or has other contents: writes to it are lost.

        Return what was seen of the files; nothing of those of a copy.
        """
        if self._place is None or self._base is None:
            return _NOT_SIGHTED
        seen = self._place.sighted()
        what = self._place.displaced(seen)
        if what:
            self._move(what, partial(backed_up, self._connection), self._place.leave)
            return _NOT_SIGHTED
        if not self._base.is_current(seen):
            with suppress(Busy):  # the next look examines the file
                if is_intact(self.path, self._known):
                    self._base.renew()
                else:
                    self._move(OVERWRITTEN, self._base.write, self._place.abandon)
                    return _NOT_SIGHTED
        return seen

    def _move(self, what: str, write: Callable[[Path], None], leave: Callable[[sqlite3.Connection], None]) -> None:
        """Continue in a copy."""
        origin = self.path if self.displaced is None else self.displaced.path
        copy, connection = self._recovered(origin, what, write)
        leave(self._connection)
        if self._base is not None:
            self._base.close()
        self.path, self._connection, self._place, self._base = copy, connection, Place(copy), Base(copy)
        self._unchanged = Unchanged(connection)
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

    def _append(self, batch: Batch) -> None:
        self._look()
        unchanged, known = self._unchanged, self._known.anchor
        with transaction(self._connection) as connection:
            if unchanged.is_so():
                anchor, versions = write_verified(connection, batch, known, unchanged.versions)
            else:
                anchor, versions = write(self.path, connection, batch, self._epoch, known)
        unchanged.note(versions)
        self._known = self._known._replace(anchor=anchor)
        seen = self._look()
        if self._base is not None and self._base.is_checkpoint_due(seen):
            with suppress(sqlite3.Error):  # the batch is written; the next one tries again
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            self._base.follow()
            keep_anchor(self.path, self._connection, self._known.anchor)


class _NotNow(Exception):
    """The work would have to wait; nothing of it is done."""


_NOT_SIGHTED: Final = Sighted(None, None, is_known=False)
_WAITING: Final = f"PRAGMA busy_timeout = {int(1_000 * BUSY_TIMEOUT_S)}"
