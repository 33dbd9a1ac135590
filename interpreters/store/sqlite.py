"""The embedded event store: one SQLite file in WAL mode, one writer at a time, a flush to the disk for every batch.

Who writes holds an advisory lock on ``<file>.lock`` and the highest epoch in the file. The lock goes with its process,
so a crashed writer blocks nobody; the epoch stops a writer that lost the lock without noticing. Reading needs neither.

Another program may keep the file busy: a backup, a shell. A store that is open for writing waits until it is done, and
says so to this module's logger; one that is not, or is not patient, gives up with ``Busy``.

``synchronous=FULL`` makes every commit wait for the disk. A disk that acknowledges what it has not kept is not covered.
"""

import errno
import fcntl
import logging
import os
import sqlite3
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final, Self, TypeVar

import anyio
from anyio import to_thread

from lifefold.interpreters.store.permissions import make_private_file, permit_as_the_log
from lifefold.interpreters.store.protocol import Batch, Busy, Entry, Fenced, Post, StoreError, VersionConflict
from lifefold.interpreters.store.wal import is_busy, open_shared

_logger: Final = logging.getLogger(__name__)

T = TypeVar("T")

SCHEMA_VERSION: Final = 1
APPLICATION_ID: Final = 0x11FEF01D
"""Marks the file as ours; ``file`` and ``sqlite3`` show it."""

BUSY_TIMEOUT_S: Final = 5.0
"""How long SQLite waits for another program before it says that the file is busy."""

BUSY_PAUSE_S: Final = 0.2
"""How long somebody patient lets pass then before asking again."""

LOCK_TRIES: Final = 20
LOCK_PAUSE_S: Final = 0.05
"""How often, and how far apart, a writer tries to get the lock."""

