"""The lock of a log on a server: an advisory lock of the writer's session, which ends with the session.

The server ends the session of a writer that is lost or silent (``Timings``). Another writer can take the lock then. The
epoch stops the earlier writer: each of its transactions reads it.
"""

from typing import Final

from lifefold.interpreters.store.connection import Connection
from lifefold.interpreters.store.identity import APPLICATION_ID

_KEY: Final = APPLICATION_ID << 32

_HELD: Final = (
    "FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1"
    " AND classid = CAST(? AS oid) AND objid = CAST(? AS oid)"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


def take_lock(connection: Connection, schema: int) -> bool:
    """Take the lock of the log with this schema; False if another session has it."""
    (is_taken,) = connection.execute("SELECT pg_try_advisory_lock(?::bigint)", (_KEY | schema,)).fetchone()
    return bool(is_taken)


def release_lock(connection: Connection) -> None:
    """Release the lock of this session, if it has one."""
    connection.execute("SELECT pg_advisory_unlock_all()")


def note_writer(connection: Connection, epoch: int) -> None:
    """Note, within the transaction of its epoch, that a writer is at work until it forgets the note."""
    connection.execute(
        "INSERT INTO meta (name, value) VALUES ('writer', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (str(epoch),),
    )


def forget_writer(connection: Connection, epoch: int) -> None:
    """Remove the note of a writer that closes the log; that of a later writer stays."""
    connection.execute("DELETE FROM meta WHERE name = 'writer' AND value = ?", (str(epoch),))


def is_writer_noted(connection: Connection) -> bool:
    """Tell whether a writer has not closed the log: it has ended otherwise, or has lost its session."""
    return connection.execute("SELECT 1 FROM meta WHERE name = 'writer'").fetchone() is not None


def holder_of(connection: Connection, schema: int) -> int | None:
    """Return the server's process number of the session that has the lock; None if none has it."""
    found = connection.execute(f"SELECT pid {_HELD}", (APPLICATION_ID, schema)).fetchone()
    return None if found is None else int(found[0])


def end_holder(connection: Connection, schema: int, process: int) -> None:
    """End the session that has the lock, if it is this one of the server. Its role must be that of this session."""
    connection.execute(f"SELECT pg_terminate_backend(pid) {_HELD} AND pid = ?", (APPLICATION_ID, schema, process))
