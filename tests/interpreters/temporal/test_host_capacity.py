"""The aggregates that a host takes: those of its pools, up to the capacity of each."""

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from temporalio.client import Client, WorkflowHandle, WorkflowQueryFailedError, WorkflowQueryRejectedError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import ActivityEnvironment

import kiln
from lifefold.core.kernel import Aggregate, Envelope, encode
from lifefold.interpreters.engine.ledger import LogMismatchError
from lifefold.interpreters.store import SqliteStore, StoreError
from lifefold.interpreters.temporal import Cluster, Commits, Host, Performer, Times
from lifefold.interpreters.temporal.log_reader import LogReader
from lifefold.interpreters.temporal.wire import Commit, Perform, Requested, pool_queue
from temporal_pottery import ClusterHands

pytestmark = pytest.mark.anyio

DETECTION_S = 60


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(name="store")
def _store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore.create(tmp_path / "log.db", {})) as store:
        yield store


class Clock:
    """A clock that a test sets."""

    now_s = 100.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now_s


class Workflows(Cluster):
    """A cluster whose workflows say which hosts they have."""

    def __init__(self, client: Client, hosts: Mapping[str, str], detection_s: int = DETECTION_S) -> None:
        super().__init__(client, "pottery", Times(detection_ms=detection_s * 1_000))
        self.hosts: Final = hosts
        self.asked: Final[list[str]] = []

    async def is_at(self, aggregate: str, host: str) -> bool:
        """Tell it by the table."""
        self.asked.append(aggregate)
        return self.hosts[aggregate] == host


async def unconnected() -> Client:
    """Return a client that has no server."""
    return await Client.connect("127.0.0.1:1", lazy=True)


async def host(
    store: SqliteStore,
    pools: Mapping[str, int],
    capacity: int | None = None,
    *,
    cluster: Cluster | None = None,
    now_s: Callable[[], float] = time.monotonic,
) -> Host:
    """Return a host that is not connected to a server."""
    of = cluster or Workflows(await unconnected(), {})
    performer = Performer(kiln.system, store, ClusterHands().interpreter(), of)
    return Host(of, performer, "one", pools=pools, capacity=capacity, now_s=now_s)


async def opened(store: SqliteStore, *kilns: str) -> None:
    """Open kilns in the log."""
    commits = Commits(kiln.system, store)
    await commits.load()
    for name, envelope in kiln.opened(0, *kilns):
        await commits.commit(Commit(name, 0, 0, (encode(envelope).decode(),)))


async def placed(at: Host, aggregate: str, pool: str = "default", *, is_end: bool = False) -> bool:
    """Offer an aggregate to a host, and tell whether it takes it."""
    environment = ActivityEnvironment()
    environment.info = dataclasses.replace(environment.info, task_queue=pool_queue("pottery", pool))
    try:
        return bool(await environment.run(at.place, aggregate, is_end) == "one")
    except ApplicationError as error:
        return "one: it is full" not in str(error)


async def test_a_burst_of_aggregates_does_not_exceed_the_capacity(store: SqliteStore) -> None:
    """Work that is on its way counts; an aggregate that the host has already is no further one."""
    at = await host(store, {"default": 2})
    assert [await placed(at, name) for name in ("a", "b", "c", "a")] == [True, True, False, True]


async def test_an_end_takes_no_room(store: SqliteStore) -> None:
    """A full host ends an activity, too, and has room for no more aggregates afterwards."""
    at = await host(store, {"default": 1})
    assert await placed(at, "a", is_end=True)
    assert at.working() == set()
    assert await placed(at, "b")
    assert await placed(at, "c", is_end=True)
    assert at.working() == {"b"}


async def test_each_pool_has_its_own_capacity(store: SqliteStore) -> None:
    """A full pool leaves the room of the others."""
    at = await host(store, {"large": 1, "small": 2})
    assert [await placed(at, name, "large") for name in ("a", "b")] == [True, False]
    assert [await placed(at, name, "small") for name in ("c", "d", "e")] == [True, True, False]


async def test_a_capacity_of_all_pools_comes_on_top(store: SqliteStore) -> None:
    """It is the machine's."""
    at = await host(store, {"large": 2, "small": 2}, capacity=3)
    assert [await placed(at, name, "large") for name in ("a", "b")] == [True, True]
    assert [await placed(at, name, "small") for name in ("c", "d")] == [True, False]


