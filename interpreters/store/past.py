"""A log as it was at one of its positions, for reading: it has no later entries, and no process writes it."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from lifefold.interpreters.store.protocol import Entry
from lifefold.interpreters.store.reading import connect, moment_of
from lifefold.interpreters.store.snapshot import Resumption
from lifefold.interpreters.store.sqlite import SqliteStore


class UnknownPosition(Exception):
    """A position that a log does not have; the message has those that it has."""


class PastStore(SqliteStore):
    """A log until the entry at position ``seq``, whose time was ``at_ms``. Its metadata is that of today."""

    def __init__(self, path: Path, connection: sqlite3.Connection, seq: int, at_ms: int) -> None:
        """Wrap a connection that ``at`` has prepared."""
        super().__init__(path, connection, None, 0, patient=False)
        self.past = (seq, at_ms)

    @classmethod
    def at(cls, path: Path, seq: int) -> Self:
        """Open a log as it was at a position. Raises ``UnknownPosition``, ``Busy``, ``NotAStore``."""
        connection = connect(path)
        moment = moment_of(connection, seq)
        if moment is None:
            connection.close()
            message = f"{path} has no position {seq}"
            raise UnknownPosition(message)
        return cls(path, connection, seq, moment)

    def is_written(self) -> bool:
        """Tell that no process writes: the past does not change."""
        return False

    async def read(self, stream: str | None = None, after: int = 0) -> Sequence[Entry]:
        """Return entries until the position; see ``EventStore``."""
        entries = await self.read_on(0)
        return [each for each in entries if stream in {None, each.stream} and each.version > after]

    async def resumed(self, form: str) -> Resumption:  # noqa: ARG002 - as it is declared
        """Return all entries until the position: a snapshot is of a later one."""
        entries = await self.read_on(0)
        return Resumption((), entries, len(entries))

    async def read_on(self, count: int) -> Sequence[Entry]:
        """Return the entries until the position, without the first ``count``. Their chain is verified."""
        seq, _ = self.past or (0, 0)
        return (await super().read_on(count))[: max(0, seq - count)]
