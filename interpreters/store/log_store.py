"""What the stores of logs in a database share: reading, operator commands and snapshots, on a ``Connection``.

``SqliteStore`` keeps a log in a file, ``PostgresStore`` on a server. They differ in how work reaches the database, how
a writer is found out, and how a batch is made durable.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self, TypeVar

import msgspec

from lifefold.interpreters.store.address import Address
from lifefold.interpreters.store.chain import Anchor
from lifefold.interpreters.store.connection import Connection
from lifefold.interpreters.store.errors import damaged
from lifefold.interpreters.store.keeping import drop, known_keys, parts_of, resumed
from lifefold.interpreters.store.members import Members, dismiss, members, say, say_instead
from lifefold.interpreters.store.meta import OF_THE_STORE, meta_of
from lifefold.interpreters.store.pasts import mark_before
from lifefold.interpreters.store.place import Displaced
from lifefold.interpreters.store.protocol import Batch, Entry, SnapshotPart, StoredCommand
from lifefold.interpreters.store.reading import (
    Chain,
    Placed,
    answers,
    between,
    chain,
    excerpt,
    moment_of,
    position_at,
    read_on,
    read_streams,
    stored_commands,
)
from lifefold.interpreters.store.schema import select
from lifefold.interpreters.store.snapshot import Resumption
from lifefold.interpreters.store.writing import insert, say_as_writer, submit, transaction, write_progress

T = TypeVar("T")


class LogStore(ABC):
    """An open log; use it as a context manager. ``create_log``, ``open_log`` and ``peek_log`` make one.

    Its methods raise ``StoreError``.
    """

    def __init__(self, path: Path, epoch: int = 0) -> None:
        """Keep the path of the log, and the epoch of its writer; that of a reader is 0.

        The files of its fleet are beside it.
        """
        self.path = path
        self._epoch = epoch
        self.displaced: Displaced | None = None
        """What happened to the log if it is no longer at its path; ``path`` is its copy then."""
        self.past: tuple[int, int] | None = None
        """The position and the time of a log that is read as it was then (``log_at``); None for a log as it is."""
        self.when_displaced: Callable[[], None] = _nothing
        """Called when the store has noticed that and continues in the copy."""

    @property
    @abstractmethod
    def database(self) -> Connection:
        """The open connection to the database of the log."""

    @abstractmethod
    def _has_writer(self) -> bool:
        """Tell whether a process has this log open for writing now."""

    @abstractmethod
    def close(self) -> None:
        """Close the log, and give the right to write up."""

    @abstractmethod
    async def append(self, batch: Batch) -> None:
        """Write a batch in one transaction; see ``EventStore``."""

    @abstractmethod
    async def look(self) -> None:
        """Find out whether the log is still where it was opened."""

    @abstractmethod
    def _translated(self, work: Callable[[], T]) -> T:
        """Work on the connection. An error of the database becomes a ``StoreError``."""

    @abstractmethod
    async def _in_turn(self, work: Callable[[], T]) -> T:
        """Work on the connection, one task after the other."""

    def discard(self) -> None:  # noqa: B027 - a log in a file is removed with its files
        """Remove the log from its server; the caller removes the files at its path. The store is closed next."""

    def rename(self, address: Address) -> None:  # noqa: B027 - a log in a file is renamed with its files
        """Rename the log on its server. The store is closed next."""

    async def fill(
        self, entries: Sequence[Entry], commands: Sequence[StoredCommand], performed: Mapping[str, int]
    ) -> Anchor:
        """Write the contents of another log into this new and empty one, in one transaction; return the anchor."""
        return await self._in_turn(lambda: self._filled(entries, commands, performed))

    def _filled(
        self, entries: Sequence[Entry], commands: Sequence[StoredCommand], performed: Mapping[str, int]
    ) -> Anchor:
        with transaction(self.database) as connection:
            anchor = insert(connection, Anchor(), entries) if entries else Anchor()
            write_progress(connection, performed)
            rows = [(each.id, each.stream, each.envelope, each.answer) for each in commands]
            connection.executemany("INSERT INTO posts (id, stream, envelope, answer) VALUES (?, ?, ?, ?)", rows)
        return anchor

    def __enter__(self) -> Self:
        """Return the store."""
        return self

    def __exit__(self, *_exc: object) -> None:
        """Close the store."""
        self.close()

    def is_written(self) -> bool:
        """Tell whether a process has this log open for writing now; none writes the past."""
        return self.past is None and self._has_writer()

    def meta(self, name: str) -> str | None:
        """Return the value that the log's maker wrote under a name; None if there is none."""
        return self._translated(lambda: meta_of(self.database, name))

    def meta_as(self, name: str, kind: type[T]) -> T | None:
        """Return the JSON value under a name, decoded as this type. Raises ``Damaged``."""
        text = self.meta(name)
        try:
            return None if text is None else msgspec.json.decode(text, type=kind)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise damaged(self.path, f"its metadata {name!r} cannot be read: {error}") from error

    def made_with(self) -> dict[str, str]:
        """Return all metadata of the log's maker."""
        rows = self._translated(lambda: self.database.execute("SELECT name, value FROM meta ORDER BY name").fetchall())
        return {str(name): str(value) for name, value in rows if name not in OF_THE_STORE}

    def newest_rules(self) -> str | None:
        """Return the version of the rules that decided the newest entry; None for an empty log."""
        query = "ORDER BY position DESC LIMIT 1"
        found = self._translated(lambda: self.database.execute(select(self.database, query)).fetchone())
        return None if found is None else Entry(*found).rules

    def position_at(self, at_ms: int) -> int:
        """Return the position of the newest entry that is not later than a Unix time; 0 if there is none."""
        return self._translated(lambda: position_at(self.database, at_ms))

    def time_of(self, seq: int) -> int | None:
        """Return the time of the entry at a position, in Unix milliseconds; None if there is none."""
        return self._translated(lambda: moment_of(self.database, seq))

    async def read(self, stream: str | None = None, after: int = 0) -> Sequence[Entry]:
        """Return entries; see ``EventStore``."""
        if self.past is not None:
            entries = await self.read_on(0)
            return [each for each in entries if stream in {None, each.stream} and each.version > after]
        return await self._in_turn(lambda: read_streams(self.path, self.database, stream, after))

    async def read_on(self, count: int) -> Sequence[Entry]:
        """Return the entries of all streams, as written, without the first ``count``. Their chain is verified."""
        entries = await self._in_turn(lambda: read_on(self.path, self.database, count))
        return entries if self.past is None else entries[: max(0, self.past[0] - count)]

    async def chain(self) -> Chain:
        """Return all entries with their links, and the anchor, without verifying them."""
        return await self._in_turn(lambda: chain(self.path, self.database))

    async def between(self, after: int, until: int) -> Sequence[Entry]:
        """Return the entries after one position of the log until another, of all streams."""
        return await self._in_turn(lambda: between(self.database, after, until))

    async def excerpt(self, streams: Sequence[str], until: int, texts: Sequence[bytes] = ()) -> list[Placed]:
        """Return the entries of some streams until a position, with ``texts`` those that have one of them."""
        return await self._in_turn(lambda: excerpt(self.database, streams, until, texts))

    async def resumed(self, form: str) -> Resumption:
        """Return the newest snapshot; see ``SnapshotStore``. Without one the entries are read while they are used.

        The past has the newest snapshot up to its position.
        """
        until = None if self.past is None else self.past[0]
        return await self._in_turn(lambda: resumed(self.path, self.database, form, until))

    async def parts_of(self, form: str, stream: str, before: int | None = None) -> Sequence[SnapshotPart]:
        """Return the parts of one stream in the newest snapshot of this form; empty without one.

        With ``before`` it is the newest one that does not have the entry of this version.
        """
        return await self._in_turn(lambda: parts_of(self.database, form, stream, before))

    async def has_mark(self, form: str, seq: int) -> bool:
        """Tell whether the log has an earlier snapshot of this form up to a position."""
        return await self._in_turn(lambda: mark_before(self.database, form, seq) is not None)

    async def drop_snapshot(self) -> None:
        """Remove the snapshot; see ``SnapshotStore``."""

        def dropped() -> None:
            with transaction(self.database) as connection:
                drop(connection)

        await self._in_turn(dropped)

    async def known_keys(self, keys: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
        """Return the known keys; see ``SnapshotStore``."""
        return await self._in_turn(lambda: known_keys(self.database, keys))

    async def performed(self) -> Mapping[str, int]:
        """Return the performed versions; see ``EventStore``."""
        return await self._in_turn(lambda: dict(self.database.execute("SELECT stream, version FROM performed")))

    async def members(self) -> Members:
        """Return what the processes of a cluster said last; the past has none."""
        if self.past is not None:
            return Members(self.past[1])
        return await self._in_turn(lambda: members(self.database))

    async def say(self, member: str, said: str) -> str | None:
        """Replace what a process of a cluster said, and return what its row said before. Needs no epoch."""
        return await self._in_turn(lambda: say(self.database, member, said))

    async def say_instead(self, member: str, said: str, heard_ms: int) -> bool:
        """Write the first word of a process instead of the row heard at ``heard_ms``; return False if that is gone.

        0 stands for no row. Needs no epoch.
        """
        return await self._in_turn(lambda: say_instead(self.database, member, said, heard_ms))

    async def say_as_writer(self, said: str | None) -> None:
        """Replace what the writer of the log says to all processes of a cluster; None removes it.

        Raises ``Fenced`` if another writer has opened the log since, and in a store that reads.
        """
        await self._in_turn(lambda: say_as_writer(self.path, self.database, self._epoch, said))

    async def dismiss(self, member: str) -> None:
        """Remove what a process of a cluster said: it has left."""
        await self._in_turn(lambda: dismiss(self.database, member))

    async def submit(self, stream: str, envelope: bytes) -> int:
        """Store an operator command for the writer; see ``EventStore``."""
        (number,) = await self.submit_all([(stream, envelope)])
        return number

    async def submit_all(self, commands: Sequence[tuple[str, bytes]]) -> list[int]:
        """Store operator commands in one transaction, and return their numbers: all are stored, or none."""
        return await self._in_turn(lambda: submit(self.database, commands))

    async def commands(self, *, unanswered: bool = True) -> Sequence[StoredCommand]:
        """Return operator commands; see ``EventStore``."""
        return await self._in_turn(lambda: stored_commands(self.database, unanswered=unanswered))

    async def answers(self, numbers: Sequence[int]) -> dict[int, str]:
        """Return the answers to these operator commands, by number, without those that have none yet."""
        return await self._in_turn(lambda: answers(self.database, numbers))


def _nothing() -> None:
    """Do nothing."""
