"""The anchor beside a log: the number of its entries and the newest link, in a small file ``LOG.anchor``.

The anchor inside of a log is cut off together with its entries. This file is not: the writer writes it when it closes
the log, and after each checkpoint. It may be older than the log, and then names an earlier entry. A log that does not
have the named entry has lost entries, or has others. A file that contradicts its log is not overwritten, so the next
writer does not hide it. The file is no signature: a program that rewrites the log can rewrite the file. A copy of it
elsewhere is evidence.
"""

import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from lifefold.interpreters.store.chain import FIRST, Anchor
from lifefold.interpreters.store.connection import Connection
from lifefold.interpreters.store.permissions import make_private_file
from lifefold.interpreters.store.place import beside
from lifefold.interpreters.store.protocol import StoreError

END: Final = ".anchor"
"""The end of the name of the file, after the name of the log."""


class UnreadableAnchor(ValueError):
    """A file is no anchor; the message says what is wrong."""


class _Written(msgspec.Struct, forbid_unknown_fields=True):
    entries: int
    link: str


def anchor_beside(log: Path) -> Anchor | None:
    """Return the anchor beside a log; None if there is none. Raises ``UnreadableAnchor``, ``OSError``."""
    path = beside(log, END)
    return read_anchor(path) if path.exists() else None


def read_anchor(path: Path) -> Anchor:
    """Return the anchor in a file. Raises ``UnreadableAnchor``, ``OSError``."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=_Written)
        return Anchor(found.entries, bytes.fromhex(found.link))
    except ValueError as error:
        message = f"{path} is no anchor of a log: {error}"
        raise UnreadableAnchor(message) from error


def fits(connection: Connection, anchor: Anchor) -> bool:
    """Tell whether a log has the entry that an anchor names."""
    if not anchor.entries:
        return anchor.link == FIRST
    found = connection.execute("SELECT link FROM entries WHERE position = ?", (anchor.entries,)).fetchone()
    return found is not None and found[0] == anchor.link


def keep_anchor(log: Path, connection: Connection, anchor: Anchor) -> None:
    """Write the anchor beside a log, unless one is there that contradicts the log, or no file can be written."""
    with suppress(OSError, sqlite3.Error, StoreError, UnreadableAnchor):
        mode = log.stat().st_mode & 0o666  # a reader of the log may read its anchor; a removed log gets none
        known = anchor_beside(log)
        if known == anchor or not anchor.entries or (known is not None and not fits(connection, known)):
            return
        draft = beside(log, f"{END}.new")
        draft.unlink(missing_ok=True)
        make_private_file(draft)
        draft.chmod(mode)
        with draft.open("wb") as file:
            file.write(msgspec.json.encode(_Written(anchor.entries, anchor.link.hex())) + b"\n")
            file.flush()
            os.fsync(file.fileno())  # a name with torn contents would be an anchor that contradicts the log
        draft.replace(beside(log, END))


def drop_anchor(log: Path) -> None:
    """Remove the anchor of an earlier log at this path."""
    beside(log, END).unlink(missing_ok=True)
