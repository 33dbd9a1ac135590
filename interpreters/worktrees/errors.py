"""The errors of workplaces, and of the git commands in them."""

import re
import signal
from pathlib import Path
from typing import Final

STDERR_LINES: Final = 8
"""The number of last lines of git's stderr that an error quotes."""

_BY_SIGNAL: Final = range(130, 193)
"""The exit statuses of a shell whose command died of a signal."""

BY_OTHERS: Final = frozenset({-signal.SIGHUP, -signal.SIGINT, -signal.SIGKILL, -signal.SIGTERM})
"""The exit statuses of a command that another process, or the kernel, has ended. A crash has other ones."""

_DAMAGED: Final = re.compile(r"loose object ([0-9a-f]+) \(stored in (.+?)\) is corrupt")


class WorkplaceError(Exception):
    """A workplace could not be made, or work could not be merged: what is wrong, where, and what to do."""

    def __init__(self, what: str, where: Path, remedy: str) -> None:
        super().__init__(what, where, remedy)
        self.what = what
        self.where = where
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.what} (in {self.where}). {self.remedy}"


class InTheWayError(WorkplaceError):
    """The operation must be retried later: the user's changes, a lock, or a moving branch block it."""


class MergeConflict(WorkplaceError):
    """The work and commits that were merged meanwhile change the same lines or files."""


class GitError(WorkplaceError):
    """A git command failed, with its exit ``status`` if it has ended; ``stderr`` is the end of its error output.

    ``damaged`` is the file of the damaged object that git has found; empty without one.
    """

    def __init__(self, command: str, where: Path, stderr: str, status: int = 0) -> None:
        quoted = "\n".join(stderr.splitlines()[-STDERR_LINES:])
        what, remedy = f"git {command} failed: {quoted}", "Correct what git reports."
        found = _DAMAGED.search(stderr)
        self.damaged: Final = found[2] if found else ""
        if found:
            what = f"git {command} failed, because the object {found[1]} is damaged, at {found[2]}"
            remedy = (
                f"Put it back: rm '{found[2]}', and then copy the file from another clone, or run git hash-object -w "
                "on the file with that content. git fsck lists all damage. The operation is retried by itself."
            )
        super().__init__(what, where, remedy)
        self.stderr = stderr
        self.was_killed = status < 0 or status in _BY_SIGNAL


class PipeError(GitError, InTheWayError):
    """A git command waited at a named pipe, where it would wait for ever."""

    def __init__(self, command: str, where: Path, pipe: str) -> None:
        super().__init__(command, where, f"it waited at the named pipe {pipe}")
        self.what = f"git {command} waited for ever at the named pipe {pipe}, which an agent may have put there"
        self.remedy = f"Put the file back in its place, or remove the pipe: rm '{pipe}'."


class LockedError(GitError, InTheWayError):
    """A git command failed because another one is running, or has died and left its lock file."""


class KilledError(GitError, InTheWayError):
    """Another process has ended a git command by a signal, or the kernel has, for want of memory."""

    def __init__(self, command: str, where: Path, stderr: str, status: int) -> None:
        super().__init__(command, where, stderr, status)
        self.remedy = "The operation is retried by itself."


class TakenOverError(WorkplaceError):
    """Another run, with the log ``log``, has taken over the name of the fleet in its repository."""

    def __init__(self, what: str, where: Path, remedy: str, log: Path) -> None:
        super().__init__(what, where, remedy)
        self.log = log
