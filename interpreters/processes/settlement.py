"""Finding out what became of a session whose shim nobody is in touch with, and settling it for good.

All of it goes by the lock that a shim holds for its whole life. Who gets it knows that no shim lives, and while it is
held none can start. Then either the end is on record; or there was no start, and a mark is left so that there will be
none; or the shim died before it could record the end (SIGKILL, or the machine went down), or the record is damaged:
the rest of the session is killed, and the session recorded as lost.

A process is the session's if it is the recorded one by identity, if its environment has the shim's mark, or if it is
in a process group of which one of those is a living member (whose number is not given away while it has members).
Nobody else is signalled. A descendant that wiped its environment *and* shares a group with none that has it is
therefore not found once its shim is dead; neither is any on a system without ``/proc``, beyond the agent itself.
"""

import contextlib
import fcntl
import os
import signal
import time
from collections.abc import Generator
from enum import Enum
from pathlib import Path

from lifefold.interpreters.processes.identity import ProcessIdentity, signal_group_if_ours, signal_if_ours
from lifefold.interpreters.processes.private import make_private
from lifefold.interpreters.processes.session_files import (
    SessionExit,
    SessionFileError,
    SessionStart,
    SurvivorsError,
    read_exit,
    read_start,
    write_exit,
)
from lifefold.interpreters.processes.shim import durable, output, proc

_CONFIRM_MS = 5_000
_SWEEP_S = 0.01
_ESCAPED_LIMIT = 100


class Unsettled(Enum):
    """Why there is no end to report: the lock is held (by a shim, or another who settles), or nothing ever started."""

    HELD = "held"
    NEVER_STARTED = "never started"


def settle(directory: Path, known: SessionStart | None = None) -> SessionExit | Unsettled:
    """Find out how the session ended, as above; blocks for some seconds at worst.

    ``known`` is its start, for who has it: agents can reach the record. SurvivorsError if processes live on after
    SIGKILL: the session is not recorded as over then.
    """
    make_private(directory)
    with _lock(directory) as taken:
        if not taken:
            return Unsettled.HELD
        if (ended := _sound_exit(directory, known)) is not None:
            return ended
        start = known or read_start(directory)
        if start is not None:
            return _lose(directory, start)
        if not durable.exists(str(directory), durable.CANCELLED):
            durable.write_durably(str(directory), durable.CANCELLED, "no shim may start here\n")
        return Unsettled.NEVER_STARTED


def _sound_exit(directory: Path, known: SessionStart | None) -> SessionExit | None:
    """Read the record of the end. One that is damaged is none, if there was a start."""
    try:
        return read_exit(directory)
    except SessionFileError:
        if known is None and read_start(directory) is None:
            raise
    return None


def is_held(directory: Path) -> bool:
    """Tell whether a shim lives, or the agent that it forked still waits at its gate, or somebody settles."""
    with _lock(directory) as taken:
        return not taken


@contextlib.contextmanager
def _lock(directory: Path) -> Generator[bool]:
    """Take the directory's lock if it is free, and say whether it was."""
    fd = os.open(directory / durable.LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
    else:
        yield True
    finally:
        os.close(fd)


def _lose(directory: Path, start: SessionStart) -> SessionExit:
    """Kill what is left of a session whose shim is dead, and record it as lost."""
    if start.boot_id != proc.boot_id():
        message, escaped = "the machine was started anew", set[int]()
    else:
        message, escaped = "its shim was killed", _kill_all(start)
    missing = "the record of its end is damaged" if (directory / durable.EXIT).exists() else "its end is not on record"
    with contextlib.suppress(OSError):  # a full disk: the log is readable all the same
        output.put_in_order(str(directory))
    log = directory / durable.OUTPUT
    record = SessionExit(
        outcome="lost",
        at_ms=proc.wall_ms(),
        message=f"{message}, and {missing}",
        output_bytes=log.stat().st_size if log.exists() else 0,
        escaped=tuple(sorted(escaped))[:_ESCAPED_LIMIT],
    )
    write_exit(directory, record)
    return record


def _kill_all(start: SessionStart) -> set[int]:
    """Kill until none is found any more; returns the pids of those outside the agent's group."""
    escaped: set[int] = set()
    until_ms = proc.monotonic_ms() + _CONFIRM_MS
    signal_group_if_ours(start.agent, signal.SIGKILL)
    while survivors := _survivors(start):
        if proc.monotonic_ms() >= until_ms:
            pids = sorted(survivor.pid for survivor, _ in survivors)
            raise SurvivorsError(f"processes {pids} live on {_CONFIRM_MS} ms after SIGKILL")
        for survivor, pgid in survivors:
            if signal_if_ours(survivor, signal.SIGKILL) and pgid != start.pgid:
                escaped.add(survivor.pid)
        time.sleep(_SWEEP_S)
    return escaped


def _survivors(start: SessionStart) -> list[tuple[ProcessIdentity, int]]:
    """Find the session's living processes, each with its process group."""
    candidates = {start.pid, *proc.pids()} - {os.getpid()}
    living = {pid: found for pid in candidates if (found := proc.stat(pid)) is not None and not found.dead}
    proven = {
        pid
        for pid, found in living.items()
        if (pid == start.pid and found.start_time == start.start_time)
        or (found.start_time >= start.start_time and _has_mark(pid, start.mark))
    }
    groups = {living[pid].pgid for pid in proven}
    return [
        (ProcessIdentity(pid, found.start_time, start.boot_id), found.pgid)
        for pid, found in living.items()
        if pid in proven or (found.pgid in groups and found.start_time >= start.start_time)
    ]


def _has_mark(pid: int, mark: str) -> bool:
    try:
        environment = proc.read_bytes(f"/proc/{pid}/environ")
    except OSError:  # gone, or another user's
        return False
    return f"{durable.MARK_VARIABLE}={mark}".encode() in environment.split(b"\0")