_SCHEMA: Final = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE entries (
    position INTEGER PRIMARY KEY,
    stream TEXT NOT NULL,
    version INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    key TEXT NOT NULL,
    envelope BLOB NOT NULL,
    effects BLOB NOT NULL,
    digest BLOB NOT NULL,
    UNIQUE (stream, version)
);
CREATE UNIQUE INDEX entries_by_key ON entries (stream, key) WHERE key <> '';
CREATE TABLE performed (stream TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE posts (id INTEGER PRIMARY KEY AUTOINCREMENT, stream TEXT NOT NULL, envelope BLOB NOT NULL, answer TEXT);
CREATE INDEX posts_unanswered ON posts (id) WHERE answer IS NULL;
INSERT INTO meta VALUES ('epoch', '0');
"""


class Locked(StoreError):
    """Another process writes to this file."""


class NotAStore(StoreError):
    """The file is not a log of ours, or not of a version that this program can read."""


class Unwritable(StoreError):
    """The file may be read by whoever runs this program, and not written."""


class SqliteStore:
    """An open file. Make one with ``create``, ``open`` or ``peek``; use it as a context manager."""

    def __init__(
        self, path: Path, connection: sqlite3.Connection, lock: int | None, epoch: int, *, patient: bool
    ) -> None:
        """Take what the class methods have prepared."""
        self.path: Final = path
        self._connection: Final = connection
        self._lock = lock
        self._epoch: Final = epoch
        self._patient: Final = patient
        self._turn: Final = anyio.CapacityLimiter(1)

    @classmethod
    def create(cls, path: Path, meta: Mapping[str, str]) -> Self:
        """Make a new file and open it for writing.

        Raises ``Locked``; ``FileExistsError`` if there is a file already; ``StoreError`` if a part of another is left.
        """
        lock = _take_lock(path)
        try:
            _must_be_free(path)
            draft = path.with_name(path.name + ".new")
            draft.unlink(missing_ok=True)
            try:
                _write_schema(draft, meta)
                draft.replace(path)
            finally:
                draft.unlink(missing_ok=True)
            _flush_folder(path.parent)
            return cls._writing(path, lock, patient=True)
        except BaseException:
            os.close(lock)
            raise

    @classmethod
    def open(cls, path: Path, *, patient: bool = True) -> Self:
        """Open an existing file for writing, under a new epoch. Raises ``Locked``, ``Busy``, ``NotAStore``."""
        _connect(path).close()
        lock = _take_lock(path)
        try:
            return cls._writing(path, lock, patient=patient)
        except BaseException:
            os.close(lock)
            raise

    @classmethod
    def peek(cls, path: Path) -> Self:
        """Open an existing file to read it and to leave posts, whether or not somebody writes.

        Raises ``Busy``, ``NotAStore``.
        """
        return cls(path, _connect(path), None, 0, patient=False)

    @classmethod
    def _writing(cls, path: Path, lock: int, *, patient: bool) -> Self:
        connection = _connect(path)
        try:
            epoch = _told(path, partial(_next_epoch, connection))
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
        """Close the file and let another writer in."""
        self._connection.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def meta(self, name: str) -> str | None:
        """Return what was written under a name when the file was made."""
        query = "SELECT value FROM meta WHERE name = ?"
        found = self._told(lambda: self._connection.execute(query, (name,)).fetchone())
        return None if found is None else str(found[0])

    def is_written(self) -> bool:
        """Tell whether some process has this file open for writing now."""
        if self._lock is not None:
            return True
        try:
            lock = os.open(_lock_file(self.path), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError as error:
            raise _unlockable(self.path, error) from error
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
        """Return the entries of all streams, in the order of writing, but the first so many."""
        query = (
            "SELECT stream, version, at_ms, key, envelope, effects, digest FROM entries"
            " ORDER BY position LIMIT -1 OFFSET ?"
        )
        return await self._in_turn(lambda: [Entry(*each) for each in self._connection.execute(query, (count,))])

    async def performed(self) -> Mapping[str, int]:
        """Return what is known to be performed; see ``EventStore``."""
        return await self._in_turn(lambda: dict(self._connection.execute("SELECT stream, version FROM performed")))

    async def post(self, stream: str, envelope: bytes) -> int:
        """Leave an input for the writer; see ``EventStore``."""
        statement = "INSERT INTO posts (stream, envelope) VALUES (?, ?)"
        number = await self._in_turn(lambda: self._connection.execute(statement, (stream, envelope)).lastrowid)
        return int(number or 0)

    async def posts(self, *, unanswered: bool = True) -> Sequence[Post]:
        """Return posts; see ``EventStore``."""
        query = "SELECT id, stream, envelope, answer FROM posts WHERE answer IS NULL OR NOT ? ORDER BY id"
        return await self._in_turn(lambda: [Post(*each) for each in self._connection.execute(query, (unanswered,))])

    async def _in_turn(self, work: Callable[[], T]) -> T:
        told = False
        while True:
            try:
                return await to_thread.run_sync(self._told, work, limiter=self._turn)
            except Busy as busy:
                if not self._patient:
                    raise
                if not told:
                    _logger.warning("%s; waiting until it is done", busy)
                told = True
            await anyio.sleep(BUSY_PAUSE_S)

    def _told(self, work: Callable[[], T]) -> T:
        return _told(self.path, work)

    def _read(self, stream: str | None, after: int) -> list[Entry]:
        query = (
            "SELECT stream, version, at_ms, key, envelope, effects, digest FROM entries"
            " WHERE (?1 IS NULL OR stream = ?1) AND version > ?2 ORDER BY position"
        )
        return [Entry(*each) for each in self._connection.execute(query, (stream, after))]

    def _append(self, batch: Batch) -> None:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            self._write(connection, batch)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # SQLite has ended it by itself if, for one, the disk is full
                connection.execute("ROLLBACK")
            raise

    def _write(self, connection: sqlite3.Connection, batch: Batch) -> None:
        (epoch,) = connection.execute("SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'epoch'").fetchone()
        if epoch != self._epoch:
            message = f"{self.path}: another runner (epoch {epoch}) has taken over from this one (epoch {self._epoch})"
            raise Fenced(message)
        _check_versions(connection, batch.entries)
        connection.executemany(
            "INSERT INTO entries (stream, version, at_ms, key, envelope, effects, digest) VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(e.stream, e.version, e.at_ms, e.key, e.envelope, e.effects, e.digest) for e in batch.entries],
        )
        connection.executemany(
            "INSERT INTO performed VALUES (?, ?) ON CONFLICT DO UPDATE SET version = excluded.version",
            batch.performed.items(),
        )
        connection.executemany("UPDATE posts SET answer = ? WHERE id = ?", [(a, i) for i, a in batch.answers.items()])


def _told(path: Path, work: Callable[[], T]) -> T:
    """Do it; an error of SQLite's becomes one that says which file it is about and what is safe."""
    try:
        return work()
    except sqlite3.Error as error:
        if is_busy(error):
            message = f"{path}: another program keeps the log busy ({error}); nothing of this was written yet"
            raise Busy(message) from error
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED:
            message = f"{path}: the log is damaged ({error}); put a copy of it back, or begin anew with another --db"
            raise StoreError(message) from error
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_READONLY:
            message = f"{path}: may be read, and not written ({error}); nothing of this was written"
            raise Unwritable(message) from error
        message = f"{path}: {error}; nothing of this was written, and what was written before is safe"
        raise StoreError(message) from error


_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


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
    _must_be_ours(path)
    try:
        return open_shared(path, BUSY_TIMEOUT_S)
    except sqlite3.Error as error:
        if is_busy(error):
            message = f"{path}: another program keeps the log busy ({error})"
            raise Busy(message) from error
        message = f"{path}: cannot be read as a log ({error})"
        raise NotAStore(message) from error


def _next_epoch(connection: sqlite3.Connection) -> int:
    connection.execute("UPDATE meta SET value = CAST(value AS INTEGER) + 1 WHERE name = 'epoch'")
    (epoch,) = connection.execute("SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'epoch'").fetchone()
    return int(epoch)


def _must_be_ours(path: Path) -> None:
    """Look who wrote a file before it is really opened: opened immutable, it is neither locked nor recovered.

    SQLite has to do this: were the file opened and closed in passing, a connection that this process has to it
    elsewhere would lose its locks.
    """
    if not path.is_file():
        message = f"{path}: {'is a folder, not a log' if path.is_dir() else 'there is no such log'}"
        raise NotAStore(message)
    if not os.access(path, os.R_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    if not path.stat().st_size:
        message = f"{path}: is not a lifefold log (it is empty)"
        raise NotAStore(message)
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True)) as connection:
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.Error as error:
        header = _header(path) if path.with_name(path.name + "-wal").exists() else None
        if header is None:
            message = f"{path}: is not a lifefold log ({error})"
            raise NotAStore(message) from error
        application, version = header  # a file that a full disk left in the middle of a checkpoint: SQLite can mend it
    if application != APPLICATION_ID:
        message = f"{path}: is not a lifefold log (a SQLite file of another program)"
        raise NotAStore(message)
    if version != SCHEMA_VERSION:
        message = f"{path}: has version {version}, this lifefold reads {SCHEMA_VERSION}; use the one that wrote it"
        raise NotAStore(message)


