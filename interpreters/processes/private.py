"""New files and folders for their owner only, with any umask. Existing ones keep their permissions."""

import os
from pathlib import Path
from typing import IO, Final, Literal

from lifefold.interpreters.processes.shim import durable

FOLDER: Final = 0o700
"""The permissions of a new folder: all for the owner, none for other users."""

OTHERS: Final = 0o007
"""The permissions of a user who is neither the owner nor in the group."""


def make_private(folder: Path) -> None:
    """Make a folder and its missing parents for the owner only."""
    missing = [each for each in (folder, *folder.parents) if not each.is_dir()]
    for each in reversed(missing):
        each.mkdir(mode=FOLDER, exist_ok=True)


def make_private_file(path: Path) -> None:
    """Make an empty file for the owner only; an existing file is not changed, and anything else is replaced."""
    os.close(durable.open_to_write(str(path)))


def open_private(path: Path, mode: Literal["w", "a"] = "w") -> IO[str]:
    """Open a text file in UTF-8; a new file is made for the owner only.

    An agent can put a link or a pipe at the path. It is replaced, see ``open_to_write``.
    """
    return open(path, mode, encoding="utf-8", errors="backslashreplace", opener=_private)


def is_open_to_others(path: Path) -> bool:
    """Tell whether a file or folder exists and users outside its owner and group may reach it."""
    try:
        return bool(path.stat().st_mode & OTHERS and path.absolute().parent.stat().st_mode & OTHERS)
    except OSError:
        return False


def _private(path: str, flags: int) -> int:
    return durable.open_to_write(path, flags & ~os.O_ACCMODE)


def write_whole(file: Path, text: str) -> None:
    """Replace a file atomically, readable by its owner only: a reader finds the old text or the new one."""
    make_private(file.parent)
    draft = file.with_name(f"{file.name}.new")
    with open_private(draft) as new:
        new.write(text)
    draft.replace(file)
