"""Things that are in the way of a fleet's own places: moved aside, never removed, and never through a link."""

import os
from itertools import count
from pathlib import Path
from typing import Final

from lifefold.interpreters.body.pinned import is_folder

DISPLACED: Final = "a link or a file stands where the place to work was"
"""What is wrong with a place that an agent has replaced."""


def is_taken(path: Path) -> bool:
    """Tell whether anything is at a path, be it a link to nothing."""
    return os.path.lexists(path)


def set_aside(path: Path, aside: Path) -> None:
    """Move whatever is at ``path`` into the folder ``aside``, where it is no worktree any more.

    Of a symbolic link that is the link; what it points to is not touched.
    """
    if not is_taken(path):
        return
    if is_folder(path) and not is_folder(path / ".git"):
        (path / ".git").unlink(missing_ok=True)
    move_into(aside, path)


def move_into(folder: Path, path: Path) -> None:
    """Move what is at ``path`` into a folder of a fleet's own, in one step."""
    make_own(folder)
    _rename(path, folder)


def make_own(folder: Path) -> None:
    """Make a folder of a fleet's own; what is there and is none is renamed."""
    if is_taken(folder) and not is_folder(folder):
        _rename(folder, folder.parent)
    folder.mkdir(parents=True, exist_ok=True)


def _rename(path: Path, to: Path) -> None:
    """Give a path a name of its own in a folder: its old one and a number."""
    places = (to / f"{path.name}-{number}" for number in count(1))
    path.rename(next(place for place in places if not is_taken(place)))


def is_displaced(folder: Path) -> bool:
    """Tell whether a link or a file stands where a place to work, or the folder of all places, should be."""
    return any(is_taken(path) and not is_folder(path) for path in (folder, folder.parent))
