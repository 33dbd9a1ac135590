"""A fleet on a cluster, while a server of it is killed, or while a proxy cuts a process off from a server.

Each test asks for the same things at the end: the states of all tasks as after a local run, each entry once and in its
order, no early timer, no overlap of two agents of one task, and no process left.
"""

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from cluster_sandbox import ClusterSandbox, cluster
from other_clock import clock_ahead
from postgres_server import PostgresServer
from tcp_proxy import Proxy, proxy

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]

OUTAGE_S = 1.0
"""Much shorter than the detection time of a patient cluster."""


async def test_a_killed_temporal_server_goes_on_with_what_it_had(tmp_path: Path) -> None:
    """Sessions live through an outage that is shorter than their fence, and no task is done again."""
    async with cluster(tmp_path, steps=60, hopeless=1, own_server=True) as sandbox:
        sandbox.begin_brain()
        sandbox.begin_host("one")
        await sandbox.until_working(2)
        sandbox.server.kill()
        await anyio.sleep(OUTAGE_S)
        sandbox.server.start()
        assert await sandbox.until_over() == 1
        assert await sandbox.problems() == []
        assert [life for life in sandbox.lives() if not life.is_whole and life.task.startswith("t")] == []


async def test_an_outage_of_temporal_beyond_the_fence_ends_the_sessions(tmp_path: Path) -> None:
    """That is the price of one run at a time. The tasks are tried again once the server is there."""
    async with cluster(tmp_path, tasks=2, detection_s=3, own_server=True) as sandbox:
        sandbox.hold()
        sandbox.begin_brain()
        sandbox.begin_host("one")
        await sandbox.until_working(2)
        sandbox.server.kill()
        await sandbox.until_ended()
        sandbox.release()
        sandbox.server.start()
        assert await sandbox.until_over() == 0
        assert await sandbox.problems() == []


async def test_a_killed_postgresql_server_delays_the_fleet(tmp_path: Path, postgres: PostgresServer) -> None:
    """Brain and hosts wait for the server of the log; the sessions go on, and no task is done again."""
    async with cluster(tmp_path, steps=60, hopeless=1, db=postgres.new_log()) as sandbox:
        sandbox.begin_brain()
        for name in ("one", "two"):
            sandbox.begin_host(name)
        await sandbox.until_working(2)
        postgres.kill()
        await anyio.sleep(OUTAGE_S)
        postgres.start()
        assert await sandbox.until_over() == 1
        assert await sandbox.problems() == []
        assert [life for life in sandbox.lives() if not life.is_whole and life.task.startswith("t")] == []


@pytest.mark.parametrize("cut_off", [Proxy.swallow, Proxy.hold_back], ids=["lost", "late"])
async def test_a_host_that_is_cut_off_from_temporal_loses_its_work(
    tmp_path: Path, cut_off: Callable[[Proxy], None]
) -> None:
    """Its sessions end at their fences, before another host has them. Afterwards what it has sent is lost, or late."""
    async with cluster(tmp_path, tasks=2, detection_s=3) as sandbox:
        sandbox.hold()
        with proxy(sandbox.server.port) as between:
            sandbox.begin_brain()
            sandbox.begin_host("one", server=f"127.0.0.1:{between.port}")
            await sandbox.until_working(2)
            cut_off(between)
            sandbox.begin_host("two")
            await sandbox.until_working(1, "two")
            await sandbox.until_ended("one")
            between.heal()
            sandbox.release()
            assert await sandbox.until_over() == 0
            assert await sandbox.problems() == []
            assert len([life for life in sandbox.lives() if life.host == "one" and not life.is_whole]) >= 2


async def test_a_brain_that_is_cut_off_from_postgresql_delays_the_fleet(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    """The outcome of a commit is unknown meanwhile. The sessions go on, and no task is done again."""
    db = postgres.new_log()
    async with cluster(tmp_path, steps=60, hopeless=1, db=db) as sandbox:
        with proxy(postgres.port) as between:
            sandbox.begin_brain(db=db.replace(f":{postgres.port}/", f":{between.port}/"))
            sandbox.begin_host("one")
            await sandbox.until_working(2)
            between.swallow()
            await anyio.sleep(OUTAGE_S)
            between.heal()
            assert await sandbox.until_over() == 1
            assert await sandbox.problems() == []
            assert [life for life in sandbox.lives() if not life.is_whole and life.task.startswith("t")] == []


async def test_hosts_with_clocks_minutes_apart_do_not_overlap(tmp_path: Path) -> None:
    """A fence is a time of a clock that cannot be set. The work of a dead late host goes to an early one."""
    async with cluster(tmp_path, detection_s=3, hopeless=1) as sandbox:
        sandbox.hold()
        sandbox.begin_brain()
        sandbox.begin_host("late", around=clock_ahead(-300))
        await sandbox.until_working(2)
        sandbox.begin_host("early", around=clock_ahead(300))
        sandbox.kill("late")
        await sandbox.until_ended("late")
        sandbox.release()
        assert await sandbox.until_over() == 1
        assert await sandbox.problems() == []
        assert {life.host for life in sandbox.lives()} == {"early", "late"}


@pytest.mark.parametrize("skews_s", [(180, -180), (-180, 180)], ids=["ahead then behind", "behind then ahead"])
async def test_a_brain_with_another_clock_than_the_last_one_fires_no_timer_early(
    tmp_path: Path, skews_s: tuple[int, int]
) -> None:
    """A pause between two attempts is as long as it is by the clock of the machine."""
    async with cluster(tmp_path, steps=20, hopeless=2) as sandbox:
        sandbox.begin_brain(around=clock_ahead(skews_s[0]))
        sandbox.begin_host("one")
        await sandbox.until(lambda: any(life.task.startswith("hopeless") for life in sandbox.lives()))
        sandbox.kill("brain")
        sandbox.begin_brain(around=clock_ahead(skews_s[1]))
        assert await sandbox.until_over() == 1
        assert await sandbox.problems() == []
        assert pauses(sandbox) >= 2


def pauses(sandbox: ClusterSandbox) -> int:
    """Return how many attempts at a task followed another one."""
    return len(sandbox.lives()) - len({life.task for life in sandbox.lives()})
