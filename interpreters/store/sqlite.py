"""The embedded event store: one SQLite file in WAL mode, one writer at a time, a flush to the disk for every batch.

The writer holds an advisory lock on ``<file>.lock`` and the highest epoch in the file. The lock ends with its process,
so a crashed writer blocks no other one. The epoch stops a writer that lost the lock without noticing. Readers need
neither.

Another program may lock the file, such as a backup or a shell. A patient store that is open for writing waits until it
is done, and logs that. Any other store raises ``Busy``.

``synchronous=FULL`` makes every commit wait for the disk. A disk that acknowledges writes before they are durable is
not covered.
"""

import fcntl
import logging
import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final, Self, TypeVar

import anyio
import msgspec
from anyio import to_thread

from lifefold.interpreters.store.chain import FIRST, Anchor, BrokenChain, linked, verified
from lifefold.interpreters.store.errors import NotAStore, damaged, translated
from lifefold.interpreters.store.identity import APPLICATION_ID, SCHEMA_VERSION, must_be_ours
from lifefold.interpreters.store.lock import open_lock, take_lock, unlockable
from lifefold.interpreters.store.meta import anchor_of, digest_of_meta, epoch_of, meta_of, must_be_whole
from lifefold.interpreters.store.permissions import make_private_file
from lifefold.interpreters.store.place import Displaced, Place, flush_folder, recover
from lifefold.interpreters.store.protocol import Batch, Busy, Entry, Fenced, Post, StoreError, VersionConflict
from lifefold.interpreters.store.wal import is_busy, open_shared

_logger: Final = logging.getLogger(__name__)

T = TypeVar("T")

BUSY_TIMEOUT_S: Final = 5.0
"""How long SQLite waits for another program before it reports that the file is busy."""

BUSY_PAUSE_S: Final = 0.2
"""The pause of a patient store before the next try."""

COPY_TRIES: Final = 3
"""The number of tries to copy a displaced log and open the copy, which may be deleted in between."""

