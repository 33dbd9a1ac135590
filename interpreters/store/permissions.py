"""File permissions: a new log is readable by its owner only, and its lock follows the permissions of the log."""

import os
from pathlib import Path
from typing import Final

READ: Final = 0o044
"""Read permissions of the group and of all others."""


def make_private_file(path: Path) -> None:
    """Make a new, empty file for its owner only. SQLite gives its files beside it the same permissions."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def permit_as_the_log(log: Path, lock: int) -> None:
    """Give an open lock the read permissions of its log: an operator shares the log only, and forgets the lock."""
    permitted = log.stat().st_mode & READ if log.exists() else 0
    found = os.fstat(lock)
    if permitted & ~found.st_mode and found.st_uid == os.geteuid():
        os.fchmod(lock, (found.st_mode | permitted) & 0o666)
