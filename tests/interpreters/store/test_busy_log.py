"""A file that other programs use too: a writer waits, a command gives up, and neither loses data."""

import errno
import fcntl
import logging
import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Never

import anyio
import pytest
from msgspec.structs import replace

from conformance import entry
from lifefold.interpreters.store import Batch, Busy, Full, Locked, SqliteStore, StoreError, reading, sqlite
from small_disk import fill, needs_a_small_disk, small_disk

pytestmark = pytest.mark.anyio


class Hearing(logging.Handler):
    """What a logger says, and that it has said something."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self.something = anyio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())
        self.something.set()


@pytest.fixture
def heard() -> Iterator[Hearing]:
    """Return what the store's logger says during the test."""
    hearing = Hearing()
    sqlite._logger.addHandler(hearing)
    yield hearing
    sqlite._logger.removeHandler(hearing)


async def test_a_writer_waits_for_as_long_as_another_program_keeps_the_log_busy(
    made: Path, monkeypatch: pytest.MonkeyPatch, heard: Hearing
) -> None:
    """However long a backup takes: it is told of once, and the batch is written when the log is free."""
    monkeypatch.setattr(reading, "BUSY_TIMEOUT_S", 0.01)
    monkeypatch.setattr(sqlite, "BUSY_PAUSE_S", 0.01)
    with SqliteStore.open(made) as store, closing(sqlite3.connect(made, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store.append, Batch((entry("a", 3),)))
            await heard.something.wait()
            assert len(await store.read()) == 2
            other.execute("ROLLBACK")
        assert [each.version for each in await store.read()] == [1, 2, 3]
    assert re.fullmatch(re.escape(str(made)) + ".*another program keeps the log busy.*waiting.*", "".join(heard.said))


async def test_waiting_for_a_busy_log_can_be_cancelled(
    made: Path, monkeypatch: pytest.MonkeyPatch, heard: Hearing
) -> None:
    """A runner that is told to go does not wait for a backup; nothing of the batch is written."""
    monkeypatch.setattr(reading, "BUSY_TIMEOUT_S", 0.01)
    with SqliteStore.open(made) as store, closing(sqlite3.connect(made, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store.append, Batch((entry("a", 3),)))
            await heard.something.wait()
            tasks.cancel_scope.cancel()
        other.execute("ROLLBACK")
        assert len(await store.read()) == 2


@pytest.mark.parametrize("opening", [SqliteStore.peek, partial(SqliteStore.open, patient=False)], ids=["peek", "open"])
async def test_a_command_gives_up_on_a_log_that_another_program_keeps_busy(
    made: Path, monkeypatch: pytest.MonkeyPatch, opening: Callable[[Path], SqliteStore]
) -> None:
    """What cannot be written within the busy timeout is refused whole, and can be written afterwards."""
    monkeypatch.setattr(reading, "BUSY_TIMEOUT_S", 0.05)
    with opening(made) as store, closing(sqlite3.connect(made, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Busy, match=r"locked.*nothing of this was written"):
            await store.submit("a", b"{}")
        other.execute("ROLLBACK")
        assert await store.commands() == []
        await store.submit("a", b"{}")


def test_a_log_that_another_program_has_locked_cannot_be_opened(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that another program has locked as a whole is named with the reason; later it can be opened."""
    monkeypatch.setattr(reading, "BUSY_TIMEOUT_S", 0.05)
    with closing(sqlite3.connect(made, isolation_level=None)) as other:
        other.executescript("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE")
        for opening in (SqliteStore.open, SqliteStore.peek):
            with pytest.raises(StoreError, match=re.escape(str(made)) + ".*locked"):
                opening(made)
    SqliteStore.open(made).close()


@pytest.mark.parametrize("asking", [SqliteStore.open, partial(SqliteStore.create, meta={})], ids=["open", "create"])
def test_a_disk_that_cannot_lock_is_not_mistaken_for_another_writer(
    made: Path, monkeypatch: pytest.MonkeyPatch, asking: Callable[[Path], SqliteStore]
) -> None:
    """Some network disks have no locks: the error says so, to writers and to readers that look for a writer."""

    def no_locks(_lock: int, _how: int) -> Never:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    with SqliteStore.peek(made) as beside:
        monkeypatch.setattr(fcntl, "flock", no_locks)
        for attempt in (partial(asking, made), beside.is_written):
            with pytest.raises(StoreError, match=re.escape(f"{made}.lock") + r": cannot be locked.*No locks") as raised:
                attempt()
            assert not isinstance(raised.value, Locked)


# -- a disk that is full


def pages(store: SqliteStore) -> int:
    """Return how many pages a log has; no transaction of its store gets more if that is the limit."""
    return int(store._connection.execute("PRAGMA page_count").fetchone()[0])


def limit(store: SqliteStore, most: int) -> None:
    """Let a log have so many pages at most: SQLite then raises as on a full disk."""
    store._connection.execute(f"PRAGMA max_page_count = {most}")


BIG = replace(entry("a", 3), envelope=b"x" * 100_000)


async def test_a_writer_waits_for_as_long_as_the_disk_is_full(
    made: Path, monkeypatch: pytest.MonkeyPatch, heard: Hearing
) -> None:
    """It is told of once, nothing is acknowledged meanwhile, and it is told of again when the writer goes on."""
    monkeypatch.setattr(sqlite, "BUSY_PAUSE_S", 0.01)
    with SqliteStore.open(made) as store:
        limit(store, pages(store))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store.append, Batch((BIG,)))
            await heard.something.wait()
            for _ in range(20):
                assert len(await store.read()) == 2
            assert len(heard.said) == 1
            limit(store, 1_000_000)
        assert [each.version for each in await store.read()] == [1, 2, 3]
    waits, goes_on = heard.said
    assert re.fullmatch(re.escape(str(made)) + ".*the disk is full.*waiting.*", waits)
    assert "goes on" in goes_on


async def test_a_command_gives_up_on_a_full_disk(made: Path) -> None:
    """A command is not patient: it says that the disk is full, and nothing of what it wrote is there."""
    with SqliteStore.peek(made) as store:
        limit(store, pages(store))
        with pytest.raises(Full, match=r"the disk is full.*nothing of this was written"):
            await store.submit("a", b"x" * 100_000)
        assert await store.commands() == []


@needs_a_small_disk
async def test_a_writer_survives_a_full_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, heard: Hearing
) -> None:
    """The same on a real file system that another file fills: the batch is written when that file is gone."""
    monkeypatch.setattr(sqlite, "BUSY_PAUSE_S", 0.01)
    with small_disk(tmp_path / "disk") as disk, SqliteStore.create(disk / "fleet.db", {}) as store:
        await store.append(Batch((entry("a", 1), entry("a", 2))))
        filling = fill(disk)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store.append, Batch((BIG,)))
            await heard.something.wait()
            assert len(await store.read()) == 2
            filling.unlink()
        assert len(await store.read()) == 3
    assert "the disk is full" in heard.said[0]