_SCHEMA: Final = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;\n"
    "CREATE TABLE entries (\n"
    "    position INTEGER PRIMARY KEY,\n"
    "    stream TEXT NOT NULL,\n"
    "    version INTEGER NOT NULL,\n"
    "    at_ms INTEGER NOT NULL,\n"
    "    key TEXT NOT NULL,\n"
    "    envelope BLOB NOT NULL,\n"
    "    effects BLOB NOT NULL,\n"
    "    digest BLOB NOT NULL,\n"
    "    link BLOB NOT NULL,\n"
    "    UNIQUE (stream, version)\n"
    ");\n"
    "CREATE UNIQUE INDEX entries_by_key ON entries (stream, key) WHERE key <> '';\n"
    "CREATE TABLE performed (stream TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID;\n"
    "CREATE TABLE posts (id INTEGER PRIMARY KEY AUTOINCREMENT, stream TEXT NOT NULL, envelope BLOB NOT NULL,"
    " answer TEXT);\n"
    "CREATE INDEX posts_unanswered ON posts (id) WHERE answer IS NULL;\n"
    "INSERT INTO meta VALUES ('epoch', '0'), ('anchor', '0 ');\n"
)


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
        self.when_displaced: Callable[[], None] = _nothing
        """Called when the store has noticed that and continues in the copy."""
        self._connection = connection
        self._locks: Final = [] if lock is None else [lock]
        self._place = None if lock is None else Place(path)
        self._epoch: Final = epoch
        self._patient: Final = patient
        self._turn: Final = anyio.CapacityLimiter(1)

    @classmethod
    def create(cls, path: Path, meta: Mapping[str, str]) -> Self:
        """Make a new file and open it for writing.

        Raises ``Locked``. Raises ``FileExistsError`` if the file exists, ``StoreError`` if parts of another log remain.
        """
        lock = take_lock(path)
        try:
            _must_be_free(path)
            draft = path.with_name(path.name + ".new")
            draft.unlink(missing_ok=True)
            try:
                _write_schema(draft, meta)
                draft.replace(path)
            finally:
                draft.unlink(missing_ok=True)
            flush_folder(path.parent)
            return cls._writing(path, lock, patient=True)
        except BaseException:
            os.close(lock)
            raise

    @classmethod
    def open(cls, path: Path, *, patient: bool = True) -> Self:
        """Open an existing file for writing, under a new epoch. Raises ``Locked``, ``Busy``, ``NotAStore``."""
        _connect(path).close()
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
        return cls(path, _connect(path), None, 0, patient=False)

    @classmethod
    def _writing(cls, path: Path, lock: int, *, patient: bool) -> Self:
        connection = _connect(path)
        try:
            epoch = translated(path, partial(_next_epoch, path, connection))
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
        """Close the file and release the lock."""
        self._connection.close()
        while self._locks:
            os.close(self._locks.pop())

    def meta(self, name: str) -> str | None:
        """Return the value that the file's maker wrote under a name; None if there is none."""
        return self._translated(lambda: meta_of(self._connection, name))

    def meta_as(self, name: str, kind: type[T]) -> T | None:
        """Return the JSON value under a name, decoded as this type. Raises ``Damaged``."""
        text = self.meta(name)
        try:
            return None if text is None else msgspec.json.decode(text, type=kind)
        except (msgspec.DecodeError, UnicodeError) as error:
            raise damaged(self.path, f"its metadata {name!r} cannot be read: {error}") from error

    def is_written(self) -> bool:
        """Tell whether a process has this file open for writing now."""
        if self._locks:
            return True
        try:
            lock = open_lock(self.path)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError as error:
            raise unlockable(self.path, error) from error
        finally:
            os.close(lock)
        return False

    async def append(self, batch: Batch) -> None:
        """Write a batch in one transaction; see ``EventStore``."""
        await self._in_turn(partial(self._append, batch))

    async def read(self, stream: str | None = None, after: int = 0) -> Sequence[Entry]:
        """Return entries; see ``EventStore``."""
        return await self._in_turn(partial(self._read, stream, after))

    async def read_on(self, count: int) -> Sequence[Entry]:
        """Return the entries of all streams, as written, without the first ``count``."""
        return await self._in_turn(partial(self._read_on, count))

    async def performed(self) -> Mapping[str, int]:
        """Return the performed versions; see ``EventStore``."""
        return await self._in_turn(lambda: dict(self._connection.execute("SELECT stream, version FROM performed")))

    async def post(self, stream: str, envelope: bytes) -> int:
        """Store an operator command for the writer; see ``EventStore``."""
        statement = "INSERT INTO posts (stream, envelope) VALUES (?, ?)"
        number = await self._in_turn(lambda: self._connection.execute(statement, (stream, envelope)).lastrowid)
        return int(number or 0)

    async def posts(self, *, unanswered: bool = True) -> Sequence[Post]:
        """Return operator commands; see ``EventStore``."""
        query = (
            "SELECT id, CAST(stream AS TEXT), CAST(envelope AS BLOB), CAST(answer AS TEXT) FROM posts"
            " WHERE answer IS NULL OR NOT ? ORDER BY id"
        )

        def found() -> list[Post]:
            self._look()
            return [Post(*each) for each in self._connection.execute(query, (unanswered,))]

        return await self._in_turn(found)

    async def look(self) -> None:
        """Continue in a copy if the log is no longer at its path; ``append`` and ``posts`` do that too."""
        await self._in_turn(self._look)

    async def _in_turn(self, work: Callable[[], T]) -> T:
        waited, before = False, self.displaced
        while True:
            try:
                done = await to_thread.run_sync(self._translated, work, limiter=self._turn)
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

    def _look(self) -> None:
        """Continue in a copy if the log is not at its path: writes to a deleted file are lost."""
        what = self._place.displaced() if self._place is not None else ""
        if not what or self._place is None:
            return
        origin = self.path if self.displaced is None else self.displaced.path
        copy, connection = self._recovered(origin)
        self._place.leave(self._connection)
        self.path, self._connection, self._place = copy, connection, Place(copy)
        self.displaced = Displaced(origin, what, copy)

    def _recovered(self, origin: Path) -> tuple[Path, sqlite3.Connection]:
        """Copy the log and open the copy. Try again if the copy is deleted meanwhile, as with its whole folder."""
        for tries_left in range(COPY_TRIES - 1, -1, -1):
            copy = recover(self._connection, origin)
            try:
                self._locks.append(take_lock(copy))
                return copy, _connect(copy)
            except (StoreError, OSError):
                if not tries_left:
                    raise
        raise AssertionError  # the last try returns or raises

    def _translated(self, work: Callable[[], T]) -> T:
        return translated(self.path, work)

    def _read(self, stream: str | None, after: int) -> list[Entry]:
        if stream is None and not after:
            return self._read_on(0)
        query = (
            "SELECT stream, version, at_ms, key, envelope, effects, digest FROM entries"
            " WHERE (?1 IS NULL OR stream = ?1) AND version > ?2 ORDER BY position"
        )
        return [Entry(*each) for each in self._connection.execute(query, (stream, after))]

    def _read_on(self, count: int) -> list[Entry]:
        """Return all entries after the first ``count`` from one snapshot, and verify their chain."""
        connection = self._connection
        connection.execute("BEGIN")
        try:
            anchor = anchor_of(self.path, connection)
            before = connection.execute(_LINK, (count - 1,)).fetchone() if count else (FIRST,)
            rows = [(Entry(*each[:-1]), each[-1]) for each in connection.execute(_ENTRIES, (count,))]
        finally:
            connection.execute("COMMIT")
        try:
            return verified(Anchor(count, FIRST if before is None else before[0]), rows, anchor)
        except BrokenChain as error:
            raise damaged(self.path, str(error)) from error

    def _append(self, batch: Batch) -> None:
        self._look()
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            self._write(connection, batch)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # SQLite ends it by itself in some cases, such as a full disk
                connection.execute("ROLLBACK")
            raise
        self._look()

    def _write(self, connection: sqlite3.Connection, batch: Batch) -> None:
        epoch = epoch_of(self.path, connection)
        if epoch != self._epoch:
            message = f"{self.path}: another runner (epoch {epoch}) has taken over from this one (epoch {self._epoch})"
            raise Fenced(message)
        if batch.entries:
            anchor = self._anchor(connection)
            _check_versions(connection, batch.entries)
            written = list(linked(anchor, batch.entries))
            connection.executemany(
                "INSERT INTO entries (stream, version, at_ms, key, envelope, effects, digest, link)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [(e.stream, e.version, e.at_ms, e.key, e.envelope, e.effects, e.digest, link) for e, link in written],
            )
            newest = f"{anchor.entries + len(written)} {written[-1][1].hex()}"
            connection.execute("UPDATE meta SET value = ? WHERE name = 'anchor'", (newest,))
        connection.executemany(
            "INSERT INTO performed VALUES (?, ?) ON CONFLICT DO UPDATE SET version = excluded.version",
            batch.performed.items(),
        )
        connection.executemany("UPDATE posts SET answer = ? WHERE id = ?", [(a, i) for i, a in batch.answers.items()])

    def _anchor(self, connection: sqlite3.Connection) -> Anchor:
        """Return the anchor, and verify that it names the newest entry."""
        anchor = anchor_of(self.path, connection)
        newest = connection.execute("SELECT position, link FROM entries ORDER BY position DESC LIMIT 1").fetchone()
        if Anchor(*(newest or ())) != anchor:
            raise damaged(self.path, "another program has changed its entries while it was written")
        return anchor


