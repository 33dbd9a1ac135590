"""Which run a fleet's name in a repository belongs to: the references there carry the name, and not the run.

A file for the name, in the git directory that all worktrees share, is locked for as long as a run works there: no
other one, from another log, may begin beside it and take up its claims. The file says which run that is, also when it
does not work: it lasts until a new run takes the name over, and then the one before cannot be continued.
"""

import os
from pathlib import Path
from typing import Final

from lifefold.interpreters.worktrees.aside import make_own, make_room
from lifefold.interpreters.worktrees.errors import WorkplaceError
from lifefold.interpreters.worktrees.git import path_name
from lifefold.interpreters.worktrees.locks import open_lock, try_to_take

LIMIT_BYTES: Final = 65_536
"""How much of the file is read; it has a short word and a path."""


class Tenure:
    """A fleet's name in a repository, held against all other runs until ``close``.

    Raises WorkplaceError if another run holds it, and says which log that has.
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
            raise WorkplaceError(f"Nothing can be written: {error.strerror}", self._file, "See to it.") from error
        if not taken:
            _run, log = self._told()
            os.close(self._descriptor)
            what = f"A run of the fleet {fleet!r} is at work in this repository{f', with the log {log}' if log else ''}"
            raise WorkplaceError(what, git_directory, "Leave it first, with Ctrl-C, or give this fleet another name.")

    def begin(self, run: str, log: Path) -> None:
        """Let the name belong to a run, for good; for people, the log of it is noted, too."""
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, os.fsencode(f"{run}\n{log.absolute()}\n"), 0)
        os.fsync(self._descriptor)

    def must_be_of(self, run: str) -> None:
        """Raise WorkplaceError if the name belongs to another run than this one."""
        owner, log = self._told()
        if owner not in {"", run}:
            what = f"Another run has taken over the name of the fleet {self._fleet!r} here, with the log {log}"
            raise WorkplaceError(what, self._file, "Continue that one, or begin anew with another --db.")

    def close(self) -> None:
        """Let other runs use the name."""
        os.close(self._descriptor)

    def _told(self) -> tuple[str, str]:
        """Return the run to which the name belongs, and its log; empty texts if it belongs to none yet."""
        return _read(self._descriptor)


def holder(git_directory: Path, fleet: str) -> str:
    """Return the run to which a fleet's name belongs; an empty text if it belongs to none. Nothing is changed."""
    try:
        descriptor = os.open(_file(git_directory, fleet), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return _read(descriptor)[0]
    finally:
        os.close(descriptor)


def _file(git_directory: Path, fleet: str) -> Path:
    return git_directory / "lifefold" / path_name(fleet)


def _read(descriptor: int) -> tuple[str, str]:
    run, _, log = os.fsdecode(os.pread(descriptor, LIMIT_BYTES, 0)).partition("\n")
    return (run, log.removesuffix("\n")) if log else ("", "")  # what no run has written says nothing
