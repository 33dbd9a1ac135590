"""Writing the snapshot of a log, and reading the log by it.

The snapshot names the position and the link of the entry that it was taken after. One that names another link is of
another log, and is ignored. Each part has a checksum.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple
from zlib import crc32

from lifefold.interpreters.store.chain import FIRST, Anchor, BrokenChain, verified
from lifefold.interpreters.store.connection import Connection
from lifefold.interpreters.store.errors import damaged
from lifefold.interpreters.store.meta import anchor_of, meta_of
from lifefold.interpreters.store.pasts import Mark, drop_marks, is_of, mark_before, marked, read_mark, rows_of
from lifefold.interpreters.store.protocol import Entry, Snapshot, SnapshotPart
from lifefold.interpreters.store.schema import select
from lifefold.interpreters.store.snapshot import Resumption, SnapshotPlace

PAGE_ENTRIES: Final = 10_000
"""The number of entries that are read at once from a log without a snapshot."""

PAGE_KEYS: Final = 400
"""The number of keys that one query looks up."""


def keep(connection: Connection, anchor: Anchor, snapshot: Snapshot) -> None:
    """Write the parts of a snapshot of the log up to an anchor, within a transaction."""
    before, mark = _mark_of(connection), Mark(anchor, snapshot.form)
    if before is None or before.form != snapshot.form:
        drop(connection)
    connection.executemany(
        _PUT,
        [(e.stream, e.ref, e.version, int(e.is_live), e.data, _checksum(e)) for e in snapshot.parts],
    )
    connection.execute(_PUT_MARK, (str(mark),))
    marked(connection, mark)


def drop(connection: Connection) -> None:
    """Remove the snapshot of a log, and its earlier ones."""
    drop_marks(connection)
    connection.execute("DELETE FROM meta WHERE name = 'snapshot'")
    connection.execute("DELETE FROM snapshots")


def resumed(path: Path, connection: Connection, form: str, until: int | None = None) -> Resumption:
    """Return the newest snapshot of this form with the entries that it does not have. Raises ``Damaged``.

    With ``until`` it is the newest one up to that position, with the entries up to there. Without a snapshot the
    entries are read page by page while they are used.
    """
    connection.execute("BEGIN")
    try:
        end = anchor_of(path, connection) if until is None else _anchor_at(path, connection, until)
        mark, rows = _snapshot(connection, form, until)
        parts = None if mark is None else _parts(rows)
        if mark is None or parts is None:
            return Resumption((), _pages(path, connection, end), end.entries)
        old = [_Older(Entry(*each[:-3]), *each[-3:]) for each in _older(connection, parts, mark.anchor.entries)]
        newer_rows = connection.execute(select(connection, _PAGE, further="link"), (mark.anchor.entries, end.entries))
        new = [(Entry(*each[:-1]), each[-1]) for each in newer_rows]
        last_ms, rules = connection.execute(_TIME, (mark.anchor.entries,)).fetchone() or (0, "")
    finally:
        connection.execute("COMMIT")
    try:
        for entry, position, before, link in old:
            verified(Anchor(position - 1, before or FIRST), [(entry, link)], Anchor(position, link))
        newer = verified(mark.anchor, new, end)
    except BrokenChain as error:
        raise damaged(path, str(error)) from error
    older = [each.entry for each in sorted(old, key=lambda each: each.position)]
    count = mark.anchor.entries - len(older)
    return Resumption(parts, [*older, *newer], end.entries, count, SnapshotPlace(last_ms, rules, len(older)))


def parts_of(connection: Connection, form: str, stream: str, before: int | None = None) -> list[SnapshotPart]:
    """Return the parts of one stream in the newest snapshot of this form; empty without one, and if it is damaged.

    With ``before`` it is the newest snapshot or mark that does not have the entry of this version.
    """
    connection.execute("BEGIN")
    try:
        mark = _mark_of(connection)
        if mark is not None and mark.form.startswith(form) and is_of(connection, mark.anchor):
            parts = _parts(connection.execute(_PARTS_OF, (stream,))) or []
            if before is None or _version_of(parts) < before:
                return parts
        if before is None:
            return []
        found = connection.execute(_POSITION, (stream, before)).fetchone()
        past = None if found is None else mark_before(connection, form, int(found[0]) - 1)
        return [] if past is None else _parts(rows_of(connection, past, stream)) or []
    finally:
        connection.execute("COMMIT")


def _version_of(parts: Iterable[SnapshotPart]) -> int:
    """Return the version of the head among the parts of a stream; 0 without one."""
    return sum(part.version for part in parts if not part.ref)


def _anchor_at(path: Path, connection: Connection, seq: int) -> Anchor:
    """Return the anchor of the log as it was after the entry at a position. Raises ``Damaged``."""
    end = anchor_of(path, connection)
    if seq >= end.entries:
        return end
    found = connection.execute("SELECT link FROM entries WHERE position = ?", (seq,)).fetchone()
    if seq and found is None:
        raise damaged(path, f"it has no entry at position {seq}")
    return Anchor(seq, FIRST if found is None else found[0])


def _snapshot(connection: Connection, form: str, until: int | None) -> tuple[Mark | None, Iterable[tuple[Any, ...]]]:
    """Return the mark of the newest snapshot of a form, and its rows; with ``until`` of one up to that position."""
    if until is not None:
        past = mark_before(connection, form, until)
        return past, () if past is None else rows_of(connection, past)
    mark = _mark_of(connection)
    if mark is None or not mark.form.startswith(form) or not is_of(connection, mark.anchor):
        return None, ()
    return mark, connection.execute(_PARTS)


def _older(connection: Connection, parts: Iterable[SnapshotPart], until: int) -> Iterator[tuple[Any, ...]]:
    """Yield the entries before the position of a snapshot that it does not have: those after its heads."""
    for part in parts:
        if not part.ref:
            yield from connection.execute(_OLDER, (part.stream, part.version, until))


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


def _parts(rows: Iterable[tuple[Any, ...]]) -> list[SnapshotPart] | None:
    """Return all parts of a snapshot; None if one of them is not as it was written."""
    parts: list[SnapshotPart] = []
    for stream, ref, data, is_live, version, checksum in rows:
        parts.append(SnapshotPart(stream, ref, data, bool(is_live), version))
        if _checksum(parts[-1]) != checksum:
            return None
    return parts


def _checksum(part: SnapshotPart) -> int:
    return crc32(part.data, crc32(f"{part.stream} {part.ref} {part.version} {part.is_live:d}".encode()))


def _mark_of(connection: Connection) -> Mark | None:
    return read_mark(meta_of(connection, "snapshot") or "")


_PUT: Final = (
    "INSERT INTO snapshots (stream, ref, version, is_live, data, checksum) VALUES (?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (stream, ref) DO UPDATE SET version = excluded.version, is_live = excluded.is_live,"
    " data = excluded.data, checksum = excluded.checksum"
)
_PUT_MARK: Final = (
    "INSERT INTO meta (name, value) VALUES ('snapshot', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)
_PARTS: Final = "SELECT stream, ref, data, is_live, version, checksum FROM snapshots ORDER BY stream, ref"
_PARTS_OF: Final = "SELECT stream, ref, data, is_live, version, checksum FROM snapshots WHERE stream = ? ORDER BY ref"
_POSITION: Final = "SELECT position FROM entries WHERE stream = ? AND version = ?"
_KEYS: Final = "SELECT stream, key FROM entries WHERE key <> '' AND (stream, key) IN (VALUES"
_PAGE: Final = "WHERE position > ? AND position <= ? ORDER BY position"
_OLDER: Final = (
    "SELECT e.stream, e.version, e.at_ms, e.key, e.envelope, e.outcome, e.rules, e.position,"
    " (SELECT link FROM entries WHERE position = e.position - 1), e.link"
    " FROM entries AS e WHERE e.stream = ? AND e.version > ? AND e.position <= ?"
)
_TIME: Final = "SELECT at_ms, rules FROM entries WHERE position = ?"
