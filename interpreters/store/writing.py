"""The transactions of a writer on an open log: a batch with its links, operator commands, and a new epoch."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from lifefold.interpreters.store.chain import Anchor, linked
from lifefold.interpreters.store.connection import Connection
from lifefold.interpreters.store.errors import damaged, fault_of_disk, unreliable
from lifefold.interpreters.store.keeping import keep
from lifefold.interpreters.store.meta import anchor_of, epoch_of
from lifefold.interpreters.store.place import WAL, beside
from lifefold.interpreters.store.protocol import Batch, Entry, Fenced, VersionConflict
from lifefold.interpreters.store.wal import write_again
from lifefold.interpreters.store.writer_word import put_word


@contextmanager
def transaction(connection: Connection) -> Generator[Connection]:
    """Write what the block writes in one transaction, or nothing of it after an error."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite ends it by itself in some cases, such as a full disk
            connection.execute("ROLLBACK")
        raise


class Written(NamedTuple):
    """The newest anchor after a batch, and the newest versions of its streams."""

    anchor: Anchor
    versions: Mapping[str, int]


def write(path: Path, connection: Connection, batch: Batch, epoch: int, anchor: Anchor) -> Written:
    """Write the parts of a batch within a transaction of the writer of ``epoch``.

    ``anchor`` is the one that the writer knows. Raises ``Fenced``, ``VersionConflict``, ``Damaged``.
    """
    must_be_newest(path, connection, epoch)
    if batch.entries or batch.snapshot is not None:
        anchor = _verified_anchor(path, connection)
    return write_verified(connection, batch, anchor, {})


def must_be_newest(path: Path, connection: Connection, epoch: int) -> None:
    """Raise ``Fenced`` unless the writer of ``epoch`` is the newest one."""
    newest = epoch_of(path, connection)
    if newest != epoch:
        message = f"{path}: another runner (epoch {newest}) has taken over from this one (epoch {epoch})"
        raise Fenced(message)


def say_as_writer(path: Path, connection: Connection, epoch: int, said: str | None) -> None:
    """Replace what the writer of ``epoch`` says to all processes; None removes it. Raises ``Fenced``."""
    with transaction(connection):
        must_be_newest(path, connection, epoch)
        put_word(connection, epoch, said)


def write_verified(connection: Connection, batch: Batch, anchor: Anchor, versions: Mapping[str, int]) -> Written:
    """Do the same as ``write`` for a writer that knows that its log is unchanged: its epoch and this anchor are right.

    ``versions`` are the newest versions of streams, as far as the writer knows them. Raises ``VersionConflict``.
    """
    last: dict[str, int] = {}
    if batch.snapshot is not None:
        keep(connection, anchor, batch.snapshot)
    if batch.entries:
        last = _next_versions(connection, batch.entries, versions)
        anchor = insert(connection, anchor, batch.entries)
    if batch.performed:
        write_progress(connection, batch.performed)
    if batch.answers:
        connection.executemany("UPDATE posts SET answer = ? WHERE id = ?", [(a, i) for i, a in batch.answers.items()])
    return Written(anchor, last)


def insert(connection: Connection, anchor: Anchor, entries: Sequence[Entry]) -> Anchor:
    """Write entries after an anchor, with their positions and links, and the new anchor, which is returned."""
    rows = [
        (position, e.stream, e.version, e.at_ms, e.key, e.envelope, e.outcome, e.rules, link)
        for position, (e, link) in enumerate(linked(anchor, entries), start=anchor.entries + 1)
    ]
    connection.executemany(
        "INSERT INTO entries (position, stream, version, at_ms, key, envelope, outcome, rules, link)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        rows,
    )
    anchor = Anchor(anchor.entries + len(rows), rows[-1][-1])
    newest = f"{anchor.entries} {anchor.link.hex()}"
    connection.execute("UPDATE meta SET value = ? WHERE name = 'anchor'", (newest,))
    return anchor


def write_progress(connection: Connection, performed: Mapping[str, int]) -> None:
    """Write, per stream, the version up to which all effects are performed."""
    connection.executemany(
        "INSERT INTO performed (stream, version) VALUES (?, ?)"
        " ON CONFLICT (stream) DO UPDATE SET version = excluded.version",
        list(performed.items()),
    )


def _verified_anchor(path: Path, connection: Connection) -> Anchor:
    """Return the anchor, and verify that it names the newest entry."""
    anchor = anchor_of(path, connection)
    newest = connection.execute("SELECT position, link FROM entries ORDER BY position DESC LIMIT 1").fetchone()
    if Anchor(*(newest or ())) != anchor:
        raise damaged(path, "another program has changed its entries while it was written")
    return anchor


def _next_versions(connection: Connection, entries: Sequence[Entry], known: Mapping[str, int]) -> dict[str, int]:
    """Return the newest version of each stream of these entries after them. Raises ``VersionConflict``."""
    streams = {each.stream for each in entries}
    last = {stream: known[stream] for stream in streams if stream in known}
    if len(last) < len(streams):
        last |= _last_versions(connection, sorted(streams - last.keys()))
    for entry in entries:
        if entry.version != last[entry.stream] + 1:
            message = f"{entry.stream}: version {entry.version} does not follow {last[entry.stream]}"
            raise VersionConflict(message)
        last[entry.stream] = entry.version
    return last


def _last_versions(connection: Connection, streams: Sequence[str]) -> dict[str, int]:
    """Return the newest version of each stream, 0 for a new one."""
    last: dict[str, int] = {}
    for first in range(0, len(streams), PAGE_STREAMS):
        page = streams[first : first + PAGE_STREAMS]
        values = ", ".join(["(?)"] * len(page))
        query = f"SELECT column1, {_NEWEST} FROM (VALUES {values}) AS named"  # noqa: S608 - placeholders of parameters
        last.update((str(stream), int(version)) for stream, version in connection.execute(query, page))
    return last


def submit(connection: Connection, commands: Sequence[tuple[str, bytes]]) -> list[int]:
    """Store operator commands, each a stream and an envelope; return their numbers."""
    statement = "INSERT INTO posts (stream, envelope) VALUES (?, ?) RETURNING id"
    with transaction(connection):
        return [int(connection.execute(statement, each).fetchall()[0][0]) for each in commands]


def next_epoch(path: Path, connection: Connection) -> int:
    """Begin a new epoch, after all that the log has is durable; return it."""
    with transaction(connection):
        try:
            write_again(beside(path, WAL))
        except OSError as error:
            raise fault_of_disk(path, error) or unreliable(path, error) from error
        return raise_epoch(path, connection)


def raise_epoch(path: Path, connection: Connection) -> int:
    """Begin a new epoch within a transaction, and return it. Raises ``Damaged``."""
    epoch = epoch_of(path, connection) + 1
    connection.execute("UPDATE meta SET value = ? WHERE name = 'epoch'", (str(epoch),))
    return epoch


PAGE_STREAMS: Final = 400
"""The number of streams whose versions one query looks up."""

_NEWEST: Final = "(SELECT COALESCE(MAX(version), 0) FROM entries WHERE stream = column1)"
