"""Files and folders for their owner alone, whatever the umask is. What is there already keeps its permissions."""

import os
from pathlib import Path
from typing import IO, Final, Literal

FILE: Final = 0o600
FOLDER: Final = 0o700
"""What a new file, and a new folder, permits: everything to its owner, and nothing to other users."""

OTHERS: Final = 0o007
"""The permissions of a user who is neither the owner nor in the group."""


def make_private(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for the owner alone."""
    missing = [each for each in (folder, *folder.parents) if not each.is_dir()]
    for each in reversed(missing):
        each.mkdir(mode=FOLDER, exist_ok=True)


def make_private_file(path: Path) -> None:
    """Make an empty file for the owner alone; a file that is there is left as it is."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, FILE))


def open_private(path: Path, mode: Literal["w", "a"] = "w") -> IO[str]:
    """Open a text file in UTF-8; one that is not there yet is made for the owner alone."""
    return open(path, mode, encoding="utf-8", errors="backslashreplace", opener=_private)


def is_open_to_others(path: Path) -> bool:
    """Tell whether users who are neither the owner nor in the group may reach a file or a folder that is there."""
    try:
        return bool(path.stat().st_mode & OTHERS and path.absolute().parent.stat().st_mode & OTHERS)
    except OSError:
        return False


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, FILE)
