"""Moving foreign files aside from the fleet's own paths: they are never removed, and links are never followed."""

import os
import stat
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final

from lifefold.interpreters.worktrees.pinned import is_folder

DISPLACED: Final = "a link or a file stands where the place to work was"
"""The description of a workplace that an agent has replaced."""


def is_taken(path: Path) -> bool:
    """Tell whether a path exists, also as a broken link."""
    return os.path.lexists(path)


def set_aside(path: Path, aside: Path) -> None:
    """Move the file or folder at ``path`` into the folder ``aside``, where it is no worktree any more.

    A symbolic link is moved itself; its target is not touched.
    """
    if not is_taken(path):
        return
    if is_folder(path) and not is_folder(path / ".git"):
        (path / ".git").unlink(missing_ok=True)
    move_into(aside, path)


def move_into(folder: Path, path: Path) -> None:
    """Move the file or folder at ``path`` into a folder of the fleet, in one step."""
    make_own(folder)
    _rename(path, folder)


def make_own(folder: Path) -> None:
    """Make a folder of the fleet; anything else at that path is renamed."""
    if is_taken(folder) and not is_folder(folder):
        _rename(folder, folder.parent)
    folder.mkdir(parents=True, exist_ok=True)


def make_room(file: Path) -> None:
    """Free the path of a file of the fleet: anything but a file at that path is renamed."""
    if is_taken(file) and not _is_file(file):
        _rename(file, file.parent)


def read_regular(file: Path, limit: int) -> bytes:
    """Return the contents of a file of the fleet; empty if it is a link, a pipe or a device."""
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
    """Move a path into a folder under a free name: its old name and a number."""
    places = (to / f"{path.name}-{number}" for number in count(1))
    path.rename(next(place for place in places if not is_taken(place)))


def is_displaced(folder: Path) -> bool:
    """Tell whether a link or a file is at the path of a workplace, or of the folder of all workplaces."""
    return any(is_taken(path) and not is_folder(path) for path in (folder, folder.parent))
