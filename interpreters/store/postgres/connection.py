"""One session of a PostgreSQL server, as a ``Connection`` of the shared functions.

The shared functions use the words of SQLite. This module is the only one that translates them. A transaction that
writes takes a lock on the row of the epoch first. So transactions that write are done one after the other, commands
become visible in the order of their numbers, and a writer sees the newest epoch.
"""

import re
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, nullcontext, suppress
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from lifefold.interpreters.store.address import Address, secrets_of
from lifefold.interpreters.store.connection import Rows
from lifefold.interpreters.store.errors import OutcomeUnknown, Unreachable
from lifefold.interpreters.store.members import IS_THERE, NOW_MS
from lifefold.interpreters.store.postgres.errors import translated
from lifefold.interpreters.store.postgres.watchdog import Watchdog
from lifefold.interpreters.store.protocol import StoreError
from lifefold.interpreters.store.writer_word import IS_THERE as WRITER_WORD_IS_THERE


class Timings(NamedTuple):
    """The time limits of a connection, in seconds.

    ``connect_s`` is for a new connection. ``answer_s`` is for each statement of a writer, and for data that the network
    does not acknowledge. ``idle_s`` is the lease of a writer: the server ends the session of one that has been silent
    so long, and with it the right to write. ``stuck_s`` is the same within a transaction.
    """

    connect_s: int = 5
    answer_s: float = 30.0
    idle_s: float = 30.0
    stuck_s: float = 10.0


PRODUCTION: Final = Timings()
"""The time limits of a store that is opened without others."""

KEEPALIVE_IDLE_S: Final = 10
KEEPALIVE_PAUSE_S: Final = 5
KEEPALIVES: Final = 3
"""A connection over which nothing is received is ended after ``IDLE + KEEPALIVES * PAUSE`` seconds, on both sides."""

EPOCH_LOCK: Final = "SELECT value FROM meta WHERE name = 'epoch' FOR UPDATE"

_DURABLE: Final = (
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
)
"""A commit is acknowledged when it is on the disk, whatever the default of the server or of the role is."""

_TRANSLATIONS: Final = {
    "BEGIN": "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    "BEGIN IMMEDIATE": "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
    "PRAGMA user_version": "SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'schema'",
    NOW_MS: "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
    IS_THERE: "SELECT 1 WHERE to_regclass('members') IS NOT NULL",
    WRITER_WORD_IS_THERE: "SELECT 1 WHERE to_regclass('writer_word') IS NOT NULL",
}

_INSTR: Final = re.compile(r"instr\((\w+), \?\)")


def in_words_of_postgresql(sql: str) -> str:
    """Return a statement of the shared functions for PostgreSQL."""
    found = _TRANSLATIONS.get(sql)
    if found is not None:
        return found
    words = sql.replace("AS BLOB", "AS BYTEA").replace("CROSS JOIN", "JOIN")
    return _INSTR.sub(r"position(? IN \1)", words).replace("?", "%s")


