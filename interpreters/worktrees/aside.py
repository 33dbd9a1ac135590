"""Things that are in the way of a fleet's own places: moved aside, never removed, and never through a link."""

import os
import stat
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final

from lifefold.interpreters.worktrees.pinned import is_folder

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


def make_room(file: Path) -> None:
    """Rename what stands where a file of a fleet's own is to be, and is none."""
    if is_taken(file) and not _is_file(file):
        _rename(file, file.parent)


def read_regular(file: Path, limit: int) -> bytes:
    """Return what a file of a fleet's own says; nothing if it is a link, or none that has an end."""
    with suppress(OSError):
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as opened:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return opened.read(limit)
    return b""


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def _rename(path: Path, to: Path) -> None:
    """Give a path a name of its own in a folder: its old one and a number."""
    places = (to / f"{path.name}-{number}" for number in count(1))
    path.rename(next(place for place in places if not is_taken(place)))


def is_displaced(folder: Path) -> bool:
    """Tell whether a link or a file stands where a place to work, or the folder of all places, should be."""
    return any(is_taken(path) and not is_folder(path) for path in (folder, folder.parent))
