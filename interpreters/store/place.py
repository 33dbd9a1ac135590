"""The place of an open log: noticing that its file was moved or deleted, and copying it back.

SQLite keeps a deleted or moved file open and continues to write to it. Those writes are lost with the process. A runner
that opens the path then finds no log, or another one. So a writer compares device and inode numbers: those of the files
at the paths with those of its open files.
"""

import os
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from lifefold.interpreters.store.permissions import make_private_file
from lifefold.interpreters.store.protocol import StoreError

COPY: Final = ".recovered"
"""The end of the name of a recovered copy; a second copy ends with ``.recovered-2``, and so on."""

WAL: Final = "-wal"
"""The end of the name of the write-ahead log."""

OVERWRITTEN: Final = "another program has overwritten the file"
"""What happened to a log whose file is in place and has other contents."""

Identity: TypeAlias = tuple[int, int]
"""Device and inode number."""


class Displaced(NamedTuple):
    """A log that is no longer at its ``path``: ``what`` happened, and the ``copy`` that its store continues in."""

    path: Path
    what: str
    copy: Path


class Sighted(NamedTuple):
    """The files of a log at their paths: None for one that is not there. ``is_known`` unless the file system fails."""

    main: os.stat_result | None
    wal: os.stat_result | None
    is_known: bool = True


class Place:
    """The files at the path of a log, and beside it, when the log was opened."""

    def __init__(self, path: Path) -> None:
        """Record the present files."""
        self.path: Final = path
        self._wal: Final = beside(path, WAL)
        self._paths: Final = str(path), str(self._wal)
        self._files: Final = {end: _identity(beside(path, end)) for end in _ENDS}

    def sighted(self) -> Sighted:
        """Look at the main file and the write-ahead log. A writer does that at each batch, so each is asked once."""
        main, wal = self._paths
        try:
            return Sighted(_found(main), _found(wal))
        except OSError:
            return Sighted(None, None, is_known=False)

    def displaced(self, seen: Sighted) -> str:
        """Return what happened to the log; empty if it is in place, or if the file system gives no answer."""
        if not seen.is_known:
            return ""
        with suppress(OSError):
            # The main file is None if it was gone while it was being opened.
            if self._files[""] is None or _of(seen.main) != self._files[""]:
                return self._what(is_free=not os.path.lexists(self.path))
            if self._files[WAL] is not None and _of(seen.wal) != self._files[WAL]:
                is_there = os.path.lexists(self._wal)
                return f"its write-ahead log {self._wal.name} was {'replaced' if is_there else 'deleted'}"
        return ""

    def leave(self, connection: sqlite3.Connection) -> None:
        """Close a displaced log, so that a moved file is complete and no part of it remains at the old path.

        SQLite would take a remaining write-ahead log for a part of the next file at that path.
        """
        if _identity(self.path) != self._files[""]:
            with suppress(sqlite3.Error):
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._close(connection)

    def abandon(self, connection: sqlite3.Connection) -> None:
        """Close a log that another program has overwritten, without writing into that program's file.

        SQLite would write the pages of the write-ahead log into it. Without these pages the attempt fails.
        """
        with suppress(OSError):
            if self._files[WAL] is not None and _identity(self._wal) == self._files[WAL]:
                os.truncate(self._wal, 0)
        self._close(connection)

    def _close(self, connection: sqlite3.Connection) -> None:
        """Close a log, and remove the files beside it."""
        with suppress(sqlite3.Error):
            connection.close()
        for end in _ENDS[1:]:
            left = beside(self.path, end)
            with suppress(OSError):
                if self._files[end] is not None and _identity(left) == self._files[end]:
                    left.unlink()

    def _what(self, *, is_free: bool) -> str:
        now = _path_of_the_open_file(self._files[""])
        if now is None:
            return "the file was deleted" if is_free else "the file was replaced by another one"
        return f"the file was moved to {now}{'' if is_free else ', and another one is in its place'}"


def recover(write: Callable[[Path], None], path: Path, what: str) -> Path:
    """Write a durable copy of an open log beside its path, under a free name; return the path of the copy.

    ``what`` says what happened to the log. ``write`` writes the log into a new file. If the folder of the log is not
    writable, the copy is in the folder for temporary files. Raises ``StoreError``.
    """
    try:
        return _copied(write, path)
    except (OSError, sqlite3.Error) as error:
        try:
            return _copied(write, Path(tempfile.mkdtemp(prefix="lifefold-")) / path.name)
        except (OSError, sqlite3.Error):
            message = f"{path}: {what}, and a copy cannot be written: {error}"
            raise StoreError(message) from error


def backed_up(connection: sqlite3.Connection, draft: Path) -> None:
    """Write an open log into a new file."""
    with closing(sqlite3.connect(draft)) as target:
        connection.backup(target)


def copies(path: Path) -> list[Path]:
    """Return the recovered copies beside the path of a log, the newest last."""
    found: list[Path] = []
    for number in count(1):
        copy = _copy(path, number)
        if not copy.exists():
            break
        found.append(copy)
    return found


def flush_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _copied(write: Callable[[Path], None], path: Path) -> Path:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    copy = _claimed(lambda number: _copy(path, number))
    draft = beside(copy, ".new")
    try:
        draft.unlink(missing_ok=True)
        make_private_file(draft)
        write(draft)
        draft.replace(copy)
    except BaseException:
        draft.unlink(missing_ok=True)
        copy.unlink(missing_ok=True)
        raise
    flush_folder(path.parent)
    return copy


def _claimed(name: Callable[[int], Path]) -> Path:
    """Make an empty file under the first free name, and return it."""
    for number in count(1):
        with suppress(FileExistsError):
            make_private_file(name(number))
            return name(number)
    raise AssertionError  # there is always one more number


def _copy(path: Path, number: int) -> Path:
    return beside(path, COPY if number == 1 else f"{COPY}-{number}")


def beside(path: Path, end: str) -> Path:
    """Return the path whose name is that of a log plus ``end``."""
    return path.with_name(path.name + end)


def _identity(path: Path) -> Identity | None:
    """Return the identity of the file at a path; None if there is none. Raises ``OSError`` for other failures."""
    return _of(_found(str(path)))


def _found(path: str) -> os.stat_result | None:
    """Return the status of the file at a path; None if there is none. Raises ``OSError`` for other failures."""
    try:
        return os.stat(path)  # noqa: PTH116 - at each batch of a writer, and a ``Path`` takes three times as long
    except (FileNotFoundError, NotADirectoryError):
        return None


def _of(found: os.stat_result | None) -> Identity | None:
    return None if found is None else (found.st_dev, found.st_ino)


def _path_of_the_open_file(identity: Identity | None) -> Path | None:
    """Return the present path of a file that this process has open; None if it was deleted or cannot be found."""
    with suppress(OSError):
        for each in Path("/proc/self/fd").iterdir():
            with suppress(OSError):
                if _identity(each) == identity and _identity(now := each.readlink()) == identity:
                    return now
    return None


_ENDS: Final = ("", WAL, "-shm")
