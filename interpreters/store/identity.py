"""Checks before a file is opened for use: it is a lifefold log, and of a version that this program reads."""

import errno
import os
import sqlite3
import struct
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final

from lifefold.interpreters.store.errors import NotAStore, fault_of_disk, of_disk

SCHEMA_VERSION: Final = 5
WITHOUT_RULES: Final = 4
"""The version whose entries have no column for the version of their rules. It is read, and its next writer adds it."""

READABLE: Final = (WITHOUT_RULES, SCHEMA_VERSION)
APPLICATION_ID: Final = 0x11FEF01D
"""Marks the file as a lifefold log; ``file`` and ``sqlite3`` show it."""


def must_be_ours(path: Path) -> None:
    """Raise ``NotAStore`` unless this program can read the log, and ``PermissionError`` if it may not read the file.

    The file is opened as immutable, so it is neither locked nor recovered. SQLite must read the header: closing the
    file in Python would drop the locks that other connections of this process hold (POSIX locks).
    """
    must_be_a_path(path)
    if not path.is_file():
        what = "is a folder, not a log" if path.is_dir() else "is no regular file, so no log"
        message = f"{path}: {what if path.exists() else 'there is no such log'}"
        raise NotAStore(message)
    if not os.access(path, os.R_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    if not path.stat().st_size:
        message = f"{path}: is not a lifefold log (it is empty)"
        raise NotAStore(message)
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True)) as connection:
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.Error as error:
        header = of_disk(path, partial(_header, path)) if path.with_name(path.name + "-wal").exists() else None
        if header is None:
            if found := fault_of_disk(path, error):
                raise found from error
            message = f"{path}: is not a lifefold log ({error})"
            raise NotAStore(message) from error
        application, version = header  # a full disk may interrupt a checkpoint: SQLite can repair the file
    if application != APPLICATION_ID:
        message = f"{path}: is not a lifefold log (a SQLite file of another program)"
        raise NotAStore(message)
    if version not in READABLE:
        reads = " and ".join(map(str, READABLE))
        message = f"{path}: has version {version}, this lifefold reads {reads}; use the one that wrote it"
        raise NotAStore(message)


def must_be_a_path(path: Path) -> None:
    """Raise ``NotAStore`` for a path that the file system does not accept, such as one that is too long."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    except (OSError, ValueError) as error:
        shown = f"{str(path)[:_SHOWN]}…" if len(str(path)) > _SHOWN else str(path)
        message = f"{shown!r} cannot be the path of a log: {getattr(error, 'strerror', None) or error}"
        raise NotAStore(message) from error


_SHOWN: Final = 100
"""The number of characters shown of a path that is not accepted."""


def _header(path: Path) -> tuple[int, int] | None:
    """Return application id and version from the first bytes of a file; None if it is no SQLite file."""
    with path.open("rb") as file:
        header = file.read(_HEADER.size)
    if len(header) < _HEADER.size or not header.startswith(_MAGIC):
        return None
    _magic, version, application = _HEADER.unpack(header)
    return application, version


_MAGIC: Final = b"SQLite format 3\0"
_HEADER: Final = struct.Struct(">16s 44x i 4x i")
"""The file format's fields at 0, 60 and 68: magic string, user version, application id."""