def _header(path: Path) -> tuple[int, int] | None:
    """Return application id and version as the file's first bytes have them; None if it is no SQLite file."""
    with path.open("rb") as file:
        header = file.read(_HEADER.size)
    if len(header) < _HEADER.size or not header.startswith(_MAGIC):
        return None
    _magic, version, application = _HEADER.unpack(header)
    return application, version


_MAGIC: Final = b"SQLite format 3\0"
_HEADER: Final = struct.Struct(">16s 44x i 4x i")
"""The file format's fields at 0, 60 and 68: magic string, user version, application id."""


def _write_schema(path: Path, meta: Mapping[str, str]) -> None:
    make_private_file(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION};")
        connection.executescript(_SCHEMA)
        connection.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())


def _take_lock(path: Path) -> int:
    lock = os.open(_lock_file(path), os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    permit_as_the_log(path, lock)
    for _ in range(LOCK_TRIES):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(LOCK_PAUSE_S)  # somebody may just be looking whether there is a writer
        except OSError as error:
            os.close(lock)
            raise _unlockable(path, error) from error
        else:
            return lock
    os.close(lock)
    message = f"{path}: another lifefold is running on this log; leave it with Ctrl-C there first, or use another --db"
    raise Locked(message)


def _unlockable(path: Path, error: OSError) -> StoreError:
    return StoreError(f"{_lock_file(path)}: cannot be locked ({error}); keep the log on a disk of this machine")


def _lock_file(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


def _must_be_free(path: Path) -> None:
    """Refuse to make a log over another, or where SQLite would take what is left of another for a part of it."""
    if path.exists():
        raise FileExistsError(path)
    for suffix in ("-wal", "-journal"):
        left = path.with_name(path.name + suffix)
        if left.exists():
            message = f"{left}: is a part of a log that is not here any more; put the log back, or delete this too"
            raise StoreError(message)


def _flush_folder(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
