"""A log that another program overwrites in place while it is written: it is noticed, and nothing is lost."""

import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import IO
from unittest.mock import ANY

import anyio
import pytest
from msgspec.structs import replace

from conformance import entry
from lifefold.interpreters.store import Batch, Damaged, SqliteStore, StoreError, base

pytestmark = pytest.mark.anyio

READS = """
import sqlite3, sys
print(sqlite3.connect(sys.argv[1]).execute("SELECT count(*) FROM entries").fetchone()[0])
"""
"""A program that reads a log."""


def contents(log: Path) -> dict[str, bytes]:
    """Return the contents of a log and of the files beside it, by the ends of their names."""
    return {path.name.removeprefix(log.name): path.read_bytes() for path in log.parent.iterdir()}


def mark(log: Path) -> int:
    """Return when a log was written last, without its write-ahead log."""
    return log.stat().st_mtime_ns


def over(log: Path, contents: bytes) -> None:
    """Write into a log in place, later than its last change as far as the clock of the file system tells."""
    before = log.stat().st_mtime_ns
    log.write_bytes(contents)
    os.utime(log, ns=(before + 1, before + 1))


def damage_unnoticed(log: Path) -> None:
    """Write into the middle of a log without a new size or time."""
    before = log.stat()
    with log.open("r+b") as file:
        file.seek(before.st_size // 2)
        file.write(b"x" * 8)
    os.utime(log, ns=(before.st_atime_ns, before.st_mtime_ns))


async def test_an_overwritten_log_has_all_of_it_in_its_copy_also_after_a_checkpoint(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file of the other program is kept as it is."""
    monkeypatch.setattr(base, "CHECKPOINT_BYTES", 1)
    with SqliteStore.open(made) as store:
        before = mark(made)
        for version in range(3, 40):
            await store.append(Batch((entry("a", version),)))
        assert mark(made) > before, "there was no checkpoint"
        with SqliteStore.peek(made) as beside:
            await beside.submit("a", b"p")
        over(made, b"another")
        await store.look()
        assert store.displaced is not None
        assert store.displaced.what == "another program has overwritten the file"
        await store.append(Batch((entry("a", 40),)))
        assert len(await store.commands()) == 1
    assert contents(made) == {
        "": b"another",
        ".lock": b"",
        ".anchor": ANY,
        ".recovered": ANY,
        ".recovered.lock": b"",
        ".recovered.anchor": ANY,
    }
    with SqliteStore.open(made.with_name(made.name + ".recovered")) as store:
        assert [each.version for each in await store.read()] == list(range(1, 41))


async def test_a_checkpoint_is_made_once_for_each_growth_of_the_write_ahead_log(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writes after a checkpoint make none before the write-ahead log has grown as much again."""
    monkeypatch.setattr(base, "CHECKPOINT_BYTES", 1_000_000)
    written, marks = 0, {mark(made)}
    with SqliteStore.open(made) as store:
        marks.add(mark(made))
        opened = len(marks)
        for version in range(3, 203):
            await store.append(Batch((replace(entry("a", version), envelope=b"x" * 20_000),)))
            written += 20_000
            marks.add(mark(made))
    assert 2 <= len(marks) - opened <= written // base.CHECKPOINT_BYTES * 2


async def test_a_checkpoint_copies_only_what_it_has_written(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that another program has changed unnoticed is still as it was in the copy."""
    with SqliteStore.open(made) as store:
        await store.append(Batch(tuple(entry("a", version) for version in range(3, 1_000))))
    with SqliteStore.open(made) as store:
        before = mark(made)
        damage_unnoticed(made)
        monkeypatch.setattr(base, "CHECKPOINT_BYTES", 1)
        await store.append(Batch(tuple(entry("a", version) for version in range(1_000, 2_000))))
        assert mark(made) > before, "there was no checkpoint"
        over(made, b"another")
        await store.look()
        assert [each.version for each in await store.read()] == list(range(1, 2_000))


async def test_an_older_copy_that_is_written_over_a_log_is_noticed(made: Path) -> None:
    """It is a sound log of the same fleet, without the newest entries."""
    older = contents(made)[""]
    with SqliteStore.open(made) as store:
        await store.append(Batch((entry("a", 3),)))
    with SqliteStore.open(made) as store:
        over(made, older)
        await store.look()
        assert store.displaced is not None
        assert [each.version for each in await store.read()] == [1, 2, 3]


async def test_a_checkpoint_of_another_program_is_no_overwriting(made: Path) -> None:
    """Nor is a new time of the file alone; what is overwritten afterwards is recovered."""
    with SqliteStore.open(made) as store:
        await store.append(Batch((entry("a", 3),)))
        with closing(sqlite3.connect(made, isolation_level=None)) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        await store.append(Batch((entry("a", 4),)))
        os.utime(made)
        await store.look()
        assert store.path == made
        over(made, b"")
        await store.append(Batch((entry("a", 5),)))
        assert store.path != made
    with SqliteStore.open(made.with_name(made.name + ".recovered")) as store:
        assert [each.version for each in await store.read()] == [1, 2, 3, 4, 5]


async def test_an_overwritten_log_without_a_copy_of_its_main_file_is_damaged(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a very large one, or one on a full disk: the error says so, and nothing is written any more."""
    monkeypatch.setattr(base, "LARGEST_BYTES", 0)
    with SqliteStore.open(made) as store:
        over(made, b"another")
        for _ in range(2):
            with pytest.raises(StoreError, match="overwritten the file, and a copy cannot be written"):
                await store.append(Batch((entry("a", 3),)))
    assert list(made.parent.glob("*.recovered")) == []


async def test_the_writer_of_one_operator_command_copies_no_log(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the log for moments only. An overwritten log is noticed all the same, and nothing is written to it."""
    copied: list[int] = []

    def remember(_source: int, _target: IO[bytes], _place: int, size_bytes: int) -> None:
        copied.append(size_bytes)

    monkeypatch.setattr(base, "_copy_range", remember)
    with SqliteStore.open(made, patient=False) as store:
        await store.append(Batch((entry("a", 3),)))
        assert copied == []
        over(made, b"another")
        with pytest.raises(StoreError, match="overwritten the file, and a copy cannot be written"):
            await store.append(Batch((entry("a", 4),)))
    with SqliteStore.create(made.with_name("other.db"), {}):
        assert copied


async def test_a_log_whose_write_ahead_log_is_overwritten_too_is_damaged(made: Path) -> None:
    """No part of it is passed off as all of it."""
    with SqliteStore.open(made) as store:
        await store.append(Batch((entry("a", 3),)))
        over(made, b"another")
        over(made.with_name(made.name + "-wal"), b"another")
        with pytest.raises(Damaged, match="cannot be recovered as a whole"):
            await store.append(Batch((entry("a", 4),)))
    assert list(made.parent.glob("*.recovered")) == []


async def test_a_command_that_reads_a_log_while_it_is_written_takes_no_part_of_it_away(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer keeps SQLite's locks on its file while it copies the file; without them the other would clean up."""
    monkeypatch.setattr(base, "CHECKPOINT_BYTES", 1)
    with SqliteStore.open(made) as store:
        for version in range(3, 6):
            await store.append(Batch((entry("a", version),)))
            done = await anyio.run_process([sys.executable, "-c", READS, str(made)])
            assert int(done.stdout) == version
        await store.look()
        assert store.displaced is None


WRITES = """
import sys, anyio
from pathlib import Path
from lifefold.interpreters.store import Batch, Entry, SqliteStore
with SqliteStore.open(Path(sys.argv[1]), patient=False) as store:
    anyio.run(store.append, Batch((Entry("a", int(sys.argv[2]), 0, "", b"{}", b"{}"),)))
"""


@pytest.mark.parametrize("patient", [True, False], ids=["runner", "command"])
async def test_a_reader_sees_what_other_processes_write_after_its_own_process_has_written(
    made: Path,
    patient: bool,  # noqa: FBT001  # a table's column
) -> None:
    """A process that waits for the answer to its command may decide on the command itself, if no runner is left.

    If the reader lost its locks then, the next writer would remove the write-ahead log that the reader reads, and the
    reader would wait for ever.
    """
    with SqliteStore.peek(made) as reader:
        assert len(await reader.read("a")) == 2
        with SqliteStore.open(made, patient=patient) as store:
            await store.append(Batch((entry("a", 3),)))
        for version in (4, 5):
            await anyio.run_process([sys.executable, "-c", WRITES, str(made), str(version)])
            assert len(await reader.read("a")) == version