class ServerConnection:
    """A session of a server, whose search path is the schema of one log. Raises ``StoreError``, never psycopg's."""

    def __init__(self, path: Path, address: Address, timings: Timings, *, writes: bool) -> None:
        """Connect. ``writes`` is for the session of a writer: it has time limits, and reaches no standby."""
        self._path: Final = path
        self.address: Final = address
        self._watchdog: Watchdog | None = None
        with self._told():
            parameters = {**_parameters(address, timings, writes=writes), **secrets_of(address)}
            self._session: Final = psycopg.connect(make_conninfo(address.url, **parameters), autocommit=True)
        self.process: Final = self._session.info.backend_pid  # which is gone when the session is closed
        """The process number of the session on the server."""
        try:
            if writes:
                self._watchdog = Watchdog(self._session.fileno(), timings.answer_s)
            settings = _settings(address, timings, writes=writes)
            calls = ", ".join(["set_config(?, ?, false)"] * len(settings))
            self.execute(f"SELECT {calls}", [*chain.from_iterable(settings)])
            self.execute(_DURABLE)
        except BaseException:
            self.close()
            raise

    @property
    def is_lost(self) -> bool:
        """Whether the session has ended."""
        return self._session.closed

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction has begun and not ended; that of a lost session has ended."""
        return not self._session.closed and self._session.info.transaction_status != pq.TransactionStatus.IDLE

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Rows:
        """Execute one statement; its rows are all here when it returns."""
        with self._told(commits=sql == "COMMIT"), self._limited():
            found = self._session.execute(_trusted(in_words_of_postgresql(sql)), parameters or None, binary=True)
            if sql == "BEGIN IMMEDIATE":
                self._lock_epoch()
            return found

    def _lock_epoch(self) -> None:
        """Take the lock of a transaction that writes; without it there is no transaction."""
        try:
            self._session.execute(EPOCH_LOCK)
        except psycopg.Error:
            with suppress(psycopg.Error):
                self._session.execute("ROLLBACK")
            raise

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> None:
        """Execute one statement for each set of parameters, without waiting for each answer."""
        with self._told(), self._limited(), self._session.cursor() as cursor:
            cursor.executemany(_trusted(in_words_of_postgresql(sql)), parameters)

    def close(self) -> None:
        """End the session. The server ends its transaction and releases its locks."""
        if self._watchdog is not None:
            self._watchdog.close()
        with suppress(psycopg.Error):
            self._session.close()

    @contextmanager
    def _told(self, *, commits: bool = False) -> Generator[None]:
        """Raise the error of a store for each of psycopg."""
        try:
            yield
        except psycopg.Error as error:
            told: StoreError = translated(self._path, self.address, error)
            if isinstance(told, Unreachable) and commits:
                told = OutcomeUnknown(
                    f"{self._path}: the connection to {self.address} was lost while a transaction was committed;"
                    " it is written as a whole or not at all, and what was acknowledged before is safe"
                )
            raise told from None  # the message of psycopg is in it, and a chained error may show more

    def _limited(self) -> Any:
        return nullcontext() if self._watchdog is None else self._watchdog.call()


def _trusted(sql: str) -> bytes:
    """Return a statement of this package; its values are parameters always. A text would have to be a literal."""
    return sql.encode()


def _parameters(address: Address, timings: Timings, *, writes: bool) -> dict[str, Any]:
    """Return libpq's parameters that the address does not set."""
    wanted: dict[str, Any] = {
        "connect_timeout": timings.connect_s,
        "application_name": f"lifefold {address.log}",
        "keepalives_idle": KEEPALIVE_IDLE_S,
        "keepalives_interval": KEEPALIVE_PAUSE_S,
        "keepalives_count": KEEPALIVES,
        "tcp_user_timeout": int(1_000 * timings.answer_s),
        "client_encoding": "UTF8",
    }
    if writes:
        wanted["target_session_attrs"] = "read-write"
    given = conninfo_to_dict(address.url)
    return {name: value for name, value in wanted.items() if name not in given}


def _settings(address: Address, timings: Timings, *, writes: bool) -> list[tuple[str, str]]:
    """Return the settings of a session: where its tables are, and when the server gives it up."""
    found = [("search_path", f'"{address.log}"'), ("idle_in_transaction_session_timeout", _ms(timings.stuck_s))]
    if writes:
        found += [
            ("idle_session_timeout", _ms(timings.idle_s)),
            ("tcp_keepalives_idle", str(KEEPALIVE_IDLE_S)),
            ("tcp_keepalives_interval", str(KEEPALIVE_PAUSE_S)),
            ("tcp_keepalives_count", str(KEEPALIVES)),
            ("tcp_user_timeout", _ms(timings.answer_s)),
        ]
    return found


def _ms(seconds: float) -> str:
    return str(int(1_000 * seconds))
