"""The connection to the database of a log, as far as the shared functions of the stores use it.

The shared functions write SQL in the words of SQLite, with ``?`` for parameters. ``sqlite3.Connection`` is such a
connection. ``lifefold.interpreters.store.postgres`` has one that translates for PostgreSQL.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol


class Rows(Protocol):
    """The rows of one query."""

    def fetchone(self) -> Any:
        """Return the next row; None if there is none."""
        ...

    def fetchall(self) -> list[Any]:
        """Return all further rows."""
        ...

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """A connection in autocommit mode: a transaction begins with ``BEGIN``.

    ``BEGIN`` begins a transaction that reads one moment of the log. ``BEGIN IMMEDIATE`` begins one that writes. It
    waits for other transactions that write.
    """

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction has begun and not ended."""
        ...

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Rows:
        """Execute one statement."""
        ...

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> Any:
        """Execute one statement for each set of parameters."""
        ...
