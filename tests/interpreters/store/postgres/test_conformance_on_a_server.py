"""The store on a PostgreSQL server has every property of an event store, and the logs in one database do not mix."""

from collections.abc import Iterator

import anyio
import pytest

from conformance import entry
from lifefold.interpreters.store import Batch, EventStore
from lifefold.interpreters.store.postgres import PostgresStore, read_address
from lifefold.interpreters.testing import Log, StoreConformance
from postgres_server import PostgresServer

pytestmark = pytest.mark.cluster


class ServerLog:
    """A log on a server. A second writer takes over from the first one."""

    def __init__(self, url: str) -> None:
        self._address = read_address(url)
        self._opened: list[PostgresStore] = []

    async def write(self) -> EventStore:
        if self._opened:
            return self._keep(PostgresStore.open(self._address, take_over=True))
        return self._keep(PostgresStore.create(self._address, {"name": "x"}))

    async def watch(self) -> EventStore:
        return self._keep(PostgresStore.peek(self._address))

    async def lose(self) -> None:
        self.close()
        self._opened.append(PostgresStore.peek(self._address))

    def close(self) -> None:
        while self._opened:
            self._opened.pop().close()

    def _keep(self, store: PostgresStore) -> PostgresStore:
        self._opened.append(store)
        return store


@pytest.fixture
def log(postgres: PostgresServer) -> Iterator[Log]:
    log = ServerLog(postgres.new_log())
    yield log
    log.close()


class TestOnAsyncio(StoreConformance):
    """Every check of the kit, of a store on a server."""


class TestOnTrio(StoreConformance):
    """The same on the other event loop."""

    backend = "trio"


def test_logs_in_one_database_do_not_mix(postgres: PostgresServer) -> None:
    one, other = read_address(postgres.new_log()), read_address(postgres.new_log())
    with PostgresStore.create(one, {"name": "one"}) as first, PostgresStore.create(other, {"name": "other"}) as second:
        anyio.run(first.append, Batch((entry("a", 1),)))
        assert [len(anyio.run(each.read)) for each in (first, second)] == [1, 0]
        assert [each.meta("name") for each in (first, second)] == ["one", "other"]
