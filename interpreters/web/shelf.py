"""All logs that a desk shows, each folded once, and followed until the desk closes."""

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Self

import anyio
from anyio import to_thread

from lifefold.interpreters.web.agent_page import UnknownName
from lifefold.interpreters.web.commands import Desk
from lifefold.interpreters.web.followed_log import FollowedLog
from lifefold.interpreters.web.stream import Pulse

LOOK_S: Final = 0.25
"""The interval at which logs are read on, in seconds."""


class StillReading(Exception):
    """A log whose entries are not all folded yet."""


class Shelf:
    """The logs by their keys; close it, or use it as a context manager."""

    def __init__(self, logs: Iterable[Path]) -> None:
        """Open logs. Raises ``Busy`` and ``NotAStore``."""
        self.pulse: Final = Pulse()
        self.logs: Final[dict[str, FollowedLog]] = {}
        self.desks: Final[dict[str, Desk]] = {}
        self._stack: Final = ExitStack()
        try:
            for path in logs:
                key = _key(path, self.logs)
                self.logs[key] = self._stack.enter_context(FollowedLog(key, path))
                self.desks[key] = Desk(path)
        except BaseException:
            self._stack.close()
            raise

    def __enter__(self) -> Self:
        """Return the shelf."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close all logs."""
        self._stack.close()

    async def follow(self) -> None:
        """Read all logs on, until cancelled."""
        async with anyio.create_task_group() as tasks:
            for log in self.logs.values():
                tasks.start_soon(self._follow, log)

    async def _follow(self, log: FollowedLog) -> None:
        while True:
            if await to_thread.run_sync(log.take):
                self.pulse.beat()
            await anyio.sleep(LOOK_S)

    def log(self, key: str) -> FollowedLog:
        """Return a log that is read. Raises ``UnknownName`` and ``StillReading``."""
        if key not in self.logs:
            message = f"there is no fleet {key!r}"
            raise UnknownName(message)
        found = self.logs[key]
        if not found.is_read:
            message = f"the log {found.path} is being read"
            raise StillReading(message)
        return found


def _key(path: Path, taken: Iterable[str]) -> str:
    """Return a name for a log that no other one has."""
    number, key = 1, path.stem
    while key in taken:
        number += 1
        key = f"{path.stem}-{number}"
    return key
