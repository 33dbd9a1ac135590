"""File locks that a git command shares with its runner: they are free only when both are done.

A runner can be killed at any moment, and a git command that it has started continues. If only the runner held the lock,
the next runner would work beside that command, in the same worktree. So every git command inherits the locks of its
task (``held``), and the next runner waits until the command has ended.

No other program inherits them: they are closed on exec, and agents are started by a shim. A background process of git,
such as a filter that became a daemon, may inherit a lock from git. A living runner still frees its locks for all
processes that share them. If the runner is dead, no other process waits longer than ``LIMIT_MS``.
"""

import fcntl
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

import anyio

from lifefold.interpreters.processes.shim import proc
from lifefold.interpreters.worktrees.errors import InTheWayError

LIMIT_MS = 30_000
POLL_MS = 20
"""The longest wait for a lock in one try, and the pause between two checks."""

_held: ContextVar[tuple[int, ...]] = ContextVar("held", default=())


def held() -> tuple[int, ...]:
    """Return the descriptors of the locks that the present task holds."""
    return _held.get()


@asynccontextmanager
async def holding(file: Path, limit_ms: int | None = None) -> AsyncGenerator[None, None]:
    """Hold the lock on a file; make the file if it does not exist.

    Raises InTheWayError if another process holds it for longer than ``limit_ms`` (``LIMIT_MS`` if that is None).
    """
    before = _held.get()
    descriptor = open_lock(file)
    try:
        await _take(descriptor, file, LIMIT_MS if limit_ms is None else limit_ms)
        _held.set((*before, descriptor))
        yield
    finally:
        _held.set(before)
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # after closing alone, processes that inherited it would still hold it
        os.close(descriptor)


def open_lock(file: Path) -> int:
    """Open a file for ``try_to_take``; closing the descriptor releases the lock."""
    file.parent.mkdir(parents=True, exist_ok=True)
    return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def try_to_take(descriptor: int) -> bool:
    """Take the lock, unless another process holds it; return whether it was taken."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_taken(file: Path) -> bool:
    """Tell whether another process has the lock on a file."""
    descriptor = open_lock(file)
    try:
        return not try_to_take(descriptor)
    finally:
        os.close(descriptor)


async def _take(descriptor: int, file: Path, limit_ms: int) -> None:
    with anyio.move_on_after(limit_ms / 1000):
        while not try_to_take(descriptor):  # noqa: ASYNC110 - another process sets no event here
            await anyio.sleep(POLL_MS / 1000)
        return
    pids = who_has(os.fstat(descriptor))
    who = ", ".join(f"process {pid}" for pid in pids) or "another process"
    what = f"An earlier git command or runner is still at work here: {who}"
    raise InTheWayError(what, file, "End it, if it hangs; the operation is retried then.")


def who_has(wanted: os.stat_result) -> list[int]:
    """Return the other processes that have a file open, as far as the system shows them (Linux)."""
    return [pid for pid in proc.pids() if pid != os.getpid() and _has_open(pid, wanted)]


def _has_open(pid: int, wanted: os.stat_result) -> bool:
    folder = Path(f"/proc/{pid}/fd")
    with suppress(OSError):  # it is dead, or belongs to another user
        return any(os.path.samestat(open_file.stat(), wanted) for open_file in folder.iterdir())
    return False
