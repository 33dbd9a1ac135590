"""A command at a pseudo-terminal: what it draws, without colours, and keys pressed into it."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from commands_run import LIFEFOLD
from fleet_sandbox import HANG_S

_SEQUENCE: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[=>]")


_ON_TERMINAL: Final = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Makes the terminal that of its session, and becomes the command."""


class Terminal:
    """A terminal of a size with a command in it, usually one of lifefold; it is killed when the block is left."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        columns: int = 80,
        lines: int = 24,
        env: Mapping[str, str] | None = None,
        program: Sequence[str] = LIFEFOLD,
    ) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        environment = {
            name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES", "NO_COLOR"}
        }
        environment |= {"TERM": "xterm", "GIT_PAGER": "cat", **(env or {})}
        self.process: Final = subprocess.Popen(
            [sys.executable, "-c", _ON_TERMINAL, *program, *arguments],
            cwd=folder,
            env=environment,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self.raw = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(HANG_S)
        os.close(self._ours)

    @property
    def text(self) -> str:
        """All that was drawn so far, without sequences of the terminal."""
        return _SEQUENCE.sub("", self.raw.decode("utf-8", "replace")).replace("\r", "")

    def press(self, keys: str) -> None:
        """Press keys; what was drawn before does not count for the next ``until``."""
        self.raw = b""
        os.write(self._ours, keys.encode())

    def until(self, *words: str) -> str:
        """Read until all words were drawn since the last key; return what was drawn."""
        end = time.monotonic() + HANG_S
        while not all(word in self.text for word in words):
            if time.monotonic() > end or not self._read():
                raise AssertionError(f"never saw {words} in:\n{self.text[-6000:]}")
        return self.text

    def rest(self) -> str:
        """Read until the end of the command; return what was drawn since the last key."""
        while self._read():
            pass
        self.process.wait(HANG_S)
        return self.text

    def _read(self) -> bool:
        """Read a piece; return whether the command is still there."""
        if not select.select([self._ours], [], [], HANG_S)[0]:
            return False
        try:
            piece = os.read(self._ours, 65_536)
        except OSError:  # the command has closed the terminal
            return False
        self.raw += piece
        return bool(piece)
