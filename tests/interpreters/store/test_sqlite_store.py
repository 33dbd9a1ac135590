"""The SQLite file: its writer, files that are no log, and its contents after a process has died."""

import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Never

import anyio
import pytest
from msgspec.structs import replace

import store_child
from conformance import entry
from lifefold.interpreters.store import (
    Batch,
    Damaged,
    Fenced,
    Locked,
    NotAStore,
    SqliteStore,
    StoreError,
    VersionConflict,
    identity,
)

pytestmark = pytest.mark.anyio

Child = subprocess.Popen[str]


@contextmanager
def child(deed: str, path: Path, *words: str) -> Generator[Child]:
    """Run a process beside the test; it is killed at the latest when the block is left."""
    pipe = subprocess.PIPE
    argv = [sys.executable, store_child.__file__, deed, str(path), *words]
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def hear(process: Child) -> str:
    """Return the next line that a child says."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def snapshot(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder, byte for byte."""
    return {each.name: each.read_bytes() for each in folder.iterdir() if each.is_file()}


# Who may write


def test_a_log_that_another_process_writes_cannot_be_opened(made: Path) -> None:
    """Neither opening nor making it again is possible; the error names the file and says what to do."""
    with child("hold", made) as holder:
        assert hear(holder) == "open"
        for attempt in (SqliteStore.open, partial(SqliteStore.create, meta={})):
            with pytest.raises(Locked, match=re.escape(str(made)) + r".*Ctrl-C"):
                attempt(made)


def test_the_lock_of_a_killed_process_is_free(made: Path) -> None:
    """Nothing has to be cleaned up after a kill -9; the next writer has a higher epoch."""
    with child("hold", made) as holder:
        assert hear(holder) == "open"
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        with SqliteStore.open(made) as store:
            assert store.meta("epoch") == "3"


def test_a_closed_log_lets_another_writer_in(made: Path) -> None:
    """Closing gives the lock back, also when it is closed twice."""
    first = SqliteStore.open(made)
    with pytest.raises(Locked):
        SqliteStore.open(made)
    first.close()
    first.close()
    SqliteStore.open(made).close()


def test_a_reader_can_find_out_whether_a_writer_runs(made: Path) -> None:
    """It is told of oneself and of another process, and no more once that process is gone."""
    with SqliteStore.peek(made) as beside:
        assert not beside.is_written()
        with SqliteStore.open(made) as store:
            assert store.is_written()
            assert beside.is_written()
        with child("hold", made) as holder:
            assert hear(holder) == "open"
            assert beside.is_written()
        assert not beside.is_written()


async def test_a_log_that_is_opened_to_be_read_takes_no_batch(made: Path) -> None:
    """An append of a reader is refused, even without a writer."""
    with SqliteStore.peek(made) as beside:
        with pytest.raises(Fenced):
            await beside.append(Batch((entry("a", 3),)))
        assert len(await beside.read()) == 2


async def test_a_closed_log_says_so(made: Path) -> None:
    """Using a store after closing it is an error of the store's own kind that names the file."""
    store = SqliteStore.open(made)
    store.close()
    with pytest.raises(StoreError, match=re.escape(str(made))):
        await store.read()


def test_what_a_log_was_made_with_is_read_from_a_closed_one_as_an_error_of_the_store(made: Path) -> None:
    """Not as an error of SQLite: users of a store handle one kind of error."""
    store = SqliteStore.peek(made)
    store.close()
    with pytest.raises(StoreError, match=re.escape(str(made))):
        store.meta("name")


# What is no log of ours


def missing(path: Path) -> None:
    del path


def a_folder(path: Path) -> None:
    path.mkdir()


def an_empty_file(path: Path) -> None:
    path.touch()


def a_text_file(path: Path) -> None:
    path.write_text("Dear diary,\n" * 1_000)


def a_short_text_file(path: Path) -> None:
    path.write_text("SQLite format 3")


