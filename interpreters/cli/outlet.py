"""Output that nobody waits for: what is printed is written by a thread, and a reader that stalls stalls nothing else.

A terminal that was stopped with Ctrl-S, a pager that nobody scrolls, a pipe whose reader is stuck: each makes a write
wait for as long as it likes. So whoever prints leaves its text in a queue. The queue has a limit; when it is full the
oldest text is dropped, and where it is missing the reader is told how much. All of it is in the log anyway.

The thread writes to the file descriptor itself. Were it stuck in ``sys.stdout``, the interpreter could not end.
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

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

LIMIT: Final = 10_000
"""How many printed texts, most of them lines, wait for a reader."""

FINISH_S: Final = 3.0
"""How long in the end a reader may take nothing of what is left before it is given up."""


class Outlet(io.TextIOWrapper):
    """A text stream in front of another one: printing to it never waits. ``finish`` it in the end."""

    def __init__(self, stream: TextIO, limit: int = LIMIT) -> None:
        """Write to the file descriptor of a stream, in its encoding; what that cannot express is written as escapes."""
        stream.flush()
        self._queue: Final = _Queue(stream.fileno(), limit)
        super().__init__(self._queue, encoding=stream.encoding, errors="backslashreplace", line_buffering=True)

    @property
    def idle(self) -> bool:
        """Whether the reader has taken everything, so that what is printed next is not old when it is read."""
        return self._queue.idle

    def wait(self) -> None:
        """Wait until the reader has taken everything, or is gone: before a question about what stands there."""
        self.flush()
        self._queue.wait()

    def finish(self, within_s: float = FINISH_S) -> bool:
        """Write what is left, unless the reader takes nothing for so long; return whether that was done."""
        self.flush()
        return self._queue.finish(within_s)


class _Queue(io.BufferedIOBase):
    """What waits to be written, and the thread that writes it."""

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
        """Wait for the next text, with a word about what is missing before it; None when all is written."""
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
    """Wait until all that was printed stands where its reader sees it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, Outlet):
            stream.wait()


def _missing(dropped: int) -> bytes:
    return f"({dropped} lines are missing here, because nobody read them; lifefold log has all)\n".encode()


def _write(fd: int, text: bytes) -> None:
    while text:
        try:
            text = text[os.write(fd, text) :]
        except BlockingIOError:  # another program has made the terminal that we share a non-blocking one
            select.select([], [fd], [])


@contextmanager
def opened() -> Generator[Outlet]:
    """Have everything that is printed in the block, and errors, go through outlets; give the one for output."""
    out, errors = Outlet(sys.stdout), Outlet(sys.stderr)
    try:
        with redirect_stdout(out), redirect_stderr(errors):
            yield out
    finally:
        taken = out.finish()
        errors.finish(FINISH_S if taken else 0)  # it has had as much time as the other one
