"""Output through a thread, so that a stalled reader does not stall the program.

A terminal stopped with Ctrl-S, a pager that is not scrolled, or a pipe with a stuck reader blocks a write for any time.
So printing only puts its text in a queue. A full queue drops its oldest text, and the output has the number of lines
dropped at that place. The log has all of it.

The thread writes to the file descriptor directly: Python could not exit while a thread is stuck in ``sys.stdout``.
"""

import io
import os
import select
import sys
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from threading import Condition, Thread
from typing import TYPE_CHECKING, Final, TextIO

from lifefold.interpreters.cli.wording import this_command

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

LIMIT: Final = 10_000
"""The most texts in the queue; most of them are lines."""

FINISH_S: Final = 3.0
"""How long a reader may stall at the end before the rest is discarded, in seconds."""


class Outlet(io.TextIOWrapper):
    """A text stream in front of another; printing to it never waits. Call ``finish`` at the end."""

    def __init__(self, stream: TextIO, limit: int = LIMIT) -> None:
        """Write to the file descriptor of a stream, in its encoding, with escapes for other characters."""
        stream.flush()
        self._queue: Final = _Queue(stream.fileno(), limit)
        super().__init__(self._queue, encoding=stream.encoding, errors="backslashreplace")

    def write(self, text: str, /) -> int:
        """Write a text, and queue it when its last line is whole: two outlets of one file mix no lines."""
        count = super().write(text)
        if text.endswith(("\n", "\r")):
            self.flush()
        return count

    @property
    def idle(self) -> bool:
        """Whether the reader has taken everything, so that the next text is read at once."""
        return self._queue.idle

    def wait(self) -> None:
        """Wait until the reader has taken everything, or is gone; needed before a question about the output."""
        self.flush()
        self._queue.wait()

    def finish(self, within_s: float = FINISH_S) -> bool:
        """Write the rest, unless the reader stalls for ``within_s``; return whether all is written."""
        self.flush()
        return self._queue.finish(within_s)


class _Queue(io.BufferedIOBase):
    """The queue of texts, and the thread that writes them."""

    def __init__(self, fd: int, limit: int) -> None:
        self.name: Final = f"<file descriptor {fd}>"
        self._fd: Final = fd
        self._limit: Final = limit
        self._changed: Final = Condition()
        self._waiting: Final[deque[bytes]] = deque()
        self._dropped = 0
        self._busy = self._ending = self._gone = False
        self._thread: Final = Thread(target=self._write_all, name="output", daemon=True)
        self._thread.start()

    @property
    def idle(self) -> bool:
        with self._changed:
            return not (self._waiting or self._busy or self._gone)

    def write(self, data: "ReadableBuffer", /) -> int:
        text = bytes(data)
        with self._changed:
            if not self._gone:
                self._waiting.append(text)
            if len(self._waiting) > self._limit:
                self._waiting.popleft()
                self._dropped += 1
            self._changed.notify_all()
        return len(text)

    def wait(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._gone or not (self._waiting or self._busy))

    def finish(self, within_s: float) -> bool:
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        left = -1
        while self._thread.is_alive() and left != len(self._waiting):
            left = len(self._waiting)
            self._thread.join(within_s)
        return not self._thread.is_alive()

    def _write_all(self) -> None:
        while (text := self._next()) is not None:
            try:
                _write(self._fd, text)
            except OSError:  # the reader has gone, or the disk is full
                with self._changed:
                    self._gone = True
                    self._waiting.clear()
                    self._changed.notify_all()

    def _next(self) -> bytes | None:
        """Wait for the next text, with a notice of dropped lines before it; None when all is written."""
        with self._changed:
            self._busy = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._waiting or self._ending)
            if not self._waiting:
                return None
            self._busy = True
            dropped, self._dropped = self._dropped, 0
            return (_missing(dropped) if dropped else b"") + self._waiting.popleft()

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._fd

    def isatty(self) -> bool:
        return os.isatty(self._fd)


def wait_until_written() -> None:
    """Wait until the reader has taken everything printed."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, Outlet):
            stream.wait()


def _missing(dropped: int) -> bytes:
    return f"({dropped} lines are missing here, because the reader stalled; {this_command()} log has all)\n".encode()


def _write(fd: int, text: bytes) -> None:
    while text:
        try:
            text = text[os.write(fd, text) :]
        except BlockingIOError:  # another program has made the terminal that we share a non-blocking one
            select.select([], [fd], [])


@contextmanager
def opened() -> Generator[Outlet]:
    """Send standard output and errors of the block through outlets; yields the outlet of the output."""
    out, errors = Outlet(sys.stdout), Outlet(sys.stderr)
    try:
        with redirect_stdout(out), redirect_stderr(errors):
            yield out
    finally:
        taken = out.finish()
        errors.finish(FINISH_S if taken else 0)  # it has had the same time as the output
