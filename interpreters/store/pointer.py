"""A pointer: a small file at the path of a log that is on a server, with the address of the log.

A log has a path on each machine, because the files of its fleet are beside it. For a log on a server the pointer is the
file at this path. So all commands find, open and name both kinds of logs by path. A pointer has no password.
"""

from pathlib import Path
from stat import S_ISREG
from typing import Final

from lifefold.interpreters.store.address import Address, read_address
from lifefold.interpreters.store.permissions import make_private_file
from lifefold.interpreters.store.place import beside, flush_folder

_FIRST_LINE: Final = b"lifefold log on a server\n"
_MOST_BYTES: Final = 4_000
"""The size of the largest pointer; a log in a file is larger than its first page of 4,096 bytes."""

_announced: Final[dict[Path, Address]] = {}


def announce(path: Path, address: Address) -> None:
    """Note in this process that a log which is made at a path is to be on a server."""
    _announced[path.absolute()] = address


def address_of(path: Path) -> Address | None:
    """Return the address of the log at a path; None for a log in a file. Raises ``NotAStore`` for a damaged pointer.

    A log in a file is not opened: closing it would drop the locks that SQLite holds on it in this process. A pipe is
    not opened either, because that would wait for its writer.
    """
    try:
        found = path.stat()
        if not S_ISREG(found.st_mode) or found.st_size > _MOST_BYTES:
            return None
        with path.open("rb") as file:
            is_pointer = file.read(len(_FIRST_LINE)) == _FIRST_LINE
            rest = file.read() if is_pointer else b""
    except (OSError, ValueError):
        return _announced.get(path.absolute())
    return read_address(rest.decode(errors="replace").strip()) if is_pointer else None


def write_pointer(path: Path, address: Address) -> None:
    """Make the pointer of a log that is on its server, durably. Raises ``OSError``."""
    draft = beside(path, ".new")
    draft.unlink(missing_ok=True)
    make_private_file(draft)
    draft.write_bytes(_FIRST_LINE + f"{address}\n".encode())
    draft.replace(path)
    flush_folder(path.parent)
    _announced.pop(path.absolute(), None)
