"""The base of an open log: a copy of its main file, from which an overwritten log is recovered.

Another program can overwrite the main file in place (``cat OTHER > LOG``). The file keeps its identity then, and SQLite
does not notice: pages in the write-ahead log hide those of the main file. But only checkpoints write into the main
file, and the writer of a log makes them itself. So a main file whose size or time of modification has changed otherwise
is examined.

The base is a file without a name, so no other program overwrites it. It is renewed after each checkpoint. The base and
the write-ahead log together have all entries at any time. Closing the main file would drop the locks that SQLite holds
on it in this process (POSIX locks). So it is opened once, and closed after SQLite has closed it.
"""

import os
import shutil
import sqlite3
import tempfile
from contextlib import closing, suppress
from pathlib import Path
from typing import IO, Final

from lifefold.interpreters.store.place import WAL, beside

CHECKPOINT_BYTES: Final = 4_194_304
"""The size of the write-ahead log at which a checkpoint is due; for a large log it is a quarter of the main file."""

LARGEST_BYTES: Final = 268_435_456
"""The size of the largest main file that is copied."""

PIECE_BYTES: Final = 1_048_576
"""The number of bytes that are copied at once."""


class Base:
    """The main file of a log as it is without changes by other programs."""

    def __init__(self, path: Path) -> None:
        """Copy the main file at ``path``."""
        self._path: Final = path
        self._main = _opened(path)
        self._copy: IO[bytes] | None = None
        self._seen: tuple[int, int] | None = None
        self.renew()

    @property
    def is_current(self) -> bool:
        """Whether the main file is unchanged since the last copy, as far as its size and time tell."""
        found = _mark(self._path)
        return found is None or found == self._seen

    @property
    def is_checkpoint_due(self) -> bool:
        """Whether the write-ahead log is so long that its pages belong into the main file."""
        try:
            size_bytes = beside(self._path, WAL).stat().st_size
        except OSError:
            return False
        return size_bytes >= max(CHECKPOINT_BYTES, 0 if self._seen is None else self._seen[0] // 4)

    def renew(self) -> None:
        """Copy the main file again. A full disk, or a very large file, leaves no copy."""
        self._drop()
        self._seen = _mark(self._path)
        if self._main is None or self._seen is None or self._seen[0] > LARGEST_BYTES:
            return
        try:
            copy = self._copy = tempfile.TemporaryFile(dir=self._path.parent)  # noqa: SIM115 - open until the next copy
            while piece := os.pread(self._main, PIECE_BYTES, copy.tell()):
                copy.write(piece)
            copy.flush()
        except OSError:
            self._drop()

    def write(self, draft: Path) -> None:
        """Write the log, as it was before another program changed its main file, into a new file.

        Raises ``OSError`` if there is no copy of the main file, ``sqlite3.Error`` if the parts fit no log.
        """
        if self._copy is None:
            raise FileNotFoundError(f"{self._path} has no copy of its main file")
        self._copy.seek(0)
        wal = beside(draft, WAL)
        try:
            with draft.open("wb") as file:
                shutil.copyfileobj(self._copy, file)
            shutil.copyfile(beside(self._path, WAL), wal)
            with closing(sqlite3.connect(draft)) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("PRAGMA journal_mode = DELETE")
        finally:
            for end in (WAL, "-shm"):
                beside(draft, end).unlink(missing_ok=True)
        with draft.open("rb") as file:
            os.fsync(file.fileno())

    def close(self) -> None:
        """Close the main file, after SQLite has closed it, and give the copy up."""
        self._drop()
        if self._main is not None:
            os.close(self._main)
            self._main = None

    def _drop(self) -> None:
        if self._copy is not None:
            with suppress(OSError):  # what it could not write on a full disk
                self._copy.close()
            self._copy = None


def _opened(path: Path) -> int | None:
    """Open a file to read it; None if it is gone already."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def _mark(path: Path) -> tuple[int, int] | None:
    """Return size and time of modification of a file; None if it cannot be looked at."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns
