"""The files of a run directory, written so that a crash leaves the old or the new one whole, and a small JSON codec.

Importing ``json`` takes as long as starting the interpreter. Its parser and its quoting are in the C module ``_json``,
and the remaining code is here. An interpreter without ``_json`` uses the package.
"""

# pathlib is slow to import.
# ruff: noqa: PTH104, PTH108, PTH110, PTH118
import errno
import os
import stat

TYPE_CHECKING = False  # typing.TYPE_CHECKING, without the cost of importing typing
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    Json: TypeAlias = "bool | int | float | str | list[Json] | tuple[Json, ...] | dict[str, Json] | None"

SPEC = "spec.json"
STARTED = "started.json"
EXIT = "exit.json"
CANCELLED = "cancelled"
LOCK = "lock"
CONTROL = "control"
OUTPUT = "output.log"
SHIM_LOG = "shim.log"

MARK_VARIABLE = "LIFEFOLD_SHIM"
"""The variable in the agent's environment that names the shim of the agent and its descendants."""

PLACE_VARIABLE = "LIFEFOLD_SESSION"
"""The variable in the agent's environment that names the directory of its session."""

_RESERVED_BYTES = 16 * 1024
_SYNC_UNSUPPORTED = (errno.EINVAL, errno.ENOTSUP)
_OPEN_ATTEMPTS = 100
_FOREIGN = (errno.ELOOP, errno.EMLINK, errno.ENXIO, errno.EAGAIN, errno.EISDIR)
"""The errors of a link (EMLINK on some BSDs), a FIFO without a reader or a socket, a file with a lease, a folder."""


class _Rules:
    """The settings of the parser: plain JSON without conversions."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    array_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float
    memo: dict[str, str] = {}  # noqa: RUF012 - the parser's own


_scan: "Callable[[str, int], tuple[Json, int]]"
try:
    from _json import encode_basestring_ascii, make_scanner
except ImportError:
    from json.decoder import JSONDecoder
    from json.encoder import encode_basestring_ascii

    _scan = JSONDecoder().scan_once  # type: ignore[attr-defined]
else:
    _scan = make_scanner(_Rules)  # type: ignore[arg-type]


def decode(text: str) -> "Json":
    """Parse a JSON document, or raise ValueError."""
    text = text.strip()
    try:
        value, end = _scan(text, 0)
    except (StopIteration, RecursionError, SystemError) as error:  # SystemError: C cannot import json
        raise ValueError("not a JSON document") from error
    if end != len(text):
        raise ValueError("something follows the JSON document")
    return value


def encode(value: "Json") -> str:
    """Return the JSON of None, booleans, numbers, text, and lists and mappings of them."""
    if isinstance(value, str):
        return encode_basestring_ascii(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{encode(key)}: {encode(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(encode(item) for item in value) + "]"
    if value is None:
        return "null"
    return repr(value).lower()  # True, False and numbers


def exists(directory: str, name: str) -> bool:
    """Tell whether the directory has the file."""
    return os.path.exists(os.path.join(directory, name))


def write_durably(directory: str, name: str, text: str, temporary: str | None = None) -> None:
    """Replace a file atomically and durably. Raises OSError if that fails.

    An existing file ``temporary`` (default: ``name`` + ".tmp") is overwritten, so that its space is used: see
    ``reserve``. Writers that may compete for a name need different temporary names.
    """
    path = os.path.join(directory, temporary or f"{name}.tmp")
    fd = open_to_write(path)
    try:
        left = memoryview(text.encode("utf-8"))
        size_bytes = len(left)
        while left:
            left = left[os.write(fd, left) :]
        os.ftruncate(fd, size_bytes)
        os.fsync(fd)
    finally:
        os.close(fd)
    target = os.path.join(directory, name)
    try:
        os.rename(path, target)
    except IsADirectoryError:
        _clear(target)
        os.rename(path, target)
    sync_directory(directory)


def open_to_write(path: str, flags: int = 0) -> int:
    """Open or make a regular file for writing; never wait, and never follow a link.

    An agent can put a FIFO, a link to one, a device or a folder at the path, and a writer would block or fail. Opening
    and looking are one step here, so the agent cannot exchange the file in between. Raises OSError.
    """
    for _ in range(_OPEN_ATTEMPTS):
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | flags, 0o600)
        except OSError as error:
            if error.errno not in _FOREIGN:
                raise
        else:
            if stat.S_ISREG(os.fstat(fd).st_mode):
                return fd
            os.close(fd)
        _clear(path)
    raise OSError(errno.EBUSY, "another process keeps replacing the file", path)


def _clear(path: str) -> None:
    """Free a path: remove a file or a link, and rename a folder, whose contents may have a value."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    except (IsADirectoryError, PermissionError):  # POSIX has EPERM for a folder
        number = 1
        while os.path.lexists(f"{path}-{number}"):
            number += 1
        os.rename(path, f"{path}-{number}")


def remove(directory: str, name: str) -> None:
    """Remove a file durably; nothing happens if there is none."""
    try:
        os.unlink(os.path.join(directory, name))
    except FileNotFoundError:
        return
    sync_directory(directory)


def reserve(directory: str, name: str) -> None:
    """Reserve space for a later ``write_durably`` of up to 16 KiB, which then succeeds on a full disk."""
    fd = open_to_write(os.path.join(directory, f"{name}.tmp"))
    try:
        os.write(fd, b" " * _RESERVED_BYTES)
    finally:
        os.close(fd)


def sync_directory(directory: str) -> None:
    """Make the names in a directory durable, if the file system supports that."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in _SYNC_UNSUPPORTED:
            raise
    finally:
        os.close(fd)
