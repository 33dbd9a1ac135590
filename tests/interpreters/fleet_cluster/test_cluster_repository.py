"""A fleet with a repository on hosts that share no disk: their work comes together at a git remote."""

import signal
from pathlib import Path

import pytest

from cluster_sandbox import cluster
from postgres_server import PostgresServer
from remote_sandbox import RemoteSandbox

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]


async def test_a_fleet_is_merged_at_its_remote_although_a_host_dies_and_another_one_drains(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    """Each task is merged once, on whatever host, and no host has the disk of another.

    No session of a living host is repeated. The drained host does not verify what its last session has done: another
    one gets that from the remote.
    """
    remote = RemoteSandbox(tmp_path / "git")
    db, verify = postgres.new_log(), "cat t*.txt"
    async with cluster(tmp_path, steps=80, detection_s=8, db=db, remote=str(remote.url), verify=verify) as sandbox:
        sandbox.begin_brain()
        sandbox.begin_host("one")
        sandbox.begin_host("two")
        await sandbox.until_working(1)
        dies = sandbox.working()[0].host
        drains = "two" if dies == "one" else "one"
        sandbox.kill(dies)
        remote.push(theirs="x\n")
        await sandbox.until_working(1, drains)
        sandbox.processes[drains].send_signal(signal.SIGTERM)
        sandbox.begin_host("three")
        assert await sandbox.until_over() == 0, sandbox.output("brain")
        assert await sandbox.problems() == []
        whole = [life for life in sandbox.lives() if life.is_whole and life.host != dies]
        assert len(whole) == len({life.task for life in whole})
        assert drains in {life.host for life in whole}
        assert f"work is merged into the branch main of {remote.url}" in sandbox.output("brain")
        assert "\n+a" in sandbox.call("diff", "t0")
    assert sorted(each.partition(":")[0] for each in remote.merges()) == [f"Merge t{number}" for number in range(4)]
    assert {*(f"t{number}.txt" for number in range(4)), "theirs"} <= remote.files()
    assert remote.is_sound()


async def test_finished_work_of_a_dead_host_is_verified_elsewhere_and_not_done_again(tmp_path: Path) -> None:
    """The host dies while it verifies. The other host gets the files of the session from the remote."""
    remote = RemoteSandbox(tmp_path / "git")
    verify = "case $TRACE in */one.trace) : > $TRACE.verifies; exec sleep 600;; esac; test -s t0.txt"
    async with cluster(
        tmp_path, agents=1, tasks=1, steps=1, detection_s=5, remote=str(remote.url), verify=verify
    ) as sandbox:
        sandbox.begin_brain()
        sandbox.begin_host("one")
        await sandbox.until((tmp_path / "one.trace.verifies").exists)
        sandbox.kill("one")
        sandbox.begin_host("two")
        assert await sandbox.until_over() == 0, sandbox.output("brain")
        assert await sandbox.problems() == []
        assert [life.host for life in sandbox.lives()] == ["one"]
    assert remote.merges() == ["Merge t0: Do t0."]
    assert "t0.txt" in remote.files()
