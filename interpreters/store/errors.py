"""The errors of the stores in a database, and the translation of ``sqlite3`` errors into them."""

import errno
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Final, TypeVar

from lifefold.interpreters.store import descriptors
from lifefold.interpreters.store.protocol import Busy, Full, StoreError
from lifefold.interpreters.store.wal import is_busy

T = TypeVar("T")


class Locked(StoreError):
    """Another process writes to this file."""


class NotAStore(StoreError):
    """The file is no lifefold log, or has a version that this program cannot read."""


class Damaged(NotAStore):
    """The file is a lifefold log, but its contents were changed; the message says where, and what to do."""


class Unreliable(StoreError):
    """The disk does not read or write; the message says what to do."""


class Unwritable(StoreError):
    """This user may read the file, but not write it."""


class Unreachable(StoreError):
    """The server gives no answer, or the connection is lost. A later try can succeed."""

    waits: ClassVar[str] = "waiting until it can be reached; the run goes on by itself then"
    """What a waiting writer logs."""


class OutcomeUnknown(Unreachable):
    """The connection was lost while a transaction was committed: it may be written as a whole, or not at all."""


class NotThere(NotAStore):
    """The database has no log of this name."""


def damaged(path: Path, why: str) -> Damaged:
    """Return the error for a log with changed contents."""
    return Damaged(f"{path}: the log is damaged ({why}); put a copy of it back, or start a new log with another --db")


def fault_of_disk(path: Path, error: Exception) -> StoreError | None:
    """Return the error that says what is wrong with the disk of a log; None if nothing is found.

    SQLite reports a disk that cannot be read as a damaged file. So the file system and the files are examined.
    """
    number = error.errno if isinstance(error, OSError) else None
    if number in _NO_ROOM or (number is None and _has_no_room(path.parent)):
        return Full(f"{path}: the disk is full ({error}); nothing of this was written yet")
    if number == errno.EROFS or (number is None and _is_read_only(path.parent)):
        message = f"{path}: the file system is read-only ({error}); {_SAFE}. Make it writable, and run this again"
        return Unreliable(message)
    if number in _BROKEN or (number is None and _cannot_be_read(path)):
        return unreliable(path, error)
    return None


def unreliable(path: Path, error: Exception) -> Unreliable:
    """Return the error for a disk that does not do what it is told."""
    return Unreliable(
        f"{path}: the disk does not read or write ({error}); {_SAFE}. Check the disk, and run this again when it works"
    )


def of_disk(path: Path, work: Callable[[], T]) -> T:
    """Call ``work``. An error that is a fault of the disk becomes a ``StoreError`` that says what to do."""
    try:
        return work()
    except (OSError, sqlite3.Error) as error:
        found = fault_of_disk(path, error)
        if found is None and getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_IOERR:
            found = unreliable(path, error)
        if found is None:
            raise
        raise found from error


def translated(path: Path, work: Callable[[], T]) -> T:
    """Call ``work``. An error of SQLite becomes a ``StoreError`` that names the file and says what is safe."""
    try:
        return work()
    except sqlite3.Error as error:
        if is_busy(error):
            message = f"{path}: another program keeps the log busy ({error}); nothing of this was written yet"
            raise Busy(message) from error
        if getattr(error, "sqlite_errorcode", 0) in _FULL:
            message = f"{path}: the disk is full ({error}); nothing of this was written yet"
            raise Full(message) from error
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _OF_DISK and (found := fault_of_disk(path, error)):
            raise found from error
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED or "no such" in str(error):
            raise damaged(path, str(error)) from error
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_READONLY:
            message = f"{path}: may be read, and not written ({error}); nothing of this was written"
            raise Unwritable(message) from error
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_IOERR:
            raise unreliable(path, error) from error
        message = f"{path}: {error}; nothing of this was written, and what was written before is safe"
        raise StoreError(message) from error


def _has_no_room(folder: Path) -> bool:
    try:
        return not os.statvfs(folder).f_bavail
    except OSError:
        return False


def _is_read_only(folder: Path) -> bool:
    try:
        return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def _cannot_be_read(path: Path) -> bool:
    """Tell whether the system fails to read a file of a log."""
    for file in (path, path.with_name(path.name + "-wal")):
        try:
            opened = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            if error.errno in _BROKEN:
                return True
            continue
        descriptors.end(opened)  # closed at once, SQLite would lose its locks
        try:
            place = 0
            while piece := os.pread(opened, _PIECE_BYTES, place):
                place += len(piece)
        except OSError:
            return True
    return False


_FULL: Final = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE})
_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_OF_DISK: Final = _DAMAGED | {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}
"""The results of SQLite that can have their cause in the disk."""

_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_BROKEN: Final = frozenset({errno.EIO, errno.ENXIO, errno.ENODEV, errno.ESTALE})

_SAFE: Final = "nothing of this was acknowledged, and what was acknowledged before is safe"
_PIECE_BYTES: Final = 1_048_576
