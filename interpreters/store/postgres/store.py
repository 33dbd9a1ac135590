"""The event store on a PostgreSQL server: one schema for each log, one writer at a time, readers on any machine.

The writer has an advisory lock and the highest epoch, as in SQLite (``lock``). Each of its transactions locks and reads
the row of the epoch. So a writer that has lost its session, and another has taken over from it, can never append.

A patient store waits while the server cannot be reached, and logs that. Then it takes its lock again and compares the
anchor of the log with the one that it knows. If the connection was lost during a commit, the anchor tells whether the
batch was written, so no batch is written twice. A log that has other entries than the acknowledged ones is damaged,
such as after a failover to a standby that did not have all of them.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, Self, TypeVar

import anyio
from anyio import to_thread

from lifefold.interpreters.store.address import Address
from lifefold.interpreters.store.anchor_file import drop_anchor, keep_anchor
from lifefold.interpreters.store.chain import Anchor, linked
from lifefold.interpreters.store.connection import Connection
from lifefold.interpreters.store.errors import Locked, OutcomeUnknown, Unreachable, damaged
from lifefold.interpreters.store.log_store import LogStore
from lifefold.interpreters.store.meta import anchor_of, must_be_whole
from lifefold.interpreters.store.postgres.connection import PRODUCTION, ServerConnection, Timings
from lifefold.interpreters.store.postgres.lock import (
    end_holder,
    forget_writer,
    holder_of,
    is_writer_noted,
    note_writer,
    release_lock,
    take_lock,
)
from lifefold.interpreters.store.postgres.schema import (
    count_commands_on,
    drop_log,
    migrate,
    must_be_there,
    rename_log,
    write_new,
)
from lifefold.interpreters.store.protocol import Batch, Busy, Entry, Fenced, StoredCommand, StoreError
from lifefold.interpreters.store.writing import must_be_newest, raise_epoch, transaction, write

_logger: Final = logging.getLogger(__name__)

T = TypeVar("T")

PAUSE_S: Final = 0.2
"""The pause of a patient store before the next try."""

LOCK_TRIES: Final = 20
LOCK_PAUSE_S: Final = 0.05
"""The number of tries of a writer to take the lock, and the pause between them."""

GRACE_TRIES: Final = 40
"""The number of pauses that a new writer waits for one that has not closed the log: its session may just be lost."""

ANCHORED_ENTRIES: Final = 10_000
"""The number of entries after which the writer writes the anchor beside the log again."""


class _Doubt(NamedTuple):
    """A batch that was committed with an unknown outcome, and the anchor of the log that has it."""

    batch: Batch
    anchor: Anchor


class PostgresStore(LogStore):
    """An open log on a server. Make one with ``create``, ``open`` or ``peek``.

    ``path`` names the log in messages, and is the place of the files beside it. Without one it is ``NAME.db``, and
    nothing is written there.
    """

    def __init__(self, address: Address, path: Path | None, timings: Timings, *, writes: bool, patient: bool) -> None:
        """Connect; the class methods do the rest."""
        super().__init__(Path(f"{address.log}.db") if path is None else path)
        self.address: Final = address
        self._timings: Final = timings
        self._writes: Final = writes
        self._patient: Final = patient
        self._turn: Final = anyio.CapacityLimiter(1)
        self._connection = self._connected()
        self._schema = 0
        self._known = Anchor()
        self._anchored_entries = 0
        self._has_lock = False
        self._earlier_process = 0
        """The server's process number of the session before this one."""
        self._doubt: _Doubt | None = None

    @classmethod
    def create(
        cls, address: Address, meta: Mapping[str, str], path: Path | None = None, timings: Timings = PRODUCTION
    ) -> Self:
        """Make a new log and open it for writing. Raises ``FileExistsError``, ``StoreError``."""
        store = cls(address, path, timings, writes=True, patient=True)
        return store._opened(partial(store._make, meta), take_over=False)

    @classmethod
    def open(
        cls,
        address: Address,
        path: Path | None = None,
        timings: Timings = PRODUCTION,
        *,
        patient: bool = True,
        take_over: bool = False,
    ) -> Self:
        """Open an existing log for writing, under a new epoch. Raises ``Locked``, ``NotThere``, ``StoreError``.

        ``take_over`` ends the session of the present writer, if there is one; its next append raises ``Fenced``.
        """
        store = cls(address, path, timings, writes=True, patient=patient)
        return store._opened(_nothing, take_over=take_over)

    @classmethod
    def peek(
        cls, address: Address, path: Path | None = None, timings: Timings = PRODUCTION, *, patient: bool = False
    ) -> Self:
        """Open an existing log to read it and to leave operator commands, with or without a running writer.

        Raises ``NotThere``, ``StoreError``.
        """
        store = cls(address, path, timings, writes=False, patient=patient)
        try:
            store._must_be_whole()
        except BaseException:
            store.close()
            raise
        return store

    @property
    def database(self) -> Connection:
        """The open connection; see ``LogStore``."""
        return self._connection

    def discard(self) -> None:
        """Remove the log from its server; see ``LogStore``. Raises ``Fenced``, ``Busy``."""
        self._translated(partial(self._held, lambda: drop_log(self._connection, self.address)))

    def rename(self, address: Address) -> None:
        """Rename the log on its server; see ``LogStore``. Raises ``Fenced``, ``Busy``."""
        self._translated(partial(self._held, lambda: rename_log(self._connection, self.address, address)))

    def _filled(
        self, entries: Sequence[Entry], commands: Sequence[StoredCommand], performed: Mapping[str, int]
    ) -> Anchor:
        self._known = super()._filled(entries, commands, performed)
        count_commands_on(self._connection)
        return self._known

    def close(self) -> None:
        """End the session, and give the lock up. A writer leaves the anchor beside the log."""
        if self._has_lock:
            keep_anchor(self.path, self._connection, self._known)
            with suppress(StoreError):
                forget_writer(self._connection, self._epoch)
                release_lock(self._connection)
        self._connection.close()
        self._has_lock = False

    async def append(self, batch: Batch) -> None:
        """Write a batch in one transaction; see ``EventStore``."""
        await self._in_turn(partial(self._append, batch))

    async def look(self) -> None:
        """Do nothing: a log on a server is not moved."""

    def _has_writer(self) -> bool:
        return self._has_lock or self._translated(lambda: holder_of(self._connection, self._schema)) is not None

    def _translated(self, work: Callable[[], T]) -> T:
        """Work on the connection, and on a new one if it is lost before anything was decided."""
        try:
            return self._worked(work)
        except OutcomeUnknown:
            raise
        except Unreachable:
            if not self._connection.is_lost:
                raise
            return self._worked(work)

    def _worked(self, work: Callable[[], T]) -> T:
        if self._connection.is_lost:
            self._connect_again()
        return work()

    async def _in_turn(self, work: Callable[[], T]) -> T:
        """Work on the connection in a thread, one task after the other. A patient store waits for the server."""
        has_waited = False
        while True:
            try:
                done = await to_thread.run_sync(self._translated, work, limiter=self._turn)
            except (Busy, Unreachable) as error:
                if not self._patient or (isinstance(error, OutcomeUnknown) and self._doubt is None):
                    raise
                if not has_waited:
                    _logger.warning("%s; %s", error, error.waits)
                has_waited = True
            else:
                if has_waited:
                    _logger.warning("%s: the log is reached again; the run goes on", self.path)
                return done
            await anyio.sleep(PAUSE_S)

    def _connected(self) -> ServerConnection:
        return ServerConnection(self.path, self.address, self._timings, writes=self._writes)

    def _connect_again(self) -> None:
        """Begin a new session. A writer takes its lock again, unless another writer has taken over."""
        self._connection.close()
        self._earlier_process, self._has_lock = self._connection.process, False
        self._connection = self._connected()
        if self._epoch:
            with suppress(Busy, Fenced):  # a read needs no lock, and an append raises it again
                self._hold()

    def _opened(self, make: Callable[[], None], *, take_over: bool) -> Self:
        """Become the writer of the log, after ``make``; close the store after an error."""
        try:
            make()
            self._must_be_whole()
            self._take_lock(take_over=take_over)
            migrate(self._connection)
            with transaction(self._connection) as connection:
                self._epoch = raise_epoch(self.path, connection)
                if self._patient:
                    note_writer(connection, self._epoch)
            self._known = anchor_of(self.path, self._connection)
        except BaseException:
            self.close()
            raise
        self._anchored_entries = self._known.entries
        return self

    def _make(self, meta: Mapping[str, str]) -> None:
        write_new(self.path, self._connection, self.address, meta)
        drop_anchor(self.path)

    def _must_be_whole(self) -> None:
        self._schema = must_be_there(self.path, self._connection, self.address)
        must_be_whole(self.path, self._connection)

    def _take_lock(self, *, take_over: bool) -> None:
        """Take the lock of a log that is opened. Raises ``Locked``."""
        for _ in range(LOCK_TRIES):
            if take_lock(self._connection, self._schema):
                self._has_lock = take_over or not is_writer_noted(self._connection) or self._is_given_up()
                break
            holder = holder_of(self._connection, self._schema) if take_over else None
            if holder is not None:
                end_holder(self._connection, self._schema, holder)
            time.sleep(LOCK_PAUSE_S)
        if not self._has_lock:
            raise self._locked()

    def _is_given_up(self) -> bool:
        """Wait for a writer whose session may just be lost, as by a restart of the server; take the lock without it."""
        release_lock(self._connection)
        for _ in range(GRACE_TRIES):
            time.sleep(LOCK_PAUSE_S)
            if holder_of(self._connection, self._schema) is not None:
                return False
        return take_lock(self._connection, self._schema)

    def _locked(self) -> Locked:
        return Locked(
            f"{self.path}: another lifefold is running on the log {self.address}; leave it with Ctrl-C there first, or"
            f" use another --db. If its machine is lost, the server gives the log free after {self._timings.idle_s:g} s"
        )

    def _hold(self) -> None:
        """Have the lock and the newest epoch. Raises ``Fenced``, ``Busy``, ``Damaged``.

        The server may not know yet that the earlier session of this writer is lost. It is ended then: only after that
        it is certain what it has committed.
        """
        if self._has_lock:
            return
        if not take_lock(self._connection, self._schema):
            self._must_be_newest()
            end_holder(self._connection, self._schema, self._earlier_process)
            raise Busy(f"{self.path}: the server has not ended the earlier session of this writer yet")
        try:
            self._must_be_newest()
            self._must_know(anchor_of(self.path, self._connection))
        except BaseException:
            release_lock(self._connection)
            raise
        self._has_lock = True

    def _held(self, work: Callable[[], None]) -> None:
        """Work under the lock. The server may have ended the session of a silent writer, and given it to another."""
        self._hold()
        work()

    def _must_be_newest(self) -> None:
        must_be_newest(self.path, self._connection, self._epoch)

    def _must_know(self, found: Anchor) -> None:
        """Raise ``Damaged`` unless the log ends with what this writer knows, or with its doubtful batch."""
        if self._doubt is not None and found == self._doubt.anchor:
            self._known = found
        elif found != self._known:
            raise damaged(
                self.path,
                f"the server has {found.entries} entries, and {self._known.entries} were acknowledged to this writer",
            )

    def _append(self, batch: Batch) -> None:
        self._hold()
        doubt, self._doubt = self._doubt, None
        if doubt is not None and batch.entries and doubt.batch == batch and doubt.anchor == self._known:
            return  # it was written before the connection was lost
        try:
            with transaction(self._connection) as connection:
                known = write(self.path, connection, batch, self._epoch, self._known).anchor
        except OutcomeUnknown:
            self._doubt = _Doubt(batch, self._after(batch))
            raise
        self._known = known
        if known.entries - self._anchored_entries >= ANCHORED_ENTRIES:
            self._anchored_entries = known.entries
            keep_anchor(self.path, self._connection, known)

    def _after(self, batch: Batch) -> Anchor:
        """Return the anchor of the log after a batch."""
        links = [link for _, link in linked(self._known, batch.entries)]
        return Anchor(self._known.entries + len(links), links[-1]) if links else self._known


def _nothing() -> None:
    """Do nothing."""
