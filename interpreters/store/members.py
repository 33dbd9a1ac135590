"""What the processes of a cluster say of themselves, in a table beside the entries of their log.

Each process has one row, which its next word replaces. So a log does not grow by heartbeats, and no rule depends on
them. The time of a row is that of the database: the clocks of hosts need not agree. A copy of a log has no rows.
"""

from typing import Final, NamedTuple

from lifefold.interpreters.store.connection import Connection
from lifefold.interpreters.store.writer_word import WriterWord, writer_word

TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS members (name TEXT PRIMARY KEY, said TEXT NOT NULL, heard_ms BIGINT NOT NULL)"
)
"""The statement that makes the table, in both databases."""


class Member(NamedTuple):
    """A process of a cluster, the text that it said last, and the time of that in Unix milliseconds."""

    name: str
    said: str
    heard_ms: int


class Members(NamedTuple):
    """The processes of a cluster by name, at a time of the database in Unix milliseconds.

    ``writer`` is the word of the process that writes the log, which no other process can write.
    """

    now_ms: int
    every: tuple[Member, ...] = ()
    writer: WriterWord | None = None


def members(connection: Connection) -> Members:
    """Return what the processes of a cluster said last; a log of an earlier version has no table for it."""
    if connection.execute(IS_THERE).fetchone() is None:
        return Members(_now_ms(connection))
    rows = connection.execute("SELECT name, said, heard_ms FROM members ORDER BY name").fetchall()
    every = tuple(Member(str(name), str(said), int(at_ms)) for name, said, at_ms in rows)
    return Members(_now_ms(connection), every, writer_word(connection))


def say(connection: Connection, name: str, said: str) -> str | None:
    """Replace what a process said, and return what its row said before; None without a row.

    A log of an earlier version gets no row, until its writer has opened it.
    """
    if connection.execute(IS_THERE).fetchone() is None:
        return None
    before = connection.execute("SELECT said FROM members WHERE name = ?", (name,)).fetchone()
    connection.execute(_SAY, (name, said, _now_ms(connection)))
    return None if before is None else str(before[0])


def say_instead(connection: Connection, name: str, said: str, heard_ms: int) -> bool:
    """Write the first word of a process, and return whether it is there.

    It replaces nothing but the row that was heard at ``heard_ms``, which is 0 without a row. So one of two processes
    that begin at the same time has the name. A log of an earlier version gets no row, and any process has the name.
    """
    if connection.execute(IS_THERE).fetchone() is None:
        return True
    return bool(connection.execute(_SAY_INSTEAD, (name, said, _now_ms(connection), heard_ms)).fetchall())


def dismiss(connection: Connection, name: str) -> None:
    """Remove the row of a process that has left."""
    if connection.execute(IS_THERE).fetchone() is not None:
        connection.execute("DELETE FROM members WHERE name = ?", (name,))


def _now_ms(connection: Connection) -> int:
    (now_ms,) = connection.execute(NOW_MS).fetchone()
    return int(now_ms)


NOW_MS: Final = "SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"
"""The statement for the time of the database; ``lifefold.interpreters.store.postgres`` translates it."""

IS_THERE: Final = "PRAGMA table_info(members)"
"""The statement that has a row if the log has the table; also translated."""

_SAY: Final = (
    "INSERT INTO members (name, said, heard_ms) VALUES (?, ?, ?)"
    " ON CONFLICT (name) DO UPDATE SET said = excluded.said, heard_ms = excluded.heard_ms"
)

_SAY_INSTEAD: Final = f"{_SAY} WHERE members.heard_ms = ? RETURNING name"
