"""Settling a session without contact to its shim: how it ended, or that it never started.

A shim holds the directory's lock for its whole life. If a process gets the lock, no shim lives, and none can start
until the lock is free. Three cases remain:

1. The end is recorded.
2. There was no start. A mark is left, so that none will follow.
3. The shim died before it could record the end (SIGKILL, or the machine went down), or the record is damaged. The rest
   of the session is killed, and the session is recorded as lost.

A process belongs to the session if it has the recorded identity, or if its environment has the shim's mark. It also
belongs to it if its process group has such a living member, because the number of such a group is not reused. No other
process is signalled. A descendant is not found if it wiped its environment *and* shares a group with no marked process.
On a system without ``/proc`` only the agent itself is found.

An agent can move the directory, put a file or a link in its place, or take its permissions away. Nothing can be read or
recorded there then. So the processes of the session are killed, with a shim that still works in that directory, and the
session counts as lost. If its shim is dead, too, its processes are found by the directory that their environment names.
"""

import contextlib
import errno
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
_REPLACED = frozenset({errno.EACCES, errno.EEXIST, errno.EISDIR, errno.ELOOP, errno.ENOTDIR, errno.ENXIO, errno.EPERM})
"""The errors of a directory that was replaced or closed to its owner. Other errors, as of a full disk, can pass."""

_PROGRAM = b"/shim/__main__.py"


class Unsettled(Enum):
    """Why there is no end to report: the lock is held by a shim or another settlement, or nothing was ever started."""

    HELD = "held"
    NEVER_STARTED = "never started"


def settle(directory: Path, known: SessionStart | None = None) -> SessionExit | Unsettled:
    """Return how the session ended, as above; blocks for some seconds at worst.

    ``known`` is its start, if the caller has it and its shim is dead: agents can change the record. Raises
    SurvivorsError if processes survive SIGKILL; the session is not recorded as over then.
    """
    try:
        return _settle_by_record(directory, known)
    except OSError as error:
        if error.errno not in _REPLACED:
            raise
        found = [*_shims_of(directory), *_left_of(directory)] if known is None else [known]
        why = f"{error.filename or directory} was replaced, or its permissions were changed: {error.strerror}"
        return _lose_without_record(found, why)


def _settle_by_record(directory: Path, known: SessionStart | None) -> SessionExit | Unsettled:
    make_private(directory)
    with _lock(directory) as taken:
        if not taken:
            return Unsettled.HELD
        if (ended := _sound_exit(directory, known)) is not None:
            return ended
        start = known or read_start(directory)
        if start is not None:
            return _lose(directory, start)
        if moved := [*(each for each in _shims_of(directory) if _has_left(each.pid)), *_left_of(directory)]:
            return _lose_without_record(moved, f"{directory} was moved or removed")
        if not durable.exists(str(directory), durable.CANCELLED):
            durable.write_durably(str(directory), durable.CANCELLED, "no shim may start here\n")
        return Unsettled.NEVER_STARTED


def _sound_exit(directory: Path, known: SessionStart | None) -> SessionExit | None:
    """Read the record of the end. A damaged record counts as none, if there was a start."""
    try:
        return read_exit(directory)
    except SessionFileError:
        if known is None and read_start(directory) is None:
            raise
    return None


def is_held(directory: Path) -> bool:
    """Tell whether the lock is held: by a shim, by an agent at its gate, or by a settlement."""
    with _lock(directory) as taken:
        return not taken


@contextlib.contextmanager
def _lock(directory: Path) -> Generator[bool]:
    """Take the directory's lock if it is free, and yield whether it was."""
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
    """Kill the remaining processes of a session with a dead shim, and record it as lost."""
    if start.boot_id != proc.boot_id():
        message, escaped = "the machine was restarted", set[int]()
    else:
        message, escaped = "its shim was killed", _kill_all(start)
    missing = "the record of its end is damaged" if (directory / durable.EXIT).exists() else "its end is not recorded"
    with contextlib.suppress(OSError):  # a full disk: the log is readable anyway
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


