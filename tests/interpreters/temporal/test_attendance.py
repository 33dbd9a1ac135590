"""The wait of a host before it begins an activity: for the plan in force, and for a fresh acknowledgement."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from temporalio.client import AsyncActivityCancelledError, Client
from temporalio.testing import ActivityEnvironment

import kiln
from lifefold.interpreters.store import SqliteStore
from lifefold.interpreters.temporal import Cluster, Performer, Times
from lifefold.interpreters.temporal.attendance import Attendance
from lifefold.interpreters.temporal.wire import Attend, Place, Slot
from temporal_pottery import ClusterHands

pytestmark = pytest.mark.anyio

TIMES: Final = Times(detection_ms=1_000)
WORK: Final = Attend("pottery", "kiln/a", Slot("kiln", "Fire", 1), Place(1, 0), "queue", TIMES)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Server:
    """The heartbeats of one activity: ``answers`` has an error for each of the first ones, or None."""

    def __init__(self, *answers: Exception | None) -> None:
        self.answers: Final = list(answers)
        self.beats = 0

    async def heartbeat(self) -> None:
        """Answer as the test wants; acknowledge all after that."""
        self.beats += 1
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None:
            raise answer


class Hands(Performer):
    """A performer that notes after how many heartbeats it has begun, and whose work is over at once."""

    server: Server
    begun: int | None = None

    async def is_to_begin(self, work: Attend) -> bool:
        """Tell that the work is no end."""
        return work is WORK

    async def begin(self, work: Attend) -> bool:
        """Note it."""
        assert work is WORK
        self.begun = self.server.beats
        return False


@pytest.fixture(name="store")
def _store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore.create(tmp_path / "log.db", {})) as store:
        yield store


async def begun_after(
    store: SqliteStore,
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    may_begin: Callable[[Attendance], Awaitable[bool]],
) -> int | None:
    """Attend until that is over; return after how many heartbeats the work began, None if it did not."""
    client = await Client.connect("127.0.0.1:1", lazy=True)

    def handle(*_of: object, **_named: object) -> Server:
        return server

    monkeypatch.setattr(Client, "get_async_activity_handle", handle)
    cluster = Cluster(client, "pottery", TIMES)
    hands = Hands(kiln.system, store, ClusterHands().interpreter(), cluster)
    hands.server = server

    async def acknowledged(_work: Attend, _until_ms: int) -> None:
        assert server.beats

    async def may(_work: Attend) -> bool:
        return await may_begin(made[0])

    made: list[Attendance] = []

    async def attend() -> bool:
        made.append(Attendance(cluster, hands, WORK, acknowledged, may))
        return await made[0].run()

    assert not await ActivityEnvironment().run(attend)
    return hands.begun


async def test_a_wish_to_end_that_a_heartbeat_tells_ends_the_wait(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host has an old fleet file meanwhile. Nothing begins, although the file is copied later."""
    server = Server(None, AsyncActivityCancelledError())

    async def may_begin(_attendance: Attendance) -> bool:
        return server.beats > 1

    assert await begun_after(store, server, monkeypatch, may_begin) is None
    assert server.beats == 2


async def test_a_wish_to_end_that_the_library_tells_ends_the_wait(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may come while the host looks whether the work may begin."""
    server = Server()

    async def may_begin(attendance: Attendance) -> bool:
        await attendance.end()
        return True

    assert await begun_after(store, server, monkeypatch, may_begin) is None


async def test_work_begins_after_a_fresh_acknowledgement_only(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The acknowledgement of an earlier heartbeat says nothing: the host may have been lost since then."""
    server = Server(None, TimeoutError())

    async def may_begin(_attendance: Attendance) -> bool:
        return server.beats > 1

    assert await begun_after(store, server, monkeypatch, may_begin) == 3
