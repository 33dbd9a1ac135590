"""A fleet on a cluster of processes, through the deaths and pauses of its brain and its hosts."""

import signal
import time
from pathlib import Path

import psycopg
import pytest

from cluster_sandbox import cluster
from lifefold.interpreters.store.address import read_address
from lifefold.interpreters.store.pointer import address_of
from postgres_server import PostgresServer

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]


async def test_a_fleet_ends_as_on_one_machine(tmp_path: Path) -> None:
    """Each task is done once, and a hopeless one is tried twice. A host that is asked to leave ends by itself."""
    async with cluster(tmp_path, hopeless=1) as sandbox:
        hosts = [sandbox.begin_host(name, "--capacity", "2") for name in ("one", "two")]
        sandbox.begin_brain()
        assert await sandbox.until_over() == 1
        for host in hosts:
            host.send_signal(signal.SIGTERM)
        await sandbox.until(lambda: all(host.poll() == 0 for host in hosts))
        assert await sandbox.problems() == []
        assert sorted(life.task for life in sandbox.lives()) == ["hopeless0", "hopeless0", "t0", "t1", "t2", "t3"]


async def test_a_run_without_disturbance_settles_the_tasks_as_the_tests_expect(tmp_path: Path) -> None:
    """The other tests compare a cluster with what a local runner comes to; here is that runner."""
    async with cluster(tmp_path, hopeless=1) as sandbox:
        local = sandbox.begin_local()
        await sandbox.until(lambda: local.poll() is not None)
        assert local.returncode == 1
        assert await sandbox.problems() == []


async def test_the_work_of_a_killed_host_goes_to_another_one(tmp_path: Path) -> None:
    """The sessions of the dead host end before the detection time is over; their tasks are done elsewhere."""
    async with cluster(tmp_path, tasks=2, detection_s=5) as sandbox:
        sandbox.hold()
        sandbox.begin_brain()
        sandbox.begin_host("one")
        await sandbox.until_working(2)
        sandbox.kill("one")
        killed_ns = time.time_ns()
        await sandbox.until_ended()
        assert all(life.end_ns < killed_ns + 5_000_000_000 for life in sandbox.lives())
        sandbox.release()
        sandbox.begin_host("two")
        assert await sandbox.until_over() == 0
        assert await sandbox.problems() == []
        assert sandbox.done_at() == [("t0", "two"), ("t1", "two")]


async def test_a_killed_brain_delays_the_fleet_and_changes_nothing(tmp_path: Path) -> None:
    """The sessions go on without a brain; the next one takes their reports, and no task is done again."""
    async with cluster(tmp_path, steps=40) as sandbox:
        sandbox.begin_host("one")
        sandbox.begin_brain()
        await sandbox.until_working(2)
        sandbox.kill("brain")
        await sandbox.until_ended()
        sandbox.begin_brain()
        assert await sandbox.until_over() == 0
        assert await sandbox.problems() == []
        assert len(sandbox.lives()) == 4


async def test_a_standby_decides_when_the_brain_is_killed(tmp_path: Path, postgres: PostgresServer) -> None:
    """It waits for the lock of the log, on a machine of its own. The fleet goes on, and no task is done again."""
    db = postgres.new_log()
    async with cluster(tmp_path, db=db) as sandbox:
        sandbox.hold()
        sandbox.begin_host("one")
        sandbox.begin_brain()
        await sandbox.until_working(2)
        sandbox.begin("second", "brain")
        await sandbox.until(lambda: "stands by" in sandbox.output("second"))
        sandbox.kill("brain")
        sandbox.processes["brain"] = sandbox.processes.pop("second")
        sandbox.release()
        assert await sandbox.until_over() == 0
        assert await sandbox.problems() == []
        assert len(sandbox.lives()) == 4
        assert address_of(sandbox.log) == read_address(db)