def another_programs_file(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE entries (position); INSERT INTO entries VALUES (1)")


def another_programs_file_after_a_crash(path: Path) -> None:
    """Leave a file whose program has died with changes in the journal beside it: that program's to recover."""
    living = path.with_name("living.db")
    with closing(sqlite3.connect(living)) as connection:
        connection.executescript("PRAGMA journal_mode = WAL; CREATE TABLE t (x); INSERT INTO t VALUES (1)")
        for suffix in ("", "-wal"):
            shutil.copy(f"{living}{suffix}", f"{path}{suffix}")
    living.unlink()


def a_log_of_a_newer_version(path: Path) -> None:
    SqliteStore.create(path, {}).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {identity.SCHEMA_VERSION + 1}")
    path.with_name(path.name + ".lock").unlink()


def a_beginning_of_a_log(path: Path) -> None:
    SqliteStore.create(path, {}).close()
    path.write_bytes(path.read_bytes()[:1_000])
    path.with_name(path.name + ".lock").unlink()


STRANGERS: dict[Callable[[Path], None], str] = {
    missing: "there is no such log",
    a_folder: "is a folder, not a log",
    an_empty_file: "is not a lifefold log (it is empty)",
    a_text_file: "is not a lifefold log",
    a_short_text_file: "is not a lifefold log",
    another_programs_file: "is not a lifefold log",
    another_programs_file_after_a_crash: "is not a lifefold log",
    a_log_of_a_newer_version: "has version 6, this lifefold reads 4 and 5",
    a_beginning_of_a_log: "is not a lifefold log",
}


@pytest.mark.parametrize("opening", [SqliteStore.open, SqliteStore.peek], ids=["open", "peek"])
@pytest.mark.parametrize("stranger", STRANGERS, ids=lambda each: each.__name__)
def test_what_is_no_log_of_ours_is_named_and_left_alone(
    path: Path, stranger: Callable[[Path], None], opening: Callable[[Path], SqliteStore]
) -> None:
    """The error names the file and what is wrong with it; no byte of it changes and no file appears beside it."""
    stranger(path)
    before = snapshot(path.parent)
    with pytest.raises(NotAStore, match=re.escape(str(path)) + ".*" + re.escape(STRANGERS[stranger])):
        opening(path)
    assert snapshot(path.parent) == before


@pytest.mark.parametrize("stranger", [s for s in STRANGERS if s is not missing], ids=lambda each: each.__name__)
def test_a_log_is_not_made_over_another_file(path: Path, stranger: Callable[[Path], None]) -> None:
    """Whatever has the name already keeps it, unchanged."""
    stranger(path)
    before = snapshot(path.parent)
    with pytest.raises(FileExistsError):
        SqliteStore.create(path, {})
    assert before.items() <= snapshot(path.parent).items()


def test_a_damaged_file_is_an_error_of_the_store(made: Path) -> None:
    """Pages that are not what SQLite wrote are reported with the file's name, whenever they are found."""
    data = bytearray(made.read_bytes())
    data[4_096:] = b"\xa5" * (len(data) - 4_096)
    made.write_bytes(data)
    with pytest.raises(StoreError, match=re.escape(str(made))), SqliteStore.open(made) as store:
        anyio.run(store.read)


def test_a_log_that_cannot_be_written_to_is_let_go(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If opening fails after the lock was taken, the lock is given back."""

    def fail(*_args: object, **_kwargs: object) -> Never:
        raise StoreError("no")

    with monkeypatch.context() as patched:
        patched.setattr(SqliteStore, "_writing", fail)
        with pytest.raises(StoreError, match="no"):
            SqliteStore.open(made)
    SqliteStore.open(made).close()


# What is left after a crash


@pytest.mark.parametrize("moment", ["between its tables", "before it has its name"])
def test_a_log_whose_making_was_torn_is_not_there(path: Path, moment: str) -> None:
    """A process that dies while it makes a log leaves none; it can be made anew at once."""
    with child("make", path, moment) as maker:
        assert maker.wait() == -signal.SIGKILL
    assert not path.exists()
    with pytest.raises(NotAStore, match="there is no such log"):
        SqliteStore.open(path)
    with SqliteStore.create(path, {"name": "whole"}) as store:
        assert store.meta("name") == "whole"
        assert anyio.run(store.read) == []
    assert sorted(each.name for each in path.parent.iterdir()) == ["fleet.db", "fleet.db.lock"]


def test_a_log_that_has_its_name_is_whole(path: Path) -> None:
    """A process that dies right after it gave the log its name leaves a complete one."""
    with child("make", path, "after it has its name") as maker:
        assert maker.wait() == -signal.SIGKILL
    with SqliteStore.open(path) as store:
        assert store.meta("name") == "torn"
        anyio.run(store.append, Batch((entry("a", 1),)))


def test_a_failed_making_leaves_nothing(path: Path) -> None:
    """A log that cannot be made leaves neither a draft nor a lock that is held."""
    with pytest.raises(sqlite3.IntegrityError):
        SqliteStore.create(path, {"epoch": "9"})
    assert [each.name for each in path.parent.iterdir()] == ["fleet.db.lock"]
    SqliteStore.create(path, {}).close()


def test_what_was_acknowledged_survives_a_kill(made: Path) -> None:
    """Every batch whose append has returned is there, and no batch is there in part."""
    with child("write", made) as writer:
        acknowledged = [int(hear(writer)) for _ in range(10)][-1]
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    with SqliteStore.open(made) as store:
        versions = [each.version for each in anyio.run(store.read)]
    assert len(versions) >= acknowledged
    assert versions == list(range(1, len(versions) + 1))
    assert len(versions) % store_child.TRIPLE == 2


def test_a_log_is_not_made_beside_what_is_left_of_a_deleted_one(made: Path) -> None:
    """SQLite would take a deleted log's journal for the new one's; so the journal is named, and nothing is made."""
    with child("write", made) as writer:
        assert hear(writer)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    moved = made.rename(made.with_name("moved.db"))
    left = made.with_name("fleet.db-wal")
    with pytest.raises(StoreError, match=re.escape(str(left)) + ".*put the log back, or delete this too"):
        SqliteStore.create(made, {})
    assert not made.exists()
    moved.rename(made)
    with SqliteStore.open(made) as store:
        assert len(anyio.run(store.read)) > 2


def test_a_draft_that_was_left_by_a_crash_does_not_matter(path: Path) -> None:
    """A half-made log is thrown away, whatever is in it."""
    path.with_name("fleet.db.new").write_bytes(b"half a log")
    path.with_name("fleet.db.new-journal").write_bytes(b"and its journal")
    SqliteStore.create(path, {}).close()
    assert sorted(each.name for each in path.parent.iterdir()) == ["fleet.db", "fleet.db.lock"]


# Beside a writer


async def test_a_reader_beside_a_writer_sees_whole_batches(made: Path) -> None:
    """A reader beside a writing process sees more and more whole batches, and blocks no other process."""
    with child("write", made) as writer, SqliteStore.peek(made) as beside:
        seen = [len(await beside.read())]
        while seen[-1] < 100:
            seen.append(len(await beside.read()))
        assert int(hear(writer)) > 0
    assert seen == sorted(seen)
    assert {count % store_child.TRIPLE for count in seen} == {2}


async def test_commands_of_many_processes_have_numbers_of_their_own(made: Path) -> None:
    """Commands that several processes leave at once beside a writer are all there, each process's in its order."""
    with (
        SqliteStore.open(made) as store,
        child("submit", made, "x", "30") as one,
        child("submit", made, "y", "30") as two,
        child("submit", made, "z", "30") as three,
    ):
        crowd = (one, two, three)
        assert [hear(each) for each in crowd] == ["ready"] * 3
        for each in crowd:
            assert each.stdin is not None
            each.stdin.write("\n")
            each.stdin.flush()
        for version in range(3, 23):
            await store.append(Batch((entry("a", version),)))
        numbers = {name: [int(hear(each)) for _ in range(30)] for name, each in zip("xyz", crowd, strict=True)}
        commands = await store.commands()
    assert sorted(number for own in numbers.values() for number in own) == [command.id for command in commands]
    assert len(commands) == 90
    for name, own in numbers.items():
        assert [command.id for command in commands if command.stream == name] == own
        assert [int(command.envelope) for command in commands if command.stream == name] == list(range(30))


async def test_a_full_disk_is_named_and_loses_nothing(made: Path) -> None:
    """A batch that does not fit is refused as a whole, with the reason. Smaller batches are still written."""
    with SqliteStore.open(made, patient=False) as store:
        (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError, match="full"):
            await store.append(Batch((entry("b", 1), entry("a", 3, envelope=b"x" * 1_000_000))))
        assert [(each.stream, each.version) for each in await store.read()] == [("a", 1), ("a", 2)]
        await store.append(Batch((entry("a", 3),)))
        with pytest.raises(VersionConflict):
            await store.append(Batch((entry("a", 3),)))


def test_what_was_said_when_the_log_was_made_stays(made: Path) -> None:
    """Meta data can be read by writers and readers; what was not said is None."""
    with SqliteStore.open(made) as store, SqliteStore.peek(made) as beside:
        assert (store.meta("name"), beside.meta("name"), beside.meta("other")) == ("demo", "demo", None)


# -- a log that is not where it was opened


def test_a_log_that_is_displaced_twice_has_all_of_it_in_its_second_copy(made: Path) -> None:
    """Each copy has a name of its own; the first one is not written over, and the store tells of each."""
    told: list[Path] = []

    async def displace() -> None:
        with SqliteStore.open(made) as store:
            store.when_displaced = lambda: told.append(store.path)
            await anyio.Path(made).unlink()
            await store.append(Batch((entry("a", 3),)))
            store.path.replace(made.with_name("kept"))
            made.with_name(made.name + ".recovered").write_text("of an operator")
            await store.append(Batch((entry("a", 4),)))
            await store.look()

    anyio.run(displace)
    first, second = (made.with_name(f"{made.name}.recovered{end}") for end in ("", "-2"))
    assert told == [first, second]
    assert first.read_text() == "of an operator"
    for path, versions in ((second, [1, 2, 3, 4]), (made.with_name("kept"), [1, 2, 3])):
        with SqliteStore.peek(path) as store:
            assert [each.version for each in anyio.run(store.read)] == versions
    assert second.stat().st_mode & 0o777 == 0o600


def test_a_copy_that_cannot_be_beside_its_log_is_among_the_temporary_files(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the folder has become a file; if nothing can be written at all, the error says so."""
    elsewhere = tmp_path / "temporary"
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    folder = tmp_path / "folder"
    folder.mkdir()
    log = made.rename(folder / "fleet.db")

    async def displace() -> None:
        with SqliteStore.open(log) as store:
            shutil.rmtree(folder)
            folder.write_text("a file")
            await store.append(Batch((entry("a", 3),)))
            assert store.path.is_relative_to(elsewhere)
            assert len(await store.read()) == 3
            shutil.rmtree(elsewhere)
            elsewhere.write_text("a file")
            with pytest.raises(StoreError, match="a copy cannot be written"):
                await store.append(Batch((entry("a", 4),)))

    anyio.run(displace)


@pytest.mark.parametrize(
    "change",
    ["DELETE FROM entries WHERE version = 4", "UPDATE entries SET link = x'00' WHERE version = 4"],
    ids=["removed", "changed"],
)
async def test_a_writer_whose_newest_entry_another_program_has_changed_writes_no_more(made: Path, change: str) -> None:
    """It says that the log is damaged, before it would write on as if nothing were the matter."""
    with SqliteStore.open(made) as store:
        await store.append(Batch((entry("a", 3), entry("a", 4))))
        with closing(sqlite3.connect(made, isolation_level=None)) as other:
            other.execute(change)
        with pytest.raises(Damaged, match="another program has changed its entries"):
            await store.append(Batch((entry("a", 5),)))


async def test_a_log_of_schema_4_is_read_and_its_next_writer_gives_its_entries_rules(path: Path) -> None:
    """A reader that was open before goes on; entries without rules keep their links."""
    old = entry("a", 1)
    with SqliteStore.create(path, {}) as store:
        await store.append(Batch((old,)))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.executescript("ALTER TABLE entries DROP COLUMN rules; PRAGMA user_version = 4")
    with SqliteStore.peek(path) as reader:
        assert await reader.read() == await reader.read("a") == await reader.between(0, 1) == [old]
        new = replace(entry("a", 2), rules="v2")
        with SqliteStore.open(path) as store:
            await store.append(Batch((new,)))
            assert await store.read() == [old, new]
        assert await reader.read() == await reader.read("a") == await reader.between(0, 2) == [old, new]
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("PRAGMA user_version").fetchone() == (identity.SCHEMA_VERSION,)


async def test_an_entry_whose_rules_were_changed_is_found(path: Path) -> None:
    with SqliteStore.create(path, {}) as store:
        await store.append(Batch((replace(entry("a", 1), rules="v1"),)))
        for value in ("", "v2"):
            with closing(sqlite3.connect(path, isolation_level=None)) as other:
                other.execute("UPDATE entries SET rules = ?", (value,))
            with pytest.raises(Damaged, match="entry 1"):
                await store.read()


async def test_an_excerpt_has_the_entries_of_some_streams_with_their_positions(path: Path) -> None:
    """In the order of the log, until a position, and with texts only those that have one of them."""
    written = [entry("a", 1), entry("b", 1), entry("a", 2), entry("c", 1), replace(entry("b", 2), outcome=b'{"x":"y"}')]
    with SqliteStore.create(path, {}) as store:
        await store.append(Batch(written))
        every = list(enumerate(written, 1))
        assert await store.excerpt(["b", "a"], 5) == [every[0], every[1], every[2], every[4]]
        assert await store.excerpt(["b", "a"], 2) == every[:2]
        assert await store.excerpt(["a", "b"], 5, [b'"y"', b"none"]) == [every[4]]
        assert await store.excerpt(["d"], 5) == []