@pytest.mark.parametrize("error", [StoreError("away"), LogMismatchError("damaged"), KeyError("kiln/a")])
async def test_an_unreadable_aggregate_keeps_its_room(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """The host and the rooms of the others do not depend on it."""
    clock = Clock()
    at = await host(store, {"default": 2}, now_s=clock)
    assert await placed(at, "kiln/a")
    assert await placed(at, "kiln/b")
    clock.now_s += 1 + DETECTION_S

    async def present(_self: LogReader, name: str) -> Aggregate:
        if name == "kiln/a":
            raise error
        return Aggregate(name, 1)

    monkeypatch.setattr(LogReader, "present", present)
    await at.empty_rooms()
    assert at.working() == {"kiln/a"}


async def test_an_aggregate_that_another_host_has_gives_its_room_back(store: SqliteStore) -> None:
    """A drained brain forgets where its aggregates were, and an answer of this host may have been lost."""
    clock, cluster = Clock(), Workflows(await unconnected(), {"kiln/a": "two", "kiln/b": "", "kiln/c": "one"})
    at = await host(store, {"default": 3}, cluster=cluster, now_s=clock)
    await opened(store, "a", "b", "c")
    for name in cluster.hosts:
        assert await placed(at, name)
    await at.empty_rooms()
    assert cluster.asked == []
    clock.now_s += DETECTION_S + 1
    for _ in range(2):
        await at.empty_rooms()
    assert sorted(cluster.asked) == ["kiln/a", "kiln/b", "kiln/c"]
    assert at.working() == {"kiln/c"}


async def test_a_host_that_has_lost_its_aggregates_takes_others(store: SqliteStore) -> None:
    """It would refuse work although nothing runs there, and the host that has them may die."""
    clock, cluster = Clock(), Workflows(await unconnected(), {"kiln/a": "two"})
    at = await host(store, {"default": 1}, cluster=cluster, now_s=clock)
    await opened(store, "a", "b")
    assert await placed(at, "kiln/a")
    assert not await placed(at, "kiln/b")
    clock.now_s += DETECTION_S + 1
    assert await placed(at, "kiln/b")


@pytest.mark.parametrize(
    ("error", "is_at"),
    [
        (RPCError("away", RPCStatusCode.UNAVAILABLE, b""), True),
        (RPCError("no brain", RPCStatusCode.DEADLINE_EXCEEDED, b""), True),
        (WorkflowQueryFailedError("a defect"), True),
        (RPCError("none", RPCStatusCode.NOT_FOUND, b""), False),
        (WorkflowQueryRejectedError(None), False),
    ],
)
async def test_an_aggregate_stays_where_it_is_unless_the_server_says_otherwise(
    monkeypatch: pytest.MonkeyPatch, *, error: Exception, is_at: bool
) -> None:
    """An outage says nothing about hosts. An aggregate without a workflow has none."""

    async def query(*_of: object, **_named: object) -> None:
        raise error

    monkeypatch.setattr(WorkflowHandle, "query", query)
    assert await Cluster(await unconnected(), "pottery").is_at("kiln/a", "one") is is_at


async def performed(store: SqliteStore, at: str) -> list[str]:
    """Let the host one perform an effect whose activity does not begin there, while the aggregate is at some host."""
    cluster, hands = Workflows(await unconnected(), {"kiln/a": at}, detection_s=1), ClusterHands()
    performer = Performer(kiln.system, store, hands.interpreter(), cluster)
    host = Host(cluster, performer, "one", pools={"default": 1})
    await opened(store, "a")
    commits = Commits(kiln.system, store)
    await commits.load()
    done = await commits.commit(Commit("kiln/a", 1, 1, (encode(Envelope("kiln", kiln.Lit(), 0)).decode(),)))
    (effect,) = (each.at for each in done.wanted if isinstance(each, Requested))
    await ActivityEnvironment().run(host.perform, Perform("kiln/a", effect))
    return hands.happened


@pytest.mark.parametrize("elsewhere", ["two", ""])
async def test_an_effect_whose_activity_is_at_another_host_is_not_performed_here(
    store: SqliteStore, elsewhere: str
) -> None:
    """A full host has given the activity back meanwhile. The workflow tries the effect again at the other host."""
    with pytest.raises(ApplicationError, match="one: kiln/a is at another host"):
        await performed(store, elsewhere)


async def test_an_effect_whose_activity_does_not_begin_is_performed_at_last(store: SqliteStore) -> None:
    """The activity was given up here after errors of its handler."""
    assert await performed(store, "one") == ["announced lit 1"]
