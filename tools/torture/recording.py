"""The disk below a recorded program, and what a loss of power leaves of it.

``interposed.c`` records each operation of a program on a folder. ``Disk`` repeats the operations on a model. The model
keeps apart what is durable and what is only written. A loss of power after any operation keeps the durable part. Of the
other operations it keeps any. A *sector* of 512 bytes is kept or lost by itself, also a later one without an earlier
one. So is each change of a name or of a length. That is weaker than what usual file systems do.
"""

import os
import struct
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from random import Random
from typing import Final, NamedTuple, TypeVar

T = TypeVar("T")

SECTOR_BYTES: Final = 512
"""The number of bytes that a disk writes whole or not at all."""

_HEAD: Final = struct.Struct("<B3xiqqII")


class Op(IntEnum):
    """The kinds of records. ``MARKED`` is written by the recorded program itself: what it has acknowledged."""

    OPENED = 1
    CLOSED = 2
    WRITTEN = 3
    TRUNCATED = 4
    SYNCED = 5
    UNLINKED = 6
    RENAMED = 7
    MARKED = 8


class Record(NamedTuple):
    """One operation.

    ``first`` is the flags of an opening, the place of a write, the new length, or 0 for a flush without error.
    ``second`` is 1 for an opening of a file that existed. ``data`` has the written bytes, the new name, or the mark.
    """

    op: Op
    fd: int
    first: int
    second: int
    name: str
    data: bytes


def mark(file: int, text: str) -> None:
    """Append a mark to a recording that this process has open with ``O_APPEND``."""
    data = text.encode()
    os.write(file, _HEAD.pack(Op.MARKED, -1, 0, 0, 0, len(data)) + data)


def records(path: Path) -> Iterator[Record]:
    """Yield the records of a recording."""
    whole, place = path.read_bytes(), 0
    while place < len(whole):
        op, fd, first, second, name_bytes, data_bytes = _HEAD.unpack_from(whole, place)
        begin = place + _HEAD.size
        place = begin + name_bytes + data_bytes
        name = whole[begin : begin + name_bytes].decode()
        yield Record(Op(op), fd, first, second, name, whole[begin + name_bytes : place])


class Piece(NamedTuple):
    """A part of one sector that was written and is not durable; with a length instead of data, a truncation."""

    place: int
    data: bytes
    length: int | None = None


