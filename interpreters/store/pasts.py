"""Earlier snapshots of a log, so that a page of its past costs no fold of all entries before it.

The writer marks its snapshot after ``EVERY_ENTRIES`` entries, and after as many as the snapshot has parts. A mark
keeps the parts that have changed since the mark before: a part of a mark is its newest row at that mark or before. The
marks are in the metadata of the log, each with the anchor and the form of its snapshot. They are a cache: marks of
another form, of another log or with a damaged part are not used.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from lifefold.interpreters.store.chain import FIRST, Anchor
from lifefold.interpreters.store.connection import Connection
from lifefold.interpreters.store.meta import meta_of

EVERY_ENTRIES: Final = 10_000
"""The fewest entries between two marks."""


class Mark(NamedTuple):
    """The entry that a snapshot was taken after, and the form of its parts."""

    anchor: Anchor
    form: str

    def __str__(self) -> str:
        return f"{self.anchor.entries} {self.anchor.link.hex()} {self.form}"


def read_mark(text: str) -> Mark | None:
    """Return a mark as it was written; None for another text."""
    try:
        count, link, form = text.split(" ")
        return Mark(Anchor(int(count), bytes.fromhex(link)), form)
    except ValueError:
        return None


def is_of(connection: Connection, anchor: Anchor) -> bool:
    """Tell whether a log has the entry of an anchor."""
    found = connection.execute("SELECT link FROM entries WHERE position = ?", (anchor.entries,)).fetchone()
    return (FIRST if found is None else found[0]) == anchor.link


def marked(connection: Connection, mark: Mark) -> None:
    """Keep the present snapshot as a mark if one is due, within a transaction of the writer."""
    marks = _marks(connection)
    if marks and mark.anchor.entries - marks[-1].anchor.entries < _distance(connection):
        return
    connection.execute(_KEEP, (mark.anchor.entries,))
    text = "\n".join(map(str, (*marks, mark)))
    connection.execute(_PUT, (text,))


def drop_marks(connection: Connection) -> None:
    """Remove all marks."""
    if meta_of(connection, "pasts") is not None:
        connection.execute("DELETE FROM meta WHERE name = 'pasts'")
        connection.execute("DELETE FROM pasts")


def mark_before(connection: Connection, form: str, seq: int) -> Mark | None:
    """Return the newest mark of a form up to a position; None without one."""
    found = (each for each in reversed(_marks(connection)) if each.anchor.entries <= seq and each.form.startswith(form))
    return next((each for each in found if is_of(connection, each.anchor)), None)


def rows_of(connection: Connection, mark: Mark, stream: str | None = None) -> Sequence[tuple[Any, ...]]:
    """Return the rows of the parts of a mark, or of those of one stream, with the columns of a snapshot."""
    if stream is None:
        return connection.execute(f"{_ROWS} {_IN_ORDER}", (mark.anchor.entries,)).fetchall()
    return connection.execute(f"{_ROWS} AND p.stream = ? {_IN_ORDER}", (mark.anchor.entries, stream)).fetchall()


def _marks(connection: Connection) -> list[Mark]:
    found = (read_mark(line) for line in (meta_of(connection, "pasts") or "").split("\n"))
    return [each for each in found if each is not None]


def _distance(connection: Connection) -> int:
    (parts,) = connection.execute("SELECT COUNT(*) FROM snapshots").fetchone()
    return max(EVERY_ENTRIES, int(parts))


_KEEP: Final = (
    "INSERT INTO pasts (position, stream, ref, version, is_live, data, checksum)"
    " SELECT CAST(? AS BIGINT), s.stream, s.ref, s.version, s.is_live, s.data, s.checksum FROM snapshots AS s"
    " WHERE NOT EXISTS (SELECT 1 FROM pasts AS p WHERE p.stream = s.stream AND p.ref = s.ref AND p.position ="
    " (SELECT MAX(n.position) FROM pasts AS n WHERE n.stream = s.stream AND n.ref = s.ref)"
    " AND p.version = s.version AND p.is_live = s.is_live AND p.data = s.data)"
)
_PUT: Final = (
    "INSERT INTO meta (name, value) VALUES ('pasts', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)
_ROWS: Final = (
    "SELECT p.stream, p.ref, p.data, p.is_live, p.version, p.checksum FROM pasts AS p WHERE p.position ="
    " (SELECT MAX(n.position) FROM pasts AS n WHERE n.stream = p.stream AND n.ref = p.ref AND n.position <= ?)"
)
_IN_ORDER: Final = "ORDER BY p.stream, p.ref"
