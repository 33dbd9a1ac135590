"""A pipe without a reader, full to the last byte, so that a writer waits."""

import os
from contextlib import suppress
from typing import TextIO


class StuckPipe:
    """A full pipe; ``stream`` writes to it. ``read_to`` is the reader coming back."""

    def __init__(self) -> None:
        self._reading, writing = os.pipe()
        self.stream: TextIO = os.fdopen(writing, "w", encoding="ascii")
        self.filled = 0
        os.set_blocking(writing, False)
        for piece in (b"x" * 4_096, b"x"):
            with suppress(BlockingIOError):
                while True:
                    self.filled += os.write(writing, piece)
        os.set_blocking(writing, True)

    def read_to(self, end: str) -> list[str]:
        """Read until the output ends with these words; return the lines after the filling of the pipe."""
        read = b""
        while not read.endswith(end.encode()):
            read += os.read(self._reading, 65_536)
        return read[self.filled :].decode().splitlines()

    def read_some(self) -> None:
        """Read what had filled the pipe, so that it is not stuck any more."""
        while self.filled:
            self.filled -= len(os.read(self._reading, self.filled))

    def leave(self) -> None:
        """Be a reader who goes."""
        os.close(self._reading)
        self._reading = -1

    def close(self) -> None:
        """Close both ends; a writer that waits is freed."""
        if self._reading >= 0:
            self.leave()
        self.stream.close()
