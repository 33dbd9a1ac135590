"""One log, folded once for all browsers: its present, its past at any position, its journal, its stories.

A long log is shown in three steps. First comes the present, by the newest snapshot (``is_read``). Then the last
``TAIL_ENTRIES`` are told, from a mark of the log on. Last is the history from the first entry, in pieces of
``PIECE_ENTRIES``; pages say how far their past reaches until it is known (``is_told``).

``take`` folds new entries, in one thread. Pages read ``now`` and ``at`` in other threads: a moment is never changed.
The past is folded from the nearest snapshot before it. Aggregates are persistent, so a snapshot shares almost all its
memory with its neighbours. There are at most ``MOST_SNAPSHOTS`` of them, and their spacing doubles when there are more.
"""

import traceback
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Final, Self

import anyio

from lifefold.core.fleet import system
from lifefold.interpreters.cli.account import Account
from lifefold.interpreters.desk.history import Claims, Sessions
from lifefold.interpreters.engine import Ledger, LogMismatchError
from lifefold.interpreters.engine.snapshots import form_of, load
from lifefold.interpreters.fleet_runner.hosts import Host, hosts_of
from lifefold.interpreters.store import Entry, StoreError, peek_log
from lifefold.interpreters.web.journal import Journal
from lifefold.interpreters.web.telling import Moment, Telling, folded
from lifefold.interpreters.web.trails import Trails

MOST_SNAPSHOTS: Final = 256
"""The most snapshots of one log."""

MOST_PAST: Final = 16
"""The most past moments that are kept beside the snapshots, because browsers look at them."""


PIECE_ENTRIES: Final = 2_000
"""The entries of the history that one call of ``take`` folds. A snapshot with fewer of them is of no use."""

