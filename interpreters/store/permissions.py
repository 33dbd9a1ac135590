"""Who may read a log: its owner alone, unless the owner opens it; the lock beside it follows the log."""

import os
from pathlib import Path
from typing import Final

READ: Final = 0o044
"""The permissions of a group, and of all others, to read."""


def make_private_file(path: Path) -> None:
    """Make a new, empty file for its owner alone. SQLite gives what it puts beside a file the same permissions."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def permit_as_the_log(log: Path, lock: int) -> None:
    """Let the users take an open lock who may read the log: an operator opens a log to a group, and not its lock."""
    permitted = log.stat().st_mode & READ if log.exists() else 0
    found = os.fstat(lock)
    if permitted & ~found.st_mode and found.st_uid == os.geteuid():
        os.fchmod(lock, (found.st_mode | permitted) & 0o666)
