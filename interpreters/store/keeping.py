"""Writing the snapshot of a log, and reading the log by it.

The snapshot names the position and the link of the entry that it was taken after. One that names another link is of
another log, and is ignored. Each part has a checksum.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple
from zlib import crc32

from lifefold.interpreters.store.chain import FIRST, Anchor, BrokenChain, verified
from lifefold.interpreters.store.connection import Connection
from lifefold.interpreters.store.errors import damaged
from lifefold.interpreters.store.meta import anchor_of, meta_of
from lifefold.interpreters.store.protocol import Entry, Snapshot, SnapshotPart
from lifefold.interpreters.store.schema import select
from lifefold.interpreters.store.snapshot import Resumption, SnapshotPlace

PAGE_ENTRIES: Final = 10_000
"""The number of entries that are read at once from a log without a snapshot."""

PAGE_KEYS: Final = 400
"""The number of keys that one query looks up."""


class _Mark(NamedTuple):
    """The entry that a snapshot was taken after, and the form of its parts."""

    anchor: Anchor
    form: str

    def __str__(self) -> str:
        return f"{self.anchor.entries} {self.anchor.link.hex()} {self.form}"


def keep(connection: Connection, anchor: Anchor, snapshot: Snapshot) -> None:
    """Write the parts of a snapshot of the log up to an anchor, within a transaction."""
    mark = _mark_of(connection)
    if mark is None or mark.form != snapshot.form:
        drop(connection)
    connection.executemany(
        _PUT,
        [(e.stream, e.ref, e.version, int(e.is_live), e.data, _checksum(e)) for e in snapshot.parts],
    )
    connection.execute(_PUT_MARK, (str(_Mark(anchor, snapshot.form)),))


def drop(connection: Connection) -> None:
    """Remove the snapshot of a log."""
    connection.execute("DELETE FROM meta WHERE name = 'snapshot'")
    connection.execute("DELETE FROM snapshots")


def resumed(path: Path, connection: Connection, form: str) -> Resumption:
    """Return the newest snapshot of this form with the entries that it does not have. Raises ``Damaged``.

    Without one the entries are read page by page while they are used.
    """
    connection.execute("BEGIN")
    try:
        anchor, mark = anchor_of(path, connection), _mark_of(connection)
        if mark is None or not mark.form.startswith(form) or not _is_of(connection, mark.anchor):
            return Resumption((), _pages(path, connection, anchor), anchor.entries)
        parts = _parts(connection)
        if parts is None:
            return Resumption((), _pages(path, connection, anchor), anchor.entries)
        old = [_Older(Entry(*each[:-3]), *each[-3:]) for each in connection.execute(_OLDER, (mark.anchor.entries,))]
        newer_rows = connection.execute(select(connection, _NEWER, further="link"), (mark.anchor.entries,))
        new = [(Entry(*each[:-1]), each[-1]) for each in newer_rows]
        last_ms, rules = connection.execute(_TIME, (mark.anchor.entries,)).fetchone() or (0, "")
    finally:
        connection.execute("COMMIT")
    try:
        for entry, position, before, link in old:
            verified(Anchor(position - 1, before or FIRST), [(entry, link)], Anchor(position, link))
        newer = verified(mark.anchor, new, anchor)
    except BrokenChain as error:
        raise damaged(path, str(error)) from error
    older = [each.entry for each in sorted(old, key=lambda each: each.position)]
    count = mark.anchor.entries - len(older)
    return Resumption(parts, [*older, *newer], anchor.entries, count, SnapshotPlace(last_ms, rules, len(older)))


class _Older(NamedTuple):
    """An entry that a snapshot does not have, with its position, the link before it and its own."""

    entry: Entry
    position: int
    before: bytes | None
    link: bytes


def known_keys(connection: Connection, keys: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return those of these streams and keys that entries have."""
    found: set[tuple[str, str]] = set()
    for first in range(0, len(keys), PAGE_KEYS):
        page = keys[first : first + PAGE_KEYS]
        query = f"{_KEYS} {', '.join(['(?, ?)'] * len(page))})"
        found.update((str(stream), str(key)) for stream, key in connection.execute(query, [*chain(*page)]))
    return found


def _pages(path: Path, connection: Connection, end: Anchor) -> Iterator[Entry]:
    """Yield all entries up to an anchor, and verify their chain. Raises ``Damaged``."""
    query, begin = select(connection, _PAGE, further="link"), Anchor()
    while begin.entries < end.entries:
        until = min(begin.entries + PAGE_ENTRIES, end.entries)
        rows = connection.execute(query, (begin.entries, until)).fetchall()
        here = end if until == end.entries or not rows else Anchor(until, rows[-1][-1])
        yield from _checked(path, begin, rows, here)
        begin = here


def _checked(path: Path, begin: Anchor, rows: Sequence[tuple[Any, ...]], end: Anchor) -> list[Entry]:
    try:
        return verified(begin, ((Entry(*each[:-1]), each[-1]) for each in rows), end)
    except BrokenChain as error:
        raise damaged(path, str(error)) from error


def _parts(connection: Connection) -> list[SnapshotPart] | None:
    """Return all parts of the snapshot; None if one of them is not as it was written."""
    parts: list[SnapshotPart] = []
    for stream, ref, data, is_live, version, checksum in connection.execute(_PARTS):
        parts.append(SnapshotPart(stream, ref, data, bool(is_live), version))
        if _checksum(parts[-1]) != checksum:
            return None
    return parts


def _checksum(part: SnapshotPart) -> int:
    return crc32(part.data, crc32(f"{part.stream} {part.ref} {part.version} {part.is_live:d}".encode()))


def _mark_of(connection: Connection) -> _Mark | None:
    text = meta_of(connection, "snapshot") or ""
    try:
        count, link, form = text.split(" ")
        return _Mark(Anchor(int(count), bytes.fromhex(link)), form)
    except ValueError:
        return None


def _is_of(connection: Connection, anchor: Anchor) -> bool:
    found = connection.execute("SELECT link FROM entries WHERE position = ?", (anchor.entries,)).fetchone()
    return (FIRST if found is None else found[0]) == anchor.link


_PUT: Final = (
    "INSERT INTO snapshots (stream, ref, version, is_live, data, checksum) VALUES (?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (stream, ref) DO UPDATE SET version = excluded.version, is_live = excluded.is_live,"
    " data = excluded.data, checksum = excluded.checksum"
)
_PUT_MARK: Final = (
    "INSERT INTO meta (name, value) VALUES ('snapshot', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)
_PARTS: Final = "SELECT stream, ref, data, is_live, version, checksum FROM snapshots ORDER BY stream, ref"
_KEYS: Final = "SELECT stream, key FROM entries WHERE key <> '' AND (stream, key) IN (VALUES"
_PAGE: Final = "WHERE position > ? AND position <= ? ORDER BY position"
_NEWER: Final = "WHERE position > ? ORDER BY position"
_OLDER: Final = (
    "SELECT e.stream, e.version, e.at_ms, e.key, e.envelope, e.outcome, e.rules, e.position,"
    " (SELECT link FROM entries WHERE position = e.position - 1), e.link"
    " FROM snapshots AS s CROSS JOIN entries AS e ON e.stream = s.stream AND e.version > s.version"
    " WHERE s.ref = '' AND e.position <= ?"
)
_TIME: Final = "SELECT at_ms, rules FROM entries WHERE position = ?"
