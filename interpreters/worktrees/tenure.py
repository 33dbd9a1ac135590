"""The tenure of a fleet's name in a repository: one run owns it, because references contain the name and not the run.

There is one file per name, in the git directory that all worktrees share. A run locks it while it works, so that no run
of another log uses the same claims beside it. The file names the run, also while the run does not work. A new run can
take the name over, and then the earlier run cannot be continued.
"""

import os
from pathlib import Path
from typing import Final

from lifefold.interpreters.worktrees.aside import make_own, make_room, read_regular
from lifefold.interpreters.worktrees.errors import TakenOverError, WorkplaceError
from lifefold.interpreters.worktrees.git import path_name
from lifefold.interpreters.worktrees.locks import open_lock, try_to_take

LIMIT_BYTES: Final = 65_536
"""The number of bytes that are read of the file; it has a short word and a path."""


class Tenure:
    """A fleet's name in a repository, locked against all other runs until ``close``.

    Raises WorkplaceError, with the log of the other run, if another run has locked it.
    """

    def __init__(self, git_directory: Path, fleet: str) -> None:
        self._fleet: Final = fleet
        self._file: Final = _file(git_directory, fleet)
        try:
            make_own(self._file.parent)
            make_room(self._file)
            self._descriptor = open_lock(self._file)
            taken = try_to_take(self._descriptor)
        except OSError as error:
            raise WorkplaceError(
                f"Nothing can be written: {error.strerror}", self._file, "Make it writable."
            ) from error
        if not taken:
            _run, log = self._owner()
            os.close(self._descriptor)
            what = f"A run of the fleet {fleet!r} is at work in this repository{f', with the log {log}' if log else ''}"
            raise WorkplaceError(what, git_directory, "Leave it first, with Ctrl-C, or give this fleet another name.")

    def begin(self, run: str, log: Path) -> None:
        """Give the name to a run, durably; the file also has the path of its log, for error messages."""
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, os.fsencode(f"{run}\n{log.absolute()}\n"), 0)
        os.fsync(self._descriptor)

    def must_be_of(self, run: str) -> None:
        """Raise TakenOverError if the name belongs to another run."""
        owner, log = self._owner()
        if owner not in {"", run}:
            what = f"Another run has taken over the name of the fleet {self._fleet!r} here, with the log {log}"
            remedy = "Continue that run, or start a new one with another --db."
            raise TakenOverError(what, self._file, remedy, Path(log))

    def close(self) -> None:
        """Release the name for other runs."""
        os.close(self._descriptor)

    def _owner(self) -> tuple[str, str]:
        """Return the run that owns the name, and its log; empty texts if no run owns it yet."""
        return _parsed(os.pread(self._descriptor, LIMIT_BYTES, 0))


def holder(git_directory: Path, fleet: str) -> tuple[str, str]:
    """Return the run that owns a fleet's name, and its log; empty texts if no run does. Nothing is changed."""
    return _parsed(read_regular(_file(git_directory, fleet), LIMIT_BYTES))


def _file(git_directory: Path, fleet: str) -> Path:
    return git_directory / "lifefold" / path_name(fleet)


def _parsed(text: bytes) -> tuple[str, str]:
    run, _, log = os.fsdecode(text).partition("\n")
    return (run, log.removesuffix("\n")) if log else ("", "")  # without a newline no run has written it completely
