"""What the processes of a cluster say of themselves, beside the entries of a log."""

import sqlite3
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from conformance import entry
from lifefold.interpreters.store import Batch, Fenced, Member, SqliteStore, WriterWord
from lifefold.interpreters.store.lock import lock_file
from lifefold.interpreters.store.past import log_at

pytestmark = pytest.mark.anyio


def said(found: tuple[Member, ...]) -> dict[str, str]:
    """Return the words of each process."""
    return {each.name: each.said for each in found}


async def test_a_process_has_one_row_which_its_next_word_replaces(made: Path) -> None:
    """A process that only reads the log may speak, and a writer at work is not disturbed."""
    with SqliteStore.open(made) as writer, SqliteStore.peek(made) as host:
        assert await host.say("host/one", "first") is None
        await host.say("host/two", "there")
        assert await host.say("host/one", "second") == "first"
        await writer.append(Batch((entry("a", 3),)))
        found = await writer.members()
        assert said(found.every) == {"host/one": "second", "host/two": "there"}
        assert all(0 <= found.now_ms - each.heard_ms < 60_000 for each in found.every)
        await host.dismiss("host/two")
        assert said((await host.members()).every) == {"host/one": "second"}
        assert len(await host.read()) == 3


async def test_the_first_word_replaces_only_the_row_that_was_seen(made: Path) -> None:
    """So one of two processes that begin at the same time has the name."""
    with SqliteStore.peek(made) as host:
        assert await host.say_instead("host/one", "first", 0)
        assert not await host.say_instead("host/one", "late", 0)
        (seen,) = (await host.members()).every
        assert not await host.say_instead("host/one", "late", seen.heard_ms - 1)
        assert said((await host.members()).every) == {"host/one": "first"}
        assert await host.say_instead("host/one", "second", seen.heard_ms)
        assert said((await host.members()).every) == {"host/one": "second"}


async def test_the_next_writer_adds_the_table_to_an_older_log(made: Path) -> None:
    """Until then nothing is said, and nothing fails."""
    with closing(sqlite3.connect(made)) as other:
        other.execute("DROP TABLE members")
        other.commit()
    with SqliteStore.peek(made) as host:
        assert await host.say("host/one", "there") is None
        assert await host.say_instead("host/one", "there", 0)
        await host.dismiss("host/one")
        assert (await host.members()).every == ()
        SqliteStore.open(made).close()
        await host.say("host/one", "there")
        assert said((await host.members()).every) == {"host/one": "there"}


async def test_only_the_newest_writer_says_what_all_processes_believe(made: Path) -> None:
    """A writer that was frozen, and that another one has replaced, is refused. A process that reads is, too."""
    with SqliteStore.open(made) as frozen, SqliteStore.peek(made) as host:
        assert (await host.members()).writer is None
        await frozen.say_as_writer("first")
        first = (await host.members()).writer
        lock_file(made).unlink()  # so that another process can be the writer while this one is frozen
        with SqliteStore.open(made) as newest:
            await newest.say_as_writer("second")
            for refused in (frozen, host):
                with pytest.raises(Fenced):
                    await refused.say_as_writer("once more")
                with pytest.raises(Fenced):
                    await refused.say_as_writer(None)
            second = (await host.members()).writer
            assert first is not None
            assert second == WriterWord(first.epoch + 1, "second")
            await newest.say_as_writer(None)
            assert (await host.members()).writer is None


async def test_the_next_writer_adds_the_table_of_its_word_to_an_older_log(made: Path) -> None:
    """Until then no writer has spoken."""
    with closing(sqlite3.connect(made)) as other:
        other.execute("DROP TABLE writer_word")
        other.commit()
    with SqliteStore.peek(made) as host:
        assert (await host.members()).writer is None
        with SqliteStore.open(made) as writer:
            await writer.say_as_writer("there")
        found = (await host.members()).writer
        assert found is not None
        assert found.said == "there"


def test_the_past_has_no_processes(made: Path) -> None:
    """They are those of now."""
    with SqliteStore.peek(made) as host:
        anyio.run(host.say, "host/one", "there")
    with log_at(made, 1) as past:
        assert anyio.run(past.members).every == ()
