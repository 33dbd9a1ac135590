"""The short path of a writer whose log no one else has changed, beside the path that verifies everything."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance import entry
from lifefold.interpreters.store import Batch, SqliteStore, StoreError
from lifefold.interpreters.store.unchanged import MOST_STREAMS, Unchanged

pytestmark = pytest.mark.anyio

FOREIGN: Final = {
    "fence": "UPDATE meta SET value = value + 1 WHERE name = 'epoch'",
    "remove": "DELETE FROM entries WHERE position = (SELECT MAX(position) FROM entries)",
    "relink": "UPDATE entries SET link = x'00' WHERE position = (SELECT MAX(position) FROM entries)",
    "unrelated": "INSERT INTO posts (stream, envelope) VALUES ('a', x'7B7D')",
}
"""Changes by another program."""

TABLES: Final = ("entries", "meta", "performed", "posts")


class Unknown(Unchanged):
    """No knowledge of a log, in any transaction."""

    def is_so(self) -> bool:
        """Return False."""
        return False


class PlainStore(SqliteStore):
    """A store that knows nothing of its log at the beginning of a transaction."""

    async def append(self, batch: Batch) -> None:
        """Write a batch, and verify everything."""
        self._unchanged = Unknown(self._connection)
        await super().append(batch)


deeds = st.one_of(
    st.tuples(st.sampled_from(["a", "b"]), st.integers(-1, 2), st.integers(1, 2)),
    st.sampled_from([*FOREIGN, "command", "forget"]),
)
Deed = str | tuple[str, int, int]


async def _done(store: SqliteStore, deed: Deed, versions: dict[str, int]) -> str:
    """Do one thing with a log, and return its outcome."""
    try:
        if isinstance(deed, tuple):
            stream, skipped, count = deed
            first = versions.get(stream, 0) + 1 + skipped
            batch = Batch(tuple(entry(stream, number) for number in range(first, first + count)), {stream: first - 1})
            await store.append(batch)
            versions[stream] = first + count - 1
        elif deed == "command":
            await store.submit("a", b"{}")
        elif deed == "forget":
            await store.drop_snapshot()
        else:
            with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
                other.execute(FOREIGN[deed])
    except StoreError as error:
        return f"{type(error).__name__}: {error}"
    return "done"


async def _history(kind: type[SqliteStore], path: Path, steps: Sequence[Deed]) -> tuple[list[str], list[object]]:
    """Return the outcome of each step on a new log, and all rows of the log after them."""
    versions: dict[str, int] = {}
    with kind.create(path, {}) as store:
        outcomes = [await _done(store, each, versions) for each in steps]
        rows = [row for table in TABLES for row in store.database.execute(f"SELECT * FROM {table}")]  # noqa: S608
    return outcomes, rows


@given(st.lists(deeds, max_size=12))
def test_a_writer_that_knows_its_log_does_the_same_as_one_that_verifies_everything(steps: list[Deed]) -> None:
    """Every outcome and every row is equal, also after changes by other programs, and after refused batches."""

    async def both(folder: Path) -> None:
        outcomes, rows = await _history(SqliteStore, folder / "log.db", steps)
        (folder / "log.db").unlink()
        assert (outcomes, rows) == await _history(PlainStore, folder / "log.db", steps)

    with TemporaryDirectory() as folder:
        anyio.run(both, Path(folder))


def test_a_change_by_another_connection_or_by_this_one_is_noticed(tmp_path: Path) -> None:
    """The knowledge lasts from one noted transaction to the next one, and no longer."""
    with SqliteStore.create(tmp_path / "log.db", {}) as store, closing(sqlite3.connect(tmp_path / "log.db")) as other:
        connection = store._connection
        unchanged = Unchanged(connection)
        assert not unchanged.is_so()
        unchanged.note({"a": 3})
        assert unchanged.is_so()
        assert unchanged.versions == {"a": 3}
        assert not unchanged.is_so()  # that transaction was not noted, so it may have failed
        for change in (connection, other):
            unchanged.note({"a": 3})
            change.execute("INSERT INTO meta VALUES (?, '')", (repr(change),))
            other.commit()
            assert not unchanged.is_so()
            assert not unchanged.versions
        unchanged.note({f"{number}": 1 for number in range(MOST_STREAMS + 1)})
        assert not unchanged.versions
