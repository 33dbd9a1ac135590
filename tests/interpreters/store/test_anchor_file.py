"""The anchor beside a log: who writes it, when it is not overwritten, and what it is worth."""

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import anyio
import pytest

from conformance import entry
from lifefold.interpreters.store import Batch, SqliteStore
from lifefold.interpreters.store.anchor_file import UnreadableAnchor, anchor_beside, read_anchor
from lifefold.interpreters.store.place import beside


def cut(path: Path) -> None:
    """Cut the newest entry off, together with the anchor inside of the log."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM entries WHERE position = (SELECT MAX(position) FROM entries)")
        count, link = connection.execute("SELECT position, link FROM entries ORDER BY position DESC").fetchone()
        connection.execute("UPDATE meta SET value = ? WHERE name = 'anchor'", (f"{count} {link.hex()}",))
        connection.commit()


def go_on(path: Path, version: int) -> None:
    """Let another writer write one entry."""
    with SqliteStore.open(path) as store:
        anyio.run(partial(store.append, Batch((entry("a", version),))))


def test_a_writer_leaves_an_anchor_that_names_the_newest_entry(made: Path) -> None:
    """The anchor beside the log is the one inside, after each writer."""
    with SqliteStore.peek(made) as store:
        assert anchor_beside(made) == anyio.run(store.chain).end
    go_on(made, 3)
    found = anchor_beside(made)
    assert found is not None
    assert found.entries == 3


def test_the_anchor_of_a_cut_log_is_not_overwritten(made: Path) -> None:
    """A writer that goes on with a cut log does not hide that."""
    before = anchor_beside(made)
    cut(made)
    go_on(made, 2)
    assert anchor_beside(made) == before


def test_a_new_log_at_a_path_has_no_anchor_of_an_earlier_one(made: Path) -> None:
    """The anchor of a deleted log does not accuse the next log at its path."""
    made.unlink()
    with SqliteStore.create(made, {}):
        assert anchor_beside(made) is None


def test_a_reader_writes_no_anchor(made: Path) -> None:
    """A log that is only read gets no file beside it."""
    beside(made, ".anchor").unlink()
    with SqliteStore.peek(made):
        pass
    assert anchor_beside(made) is None


def test_whoever_may_read_a_log_may_read_its_anchor(made: Path) -> None:
    """The anchor has the permissions of its log."""
    made.chmod(0o644)
    go_on(made, 3)
    assert beside(made, ".anchor").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("text", ["", "{}", '{"entries": 1, "link": "xyz"}', '{"entries": 1, "link": "", "more": 1}'])
def test_a_file_that_is_no_anchor_is_named(tmp_path: Path, text: str) -> None:
    """An unreadable anchor is an error with the path of its file."""
    path = tmp_path / "fleet.db.anchor"
    path.write_text(text)
    with pytest.raises(UnreadableAnchor, match=str(path)):
        read_anchor(path)


def test_a_log_that_was_removed_while_it_was_open_gets_no_anchor(made: Path) -> None:
    """A cleaned fleet leaves nothing behind when its log is closed."""
    with SqliteStore.open(made):
        beside(made, ".anchor").unlink()
        made.unlink()
    assert [each.name for each in made.parent.iterdir() if "anchor" in each.name] == []
