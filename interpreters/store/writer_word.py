"""What the writer of a log says beside the entries, such as which plan is in force.

The table has one row, which has the epoch of its writer. A writer replaces it in a transaction that reads the newest
epoch, as it writes entries. So a writer that another one has replaced cannot speak any more. On a server only a role
that may write the log may write this table. In a file each user who may write the file may do so.
"""

from typing import Final, NamedTuple

from lifefold.interpreters.store.connection import Connection

TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS writer_word (id INTEGER PRIMARY KEY, epoch BIGINT NOT NULL, said TEXT NOT NULL)"
)
"""The statement that makes the table, in both databases."""

IS_THERE: Final = "PRAGMA table_info(writer_word)"
"""The statement that has a row if the log has the table; ``lifefold.interpreters.store.postgres`` translates it."""


class WriterWord(NamedTuple):
    """What a writer said last, and the epoch of that writer."""

    epoch: int
    said: str


def writer_word(connection: Connection) -> WriterWord | None:
    """Return what the writer said last; None without a word, and for a log of an earlier version."""
    if connection.execute(IS_THERE).fetchone() is None:
        return None
    found = connection.execute("SELECT epoch, said FROM writer_word WHERE id = 1").fetchone()
    return None if found is None else WriterWord(int(found[0]), str(found[1]))


def put_word(connection: Connection, epoch: int, said: str | None) -> None:
    """Replace what the writer of ``epoch`` says, within a transaction; None removes it."""
    if said is None:
        connection.execute("DELETE FROM writer_word")
    else:
        connection.execute(_SAY, (epoch, said))


_SAY: Final = (
    "INSERT INTO writer_word (id, epoch, said) VALUES (1, ?, ?)"
    " ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, said = excluded.said"
)
