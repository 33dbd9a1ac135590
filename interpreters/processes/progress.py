"""The progress of a session: its output grows, or it touches its heartbeat file. A living process alone is no progress.

Both are timestamps of files. A restarted runner finds them, and a session sends nothing.
"""

import contextlib
import time
from pathlib import Path
from typing import NamedTuple

from lifefold.core.policy.silence import last_sign_ms
from lifefold.interpreters.processes.session_files import read_start
from lifefold.interpreters.processes.shim import durable, output


def last_progress_ms(directory: Path, heartbeat: Path) -> int | None:
    """Return the time of the last progress of a run directory's session, in Unix time in milliseconds.

    Without later progress it is the session's start (E32). None if there is no record of a start.
    """
    start = read_start(directory)
    if start is None:
        return None
    shown = [_touched_ms(path) for path in (directory / durable.OUTPUT, directory / output.POSITION, heartbeat)]
    return last_sign_ms(start.at_ms, max((each for each in shown if each is not None), default=None))


def _touched_ms(path: Path) -> int | None:
    with contextlib.suppress(OSError):
        return path.stat().st_mtime_ns // 1_000_000
    return None


class SilentSince(NamedTuple):
    """A session has shown no sign since ``since_ms``, in Unix time in milliseconds; ``heartbeat`` is its file."""

    since_ms: int
    heartbeat: Path


class Silence:
    """The time without progress of a session, by a clock that stops while the machine is suspended.

    Timestamps of files come from a clock that can be set, and that continues during a suspension. So they only show
    whether progress happened since the last reading, and an upper bound of its age.
    """

    def __init__(self, directory: Path, heartbeat: Path) -> None:
        """Watch the session of a run directory."""
        self._directory = directory
        self._heartbeat = heartbeat
        self._last_ms: int | None = None
        self._looked_ms = 0
        self._since_ms = 0

    def lasts_ms(self) -> int | None:
        """Return the time since the last progress; None before the session's start. Raises ``SessionFileError``."""
        last_ms, now_ms = last_progress_ms(self._directory, self._heartbeat), time.monotonic_ns() // 1_000_000
        if last_ms is None:
            return None
        if last_ms != self._last_ms:
            ago_ms = max(0, time.time_ns() // 1_000_000 - last_ms)
            self._since_ms = now_ms - (ago_ms if self._last_ms is None else min(ago_ms, now_ms - self._looked_ms))
        self._last_ms, self._looked_ms = last_ms, now_ms
        return now_ms - self._since_ms
