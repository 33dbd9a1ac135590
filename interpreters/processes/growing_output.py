"""The output of a running session, read piece by piece from its beginning.

A piece has its offset in everything that the agent has written. The offset says whether output before it was dropped:
the log keeps the beginning and the latest part of a long output. Reading never blocks, because an agent can replace the
file by a pipe.
"""

import os
import stat
from pathlib import Path
from typing import Final

from lifefold.interpreters.processes.shim import durable, output


class GrowingOutput:
    """Reads the output of one run directory, forwards only."""

    def __init__(self, directory: Path) -> None:
        """Take the run directory of a session."""
        self._directory: Final = directory
        self._has_rolled = False

    def signs(self) -> tuple[int, ...]:
        """Return numbers that change when there is more to read: sizes and times of the files."""
        return (*_signs(self._directory / durable.OUTPUT), *_signs(self._directory / output.POSITION))

    def read(self, offset: int, size_bytes: int) -> tuple[int, bytes]:
        """Return the next piece from ``offset`` on, and its own offset, which is later if output was dropped.

        The piece is empty if there is no more, or if the file cannot be read.
        """
        try:
            return self._read(offset, size_bytes)
        except OSError:
            return offset, b""

    def _read(self, offset: int, size_bytes: int) -> tuple[int, bytes]:
        fd = os.open(self._directory / durable.OUTPUT, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return offset, b""
            position = output.position_of(str(self._directory))
            if position is None:
                # A log that has rolled and has no position is in reading order: its session is over.
                return offset, b"" if self._has_rolled else os.pread(fd, size_bytes, offset)
            self._has_rolled = True
            start, at, room_bytes = _place(offset, *position)
            return start, os.pread(fd, min(size_bytes, room_bytes), at) if room_bytes > 0 else b""
        finally:
            os.close(fd)


def _place(offset: int, taken_bytes: int, limit_bytes: int) -> tuple[int, int, int]:
    """Return where the output goes on in a log with a ring: its offset, the place in the file, the bytes there."""
    head_bytes = limit_bytes // 2
    if offset < head_bytes:
        return offset, offset, head_bytes - offset
    ring_bytes = limit_bytes - head_bytes
    start = max(offset, taken_bytes - ring_bytes)
    at = head_bytes + (start - head_bytes) % ring_bytes
    return start, at, min(taken_bytes - start, limit_bytes - at)


def _signs(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError:
        return (-1, -1)
    return found.st_size, found.st_mtime_ns
