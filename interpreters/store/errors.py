"""The errors of the SQLite store, and the translation of ``sqlite3`` errors into them."""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from lifefold.interpreters.store.protocol import Busy, Full, StoreError
from lifefold.interpreters.store.wal import is_busy

T = TypeVar("T")


class Locked(StoreError):
    """Another process writes to this file."""


class NotAStore(StoreError):
    """The file is no lifefold log, or has a version that this program cannot read."""


class Damaged(NotAStore):
    """The file is a lifefold log, but its contents were changed; the message says where, and what to do."""


class Unwritable(StoreError):
    """This user may read the file, but not write it."""


def damaged(path: Path, why: str) -> Damaged:
    """Return the error for a log with changed contents."""
    return Damaged(f"{path}: the log is damaged ({why}); put a copy of it back, or start a new log with another --db")


def unreliable(path: Path, error: Exception) -> StoreError:
    """Return the error for a disk that does not do what it is told."""
    return StoreError(
        f"{path}: the disk does not read or write ({error}); nothing of this was acknowledged; "
        "what was acknowledged before is safe. Check the disk, and run this again when it works"
    )


def translated(path: Path, work: Callable[[], T]) -> T:
    """Call ``work``. An error of SQLite becomes a ``StoreError`` that names the file and says what is safe."""
    try:
        return work()
    except sqlite3.Error as error:
        if is_busy(error):
            message = f"{path}: another program keeps the log busy ({error}); nothing of this was written yet"
            raise Busy(message) from error
        if _is_full(path, error):
            message = f"{path}: the disk is full ({error}); nothing of this was written yet"
            raise Full(message) from error
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED or "no such" in str(error):
            raise damaged(path, str(error)) from error
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_READONLY:
            message = f"{path}: may be read, and not written ({error}); nothing of this was written"
            raise Unwritable(message) from error
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _UNRELIABLE:
            raise unreliable(path, error) from error
        message = f"{path}: {error}; nothing of this was written, and what was written before is safe"
        raise StoreError(message) from error


def _is_full(path: Path, error: sqlite3.Error) -> bool:
    """Tell whether the disk is full. An exceeded quota and full shared memory appear as errors of writing."""
    code = getattr(error, "sqlite_errorcode", 0)
    return code in _FULL or (code & 0xFF == sqlite3.SQLITE_IOERR and _has_no_room(path.parent))


def _has_no_room(folder: Path) -> bool:
    try:
        return not os.statvfs(folder).f_bavail
    except OSError:
        return False


_FULL: Final = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE})
_UNRELIABLE: Final = frozenset({sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN})
_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
