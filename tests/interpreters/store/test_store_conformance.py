"""The stores of lifefold have every property of an event store."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lifefold.interpreters.store import EventStore, MemoryStore, Shelf, SqliteStore
from lifefold.interpreters.testing import STORE_CHECKS, Log, StoreConformance, check_store


class MemoryLog:
    """A shelf, and the store that was opened on it last."""

    def __init__(self) -> None:
        self._shelf = Shelf()
        self._last = MemoryStore(self._shelf)

    async def write(self) -> EventStore:
        self._last = MemoryStore(self._shelf)
        return self._last

    async def watch(self) -> EventStore:
        return self._last

    async def lose(self) -> None:
        self._last = MemoryStore(self._shelf)


class SqliteLog:
    """A file. A second writer takes over because the lock file was deleted, as by a clean-up script."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened: list[SqliteStore] = []

    async def write(self) -> EventStore:
        self._path.with_name(self._path.name + ".lock").unlink(missing_ok=True)
        known = self._path.exists()
        return self._keep(SqliteStore.open(self._path) if known else SqliteStore.create(self._path, {"name": "x"}))

    async def watch(self) -> EventStore:
        return self._keep(SqliteStore.peek(self._path))

    async def lose(self) -> None:
        self.close()

    def close(self) -> None:
        while self._opened:
            self._opened.pop().close()

    def _keep(self, store: SqliteStore) -> SqliteStore:
        self._opened.append(store)
        return store


@pytest.fixture(params=["memory", "sqlite"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Log]:
    if request.param == "memory":
        yield MemoryLog()
    else:
        log = SqliteLog(tmp_path / "fleet.db")
        yield log
        log.close()


class TestOnAsyncio(StoreConformance):
    """Every check of the kit, of both stores."""


class TestOnTrio(StoreConformance):
    """The same on the other event loop."""

    backend = "trio"


def test_the_whole_kit_is_one_line(tmp_path: Path) -> None:
    """Every check gets a log of its own, and what it has opened is closed after it."""
    made: list[SqliteLog] = []

    def new() -> SqliteLog:
        made.append(SqliteLog(tmp_path / f"{len(made)}.db"))
        return made[-1]

    check_store(MemoryLog)
    check_store(new)
    assert len(made) == len(STORE_CHECKS)
    assert not any(each._opened for each in made)
