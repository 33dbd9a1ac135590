"""One log, folded once for all browsers: its present, its past at any position, its journal, its stories.

The present comes first: a long log with a snapshot shows it at once (``is_read``). Its history follows, folded from the
first entry in pieces of ``PIECE_ENTRIES``. Pages that tell of the past wait for it (``is_told``).

``take`` folds new entries, in one thread. Pages read ``now`` and ``at`` in other threads: a moment is never changed.
The past is folded from the nearest snapshot before it. Aggregates are persistent, so a snapshot shares almost all its
memory with its neighbours. There are at most ``MOST_SNAPSHOTS`` of them, and their spacing doubles when there are more.
"""

import traceback
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Final, Self, TypeAlias

import anyio
import msgspec

from lifefold.core.fleet import system
from lifefold.core.kernel import Aggregate
from lifefold.interpreters.cli.account import Account
from lifefold.interpreters.desk.history import Claims, Sessions
from lifefold.interpreters.engine import Ledger, LogMismatchError
from lifefold.interpreters.engine.snapshots import load
from lifefold.interpreters.store import Entry, StoreError, peek_log
from lifefold.interpreters.web.journal import Journal
from lifefold.interpreters.web.trails import Trails

MOST_SNAPSHOTS: Final = 256
"""The most snapshots of one log."""

MOST_PAST: Final = 16
"""The most past moments that are kept beside the snapshots, because browsers look at them."""


PIECE_ENTRIES: Final = 2_000
"""The entries of the history that one call of ``take`` folds. A snapshot with fewer of them is of no use."""


class Moment(msgspec.Struct, frozen=True):
    """A fleet after the entry at position ``seq``, whose time is ``at_ms``. ``is_now``: no later entry is known."""

    seq: int
    at_ms: int
    aggregates: Mapping[str, Aggregate]
    account: Account
    is_now: bool = False


Refolded: TypeAlias = Callable[[Moment, Sequence[Entry]], Moment]
"""Returns the moment after further entries."""


class StillReading(Exception):
    """A log whose entries are not all folded yet."""


class UnknownPosition(Exception):
    """A position that the log does not have."""