async def test_a_frozen_brain_that_goes_on_beside_a_standby_decides_nothing(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    """The server has ended its session, as it does after 30 s, so the standby decides. The first one finds that out."""
    db = postgres.new_log()
    async with cluster(tmp_path, db=db) as sandbox:
        sandbox.hold()
        sandbox.begin_host("one")
        sandbox.begin_brain()
        await sandbox.until_working(2)
        sandbox.begin("second", "brain")
        await sandbox.until(lambda: "stands by" in sandbox.output("second"))
        frozen = sandbox.processes.pop("brain")
        frozen.send_signal(signal.SIGSTOP)
        try:
            end_writer(postgres, db)
            await sandbox.until(lambda: "the brain of clustered decides" in sandbox.output("second"))
            sandbox.processes["brain"] = sandbox.processes.pop("second")
            frozen.send_signal(signal.SIGCONT)
            await sandbox.until(lambda: frozen.poll() is not None)
        finally:
            frozen.kill()
            frozen.wait()
        assert frozen.returncode > 0
        assert "has taken over from this one" in sandbox.output("brain")
        sandbox.release()
        assert await sandbox.until_over() == 0
        assert await sandbox.problems() == []
        assert len(sandbox.lives()) == 4


def end_writer(postgres: PostgresServer, db: str) -> None:
    """End the session of the writer of a log, which has a lock."""
    with psycopg.connect(postgres.url) as connection:
        ended = connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity JOIN pg_locks USING (pid)"
            " WHERE locktype = 'advisory' AND granted AND application_name = %s",
            (f"lifefold {read_address(db).log}",),
        ).fetchall()
    assert ended == [(True,)]


async def test_a_frozen_host_does_not_go_on_with_what_another_one_has(tmp_path: Path) -> None:
    """A stopped host renews no fence. When it goes on, the server refuses it, and it leaves its sessions alone."""
    async with cluster(tmp_path, detection_s=3) as sandbox:
        sandbox.hold()
        sandbox.begin_brain()
        frozen = sandbox.begin_host("one")
        await sandbox.until_working(2)
        frozen.send_signal(signal.SIGSTOP)
        sandbox.begin_host("two")
        await sandbox.until_working(1, "two")
        await sandbox.until_ended("one")
        frozen.send_signal(signal.SIGCONT)
        sandbox.release()
        assert await sandbox.until_over() == 0
        assert await sandbox.problems() == []


async def test_hosts_that_share_no_disk_work_on_a_log_of_a_server(tmp_path: Path, postgres: PostgresServer) -> None:
    """Each process has a folder of its own, so the next host sees no file of the lost one. Its session has ended."""
    async with cluster(tmp_path, agents=1, tasks=1, detection_s=5, db=postgres.new_log()) as sandbox:
        sandbox.hold()
        sandbox.begin_brain()
        sandbox.begin_host("one")
        await sandbox.until_working(1)
        sandbox.kill("one")
        killed_ns = time.time_ns()
        sandbox.begin_host("two")
        await sandbox.until_ended("one")
        sandbox.release()
        assert await sandbox.until_over() == 0
        assert sandbox.lives()[0].end_ns < killed_ns + 5_000_000_000
        assert await sandbox.problems() == []
        assert sandbox.done_at() == [("t0", "two")]


async def test_a_fleet_of_one_machine_moves_to_a_cluster(tmp_path: Path) -> None:
    """A local runner is killed. The brain takes its log: what is closed stays closed, and the rest is done."""
    async with cluster(tmp_path, steps=20) as sandbox:
        sandbox.begin_local()
        await sandbox.until(lambda: len(sandbox.lives()) > 2)
        done = {life.task for life in sandbox.lives()} - {life.task for life in sandbox.working()}
        sandbox.kill("local")
        sandbox.begin_brain()
        sandbox.begin_host("one")
        assert await sandbox.until_over() == 0
        assert await sandbox.problems() == []
        assert done
        assert sorted(life.task for life in sandbox.lives() if life.task in done) == sorted(done)
