"""Named pipes at which git waits for ever: an agent can put one at any path that git opens.

Opening a named pipe waits for a process at its other end. Every git command of the repository would wait at a pipe in
place of ``config`` or ``packed-refs``, and at one that the configuration includes. So a git command that takes long is
looked at: the system shows the call that a process waits in, with its arguments (Linux). If that cannot be read, the
files that every git command reads are looked at.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from lifefold.interpreters.processes.shim import proc

SHARED: Final = (
    *("HEAD", "commondir", "config", "config.worktree", "index", "packed-refs", "shallow"),
    *("info/attributes", "info/exclude", "info/sparse-checkout", "logs/HEAD", "objects/info/alternates"),
)
"""The files of a git directory that are looked at if the system does not show what a process waits for."""

_PATH_BYTES: Final = 4_096
_DESCRIPTORS: Final = 1_024


def pipe_before(group: int, directory: Path | None) -> str:
    """Return the path of the pipe at which a process of a group waits; empty if none does.

    ``directory`` is the git directory of the command, if it is known.
    """
    pids = [pid for pid in proc.pids() if (found := proc.stat(pid)) is not None and found.pgid == group]
    calls = {pid: call for pid in pids if (call := _call_of(pid)) is not None}
    if calls or directory is None:
        return next((str(path) for pid, call in calls.items() for path in _paths_in(pid, call) if _is_pipe(path)), "")
    return next((str(directory / name) for name in SHARED if _is_pipe(directory / name)), "")


def _call_of(pid: int) -> tuple[int, ...] | None:
    """Return the arguments of the system call that a process is in; None if that cannot be read."""
    try:
        words = proc.read_bytes(f"/proc/{pid}/syscall", _PATH_BYTES).split()
    except OSError:
        return None
    return tuple(int(word, 16) for word in words[1:3])


def _paths_in(pid: int, call: tuple[int, ...]) -> Iterator[Path]:
    """Yield the files that the arguments of a call can mean: as a descriptor, or as the address of a path."""
    for argument in call:
        if argument < _DESCRIPTORS:
            try:
                named = Path(f"/proc/{pid}/fd/{argument}").readlink()
            except OSError:
                continue
            if named.is_absolute():  # a pipe without a name is called pipe:[NUMBER]
                yield named
        elif text := _text_at(pid, argument):
            yield _folder_of(pid) / text


def _text_at(pid: int, address: int) -> str:
    """Return the text at an address of a process; empty if there is none."""
    try:
        with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
            memory.seek(address)
            text, end, _ = memory.read(_PATH_BYTES).partition(b"\0")
    except (OSError, ValueError, OverflowError):
        return ""
    return os.fsdecode(text) if end else ""


def _folder_of(pid: int) -> Path:
    """Return the working directory of a process."""
    try:
        return Path(f"/proc/{pid}/cwd").readlink()
    except OSError:
        return Path()


def _is_pipe(path: Path) -> bool:
    try:
        return stat.S_ISFIFO(path.stat().st_mode)
    except (OSError, ValueError):
        return False
