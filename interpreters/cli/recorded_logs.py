"""Logs of any system on the command line: ``[MODULE:SYSTEM] LOG``, with the system's target and the log's entries."""

import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import anyio

from lifefold.core.kernel import System
from lifefold.interpreters.cli import logs
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.positions import position
from lifefold.interpreters.store import Entry, LogStore, NotAStore, peek_log

if TYPE_CHECKING:
    from lifefold.interpreters.targets.target import Target

FLEET: Final = "fleet"
"""The system of a log for which none is named."""


class OneLog(NamedTuple):
    """A log of a command line, and the target that names its system."""

    target: "Target"
    path: Path
    is_fleet: bool

    @property
    def system(self) -> System:
        """The system of the log."""
        return self.target.system


def one_log(words: Sequence[str], db: str | None = None) -> OneLog:
    """Return the log of ``[MODULE:SYSTEM] LOG``, the latest one here without any. Raises ``BadInput``."""
    if db is not None and len(words) < _MOST:
        words = (*words, db)
    (found,) = several_logs(words, 1)
    return found


def several_logs(words: Sequence[str], count: int) -> list[OneLog]:
    """Return so many logs of one system. Raises ``BadInput``."""
    named, paths = (words[0], words[1:]) if words and _is_system(words[0], len(words) > count) else (FLEET, words)
    if len(paths) > count or (count > 1 and len(paths) < count):
        raise BadInput(f"found {' '.join(words)!r}; accepted: [MODULE:SYSTEM] {' '.join(['LOG'] * count)}")
    if not paths and named != FLEET:
        raise BadInput(f"{named}: name its log, too: {named} LOG")
    target = log_target(named)
    return [OneLog(target, logs.find_log(each), named == FLEET) for each in paths or (None,)]


def _is_system(word: str, is_more: bool) -> bool:  # noqa: FBT001 - whether there are more words than logs
    return is_more or (":" in word and not Path(word).exists())


def log_target(name: str) -> "Target":
    """Return the target of a system. Raises ``BadInput``."""
    from lifefold.interpreters.targets import check_targets  # noqa: PLC0415 - slow to import
    from lifefold.interpreters.targets.target import UnusableTarget  # noqa: PLC0415 - as above

    try:
        return check_targets.of_logs(name)
    except UnusableTarget as error:
        raise BadInput(str(error)) from error


def opened(of: OneLog) -> LogStore:
    """Open a log for reading. Raises ``BadInput``."""
    try:
        return peek_log(of.path)
    except NotAStore as error:
        raise BadInput(str(error)) from error


def entries_of(store: LogStore, of: OneLog) -> Sequence[Entry]:
    """Return all entries of a log. Raises ``BadInput`` if another system wrote it, or if it is damaged."""
    try:
        entries = anyio.run(store.read)
    except NotAStore as error:
        raise BadInput(str(error)) from error
    must_be_of(of, entries)
    return entries


def must_be_of(of: OneLog, entries: Sequence[Entry]) -> None:
    """Raise ``BadInput`` for a log of another system."""
    if of.is_fleet:
        logs.must_be_of_a_fleet(entries)
        return
    streams = sorted({each.stream for each in entries})
    kinds = of.system.aggregates
    if streams and not any(each.partition("/")[0] in kinds for each in streams):
        raise BadInput(f"{of.path} is no log of {of.target.name}: it has {streams[0]!r}, and not {', '.join(kinds)}")


def position_of(store: LogStore, arguments: Namespace) -> int:
    """Return the position that ``--at`` names, the newest one without. Raises ``BadInput``."""
    newest = store.position_at(_EVER_MS)
    if not newest:
        raise BadInput(f"{store.path} has no entry yet")
    return newest if arguments.at is None else position(store, arguments.at, time.time_ns() // 1_000_000)


_EVER_MS: Final = 1 << 62
_MOST: Final = 2
