"""The agent's output on the disk: all of it up to a limit; beyond that, its first and its last part.

``output.log`` is appended to until it has ``limit_bytes``. From then on its second half is a ring buffer.
``output.position`` holds the total size of the output, from which the start of the ring follows. At the end the ring is
put in order, and a line in the middle states the number of missing bytes. Before that, ``tail`` reads the same text.
"""

# pathlib is slow to import; relative imports: see __main__.
# ruff: noqa: PTH104, PTH108, PTH110, PTH116, PTH118, TID252
import os

from . import durable

TYPE_CHECKING = False  # typing.TYPE_CHECKING, without the cost of importing typing
if TYPE_CHECKING:
    from collections.abc import Iterator

POSITION = "output.position"

_COPY_BYTES = 1024 * 1024


class OutputLog:
    """The log, open for writing. A full disk raises no error here: bytes that cannot be kept are counted."""

    def __init__(self, directory: str, limit_bytes: int) -> None:
        self.total_bytes = 0  # what the agent wrote
        self.error = ""
        self._directory = directory
        self._limit_bytes = max(limit_bytes, 0)
        self._head_bytes = self._limit_bytes // 2
        self._taken_bytes = 0  # the total without what failed: where the next byte belongs follows from it
        self._position_fd = -1
        self._fd = os.open(os.path.join(directory, durable.OUTPUT), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    @property
    def failed_bytes(self) -> int:
        """The bytes that could not be written."""
        return self.total_bytes - self._taken_bytes

    @property
    def dropped_bytes(self) -> int:
        """The bytes that are not kept, for any reason."""
        return self.failed_bytes + max(0, self._taken_bytes - self._limit_bytes)

    def write(self, data: bytes) -> None:
        """Append some output."""
        self.total_bytes += len(data)
        if self._limit_bytes == 0:
            self._taken_bytes += len(data)
            return
        left = memoryview(data)
        try:
            while left:
                offset, room_bytes, skipped_bytes = self._place(len(left))
                written_bytes = os.pwrite(self._fd, left[skipped_bytes : skipped_bytes + room_bytes], offset)
                left = left[skipped_bytes + written_bytes :]
                self._taken_bytes += skipped_bytes + written_bytes
            if self._taken_bytes > self._limit_bytes:
                self._write_position()
        except OSError as error:
            self.error = f"cannot keep the output: {error.strerror}"

    def _place(self, size_bytes: int) -> tuple[int, int, int]:
        """Return the offset of the next bytes, how many fit there, and how many to skip because of the ring."""
        if self._taken_bytes < self._head_bytes:
            return self._taken_bytes, self._head_bytes - self._taken_bytes, 0
        ring_bytes = self._limit_bytes - self._head_bytes
        skipped_bytes = max(0, size_bytes - ring_bytes)
        at = (self._taken_bytes + skipped_bytes - self._head_bytes) % ring_bytes
        return self._head_bytes + at, ring_bytes - at, skipped_bytes

    def _write_position(self) -> None:
        if self._position_fd < 0:
            path = os.path.join(self._directory, POSITION)
            self._position_fd = durable.open_to_write(path)
        os.pwrite(self._position_fd, f"{self._taken_bytes:020d} {self._limit_bytes}\n".encode(), 0)

    def last_sign_ms(self, heartbeat: str) -> int:
        """Return when the output or the heartbeat, a path from this directory, was written last, in Unix time."""
        return max(_written_ms(os.path.join(self._directory, name)) for name in (durable.OUTPUT, POSITION, heartbeat))

    def finish(self) -> None:
        """Put the log in order and make it durable, as far as the disk permits."""
        try:
            if self.failed_bytes:
                note = f"\n[{self.failed_bytes} bytes of output are missing: {self.error}]\n"
                self.write(note.encode())
                self.total_bytes -= len(note)
            os.fsync(self._fd)
            rolled = 0 < self._limit_bytes < self._taken_bytes
            put_in_order(self._directory, (self._taken_bytes, self._limit_bytes) if rolled else None)
        except OSError as error:
            self.error = self.error or f"cannot finish the output: {error.strerror}"


def _written_ms(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns // 1_000_000
    except OSError:
        return 0


def put_in_order(directory: str, position: tuple[int, int] | None = None) -> None:
    """Replace a log with a ring by one in reading order; do not change any other log."""
    path, position_path = os.path.join(directory, durable.OUTPUT), os.path.join(directory, POSITION)
    position = position or position_of(directory)
    if position is not None:
        _copy(path, f"{path}.tmp", position)
        os.rename(f"{path}.tmp", path)
    if os.path.exists(position_path):
        os.unlink(position_path)
    durable.sync_directory(directory)


def _copy(source: str, target: str, position: tuple[int, int]) -> None:
    source_fd = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    target_fd = durable.open_to_write(target, os.O_TRUNC)
    try:
        for piece in _pieces(*position):
            for chunk in _chunks(source_fd, piece):
                left = memoryview(chunk)
                while left:
                    left = left[os.write(target_fd, left) :]
        os.fsync(target_fd)
    except OSError:
        os.unlink(target)  # a full disk: the log stays as it is, and its position keeps it readable
        raise
    finally:
        os.close(source_fd)
        os.close(target_fd)


def tail(directory: str, size_bytes: int) -> bytes:
    """Read the end of the output, at most ``size_bytes``, during or after the agent's run.

    While the agent writes fast, parts of the result may differ in age.
    """
    position = position_of(directory)
    try:
        # An agent can put a FIFO there, and reading it must not block.
        fd = os.open(os.path.join(directory, durable.OUTPUT), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return b""
    try:
        found: list[bytes] = []
        for piece in reversed([(0, os.fstat(fd).st_size)] if position is None else _pieces(*position)):
            part = b"".join(_chunks(fd, _last(piece, size_bytes)))
            size_bytes -= len(part)
            found.insert(0, part)
        return b"".join(found)
    finally:
        os.close(fd)


def pieces(directory: str) -> "Iterator[bytes]":
    """Yield the whole output in reading order, in pieces of bounded size, after the agent's run."""
    position = position_of(directory)
    # An agent can put a FIFO there, and reading it must not block.
    fd = os.open(os.path.join(directory, durable.OUTPUT), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        for piece in [(0, os.fstat(fd).st_size)] if position is None else _pieces(*position):
            yield from _chunks(fd, piece)
    finally:
        os.close(fd)


def position_of(directory: str) -> tuple[int, int] | None:
    """Return (taken_bytes, limit_bytes), which locate the ring; None for a log in reading order."""
    try:
        # An agent can put a FIFO there, too.
        fd = os.open(os.path.join(directory, POSITION), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            taken_bytes, limit_bytes = (int(number) for number in os.read(fd, 64).split())
        finally:
            os.close(fd)
        size_bytes = os.stat(os.path.join(directory, durable.OUTPUT)).st_size
    except (OSError, ValueError):
        return None
    return (taken_bytes, limit_bytes) if size_bytes == limit_bytes else None  # a longer log is in order already


def _pieces(taken_bytes: int, limit_bytes: int) -> list[tuple[int, int] | bytes]:
    """Return the parts of a log with a ring in reading order: (offset, length) in the file, or text to insert."""
    head_bytes = limit_bytes // 2
    ring_bytes = limit_bytes - head_bytes
    at = (taken_bytes - head_bytes) % ring_bytes
    missing = f"\n[{taken_bytes - limit_bytes} bytes of output were dropped here]\n".encode()
    return [(0, head_bytes), missing, (head_bytes + at, ring_bytes - at), (head_bytes, at)]


def _last(piece: tuple[int, int] | bytes, size_bytes: int) -> tuple[int, int] | bytes:
    """Shorten a piece to its last ``size_bytes``."""
    if isinstance(piece, bytes):
        return piece[max(0, len(piece) - size_bytes) :]
    offset, length = piece
    kept = min(length, size_bytes)
    return offset + length - kept, kept


def _chunks(fd: int, piece: tuple[int, int] | bytes) -> "Iterator[bytes]":
    if isinstance(piece, bytes):
        yield piece
        return
    offset, left_bytes = piece
    while left_bytes > 0 and (chunk := os.pread(fd, min(left_bytes, _COPY_BYTES), offset)):
        yield chunk
        offset += len(chunk)
        left_bytes -= len(chunk)
