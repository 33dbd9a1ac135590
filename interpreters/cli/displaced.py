"""Messages about a log that was deleted, moved or replaced: its recovered copy, and the command that goes on."""

import os
import shlex
from itertools import count
from pathlib import Path
from typing import Final

from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.store import Displaced
from lifefold.interpreters.store.place import beside, copies


def sentence(lost: Displaced, run: str) -> str:
    """Return what happened to a log, and the command that goes on from the copy; ``run`` is the usual command."""
    return (
        f"\nlifefold: {lost.path}: the fleet has lost its log: {lost.what}.\n"
        f"A recovered copy has all entries: {lost.copy}\n"
        "The run has ended. A run that goes on from the copy repeats no closed task.\n"
        f"to go on:  {_onward(lost.path, lost.copy, run)}"
    )


def must_not_restart(log: Path, run: str) -> None:
    """Raise ``BadInput`` if a log is gone and has a recovered copy: a new log would repeat all tasks."""
    found = [] if log.exists() else copies(log)
    if found:
        raise BadInput(
            f"{log}: is gone, and {found[-1]} is its recovered copy; to go on from the copy:  "
            f"{_onward(log, found[-1], run)}\n"
            "to begin with an empty log, move the copy away, or name another log with --db"
        )


def _onward(path: Path, copy: Path, run: str) -> str:
    """Return the command that moves other files away, puts the copy in place, and runs the fleet."""
    moves: list[tuple[Path, Path]] = []
    if any(os.path.lexists(beside(path, end)) for end in _ENDS):
        other = _free(path)
        moves = [(beside(path, end), beside(other, end)) for end in _ENDS if os.path.lexists(beside(path, end))]
    moves.append((copy, path))
    return " && ".join([*(f"mv -n {shlex.join(map(str, each))}" for each in moves), run])


def _free(path: Path) -> Path:
    """Return an unused name for the files in the place of a log."""
    names = (beside(path, f".other{'' if number == 1 else f'-{number}'}") for number in count(1))
    return next(each for each in names if not any(os.path.lexists(beside(each, end)) for end in _ENDS))


_ENDS: Final = ("", "-wal", "-shm", "-journal")
"""The suffixes of the files that SQLite treats as one database."""
