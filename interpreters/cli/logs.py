"""Find a log, and read a fleet out of it."""

import os
import re
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Final

import anyio

from lifefold.core.fleet import system
from lifefold.interpreters.cli.account import Account
from lifefold.interpreters.cli.errors import Ambiguous, BadInput
from lifefold.interpreters.cli.positions import position
from lifefold.interpreters.cli.wording import as_typed, moment
from lifefold.interpreters.engine import Decision, Ledger, LogMismatchError
from lifefold.interpreters.engine.snapshots import Loaded, load
from lifefold.interpreters.processes.command import plain
from lifefold.interpreters.store import Busy, Entry, LogStore, NotAStore, StoreError, peek_log
from lifefold.interpreters.store.address import is_address, read_address
from lifefold.interpreters.store.identity import must_be_a_path
from lifefold.interpreters.store.past import log_at

FOLDER: Final = ".lifefold"

USUAL_FILE: Final = "fleet.toml"
"""The name of the fleet file that ``lifefold init`` writes."""

LOOK_S: Final = 0.5
"""The interval at which a followed log is read again, in seconds."""


def default_log(fleet_file: Path, name: str) -> Path:
    """Return the default log of a fleet: the one of its latest run."""
    return _latest(fleet_file.absolute().parent / FOLDER / f"{name}.db")


def next_log(log: Path) -> Path:
    """Return the log of the run after another: ``NAME.run-2.db`` after ``NAME.db``, and so on."""
    name, number = _run_of(log)
    return log.with_name(f"{name}.run-{number + 1}.db")


def earlier_logs(log: Path) -> Iterator[Path]:
    """Yield the logs of the runs before this one that exist, the latest first."""
    name, number = _run_of(log)
    every = (log.with_name(f"{name}{f'.run-{each}' if each > 1 else ''}.db") for each in range(number - 1, 0, -1))
    yield from (each for each in every if each.exists())


def _latest(log: Path) -> Path:
    """Return the log of the latest run after this one, or this one."""
    while (then := next_log(log)).exists():
        log = then
    return log


def _run_of(log: Path) -> tuple[str, int]:
    """Return the common name of the logs of all runs, and the number of this run."""
    numbered = re.fullmatch(r"(.+)\.run-(\d+)", log.stem)
    return (numbered[1], int(numbered[2])) if numbered else (log.stem, 1)


def find_log(db: str | None) -> Path:
    """Return the log named, or the latest log of the only fleet in ``.lifefold`` here.

    Without a log here it is the one on a server that the fleet file here names. Raises ``BadInput``, and
    ``PermissionError`` if this user may not read that folder.
    """
    if db is not None:
        return named(db)
    found = latest_logs()
    if len(found) == 1:
        return found[0]
    if not found and (there := _on_server()) is not None:
        return there
    if not found:
        begins = f"lifefold run {USUAL_FILE} begins one; otherwise " if Path(USUAL_FILE).is_file() else ""
        raise BadInput(
            f"there is no log in {Path(FOLDER).absolute()}; {as_typed(begins)}go to the folder of the fleet file, or"
            " name the log: --db PATH"
        )
    latest = max(found, key=_written_ns)
    message = f"there are several logs in {FOLDER}: {', '.join(map(str, found))}; the one that was written last"
    raise Ambiguous(message, f"--db {shlex.quote(str(latest))}")


def _on_server() -> Path | None:
    """Return the log on a server that the fleet file here names; None if it names none.

    The file may come from a stranger, and a server gets this user's password if it asks for it. So a log is found only
    if a command has used its address on this machine. Raises ``BadInput`` for another one.
    """
    if not Path(USUAL_FILE).is_file():
        return None
    from lifefold.interpreters.cli.server_logs import known_path  # noqa: PLC0415 - seldom needed
    from lifefold.interpreters.fleet_file.glance import glance  # noqa: PLC0415 - as above

    written = glance(Path(USUAL_FILE)).log
    if not written:
        return None
    try:
        address = read_address(written)
    except NotAStore as error:
        raise BadInput(f"{USUAL_FILE}: {error}") from error
    known = known_path(address)
    if known is None:
        shown = plain(str(address).encode())
        raise BadInput(
            f"{USUAL_FILE} names a log on a server that no command has used here yet; if you trust that server, name"
            f" the log once: --db {shlex.quote(shown)}"
        )
    return known


