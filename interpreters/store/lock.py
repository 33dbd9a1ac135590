"""The lock of a log: an advisory lock on a file beside it, which the kernel releases when its process ends."""

import fcntl
import os
import time
from pathlib import Path
from typing import Final

from lifefold.interpreters.store.errors import Locked, fault_of_disk
from lifefold.interpreters.store.permissions import permit_as_the_log
from lifefold.interpreters.store.protocol import StoreError

LOCK_TRIES: Final = 20
LOCK_PAUSE_S: Final = 0.05
"""The number of tries of a writer to take the lock, and the pause between them."""


def take_lock(path: Path) -> int:
    """Take the lock of a log and return its open file, which keeps it. Raises ``Locked``, ``StoreError``."""
    lock = _open_lock(path, os.O_CREAT)
    permit_as_the_log(path, lock)
    for _ in range(LOCK_TRIES):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(LOCK_PAUSE_S)  # a reader may hold the lock briefly, to find out whether a writer exists
        except OSError as error:
            os.close(lock)
            raise _unlockable(path, error) from error
        else:
            return lock
    os.close(lock)
    message = f"{path}: another lifefold is running on this log; leave it with Ctrl-C there first, or use another --db"
    raise Locked(message)


def is_taken(path: Path) -> bool:
    """Tell whether a process has the lock of a log now. Raises ``StoreError``."""
    try:
        lock = _open_lock(path)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as error:
        raise _unlockable(path, error) from error
    finally:
        os.close(lock)
    return False


def _open_lock(path: Path, flags: int = 0) -> int:
    """Open the lock of a log. Raises ``FileNotFoundError`` if there is none, ``StoreError`` if it cannot be opened."""
    try:
        # With O_NONBLOCK, a pipe at this path does not block the process.
        return os.open(lock_file(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags, 0o600)
    except (FileNotFoundError, PermissionError):
        raise
    except OSError as error:
        found = fault_of_disk(path, error)
        if found is not None:
            raise found from error
        message = f"{lock_file(path)}: is no lock of a log ({error.strerror}); if no run is at work there, remove it"
        raise StoreError(message) from error


def _unlockable(path: Path, error: OSError) -> StoreError:
    """Return the error for a file system that has no locks."""
    return StoreError(f"{lock_file(path)}: cannot be locked ({error}); keep the log on a disk of this machine")


def lock_file(path: Path) -> Path:
    """Return the path of the lock of a log."""
    return path.with_name(path.name + ".lock")