class FollowedLog:
    """A log that is open for reading, and everything that pages need of it."""

    def __init__(self, key: str, path: Path, spacing: int = 64) -> None:
        """Open a log; ``key`` names it in addresses, and ``spacing`` is the distance of the first snapshots.

        Raises ``Busy`` and ``NotAStore``.
        """
        self.key: Final = key
        self.path: Final = path
        self.store: Final = peek_log(path)
        self._file: Final = _file_at(path)
        self.fleet: Final = self.store.meta("fleet") or key
        self.journal: Final = Journal()
        self.trails: Final = Trails()
        self.claims: Final = Claims()
        self.sessions: Final = Sessions()
        self.now = Moment(0, 0, {}, Account(), is_now=True)
        self.is_read = False
        """Whether the present is known: by a snapshot, or because all entries are folded."""
        self.is_told = False
        """Whether all entries that were there at the beginning are folded, so that the past is known."""
        self.runs = False
        """Whether a runner was at work when that was last observed."""
        self.trouble = ""
        """Why the log cannot be read on; empty while it can."""
        self._ledger: Final = Ledger(system)
        self._account: Final = Account()
        self._head: tuple[Ledger, Account] | None = None
        """The present by a snapshot, while the history is folded."""
        self._untold: Iterator[Entry] | None = None
        """The entries of the history that are still to be folded."""
        self._seq = 0
        """The position up to which the history is folded."""
        self._past: Final = _Past(path, spacing)
        self._turn: Final = Lock()

    def __enter__(self) -> Self:
        """Return the log."""
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Close the files."""
        self.close()

    def close(self) -> None:
        """Close the files."""
        self.store.close()
        self._past.close()

    def take(self) -> bool:
        """Fold the entries that are new, and look for the runner. Return whether anything has changed.

        Several threads may call it: the one that follows the log, and those that have given a command.
        """
        with self._turn:
            return self._taken()

    def _taken(self) -> bool:
        before = (self.now.seq, self.runs, self.trouble, self.is_read, self.is_told)
        try:
            self._must_be_there()
            self._read()
            self.runs = self.store.is_written()
            self.trouble = ""
        except (LogMismatchError, StoreError, OSError) as error:
            self.trouble = str(error)
        except Exception as error:  # noqa: BLE001 - one broken log must not end the desk of the others
            said = f"a mistake of lifefold has broken the reading of {self.path} ({type(error).__name__})"
            if self.trouble != said:
                traceback.print_exc()
            self.trouble = said
        self.is_told = self.is_told or bool(self.trouble and not self.is_read)
        self.is_read = self.is_read or self.is_told
        return before != (self.now.seq, self.runs, self.trouble, self.is_read, self.is_told)

    def _read(self) -> None:
        """Read on: the present by a snapshot, then the history piece by piece, then what is new."""
        if self._head is not None:
            self._piece(*self._head)
            return
        if not (self.is_told or self._is_begun()):
            self.is_told = True
        if self._head is None:
            self._fold(anyio.run(self.store.read_on, self._seq))

    def _is_begun(self) -> bool:
        """Show the present by the newest snapshot, if it has enough entries to be worth it. Return whether it has."""
        ledger = Ledger(system)
        loaded = anyio.run(load, ledger, self.store)
        account = Account.restored(loaded)
        if account is None or ledger.entries <= PIECE_ENTRIES:
            return False
        for decision in ledger.fold(loaded.entries):
            account.observe(decision.entry.stream, decision.reaction)
        self._head = ledger, account
        self._shows(ledger, account)
        self.is_read = True
        return True

    def _piece(self, ledger: Ledger, account: Account) -> None:
        """Fold a piece of the history, and keep the present up to date."""
        if self._untold is None:
            self._untold = iter(anyio.run(self.store.read_on, 0))
        piece = list(islice(self._untold, PIECE_ENTRIES))
        self._fold(piece)
        if piece:
            self._go_on(ledger, account)
            return
        self._head, self.is_told = None, True  # from now on there is one fold
        self._fold(anyio.run(self.store.read_on, self._seq))

    def _go_on(self, ledger: Ledger, account: Account) -> None:
        """Fold what is new into the present by the snapshot."""
        further = anyio.run(self.store.read_on, ledger.entries)
        for decision in ledger.fold(further):
            account.observe(decision.entry.stream, decision.reaction)
        if further:
            self._shows(ledger, account)

    def _shows(self, ledger: Ledger, account: Account) -> None:
        self.now = Moment(ledger.entries, ledger.last_ms, dict(ledger.aggregates), account.copied(), is_now=True)

    @property
    def is_there(self) -> bool:
        """Whether the file at the path is still the one that was opened."""
        return _file_at(self.path) == self._file

    def _must_be_there(self) -> None:
        if not self.is_there:
            message = f"the log {self.path} was removed or replaced; this is its last state that was read"
            raise FileNotFoundError(message)

    def _fold(self, entries: Iterable[Entry]) -> None:
        """Fold entries of the history, which are the present as well if no snapshot shows a newer one."""
        seq, at_ms = self._seq, 0
        try:
            for decision in self._ledger.fold(entries):
                seq, at_ms = seq + 1, decision.entry.at_ms
                name, envelope, reaction = decision.entry.stream, decision.envelope, decision.reaction
                self._account.observe(name, reaction)
                self.journal.add(seq, name, envelope, reaction)
                self.trails.add(seq, name, envelope, reaction)
                self.claims.observe(name, reaction, seq)
                self.sessions.observe(name, reaction, seq)
                if self._past.wants(seq):
                    self._past.keep(Moment(seq, at_ms, dict(self._ledger.aggregates), self._account.copied()))
        finally:
            if seq > self._seq and self._head is None:
                self.now = Moment(seq, at_ms, dict(self._ledger.aggregates), self._account.copied(), is_now=True)
            self._seq = seq

    def must_be_told(self) -> None:
        """Raise ``StillReading`` while the past is not known."""
        if not self.is_told:
            reading = f"the past of {self.path} is being read: {self._seq:,} of {self.now.seq:,} entries"
            message = self.trouble or reading
            raise StillReading(message)

    def at(self, seq: int | None) -> Moment:
        """Return the fleet after the entry at a position; None is now.

        Raises ``UnknownPosition``, and ``StillReading`` while the past is not known.
        """
        now = self.now
        if seq is None or seq == now.seq:
            return now
        self.must_be_told()
        if not 0 < seq < now.seq:
            message = f"there is no position {seq}; the log {self.path} has the positions 1 to {now.seq}"
            raise UnknownPosition(message)
        return self._past.at(seq, self._refolded)

    def _refolded(self, begin: Moment, entries: Sequence[Entry]) -> Moment:
        """Fold a part of the log again."""
        ledger, account, at_ms = self._ledger.beginning(begin.aggregates), begin.account.copied(), begin.at_ms
        for decision in ledger.fold(entries):
            at_ms = decision.entry.at_ms
            account.observe(decision.entry.stream, decision.reaction)
        return Moment(begin.seq + len(entries), at_ms, ledger.aggregates, account)


def _file_at(path: Path) -> tuple[int, int] | None:
    """Return what identifies the file at a path; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


class _Past:
    """The snapshots of a log, and the past moments that were asked for last."""

    def __init__(self, path: Path, spacing: int) -> None:
        self._snapshots: list[Moment] = [Moment(0, 0, {}, Account())]
        self._spacing = spacing
        self._asked: Final[dict[int, Moment]] = {}
        self._lock: Final = Lock()
        self._store: Final = peek_log(path)

    def close(self) -> None:
        self._store.close()

    def wants(self, seq: int) -> bool:
        return seq % self._spacing == 0

    def keep(self, moment: Moment) -> None:
        kept = [*self._snapshots, moment]
        if len(kept) > MOST_SNAPSHOTS:
            self._spacing *= 2
            kept = [each for each in kept if each.seq % self._spacing == 0]
        self._snapshots = kept

    def at(self, seq: int, refolded: Refolded) -> Moment:
        with self._lock:
            if seq not in self._asked:
                snapshots = self._snapshots
                begin = snapshots[bisect_right(snapshots, seq, key=lambda each: each.seq) - 1]
                self._asked[seq] = refolded(begin, anyio.run(self._store.between, begin.seq, seq))
                while len(self._asked) > MOST_PAST:
                    del self._asked[next(iter(self._asked))]
            return self._asked[seq]