def _check_versions(connection: sqlite3.Connection, entries: Sequence[Entry]) -> None:
    last: dict[str, int] = {}
    for entry in entries:
        if entry.stream not in last:
            query = "SELECT COALESCE(MAX(version), 0) FROM entries WHERE stream = ?"
            last[entry.stream] = connection.execute(query, (entry.stream,)).fetchone()[0]
        if entry.version != last[entry.stream] + 1:
            message = f"{entry.stream}: version {entry.version} does not follow {last[entry.stream]}"
            raise VersionConflict(message)
        last[entry.stream] = entry.version


def _connect(path: Path) -> sqlite3.Connection:
    must_be_ours(path)
    try:
        connection = open_shared(path, BUSY_TIMEOUT_S)
    except sqlite3.Error as error:
        if is_busy(error):
            message = f"{path}: another program keeps the log busy ({error})"
            raise Busy(message) from error
        message = f"{path}: cannot be read as a log ({error})"
        raise NotAStore(message) from error
    try:
        translated(path, partial(must_be_whole, path, connection))
    except BaseException:
        connection.close()
        raise
    return connection


def _next_epoch(path: Path, connection: sqlite3.Connection) -> int:
    epoch_of(path, connection)
    connection.execute("UPDATE meta SET value = CAST(value AS INTEGER) + 1 WHERE name = 'epoch'")
    return epoch_of(path, connection)


_ENTRIES: Final = (
    "SELECT stream, version, at_ms, key, envelope, effects, digest, link FROM entries"
    " ORDER BY position LIMIT -1 OFFSET ?"
)
_LINK: Final = "SELECT link FROM entries ORDER BY position LIMIT 1 OFFSET ?"


def _write_schema(path: Path, meta: Mapping[str, str]) -> None:
    make_private_file(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION};")
        connection.executescript(_SCHEMA)
        connection.executemany("INSERT INTO meta VALUES (?, ?)", {**meta, "digest": digest_of_meta(meta)}.items())


def _must_be_free(path: Path) -> None:
    """Refuse to replace a log, or to make one where SQLite would use the remaining files of another."""
    if path.exists():
        raise FileExistsError(path)
    for suffix in ("-wal", "-journal"):
        left = path.with_name(path.name + suffix)
        if left.exists():
            message = f"{left}: is a part of a log that is not here any more; put the log back, or delete this too"
            raise StoreError(message)


def _nothing() -> None:
    """Do nothing."""
