"""All logs that a desk shows, each folded once, and followed until the desk closes or the log is gone.

A desk shows logs that were named, or the fleets of the machine. Those come and go: a fleet that begins is added while
the desk is open.
"""

import gc
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, Self

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from lifefold.interpreters.store import StoreError
from lifefold.interpreters.web.agent_page import UnknownName
from lifefold.interpreters.web.desk import Desk
from lifefold.interpreters.web.followed_log import FollowedLog, StillReading
from lifefold.interpreters.web.reports import Reports
from lifefold.interpreters.web.stream import Pulse

LOOK_S: Final = 0.25
"""The interval at which a log with a runner is read on, in seconds."""

REST_S: Final = 0.5
"""The interval at which a log without a runner is read on, and at which fleets are looked for, in seconds."""

MOST_FLEETS: Final = 40
"""The most fleets of the machine that are shown: the first ones that are found."""

_MARK: Final = 6
"""The characters that tell apart logs whose files have the same name."""

Finder = Callable[[], Sequence[Path]]
"""Returns the logs of this machine; the first one matters most."""


class Shelf:
    """The logs by their keys; close it, or use it as a context manager."""

    def __init__(self, logs: Sequence[Path] = (), find: Finder | None = None, reports: Sequence[Path] = ()) -> None:
        """Open the named logs; without any, those of ``find``. Raises ``Busy`` and ``NotAStore`` for a named log.

        ``reports`` are files of reports, see ``Reports``.
        """
        self.reports: Final = Reports(reports)
        self.pulse: Final = Pulse()
        self.logs: Final[dict[str, FollowedLog]] = {}
        self._desks: Final[dict[str, Desk]] = {}
        self.unread: dict[str, str] = {}
        """Why logs of this machine cannot be opened, by their paths."""
        self.hidden = 0
        """The fleets of this machine that are not shown, because there are too many."""
        self.find: Final = find
        self._first_reading: Final = anyio.CapacityLimiter(1)
        try:
            for path, key in keys(logs, ()):
                self.logs[key] = FollowedLog(key, path)
            self._look_around()
        except BaseException:
            self._close()
            raise

    def __enter__(self) -> Self:
        """Return the shelf."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close all logs."""
        self._close()

    def _close(self) -> None:
        for log in self.logs.values():
            log.close()

    def _look_around(self) -> tuple[list[FollowedLog], list[FollowedLog]]:
        """Open the logs that have come, and leave those that are gone. Return both."""
        if self.find is None:
            return [], []
        found = list(dict.fromkeys(self.find()))
        shown, self.hidden = found[:MOST_FLEETS], max(0, len(found) - MOST_FLEETS)
        gone = [log for log in self.logs.values() if log.path not in shown or not log.is_there]
        for log in gone:
            del self.logs[log.key]
            self._desks.pop(log.key, None)
        known, opened = {log.path for log in self.logs.values()}, list[FollowedLog]()
        unread: dict[str, str] = {}
        for path, key in keys([each for each in shown if each not in known], self.logs):
            try:
                self.logs[key] = FollowedLog(key, path)
                opened.append(self.logs[key])
            except (StoreError, OSError) as error:
                unread[str(path)] = " ".join(str(error).split())
        self.unread = unread
        return opened, gone

    async def follow(self) -> None:
        """Read all logs on, and look for fleets, until cancelled."""
        async with anyio.create_task_group() as tasks:
            for log in self.logs.values():
                tasks.start_soon(self._follow, log)
            if self.find is not None:
                tasks.start_soon(self._follow_machine, tasks)

    async def _follow_machine(self, tasks: TaskGroup) -> None:
        while True:
            await anyio.sleep(REST_S)
            before = (self.unread, self.hidden)
            opened, gone = await to_thread.run_sync(self._look_around)
            for log in opened:
                tasks.start_soon(self._follow, log)
            if opened or gone or before != (self.unread, self.hidden):
                self.pulse.beat()

    async def _follow(self, log: FollowedLog) -> None:
        """Read a log on until it is no longer shown; the logs are read for the first time in turns."""
        await to_thread.run_sync(log.take, limiter=self._first_reading)
        self.pulse.beat()
        while self.logs.get(log.key) is log and not (log.is_told or log.trouble):
            if await to_thread.run_sync(log.take, limiter=self._first_reading) and log.is_read:
                self.pulse.beat()
            gc.freeze()  # the history stays, and the collector need not look at it again
        while self.logs.get(log.key) is log:
            if await to_thread.run_sync(log.take):
                self.pulse.beat()
            await anyio.sleep(LOOK_S if log.runs else REST_S)
        log.close()

    def log(self, key: str) -> FollowedLog:
        """Return a log that is read. Raises ``UnknownName`` and ``StillReading``."""
        found = self.logs.get(key)
        if found is None:
            message = f"there is no fleet {key!r}"
            raise UnknownName(message)
        if not found.is_read:
            message = f"the log {found.path} is being read"
            raise StillReading(message)
        return found

    def desk(self, key: str) -> Desk:
        """Return what gives commands to a log. Raises ``UnknownName`` and ``StillReading``."""
        log = self.log(key)
        return self._desks.setdefault(key, Desk(log.path))

    def read(self, key: str = "") -> list[FollowedLog]:
        """Return the log with a key, or all logs that are read. Raises ``UnknownName`` and ``StillReading``."""
        return [self.log(key)] if key else [log for log in list(self.logs.values()) if log.is_read]


def keys(paths: Sequence[Path], taken: Iterable[str]) -> list[tuple[Path, str]]:
    """Return the paths, each with a key: the name of its file, with a mark of its place if another one has that name.

    The mark does not depend on the order, so an address never leads to another log after a restart.
    """
    paths = list(dict.fromkeys(paths))
    stems = Counter(path.stem for path in paths)
    stems.update(each for each in taken if each in stems)
    return [(path, path.stem if stems[path.stem] == 1 else f"{path.stem}-{_mark(path)}") for path in paths]


def _mark(path: Path) -> str:
    return hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:_MARK]
