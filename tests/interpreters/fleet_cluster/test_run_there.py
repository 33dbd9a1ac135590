"""``lifefold run`` on a Temporal server, and the way of a fleet from one machine to a cluster and back."""

import signal
from pathlib import Path

import pytest

from cluster_sandbox import ClusterSandbox, cluster

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def ended(sandbox: ClusterSandbox, name: str) -> int:
    """Wait for the end of a process, and return its exit code."""
    process = sandbox.processes[name]
    await sandbox.until(lambda: process.poll() is not None)
    return process.returncode


async def test_a_run_on_a_server_prints_what_a_local_run_prints(tmp_path: Path) -> None:
    """The story, and how far the fleet has come."""
    async with cluster(tmp_path) as sandbox:
        sandbox.begin_host("one")
        sandbox.begin_run()
        assert await ended(sandbox, "run") == 0, sandbox.output("run")
        said = sandbox.output("run")
        assert f"deciding on {sandbox.server.address}" in said
        assert "4 of 4 tasks closed" in said
        assert all(f"t{number}" in said for number in range(4))
        assert len(sandbox.lives()) == 4
        assert await sandbox.problems() == []


async def test_a_drained_fleet_goes_on_on_one_machine_and_back_on_the_cluster(tmp_path: Path) -> None:
    """Ctrl-C ends the sessions and the workflows, so the log is one that a runner has left."""
    async with cluster(tmp_path, steps=100, tasks=3, detection_s=10) as sandbox:
        sandbox.begin_host("one")
        run = sandbox.begin_run()
        await sandbox.until(lambda: len(sandbox.working()) == 2)
        run.send_signal(signal.SIGINT)
        assert await ended(sandbox, "run") == 130, sandbox.output("run")
        assert "leaving: all agents hold" in sandbox.output("run")
        assert sandbox.working() == []
        local = sandbox.begin_local()
        await sandbox.until(lambda: len(sandbox.working()) == 2)
        local.send_signal(signal.SIGINT)
        assert await ended(sandbox, "local") == 130, sandbox.output("local")
        assert sandbox.working() == []
        sandbox.begin_run()
        assert await ended(sandbox, "run") == 0, sandbox.output("run")
        assert "3 of 3 tasks closed" in sandbox.output("run")
        assert await sandbox.problems() == []


async def test_a_second_request_to_leave_leaves_the_sessions_to_their_hosts(tmp_path: Path) -> None:
    """The next brain takes their reports; no task is done again that was not ended."""
    async with cluster(tmp_path, steps=60, agents=1, tasks=1) as sandbox:
        (tmp_path / "agent.sh").write_text(f"trap '' TERM\n{(tmp_path / 'agent.sh').read_text()}")
        sandbox.begin_host("one")
        run = sandbox.begin_run()
        await sandbox.until(lambda: len(sandbox.working()) == 1)
        run.send_signal(signal.SIGINT)
        await sandbox.until(lambda: "leaving: all agents hold" in sandbox.output("run"))
        run.send_signal(signal.SIGINT)
        assert await ended(sandbox, "run") == 130, sandbox.output("run")
        assert "sessions go on without a brain" in sandbox.output("run")
        sandbox.begin_brain()
        assert await sandbox.until_over() == 0, sandbox.output("brain")
        assert await sandbox.problems() == []
