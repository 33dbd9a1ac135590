"""Opening a SQLite file that several processes use: with a write-ahead log, and a flush for every commit."""

import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Final

PAUSE_S: Final = 0.01
"""The pause before the next try to open a busy file."""

PIECE_BYTES: Final = 1_048_576
"""The number of bytes that are written again at once."""


def open_shared(path: Path | str, busy_s: float) -> sqlite3.Connection:
    """Open or make a file in autocommit mode, for any thread. Wait up to ``busy_s`` seconds for other processes.

    Raises ``sqlite3.Error``, and leaves nothing open then.
    """
    connection = sqlite3.connect(path, timeout=busy_s, isolation_level=None, check_same_thread=False)
    try:
        _switch(connection, busy_s)
        connection.execute("PRAGMA synchronous = FULL")
    except BaseException:
        connection.close()
        raise
    return connection


def write_again(wal: Path) -> None:
    """Write a write-ahead log again as it is, and flush it. The caller has SQLite's lock for writing.

    After a failed flush the system takes written pages for clean, and a later flush does not write them (Linux). They
    can still be read, until the power is lost. So the next writer would rely on transactions that are not on the disk,
    and lose its own together with them. Written again, the pages are on the disk after the flush. Raises ``OSError``.
    """
    with suppress(FileNotFoundError, PermissionError):  # a user who may not write it is told so by SQLite
        opened = os.open(wal, os.O_RDWR | os.O_CLOEXEC)
        try:
            place = 0
            while piece := os.pread(opened, PIECE_BYTES, place):
                place += os.pwrite(opened, piece, place)
            os.fsync(opened)
        finally:
            os.close(opened)


def is_busy(error: sqlite3.Error) -> bool:
    """Tell whether an error means that another program has locked the file."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def _switch(connection: sqlite3.Connection, busy_s: float) -> None:
    """Switch to the write-ahead log. SQLite does not wait for other writers here, so this function tries again."""
    until_s = monotonic() + busy_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if not is_busy(error) or monotonic() >= until_s:
                raise
            sleep(PAUSE_S)
        else:
            return