def _lose_without_record(found: list[SessionStart], why: str) -> SessionExit:
    """Kill the processes of a session whose directory is not there; its end is recorded nowhere."""
    escaped = set[int]().union(*(_kill_all(start) for start in found if start.boot_id == proc.boot_id()))
    return SessionExit(
        outcome="lost", at_ms=proc.wall_ms(), message=why, escaped=tuple(sorted(escaped))[:_ESCAPED_LIMIT]
    )


def _has_left(shim: int) -> bool:
    """Tell whether a shim that has started its session works in another place than a directory without a start."""
    place = f"/proc/{shim}/cwd"
    try:
        return durable.exists(place, durable.STARTED) or Path(place).stat().st_nlink == 0
    except OSError:  # gone
        return False


def _shims_of(directory: Path) -> list[SessionStart]:
    """Return the living shims that were started for a directory, each as the first process of its session (Linux)."""
    wanted = os.fsencode(directory.absolute())
    living = [(pid, found) for pid in proc.pids() if (found := proc.stat(pid)) is not None and not found.dead]
    return [
        _started_by(pid, found.start_time)
        for pid, found in living
        if (arguments := _arguments(pid))[-1:] == [wanted] and arguments[:-1] and arguments[-2].endswith(_PROGRAM)
    ]


def _left_of(directory: Path) -> list[SessionStart]:
    """Return the sessions with a living process that names this directory and its shim, which may be dead (Linux)."""
    named, mark = (f"{each}=" for each in (durable.PLACE_VARIABLE, durable.MARK_VARIABLE))
    wanted = os.fsencode(f"{named}{directory.absolute()}")
    environments = [each for each in map(_environment, proc.pids()) if wanted in each]
    marks = {each.decode(errors="replace") for of in environments for each in of if each.startswith(mark.encode())}
    shims = [each.removeprefix(mark).split(":") for each in sorted(marks)]
    return [
        _started_by(int(pid), int(started))
        for pid, started, boot_id in (each for each in shims if len(each) == _PARTS)
        if pid.isdecimal() and started.isdecimal() and boot_id == proc.boot_id()
    ]


_PARTS = 3
"""The parts of a mark: number and start time of the shim, and the boot of the machine."""


def _started_by(shim: int, start_time: int) -> SessionStart:
    """Return the start of a session as far as its shim tells it: the shim stands for the agent."""
    return SessionStart(
        pid=shim,
        pgid=shim,
        start_time=start_time,
        boot_id=proc.boot_id(),
        shim_pid=shim,
        shim_start_time=start_time,
        at_ms=0,
        generation=0,
    )


def _arguments(pid: int) -> list[bytes]:
    try:
        return proc.read_bytes(f"/proc/{pid}/cmdline").split(b"\0")[:-1]
    except OSError:  # gone
        return []


def _kill_all(start: SessionStart) -> set[int]:
    """Kill until no process is found; return the pids outside the agent's group."""
    escaped: set[int] = set()
    until_ms = proc.monotonic_ms() + _CONFIRM_MS
    signal_group_if_ours(start.agent, signal.SIGKILL)
    while survivors := _survivors(start):
        if proc.monotonic_ms() >= until_ms:
            pids = sorted(survivor.pid for survivor, _ in survivors)
            raise SurvivorsError(f"processes {pids} are alive {_CONFIRM_MS} ms after SIGKILL")
        for survivor, pgid in survivors:
            if signal_if_ours(survivor, signal.SIGKILL) and pgid != start.pgid:
                escaped.add(survivor.pid)
        time.sleep(_SWEEP_S)
    return escaped


def _survivors(start: SessionStart) -> list[tuple[ProcessIdentity, int]]:
    """Return the session's living processes, each with its process group."""
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
    return f"{durable.MARK_VARIABLE}={mark}".encode() in _environment(pid)


def _environment(pid: int) -> list[bytes]:
    """Return the variables of a process, each with its value; none of a process that is gone or another user's."""
    try:
        return proc.read_bytes(f"/proc/{pid}/environ").split(b"\0")
    except OSError:
        return []
