"""Descriptors of main files that are closed when this process has no log open any more.

A process that closes any descriptor of a file loses all its POSIX locks on the file, also those of SQLite's other
connections. Another process would then take itself for the last one, and remove the write-ahead log that is still read
here. A reader would never see a new entry again.
"""

import os
from threading import Lock
from typing import Final
from weakref import WeakSet

_lock: Final = Lock()
_open: Final = WeakSet[object]()
_ended: Final[list[int]] = []


def opened(store: object) -> None:
    """Note that a store is open in this process."""
    with _lock:
        _open.add(store)


def closed(store: object) -> None:
    """Note that a store is closed; close the ended descriptors if it was the last one. It may be closed already."""
    with _lock:
        _open.discard(store)
        while not _open and _ended:
            os.close(_ended.pop())


def end(descriptor: int) -> None:
    """Close a descriptor as soon as no store is open in this process; ``closed`` does it."""
    with _lock:
        _ended.append(descriptor)
