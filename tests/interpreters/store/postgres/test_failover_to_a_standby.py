"""The server of a log fails over to a standby: a writer with both in its address goes on by itself."""

from collections.abc import Iterator
from contextlib import closing

import anyio
import pytest

from conformance import entry
from lifefold.interpreters.store import Batch
from lifefold.interpreters.store.postgres import PostgresStore, Timings, read_address
from postgres_server import NoServer, PostgresServer

pytestmark = pytest.mark.cluster

ENTRIES = 20
QUICK = Timings(connect_s=2, answer_s=5, idle_s=5, stuck_s=5)


@pytest.fixture
def pair() -> Iterator[tuple[PostgresServer, PostgresServer]]:
    """A server and its standby, which has each commit before that is acknowledged."""
    try:
        primary = PostgresServer()
    except NoServer as why:
        pytest.skip(str(why))
    with closing(primary), closing(PostgresServer(primary)) as standby:
        primary.wait_for_standbys()
        yield primary, standby


def test_a_writer_goes_on_with_the_standby_that_was_promoted(pair: tuple[PostgresServer, PostgresServer]) -> None:
    """The address names both. Until the standby is promoted the writer waits, because it accepts no writes."""
    primary, standby = pair
    hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
    address = read_address(f"postgresql://lifefold@{hosts}/postgres?log=docs")

    def fail_over() -> None:
        primary.kill()
        standby.promote()

    async def write(store: PostgresStore) -> None:
        await store.append(Batch((entry("a", 1),)))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.to_thread.run_sync, fail_over)
            for version in range(2, ENTRIES + 1):
                await store.append(Batch((entry("a", version),)))
                if version == ENTRIES // 2:
                    await anyio.to_thread.run_sync(primary.wait_until_gone)

    with PostgresStore.create(address, {}, timings=QUICK) as store:
        anyio.run(write, store)
    with PostgresStore.peek(read_address(f"{standby.url}?log=docs")) as promoted:
        entries = anyio.run(promoted.read)
    assert [each.version for each in entries] == list(range(1, ENTRIES + 1))
