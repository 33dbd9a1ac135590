"""A file that several processes open at the same time is opened by all of them, in each module that uses SQLite."""

import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import pytest

from lifefold.interpreters.facades.status import SqliteStateManager, StoreUnavailable
from lifefold.interpreters.facades.status import store as agents
from lifefold.interpreters.store import Busy, SqliteStore, reading, wal

CHILD: Final = Path(__file__).parents[2] / "support" / "keeping_child.py"


@contextmanager
def kept_by_another_process(path: Path) -> Generator[Callable[[object], None]]:
    """Yield what lets the file go, which another process keeps for itself from now on."""
    with subprocess.Popen(
        [sys.executable, CHILD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        told, heard = child.stdin, child.stdout
        assert heard.readline() == "kept\n"

        def let_go(_seconds: object) -> None:
            if not told.closed:
                told.close()
                assert heard.readline() == "free\n"

        try:
            yield let_go
        finally:
            let_go(None)


@pytest.fixture(params=["agents", "log"])
def opening(request: pytest.FixtureRequest, made: Path, tmp_path: Path) -> tuple[Path, Callable[[], None]]:
    """Return a file in SQLite's first journal mode, as it is when it is made, and how it is opened."""
    if request.param == "agents":
        fresh = tmp_path / "agents.db"
        return fresh, lambda: SqliteStateManager(fresh).close()
    with closing(sqlite3.connect(made, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    return made, lambda: SqliteStore.peek(made).close()


def test_opening_a_file_waits_for_another_process_that_writes_to_it(
    opening: tuple[Path, Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite itself does not, for the switch to its write-ahead log: it says at once that the file is locked."""
    path, opened = opening
    with kept_by_another_process(path) as let_go:
        monkeypatch.setattr(wal, "sleep", let_go)
        opened()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_opening_a_file_gives_up_when_the_busy_time_is_over(
    opening: tuple[Path, Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the file's name and the reason; nothing is left open, so that it can be opened later."""
    path, opened = opening
    for module in (agents, reading):
        monkeypatch.setattr(module, "BUSY_TIMEOUT_S", 0.03)
    with (
        kept_by_another_process(path),
        pytest.raises((StoreUnavailable, Busy), match=re.escape(str(path)) + ".*database is locked"),
    ):
        opened()
    opened()


def test_many_processes_make_one_file_together(tmp_path: Path) -> None:
    """All of them open it, in any order."""
    work = (
        "import sys; from lifefold.interpreters.facades.status import SqliteStateManager; sys.stdin.readline();"
        "[SqliteStateManager(f'{sys.argv[1]}/{number}.db') for number in range(20)]"
    )
    children = [
        subprocess.Popen([sys.executable, "-c", work, tmp_path], stdin=subprocess.PIPE, text=True) for _ in range(4)
    ]
    for child in children:
        assert child.stdin is not None
        child.stdin.close()
    assert [child.wait(timeout=60) for child in children] == [0] * 4