class File:
    """A file: its durable content, and the pieces that were written since, in order."""

    def __init__(self) -> None:
        self.durable = bytearray()
        self.pieces: list[Piece] = []
        self.doubtful: list[Piece] = []
        """Pieces before a failed flush. A later flush does not make them durable: the system may have dropped them."""

    def write(self, place: int, data: bytes) -> None:
        """Write, sector by sector."""
        end = place + len(data)
        at = place
        while at < end:
            until = min(end, (at // SECTOR_BYTES + 1) * SECTOR_BYTES)
            self.pieces.append(Piece(at, data[at - place : until - place]))
            at = until

    def truncate(self, length: int) -> None:
        """Change the length; what was written beyond it is never written by the system."""
        self.doubtful = [each for each in self.doubtful if each.place < length]
        self.pieces.append(Piece(0, b"", length))

    def sync(self, *, failed: bool) -> None:
        """Make what was written durable. After a failed flush, data is in doubt until it is written again."""
        if failed:
            self.doubtful += [each for each in self.pieces if each.length is None]
            self.pieces = [each for each in self.pieces if each.length is not None]
            return
        for piece in self.pieces:
            _apply(self.durable, piece)
        self.doubtful = [each for each in self.doubtful if not _is_covered(each, self.pieces)]
        self.pieces = []

    def survivor(self, chosen: "Choice") -> bytes:
        """Return the content after a loss of power."""
        left = bytearray(self.durable)
        for piece in chosen.of(self.doubtful + self.pieces):
            _apply(left, piece)
        return bytes(left)


def _apply(content: bytearray, piece: Piece) -> None:
    if piece.length is not None:
        del content[piece.length :]
        content.extend(bytes(piece.length - len(content)))
        return
    end = piece.place + len(piece.data)
    if len(content) < end:
        content.extend(bytes(end - len(content)))
    content[piece.place : end] = piece.data


def _is_covered(piece: Piece, later: list[Piece]) -> bool:
    """Tell whether a doubtful piece was written again whole, and that write was made durable."""
    return any(
        each.length is None
        and each.place <= piece.place
        and each.place + len(each.data) >= piece.place + len(piece.data)
        for each in later
    )


class Choice:
    """Chooses what a loss of power keeps of the operations that are not durable, by a seed."""

    def __init__(self, seed: int) -> None:
        self._random: Final = Random(seed)
        self._share: Final = self._random.choice((0.0, 0.1, 0.5, 0.5, 0.9, 1.0))
        self._is_prefix: Final = self._random.random() < 1 / 3

    def of(self, pending: list[Piece]) -> list[Piece]:
        """Return the pieces that are kept, in order: a prefix, or any of them."""
        return _kept(pending, self._random, self._share, is_prefix=self._is_prefix)

    def names(self, pending: list["Naming"]) -> list["Naming"]:
        """Return the changes of names that are kept."""
        return _kept(pending, self._random, self._share, is_prefix=self._is_prefix)


def _kept(pending: list[T], random: Random, share: float, *, is_prefix: bool) -> list[T]:
    if is_prefix:
        return pending[: random.randint(0, len(pending))]
    return [each for each in pending if random.random() < share]


class Naming(NamedTuple):
    """A change of a name in a folder: it names a file from now on, or none; ``before`` is a name that ends with it."""

    folder: str
    name: str
    file: File | None
    before: str = ""


class Disk:
    """A folder as a recorded program has changed it."""

    def __init__(self) -> None:
        self.durable: dict[str, File] = {}
        self._present: dict[str, File] = {}
        self._namings: list[Naming] = []
        self._open: dict[int, File | str] = {}
        self.marks: list[str] = []

    def apply(self, record: Record) -> None:
        """Repeat an operation."""
        match record.op:
            case Op.OPENED:
                self._opened(record)
            case Op.CLOSED:
                self._open.pop(record.fd, None)
            case Op.WRITTEN:
                self._file(record.fd).write(record.first, record.data)
            case Op.TRUNCATED:
                self._file(record.fd).truncate(record.first)
            case Op.SYNCED:
                self._synced(record)
            case Op.UNLINKED:
                self._present.pop(record.name, None)
                self._name(record.name, None)
            case Op.RENAMED:
                self._renamed(record.name, record.data.decode())
            case Op.MARKED:
                self.marks.append(record.data.decode())

    def _file(self, fd: int) -> File:
        found = self._open[fd]
        assert isinstance(found, File)
        return found

    def _opened(self, record: Record) -> None:
        if record.name in self._present:
            file = self._present[record.name]
            if record.first & os.O_TRUNC:
                file.truncate(0)
        elif record.second:
            self._open[record.fd] = record.name  # a folder, or a file from before
            return
        else:
            file = self._present[record.name] = File()
            self._name(record.name, file)
        self._open[record.fd] = file

    def _synced(self, record: Record) -> None:
        found = self._open.get(record.fd)
        if isinstance(found, File):
            found.sync(failed=record.first != 0)
        elif isinstance(found, str) and record.first == 0:
            folder = found.rstrip("/")
            for each in [each for each in self._namings if each.folder == folder]:
                _rename(self.durable, each)
            self._namings = [each for each in self._namings if each.folder != folder]

    def _renamed(self, before: str, name: str) -> None:
        file = self._present.pop(before, None)
        if file is not None:
            self._present[name] = file
            self._name(name, file, before)

    def _name(self, name: str, file: File | None, before: str = "") -> None:
        self._namings.append(Naming(str(Path(name).parent), name, file, before))

    def cut(self, seed: int, into: Path) -> None:
        """Write what a loss of power now leaves into a folder; the names are relative to their own folder."""
        chosen, left = Choice(seed), dict(self.durable)
        for each in chosen.names(self._namings):
            _rename(left, each)
        for name, file in left.items():
            (into / Path(name).name).write_bytes(file.survivor(chosen))

    def restart(self) -> None:
        """Forget open files, as at the end of a process."""
        self._open.clear()


def _rename(names: dict[str, File], change: Naming) -> None:
    names.pop(change.before, None)
    if change.file is None:
        names.pop(change.name, None)
    else:
        names[change.name] = change.file
