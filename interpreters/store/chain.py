"""The chain that a log's entries form, by which a changed, missing, moved or cut-off entry is found.

Each entry is written with a *link*: a digest of the link before it and of everything in the entry. The *anchor* says
how many entries there are and which link is the newest. It is written in the same transaction as the entries. So a log
whose newest entries were removed contradicts its anchor. The chain needs no rules: it tells that what is stored is what
was written, also of a log that other rules have made. It is no signature: a program that rewrites all links and the
anchor is not found out.
"""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Final, NamedTuple

from lifefold.interpreters.store.protocol import Entry

FIRST: Final = bytes(32)
"""The link before the first entry."""


class Anchor(NamedTuple):
    """How many entries a log has, and the link of the newest."""

    entries: int = 0
    link: bytes = FIRST


class BrokenChain(Exception):
    """What is stored is not what was written; the message names the first entry that is wrong."""


def link(before: bytes, entry: Entry) -> bytes:
    """Return the link of an entry that follows another one."""
    state = sha256(before)
    for part in (
        entry.stream.encode(),
        f"{entry.version} {entry.at_ms}".encode(),
        entry.key.encode(),
        entry.envelope,
        entry.effects,
        entry.digest,
    ):
        state.update(len(part).to_bytes(8, "big"))
        state.update(part)
    return state.digest()


def linked(anchor: Anchor, entries: Iterable[Entry]) -> Iterator[tuple[Entry, bytes]]:
    """Yield entries that are to be written after others, each with its link."""
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
                f"entry {number} ({entry.stream}, version {entry.version}) is not as it was written, "
                "or the entry before it was removed or moved"
            )
        found.append(entry)
    count = begin.entries + len(found)
    if count < end.entries:
        raise BrokenChain(f"{end.entries - count} of its newest entries are missing, from entry {count + 1} on")
    if (count, newest) != end:
        raise BrokenChain(f"entry {end.entries + 1} was not written by lifefold" if count > end.entries else _ANCHOR)
    return found


def _link(before: bytes, entry: Entry) -> bytes:
    """Return the link of an entry that was read; of one whose parts have other types than were written, none."""
    try:
        return link(before, entry)
    except (AttributeError, TypeError):
        return b""


_ANCHOR: Final = "its newest entry is not the one that its anchor names"