def latest_logs() -> list[Path]:
    """Return the latest log of each fleet in ``.lifefold`` here."""
    folder = Path(FOLDER)
    return sorted({_latest(each) for each in folder.iterdir() if each.suffix == ".db"} if folder.is_dir() else ())


def _written_ns(log: Path) -> int:
    """Return when a log was written last, in nanoseconds; new entries are in a file beside it at first."""
    files = (log, log.with_name(f"{log.name}-wal"))
    return max(each.stat().st_mtime_ns for each in files if each.exists())


def log_of(fleet_file: Path, name: str, db: str | None) -> Path:
    """Return the log of a fleet: the one that is named, or the default one. Raises ``BadInput``, ``StoreError``."""
    if db is not None and is_address(db):
        from lifefold.interpreters.cli.server_logs import path_of  # noqa: PLC0415 - seldom needed

        return path_of(db, fleet_file.absolute().parent, name)
    return named(db) if db else default_log(fleet_file, name)


def named(db: str) -> Path:
    """Return the path of a named log. Raises ``BadInput`` for a path that cannot be a log, ``StoreError``."""
    if is_address(db):
        from lifefold.interpreters.cli.server_logs import path_of  # noqa: PLC0415 - seldom needed

        return path_of(db)
    path = Path(db)
    try:
        must_be_a_path(path)
    except NotAStore as error:
        raise BadInput(str(error)) from error
    if path.is_dir():
        raise BadInput(f"{db}: is a folder, not a log; name a file in it, as {Path(db) / 'fleet.db'}")
    return path


def are_one(log: Path, other: Path) -> bool:
    """Tell whether two paths name the same file, even through a loop of links."""
    return os.path.realpath(log) == os.path.realpath(other)


def option(log: Path) -> str:
    """Return the option by which a command typed here finds a log; empty if the command finds it without."""
    try:
        is_found = are_one(find_log(None), log)
    except (BadInput, PermissionError, StoreError):
        is_found = False
    return "" if is_found else f" --db {shlex.quote(str(log))}"


FLEET_FILE: Final = "FLEET.toml"
"""The name of the fleet file in messages, replaced by its path where that is known."""

LOG: Final = "\0"
"""The place of the option for the log, in commands of messages."""


def typed(message: str, store: LogStore) -> str:
    """Return a message with its commands as they are typed here: the program, the fleet file, and the log if needed."""
    return as_typed(message).replace(LOG, option(store.path)).replace(FLEET_FILE, _fleet_file(store))


def _fleet_file(store: LogStore) -> str:
    """Return the fleet file of a log as in a command, with the log unless it is the default one."""
    source = store.meta("source")
    if not source or not Path(source).is_file():
        return FLEET_FILE
    is_usual = default_log(Path(source), store.meta("fleet") or "").resolve() == store.path.resolve()
    return shlex.quote(source) + ("" if is_usual else f" --db {shlex.quote(str(store.path))}")


