"""How a SQLite file is opened that several processes may use: with a write-ahead log, and a flush for every commit."""

import sqlite3
from pathlib import Path
from time import monotonic, sleep
from typing import Final

PAUSE_S: Final = 0.01
"""How long somebody who opens a busy file waits before he tries again."""


def open_shared(path: Path | str, busy_s: float) -> sqlite3.Connection:
    """Open a file, or make it, in autocommit mode, for any thread; wait up to ``busy_s`` seconds for other processes.

    Raises ``sqlite3.Error``; then nothing is left open.
    """
    connection = sqlite3.connect(path, timeout=busy_s, isolation_level=None, check_same_thread=False)
    try:
        _switch(connection, busy_s)
        connection.execute("PRAGMA synchronous = FULL")
    except BaseException:
        connection.close()
        raise
    return connection


def is_busy(error: sqlite3.Error) -> bool:
    """Tell whether an error says that another program keeps the file busy."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def _switch(connection: sqlite3.Connection, busy_s: float) -> None:
    """Switch to the write-ahead log. SQLite has no patience for that with a process that is just writing; we have."""
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
