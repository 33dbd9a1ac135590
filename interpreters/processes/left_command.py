"""The record of a running command, by which the next runner ends what a killed runner has left.

The record has the identity of the command's process, which leads a process group of its own. Only this group is
signalled, and only while the recorded process proves it: a pid alone can be another process by now. A command that has
ended by itself leaves a record that proves nothing, and no process is signalled.
"""

import contextlib
import signal
from collections.abc import Generator
from pathlib import Path
from typing import Final

import anyio
import msgspec

from lifefold.interpreters.processes.command import GRACE_MS
from lifefold.interpreters.processes.identity import ProcessIdentity, identify, is_alive, signal_group_if_ours
from lifefold.interpreters.processes.private import make_private, open_private

LOOK_S: Final = 0.05
"""The time between two looks at a command that is to end."""

RECORD_BYTES: Final = 4_096
"""The longest record."""


class CommandRecord:
    """A file with the identity of a command while it runs."""

    def __init__(self, file: Path) -> None:
        """Take the file: one for each place at which one command runs at a time."""
        self._file: Final = file

    def write(self, pid: int) -> None:
        """Record the process of a command that has just begun. Without a record, no later runner ends it."""
        with contextlib.suppress(OSError):
            found = identify(pid)
            make_private(self._file.parent)
            with open_private(self._file) as opened:
                opened.write(msgspec.json.encode(found).decode())

    @contextlib.contextmanager
    def kept(self) -> Generator[None]:
        """Remove the record at the end of the block; a killed runner does not come to that."""
        try:
            yield
        finally:
            self._remove()

    async def end_left_over(self) -> None:
        """End the command of an earlier runner, if it still runs: TERM, the grace, KILL.

        The record stays until then, so the next call completes one that was cancelled.
        """
        left = self._read()
        if left is not None and signal_group_if_ours(left, signal.SIGTERM):
            with anyio.move_on_after(GRACE_MS / 1_000):
                while is_alive(left):  # noqa: ASYNC110 - a process of another parent sets no event here
                    await anyio.sleep(LOOK_S)
            signal_group_if_ours(left, signal.SIGKILL)
        self._remove()

    def _read(self) -> ProcessIdentity | None:
        try:
            with self._file.open("rb") as opened:
                return msgspec.json.decode(opened.read(RECORD_BYTES), type=ProcessIdentity | None)
        except (OSError, msgspec.DecodeError, UnicodeError, RecursionError):
            return None

    def _remove(self) -> None:
        with contextlib.suppress(OSError):
            self._file.unlink(missing_ok=True)
