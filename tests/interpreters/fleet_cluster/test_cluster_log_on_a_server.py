"""A fleet on a cluster whose log is on a PostgreSQL server, through the death of its brain."""

from pathlib import Path

import pytest

from cluster_sandbox import cluster
from lifefold.interpreters.store.address import read_address
from lifefold.interpreters.store.pointer import address_of
from postgres_server import PostgresServer

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_a_killed_brain_delays_the_fleet_and_changes_nothing(tmp_path: Path, postgres: PostgresServer) -> None:
    """The host begins first, and waits for the log. Each task is done once."""
    url = postgres.new_log()
    async with cluster(tmp_path, steps=40, db=url) as sandbox:
        sandbox.begin_host("one")
        sandbox.begin_brain()
        await sandbox.until(lambda: len(sandbox.working()) == 2)
        sandbox.kill("brain")
        sandbox.begin_brain()
        assert await sandbox.until_over() == 0
        assert {life.task for life in sandbox.lives()} == {"t0", "t1", "t2", "t3"}
        assert len(sandbox.lives()) == 4
        assert list(sandbox.overlaps()) == []
        assert await sandbox.verified() > 4
    assert address_of(sandbox.log) == read_address(url)
