"""The hash chain of a log's entries, which reveals a changed, missing, moved or cut-off entry.

Each entry is written with a *link*: a digest of the link before it and of the whole entry. The *anchor* holds the
number of entries and the newest link. It is written in the same transaction as the entries, so a log without its newest
entries contradicts its anchor. The chain needs no reducers, so it also verifies a log of other rules. It is no
signature: a program that rewrites all links and the anchor is not detected.
"""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Final, NamedTuple

from lifefold.interpreters.store.protocol import Entry

FIRST: Final = bytes(32)
"""The link before the first entry."""


class Anchor(NamedTuple):
    """The number of entries in a log, and the link of the newest one."""

    entries: int = 0
    link: bytes = FIRST


class BrokenChain(Exception):
    """The stored entries are not the written ones; the message names the first wrong entry, ``position`` its place."""

    def __init__(self, position: int, message: str) -> None:
        super().__init__(message)
        self.position: Final = position


def link(before: bytes, entry: Entry) -> bytes:
    """Return the link of an entry after the link ``before``.

    It is the digest of ``before`` and of each part after its size. A log of schema 4 has no rules in its links.
    """
    stream, place, key = entry.stream.encode(), f"{entry.version} {entry.at_ms}".encode(), entry.key.encode()
    envelope, outcome, rules = entry.envelope, entry.outcome, entry.rules.encode()
    try:
        pieces = (
            before, _SIZES[len(stream)], stream, _SIZES[len(place)], place, _SIZES[len(key)], key,
            _SIZES[len(envelope)], envelope, _SIZES[len(outcome)], outcome, _SIZES[len(rules)] if rules else b"", rules,
        )  # fmt: skip
    except IndexError:  # a part is large
        pieces = (before, *_pieces(stream, place, key, envelope, outcome), *(_pieces(rules) if rules else ()))
    return sha256(b"".join(pieces)).digest()


def _pieces(*parts: bytes) -> Iterator[bytes]:
    """Yield each part after its size."""
    for part in parts:
        yield len(part).to_bytes(8, "big")
        yield part


_SIZES: Final = tuple(size.to_bytes(8, "big") for size in range(2_048))
"""The sizes of most parts. Every entry is digested when it is written and when it is read."""


def linked(anchor: Anchor, entries: Iterable[Entry]) -> Iterator[tuple[Entry, bytes]]:
    """Yield new entries after an anchor, each with its link."""
    newest = anchor.link
    for entry in entries:
        newest = link(newest, entry)
        yield entry, newest


def verified(begin: Anchor, rows: Iterable[tuple[Entry, bytes]], end: Anchor) -> list[Entry]:
    """Return the entries that follow ``begin``, up to the newest. Raises ``BrokenChain``."""
    found: list[Entry] = []
    newest = begin.link
    for entry, written in rows:
        newest = _link(newest, entry)
        if newest != written:
            number = begin.entries + len(found) + 1
            raise BrokenChain(
                number,
                f"entry {number} ({entry.stream}, version {entry.version}) is not as it was written, "
                "or the entry before it was removed or moved",
            )
        found.append(entry)
    count = begin.entries + len(found)
    if count < end.entries:
        missing = f"{end.entries - count} of its newest entries are missing, from entry {count + 1} on"
        raise BrokenChain(count + 1, missing)
    if (count, newest) != end:
        foreign = f"entry {end.entries + 1} was not written by lifefold"
        raise BrokenChain(min(end.entries + 1, count), foreign if count > end.entries else _ANCHOR)
    return found


def _link(before: bytes, entry: Entry) -> bytes:
    """Return the link of an entry that was read; an empty one if its fields have wrong types."""
    try:
        return link(before, entry)
    except (AttributeError, TypeError):
        return b""


_ANCHOR: Final = "its newest entry is not the one that its anchor names"
