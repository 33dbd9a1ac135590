"""A host reads an aggregate by the newest snapshot of the log, as a fold of its whole stream would give it."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final

import pytest

import kiln
from engine_harness import START_MS, VirtualClock
from kiln import Called, Lit
from lifefold.core.kernel import Envelope, Event, HandlerFailed, encode, replace
from lifefold.interpreters.engine.failures import Failures, OnError
from lifefold.interpreters.engine.ledger import Decision, Ledger, LogMismatchError
from lifefold.interpreters.store import Entry, SnapshotPart, SqliteStore, pasts
from lifefold.interpreters.temporal.commits import Commits
from lifefold.interpreters.temporal.log_reader import LogReader
from lifefold.interpreters.temporal.wire import Commit, Place

pytestmark = pytest.mark.anyio

NAME: Final = "kiln/a"
CALLS: Final = 30
FAILED: Final = HandlerFailed("Fire", 1, "no wood", "retry", slot="Fire", generation=2)


class Log:
    """The log of a kiln, with a snapshot before each batch, and the versions after which a host has read it."""

    def __init__(self, path: Path) -> None:
        self.store: Final = SqliteStore.create(path, {})
        self.commits: Final = Commits(kiln.system, self.store, clock=VirtualClock(), snapshot_every=1)
        self.version = 0
        self.read_after: Final[list[int]] = []
        self.failures: Final = Failures(OnError())

    async def say(self, *events: Event) -> None:
        """Let the potter do something, in a batch for each; all effects up to it are performed."""
        for each in events:
            text = encode(Envelope("kiln", each, 0, "potter")).decode()
            done = await self.commits.commit(Commit(NAME, self.version, self.version, (text,)))
            assert done.answers == ("",)
            self.version = done.version

    def reader(self, monkeypatch: pytest.MonkeyPatch) -> LogReader:
        """Return a reader that has read nothing."""
        read = self.store.read

        async def counted(stream: str | None = None, after: int = 0) -> Sequence[Entry]:
            self.read_after.append(after)
            return await read(stream, after)

        monkeypatch.setattr(self.store, "read", counted)
        return LogReader(kiln.system, self.store, self.failures)

    async def folded(self, version: int) -> Decision:
        """Return the decision of an entry by a fold of its whole stream."""
        every = Ledger(kiln.system).fold(await self.store.read(NAME))
        return next(each for each in every if each.entry.version == version)


@pytest.fixture(name="log")
async def _log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Log]:
    monkeypatch.setattr(pasts, "EVERY_ENTRIES", 10)
    log = Log(tmp_path / "log.db")
    await log.commits.load()
    for name, envelope in kiln.opened(START_MS):
        await log.commits.commit(Commit(name, 0, 0, (encode(envelope).decode(),)))
    log.version = 1
    await log.say(Lit())
    await log.say(*(Called(f"call {number}") for number in range(CALLS)))
    yield log
    log.store.close()


async def test_a_host_folds_the_entries_after_the_newest_snapshot_only(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state is that of the brain, and further entries are read as before."""
    reader = log.reader(monkeypatch)
    assert await reader.present(NAME) == log.commits.aggregates[NAME]
    assert log.read_after[-1] >= log.version - 2
    await log.say(Called("more"))
    assert await reader.present(NAME) == log.commits.aggregates[NAME]
    assert log.read_after[-1] == log.version - 1


async def test_an_entry_that_the_snapshot_has_is_folded_from_an_earlier_one(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its reaction is that of a fold of the whole stream."""
    reader = log.reader(monkeypatch)
    await reader.present(NAME)
    late, early = log.version - 5, 2
    found = await reader.decision(NAME, Place(late, 0))
    assert 0 < log.read_after[-1] < late
    assert found == await log.folded(late)
    assert await reader.decision(NAME, Place(early, 0)) == await log.folded(early)
    with pytest.raises(LogMismatchError, match="the log has no entry"):
        await reader.decision(NAME, Place(log.version + 1, 0))


async def test_a_host_knows_the_failed_attempts_that_the_snapshot_has(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it continues to count."""
    await log.say(FAILED)
    await log.say(Called("one"), Called("two"))
    await log.reader(monkeypatch).present(NAME)
    assert log.read_after[-1] > log.version - 3
    assert [each.event for each in log.failures.of_running(log.commits.aggregates[NAME])] == [FAILED]


async def test_a_damaged_snapshot_is_not_used(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole stream is folded then, with the same result."""
    log.store.database.execute("UPDATE snapshots SET data = CAST('x' AS BLOB) WHERE stream = ?", (NAME,))
    assert await log.reader(monkeypatch).present(NAME) == log.commits.aggregates[NAME]
    assert log.read_after[-1] == 0


async def test_a_snapshot_that_cannot_be_decoded_is_not_used(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its checksum is right, and its contents are of another program."""
    parts = [replace(each, data=b"{") for each in await log.store.parts_of("", NAME)]
    assert parts

    async def unreadable(_form: str, _stream: str, _before: int | None = None) -> Sequence[SnapshotPart]:
        return parts

    monkeypatch.setattr(log.store, "parts_of", unreadable)
    assert await log.reader(monkeypatch).present(NAME) == log.commits.aggregates[NAME]
    assert log.read_after[-1] == 0
