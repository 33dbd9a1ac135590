"""Opening a log, and reading its entries with their chain."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Final, NamedTuple

from lifefold.interpreters.store.chain import FIRST, Anchor, BrokenChain, verified
from lifefold.interpreters.store.connection import Connection
from lifefold.interpreters.store.errors import NotAStore, damaged, fault_of_disk, translated
from lifefold.interpreters.store.identity import must_be_ours
from lifefold.interpreters.store.meta import anchor_of, meta_of, must_be_whole
from lifefold.interpreters.store.protocol import Busy, Entry, StoredCommand, StoreError
from lifefold.interpreters.store.schema import select
from lifefold.interpreters.store.wal import is_busy, open_shared

BUSY_TIMEOUT_S: Final = 5.0
"""How long SQLite waits for another program before it reports that the file is busy."""


class Chain(NamedTuple):
    """Entries with their links: the anchor before the first one, and the anchor in the log."""

    begin: Anchor
    rows: list[tuple[Entry, bytes]]
    end: Anchor


Placed = tuple[int, Entry]
"""An entry with its position."""


class Known(NamedTuple):
    """What the writer of a log knows of it: the digest of its metadata, and its newest anchor."""

    digest: str | None
    anchor: Anchor


def connect(path: Path) -> sqlite3.Connection:
    """Open a log of this program. Raises ``NotAStore``, ``Busy``."""
    must_be_ours(path)
    try:
        connection = open_shared(path, BUSY_TIMEOUT_S)
    except sqlite3.Error as error:
        if is_busy(error):
            message = f"{path}: another program keeps the log busy ({error})"
            raise Busy(message) from error
        if found := fault_of_disk(path, error):
            raise found from error
        message = f"{path}: cannot be read as a log ({error})"
        raise NotAStore(message) from error
    try:
        connection.execute("PRAGMA wal_autocheckpoint = 0")  # the writer decides on checkpoints, see ``base``
        connection.execute("PRAGMA journal_size_limit = 0")  # a size that says how much is in the write-ahead log
        translated(path, partial(must_be_whole, path, connection))
    except BaseException:
        connection.close()
        raise
    return connection


def read_streams(path: Path, connection: Connection, stream: str | None, after: int) -> list[Entry]:
    """Return the entries of one stream, or of all, above a version, in the order of the log.

    Without a stream and a version the chain is verified. Raises ``Damaged`` then.
    """
    if stream is None and not after:
        return read_on(path, connection, 0)
    if stream is None:
        rows = connection.execute(select(connection, "WHERE version > ? ORDER BY position"), (after,))
    else:
        query = select(connection, "WHERE stream = ? AND version > ? ORDER BY version")
        rows = connection.execute(query, (stream, after))
    return [Entry(*each) for each in rows]


def read_on(path: Path, connection: Connection, count: int) -> list[Entry]:
    """Return all entries after the first ``count`` from one snapshot, and verify their chain.

    Positions count from 1 without gaps, so the entries are found by position and not counted again.
    """
    found = chain(path, connection, count)
    try:
        return verified(*found)
    except BrokenChain as error:
        raise damaged(path, str(error)) from error


def chain(path: Path, connection: Connection, count: int = 0) -> Chain:
    """Return all entries after the first ``count`` with their links, from one snapshot."""
    connection.execute("BEGIN")
    try:
        anchor = anchor_of(path, connection)
        before = connection.execute(_LINK, (count,)).fetchone() if count else (FIRST,)
        rows = [(Entry(*each[:-1]), each[-1]) for each in connection.execute(_entries(connection), (count,))]
    finally:
        connection.execute("COMMIT")
    return Chain(Anchor(count, FIRST if before is None else before[0]), rows, anchor)


def between(connection: Connection, after: int, until: int) -> list[Entry]:
    """Return the entries after one position until another; their chain was verified when the log was read."""
    query = select(connection, "WHERE position > ? AND position <= ? ORDER BY position")
    return [Entry(*each) for each in connection.execute(query, (after, until))]


def excerpt(connection: Connection, streams: Sequence[str], until: int, texts: Sequence[bytes] = ()) -> list[Placed]:
    """Return the entries of some streams until a position, each with its position, in the order of the log.

    With ``texts`` these are the entries whose input or outcome has one of them. Their chain is not verified.
    """
    has = " OR ".join(("instr(outcome, ?) > 0 OR instr(envelope, ?) > 0",) * len(texts)) or "1 = 1"
    query = select(connection, f"WHERE stream = ? AND position <= ? AND ({has})", further="position")
    wanted = [text for text in texts for _ in range(2)]
    found = (row for stream in streams for row in connection.execute(query, (stream, until, *wanted)))
    return sorted(((row[-1], Entry(*row[:-1])) for row in found), key=itemgetter(0))


def position_at(connection: Connection, at_ms: int) -> int:
    """Return the position of the newest entry that is not later than a time, which never goes back; 0 without any."""
    low, (high,) = 0, connection.execute("SELECT COALESCE(MAX(position), 0) FROM entries").fetchone()
    while low < high:
        middle = (low + high + 1) // 2
        then = moment_of(connection, middle)
        low, high = (middle, high) if then is not None and then <= at_ms else (low, middle - 1)
    return int(low)


def moment_of(connection: Connection, seq: int) -> int | None:
    """Return the time of the entry at a position; None if there is none."""
    found = connection.execute("SELECT at_ms FROM entries WHERE position = ?", (seq,)).fetchone()
    return None if found is None else int(found[0])


def stored_commands(connection: Connection, *, unanswered: bool) -> list[StoredCommand]:
    """Return the operator commands in their order, all or the ``unanswered`` ones."""
    query = _UNANSWERED if unanswered else _COMMANDS
    return [StoredCommand(*each) for each in connection.execute(query)]


def answers(connection: Connection, numbers: Sequence[int]) -> dict[int, str]:
    """Return the answers to operator commands by number, without those that have none yet."""
    query = "SELECT CAST(answer AS TEXT) FROM posts WHERE id = ? AND answer IS NOT NULL"
    rows = ((number, connection.execute(query, (number,)).fetchone()) for number in numbers)
    return {number: row[0] for number, row in rows if row is not None}


def known_of(path: Path, connection: Connection) -> Known:
    """Return what a log says of itself now."""
    return Known(meta_of(connection, "digest"), anchor_of(path, connection))


def is_intact(path: Path, known: Known) -> bool:
    """Tell whether the file at a path is a sound log with all entries that its writer knows. Raises ``Busy``."""
    try:
        with closing(connect(path)) as connection:
            translated(path, partial(_must_have, path, connection, known))
    except Busy:
        raise
    except (StoreError, OSError):
        return False
    return True


def _must_have(path: Path, connection: sqlite3.Connection, known: Known) -> None:
    """Raise ``Damaged`` unless a log is sound and has all known entries."""
    (sound,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    read_on(path, connection, 0)
    count, newest = known.anchor
    found = connection.execute(_LINK, (count,)).fetchone() if count else (FIRST,)
    if sound != "ok" or found != (newest,) or known_of(path, connection).digest != known.digest:
        raise damaged(path, "it is not the log that was written here")


def _entries(connection: Connection) -> str:
    return select(connection, "WHERE position > ? ORDER BY position", further="link")


_COLUMNS: Final = "SELECT id, CAST(stream AS TEXT), CAST(envelope AS BLOB), CAST(answer AS TEXT) FROM posts"
_COMMANDS: Final = f"{_COLUMNS} ORDER BY id"
_UNANSWERED: Final = f"{_COLUMNS} WHERE answer IS NULL ORDER BY id"
_LINK: Final = "SELECT link FROM entries WHERE position = ?"