TAIL_ENTRIES: Final = 4_000
"""The newest entries of a long log that are told before its history."""


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
        self.now = Moment(0, 0, {}, Account(), is_now=True)
        self.is_read = False
        """Whether the present is known: by a snapshot, or because all entries are folded."""
        self.is_told = False
        """Whether all entries that were there at the beginning are folded, so that the past is known."""
        self.runs = False
        """Whether a runner was at work when that was last observed."""
        self.trouble = ""
        """Why the log cannot be read on; empty while it can."""
        self.hosts: tuple[Host, ...] = ()
        """The hosts of a fleet on several machines, as each has said it last."""
        self._shown = Telling()
        """What pages show: the whole log, or its newest entries while the history is folded."""
        self._has_tail = False
        """Whether the newest entries are told while the history is folded."""
        self._has_tried_tail = False
        """Whether it is known whether they can be told first."""
        self._whole: Telling | None = None
        """The history while it is folded, if the present is known by a snapshot."""
        self._untold: Iterator[Entry] | None = None
        """The entries of the history that are still to be folded."""
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
        before = self._known()
        try:
            self._must_be_there()
            self._read()
            self.runs = self.store.is_written()
            self.hosts = anyio.run(hosts_of, self.store)
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
        return before != self._known()

    def _known(self) -> tuple[object, ...]:
        """Return what is known of the log, to notice changes."""
        return self.now.seq, self.runs, self.trouble, self.is_read, self.is_told, self.told_from, self.of_hosts

    @property
    def of_hosts(self) -> tuple[tuple[object, ...], ...]:
        """What browsers are told of the hosts at once: their states and their agents, without ages."""
        every = (each.status for each in self.hosts)
        return tuple((each.name, each.state, each.since_ms, each.used, each.agents, each.refuses) for each in every)

    @property
    def journal(self) -> Journal:
        """The transitions and the sentences after the position ``told_from``."""
        return self._shown.journal

    @property
    def trails(self) -> Trails:
        """The stories of the tasks after the position ``told_from``."""
        return self._shown.trails

    @property
    def claims(self) -> Claims:
        """The claims of the tasks after the position ``told_from``."""
        return self._shown.claims

    @property
    def sessions(self) -> Sessions:
        """The sessions of the agents after the position ``told_from``."""
        return self._shown.sessions

    @property
    def told_from(self) -> int:
        """The position before the first entry that is told: 0 as soon as the history is known."""
        return self._shown.first

    def _read(self) -> None:
        """Read on: the present by a snapshot, the newest entries, the history piece by piece, then what is new."""
        if self._whole is not None:
            self._piece(self._whole)
            return
        if not (self.is_told or self._is_begun()):
            self.is_told = True
        if self._whole is None:
            self._fold(self._shown, anyio.run(self.store.read_on, self._shown.seq))

    def _is_begun(self) -> bool:
        """Show the present by the newest snapshot, if it has enough entries to be worth it. Return whether it has."""
        ledger = Ledger(system)
        loaded = anyio.run(load, ledger, self.store)
        account = Account.restored(loaded)
        if account is None or ledger.entries <= PIECE_ENTRIES:
            return False
        for decision in ledger.fold(loaded.entries):
            account.observe(decision.entry.stream, decision.reaction)
        self._shown, self._whole = Telling(ledger, account), Telling()
        self.now = self._shown.moment(is_now=True)
        self.is_read = True
        return True

    def _piece(self, whole: Telling) -> None:
        """Tell the newest entries, or fold a piece of the history and keep the present up to date."""
        if not self._has_tried_tail:
            self._has_tried_tail = True
            self._tell_tail()
            return
        if self._untold is None:
            self._untold = iter(anyio.run(self.store.read_on, 0))
        piece = list(islice(self._untold, PIECE_ENTRIES))
        whole.tell(piece, self._keep)
        if piece:
            self._go_on()
            return
        whole.tell(anyio.run(self.store.read_on, whole.seq), self._keep)
        self._shown, self._whole, self._untold, self.is_told = whole, None, None, True  # from now on there is one fold
        self.now = whole.moment(is_now=True)

    def _tell_tail(self) -> None:
        """Tell the newest entries from a position on, if a mark of the log is before it."""
        begin = self.now.seq - TAIL_ENTRIES
        if begin > 0 and self._past.has_mark(form_of(self._shown.ledger), begin):
            tail = Telling(*folded(self.path, begin))
            tail.tell(anyio.run(self.store.read_on, begin))
            self._shown, self._has_tail = tail, True
            self.now = tail.moment(is_now=True)

    def _go_on(self) -> None:
        """Fold what is new into the present by the snapshot."""
        further = anyio.run(self.store.read_on, self._shown.seq)
        if further:
            self._shown.tell(further)
            self.now = self._shown.moment(is_now=True)

    @property
    def is_there(self) -> bool:
        """Whether the file at the path is still the one that was opened."""
        return _file_at(self.path) == self._file

    def _must_be_there(self) -> None:
        if not self.is_there:
            message = f"the log {self.path} was removed or replaced; this is its last state that was read"
            raise FileNotFoundError(message)

    def _fold(self, shown: Telling, entries: Iterable[Entry]) -> None:
        """Fold new entries of a log whose history is known."""
        before = shown.seq
        try:
            shown.tell(entries, self._keep)
        finally:
            if shown.seq > before:
                self.now = shown.moment(is_now=True)

    def _keep(self, told: Telling) -> None:
        """Keep a snapshot of the past where one is due."""
        if self._past.wants(told.seq):
            self._past.keep(told.moment())

    def must_be_told(self, seq: int = 0) -> None:
        """Raise ``StillReading`` while it is not known what has happened shortly before a position."""
        if not (self.is_told or (self._has_tail and seq > self.told_from)):
            done = 0 if self._whole is None else self._whole.seq
            reading = f"the past of {self.path} is being read: {done:,} of {self.now.seq:,} entries"
            message = self.trouble or reading
            raise StillReading(message)

    def at(self, seq: int | None) -> Moment:
        """Return the fleet after the entry at a position; None is now.

        Raises ``UnknownPosition``, and ``StillReading`` while the past is not known and no mark is before it.
        """
        now = self.now
        if seq is None or seq == now.seq:
            return now
        if not (0 < seq < now.seq):
            self.must_be_told()
            message = f"there is no position {seq}; the log {self.path} has the positions 1 to {now.seq}"
            raise UnknownPosition(message)
        if not self.is_told and not self._past.has_mark(form_of(self._shown.ledger), seq):
            self.must_be_told()
        return self._past.at(seq, self._by_snapshot if self.is_told else self._by_mark)

    def _by_mark(self, seq: int) -> Moment:
        """Fold the log from the nearest mark that its writer has kept."""
        return Telling(*folded(self.path, seq)).moment()

    def _by_snapshot(self, seq: int) -> Moment:
        """Fold the log from the nearest snapshot of this process."""
        begin, entries = self._past.near(seq)
        ledger, account, at_ms = self._shown.ledger.beginning(begin.aggregates), begin.account.copied(), begin.at_ms
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

    def has_mark(self, form: str, seq: int) -> bool:
        """Tell whether the log has an earlier snapshot of a form up to a position."""
        return anyio.run(self._store.has_mark, form, seq)

    def near(self, seq: int) -> tuple[Moment, Sequence[Entry]]:
        """Return the nearest snapshot before a position, and the entries from there on."""
        snapshots = self._snapshots
        begin = snapshots[bisect_right(snapshots, seq, key=lambda each: each.seq) - 1]
        return begin, anyio.run(self._store.between, begin.seq, seq)

    def at(self, seq: int, make: Callable[[int], Moment]) -> Moment:
        """Return the moment at a position, which is made if it was not asked for lately."""
        with self._lock:
            if seq not in self._asked:
                self._asked[seq] = make(seq)
                while len(self._asked) > MOST_PAST:
                    del self._asked[next(iter(self._asked))]
            return self._asked[seq]
