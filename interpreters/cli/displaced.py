"""What an operator is told of a log that was deleted, moved or replaced: where its copy is, and how to go on."""

import os
import shlex
from itertools import count
from pathlib import Path
from typing import Final

from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.store import Displaced
from lifefold.interpreters.store.place import beside, copies


def told(lost: Displaced, run: str) -> str:
    """Say what happened to a log under its fleet, and which command goes on from the copy; ``run`` is the usual one."""
    return (
        f"\nlifefold: {lost.path}: the log was taken away under the fleet: {lost.what}.\n"
        f"All that the fleet has done is in a recovered copy: {lost.copy}\n"
        "The run has ended. The run that goes on from the copy does no task again that is closed.\n"
        f"to go on:  {_onward(lost.path, lost.copy, run)}"
    )


def must_not_begin_anew(log: Path, run: str) -> None:
    """Raise ``BadInput`` where a log is gone and a recovered copy of it is there: all of it would be done again."""
    found = [] if log.exists() else copies(log)
    if found:
        raise BadInput(
            f"{log}: is gone, and {found[-1]} is a recovered copy of it; to go on from it:  "
            f"{_onward(log, found[-1], run)}\n"
            "to begin with an empty log, move the copy away, or name another log with --db"
        )


def _onward(path: Path, copy: Path, run: str) -> str:
    """Return the command that puts a copy into its place, what is there out of the way, and runs the fleet."""
    moves: list[tuple[Path, Path]] = []
    if any(os.path.lexists(beside(path, end)) for end in _ENDS):
        other = _free(path)
        moves = [(beside(path, end), beside(other, end)) for end in _ENDS if os.path.lexists(beside(path, end))]
    moves.append((copy, path))
    return " && ".join([*(f"mv -n {shlex.join(map(str, each))}" for each in moves), run])


def _free(path: Path) -> Path:
    """Return a name for what is in the way of a log, of which nothing is there yet."""
    names = (beside(path, f".other{'' if number == 1 else f'-{number}'}") for number in count(1))
    return next(each for each in names if not any(os.path.lexists(beside(each, end)) for end in _ENDS))


_ENDS: Final = ("", "-wal", "-shm", "-journal")
"""What SQLite takes for parts of one file."""