def peek(db: str | None, at: str | None = None) -> LogStore:
    """Open a log for reading, as it was ``at`` a position if one is named. Raises ``BadInput``."""
    path = find_log(db)
    try:
        if at is None:
            return peek_log(path)
        with peek_log(path) as store:
            seq = position(store, at, time.time_ns() // 1_000_000)
        return log_at(path, seq)
    except NotAStore as error:
        raise BadInput(str(error)) from error


def now_ms(store: LogStore) -> int:
    """Return the time of a log that is read, in Unix milliseconds: the time of its last entry for the past."""
    return time.time_ns() // 1_000_000 if store.past is None else store.past[1]


def then(store: LogStore) -> str:
    """Return in words of which moment a log is; empty for a log as it is now."""
    if store.past is None:
        return ""
    seq, at_ms = store.past
    return f"as it was after entry {seq}, {moment(at_ms)}"


def fold(store: LogStore) -> Ledger:
    """Fold a log. Raises ``BadInput`` if the log does not fit this program."""
    ledger = Ledger(system)
    for _ in _further(_loaded(store, ledger), ledger):
        pass
    return ledger


def fold_with_account(store: LogStore) -> tuple[Ledger, Account]:
    """Fold a log, and its account. Raises ``BadInput`` as ``fold`` does."""
    ledger, account, further = begun(store)
    for decision in further:
        account.observe(decision.entry.stream, decision.reaction)
    return ledger, account


def begun(store: LogStore) -> tuple[Ledger, Account, Iterator[Decision]]:
    """Return the fold of the newest snapshot of a log, its account, and the decisions that are still to be folded.

    Without a snapshot that has an account these are all. Raises ``BadInput`` as ``fold`` does.
    """
    ledger = Ledger(system)
    loaded = _loaded(store, ledger)
    account = Account.restored(loaded)
    if account is not None:
        return ledger, account, _further(loaded, ledger)
    ledger = Ledger(system)
    return ledger, Account(), decisions(store, ledger)


def fold_at(path: Path, seq: int) -> tuple[Ledger, Account]:
    """Fold a log until the entry at a position, by the nearest mark. Raises ``BadInput`` as ``fold`` does."""
    with log_at(path, seq) as past:
        return fold_with_account(past)


def _loaded(store: LogStore, ledger: Ledger) -> Loaded:
    """Give a ledger the newest snapshot of a log. Raises ``BadInput`` as ``fold`` does."""
    try:
        return anyio.run(load, ledger, store)
    except Busy:
        raise
    except (LogMismatchError, StoreError) as error:
        raise BadInput(str(error)) from error


def _further(loaded: Loaded, ledger: Ledger) -> Iterator[Decision]:
    """Fold the entries that a snapshot does not have. Raises ``BadInput`` as ``fold`` does."""
    try:
        entries = iter(loaded.entries)
        first = list(islice(entries, 100))
        if not ledger.aggregates:
            must_be_of_a_fleet(first)
        yield from ledger.fold(chain(first, entries))
    except Busy:
        raise
    except (LogMismatchError, StoreError) as error:
        raise BadInput(str(error)) from error


def decisions_as_they_come(store: LogStore, ledger: Ledger, is_over: Callable[[Ledger], bool]) -> Iterator[Decision]:
    """Fold the log into a ledger, and follow new entries until it ``is_over``. Raises ``BadInput`` as ``fold`` does."""
    while True:
        yield from decisions(store, ledger)
        if is_over(ledger):
            return
        time.sleep(LOOK_S)


def decisions(store: LogStore, ledger: Ledger) -> Iterator[Decision]:
    """Fold the further entries of a log into a ledger, one by one. Raises ``BadInput`` as ``fold`` does."""
    try:
        entries = anyio.run(store.read_on, ledger.entries)
        must_be_of_a_fleet(entries)
        yield from ledger.fold(entries)
    except Busy:
        raise
    except (LogMismatchError, StoreError) as error:
        raise BadInput(str(error)) from error


def must_be_of_a_fleet(entries: Sequence[Entry]) -> None:
    """Raise ``BadInput`` for a log of another system, which these commands cannot read."""
    streams = sorted({each.stream for each in entries})
    known = ", ".join([*map(repr, streams[:3]), *(["..."] if streams[3:] else [])])
    if streams and not any(stream.partition("/")[0] in system.aggregates for stream in streams):
        raise BadInput(
            f"this is not the log of a fleet; its aggregates are {known}; "
            "name its own system before it, as lifefold log MODULE:SYSTEM LOG, see docs/flight-recorder.md"
        )
