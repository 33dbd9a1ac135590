"""The base of an open log: a copy of its main file, from which an overwritten log is recovered.

Another program can overwrite the main file in place (``cat OTHER > LOG``). The file keeps its identity then, and SQLite
does not notice: pages in the write-ahead log hide those of the main file. But only checkpoints write into the main
file, and the writer of a log makes them itself. So a main file whose size or time of modification has changed otherwise
is examined.

The base is a file without a name, so no other program overwrites it. After each checkpoint it follows: the pages in the
write-ahead log are copied, which are those that the checkpoint has written. So the cost depends on the size of the
write-ahead log, not on that of the main file. The base and the write-ahead log together have all entries at any time.
The writer of one operator command has the log for moments only, and copies nothing: it reads what the command needs.
Closing the main file would drop the locks that SQLite holds on it in this process (POSIX locks). So it is opened once,
and closed after the last connection of this process (``descriptors``).
"""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import groupby
from pathlib import Path
from typing import IO, Final, NamedTuple

from lifefold.interpreters.store import descriptors
from lifefold.interpreters.store.place import WAL, Sighted, beside

CHECKPOINT_BYTES: Final = 4_194_304
"""The growth of the write-ahead log after which a checkpoint is due."""

LARGEST_BYTES: Final = 268_435_456
"""The size of the largest main file that is copied."""

PIECE_BYTES: Final = 1_048_576
"""The number of bytes that are copied at once."""

WAL_HEADER_BYTES: Final = 32
FRAME_HEADER_BYTES: Final = 24
"""The sizes of the headers in a write-ahead log. The number of the page is first in the header of its frame."""


class _Mark(NamedTuple):
    """The size of a file, and its time of modification in nanoseconds of Unix time."""

    size_bytes: int = 0
    modified_ns: int = 0


_NO_FILE: Final = _Mark()
"""The mark of a file that cannot be looked at."""


class Base:
    """The main file of a log as it is without changes by other programs."""

    def __init__(self, path: Path, *, copies: bool = True) -> None:
        """Copy the main file at ``path``; without ``copies`` it is only observed, and cannot be recovered."""
        self._path: Final = path
        self._wal: Final = beside(path, WAL)
        self._copies: Final = copies
        self._main = _opened(path) if copies else None
        self._copy: IO[bytes] | None = None
        self._seen = _NO_FILE
        self._followed_bytes = 0
        self.renew()

    def is_current(self, seen: Sighted) -> bool:
        """Tell whether the main file is unchanged since the last copy, as far as its size and time tell."""
        found = _mark_of(seen.main)
        return found in (_NO_FILE, self._seen)

    def is_checkpoint_due(self, seen: Sighted) -> bool:
        """Tell whether the write-ahead log has grown so much that its pages belong into the main file.

        It begins again at a commit after a checkpoint, and is shortened then (``journal_size_limit``). While another
        process reads an earlier state, it only grows.
        """
        size_bytes = _mark_of(seen.wal).size_bytes
        self._followed_bytes = min(self._followed_bytes, size_bytes)
        return size_bytes - self._followed_bytes >= CHECKPOINT_BYTES

    def renew(self) -> None:
        """Copy the whole main file again. A full disk, or a very large file, leaves no copy."""
        self._drop()
        self._seen = _mark(self._path)
        if not self._copies or self._main is None or self._seen == _NO_FILE or self._seen.size_bytes > LARGEST_BYTES:
            return
        try:
            self._copy = tempfile.TemporaryFile(dir=self._path.parent)  # noqa: SIM115 - open until the next copy
            _copy_range(self._main, self._copy, 0, self._seen.size_bytes)
        except OSError:
            self._drop()

    def follow(self) -> None:
        """Copy what a checkpoint of this process has written; everything if there is no copy.

        Frames of an earlier checkpoint are in the write-ahead log, too. Copying their pages again changes nothing.
        """
        seen = _mark(self._path)
        self._followed_bytes = _mark(self._wal).size_bytes
        if self._main is None or self._copy is None or seen == _NO_FILE or seen.size_bytes > LARGEST_BYTES:
            self.renew()
            return
        self._seen = seen
        try:
            for place, size_bytes in _pages(self._wal):
                _copy_range(self._main, self._copy, place, size_bytes)
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
            shutil.copyfile(self._wal, wal)
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
        """Give the main file and the copy up; the file is closed with the last log of this process."""
        self._drop()
        if self._main is not None:
            descriptors.end(self._main)
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


def _copy_range(source: int, target: IO[bytes], place: int, size_bytes: int) -> None:
    """Copy a part of a file to the same place of another one; the part may end beyond the file."""
    target.seek(place)
    end = place + size_bytes
    while piece := os.pread(source, min(PIECE_BYTES, end - place), place):
        target.write(piece)
        place += len(piece)
    target.flush()


def _pages(wal: Path) -> Iterator[tuple[int, int]]:
    """Yield place and size of the pages in a write-ahead log, neighbours together."""
    with wal.open("rb", buffering=0) as file:
        page_bytes = int.from_bytes(file.read(WAL_HEADER_BYTES)[8:12], "big")
        if not page_bytes:
            return
        frames = range(WAL_HEADER_BYTES, os.fstat(file.fileno()).st_size, FRAME_HEADER_BYTES + page_bytes)
        numbers = sorted({int.from_bytes(os.pread(file.fileno(), 4, frame), "big") for frame in frames} - {0})
    # Neighbours differ from their rank by the same number.
    for _, group in groupby(enumerate(numbers), lambda ranked: ranked[1] - ranked[0]):
        run = [number for _, number in group]
        yield (run[0] - 1) * page_bytes, len(run) * page_bytes


def _mark(path: Path) -> _Mark:
    """Return the mark of a file; that of no file if it cannot be looked at."""
    try:
        return _mark_of(path.stat())
    except OSError:
        return _NO_FILE


def _mark_of(found: os.stat_result | None) -> _Mark:
    return _NO_FILE if found is None else _Mark(found.st_size, found.st_mtime_ns)
