"""The metadata of a log: the writer's epoch, the anchor of the entries, and the values of the log's maker."""

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from lifefold.interpreters.store.chain import FIRST, Anchor
from lifefold.interpreters.store.connection import Connection
from lifefold.interpreters.store.errors import damaged

OF_THE_STORE: Final = ("epoch", "anchor", "digest", "snapshot", "pasts", "schema", "writer")
"""The names of the store's own metadata; all other names belong to the log's maker."""


EPOCH_DIGITS: Final = 18
"""The most digits of an epoch: the integers of both databases have 64 bits."""

_PERFORMED_TOO_MUCH: Final = (
    "SELECT CAST(stream AS TEXT) FROM performed AS said WHERE version <> CAST(version AS BIGINT)"
    " OR version > (SELECT MAX(version) FROM entries WHERE stream = said.stream)"
)


def must_be_whole(path: Path, connection: Connection) -> None:
    """Raise ``Damaged`` unless the metadata of a log is consistent."""
    epoch_of(path, connection)
    anchor_of(path, connection)
    for (stream,) in connection.execute(_PERFORMED_TOO_MUCH):
        raise damaged(path, f"it records performed effects of {stream!r} that no entry of it asks for")
    made = dict(connection.execute("SELECT name, value FROM meta"))
    found = made.get("digest")
    if found != digest_of_meta({name: value for name, value in made.items() if name not in OF_THE_STORE}):
        raise damaged(path, "its metadata is not as it was written")


def digest_of_meta(made: Mapping[str, object]) -> str:
    """Return the digest of the values that a log's maker wrote."""
    state = sha256()
    for name, value in sorted(made.items()):
        text = str(value)
        state.update(f"{len(name)} {len(text)} {name}{text}".encode())
    return state.hexdigest()


def epoch_of(path: Path, connection: Connection) -> int:
    """Return the epoch of the newest writer. Raises ``Damaged``."""
    text = meta_of(connection, "epoch") or ""
    if not text.isdecimal() or not text.isascii() or len(text) > EPOCH_DIGITS:
        raise damaged(path, f"it does not say who writes to it: its epoch is {text!r}")
    return int(text)


def anchor_of(path: Path, connection: Connection) -> Anchor:
    """Return the anchor: the number of entries and the newest link. Raises ``Damaged``."""
    text = meta_of(connection, "anchor") or ""
    try:
        count, link = text.split(" ")
        return Anchor(int(count), bytes.fromhex(link) or FIRST)
    except ValueError as error:
        raise damaged(path, f"it does not say how many entries it has: its anchor is {text[:80]!r}") from error


def meta_of(connection: Connection, name: str) -> str | None:
    """Return the value under a name; None if there is none."""
    found = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    return None if found is None else str(found[0])
