"""``lifefold run`` on a Temporal server, and the way of a fleet from one machine to a cluster and back."""

import json
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


async def test_a_plan_is_changed_and_a_task_is_added_while_a_brain_decides(tmp_path: Path) -> None:
    """The host follows the file: it begins the work of a new agent. Commands and the display know the host."""
    async with cluster(tmp_path, agents=1, tasks=1, detection_s=30) as sandbox:
        sandbox.hold()
        sandbox.begin_host("one")
        sandbox.begin_run()
        await sandbox.until_working(1)
        fleet = tmp_path / "fleet.toml"
        added = f'[[agents]]\nname = "new"\ncommand = ["sh", "{tmp_path}/agent.sh"]\n'
        fleet.write_text(f'{fleet.read_text()}\n{added}[[tasks]]\nid = "more"\nprompt = "Do more."\nmax_retries = 9\n')
        assert "change 1: accepted, and in force" in sandbox.call("plan", str(fleet), "--accept")
        assert "third: added" in sandbox.call("task", "add", "--id", "third", "--prompt", "Do the third.")
        await sandbox.until_working(2)
        await sandbox.until(lambda: len(json.loads(sandbox.call("hosts", "--json"))[0]["agents"]) == 2)
        (host,) = json.loads(sandbox.call("status", "--json"))["hosts"]
        assert (host["name"], host["state"], sorted(host["agents"])) == ("one", "at work", ["a0", "new"])
        sandbox.release()
        assert await ended(sandbox, "run") == 0, sandbox.output("run")
        assert "plan has changed: change 1: is in force" in sandbox.output("run")
        assert (await sandbox.journal()).settled == {"t0": "closed", "more": "closed", "third": "closed"}
        assert {life.agent for life in sandbox.lives()} == {"a0", "new"}


async def test_a_run_on_a_server_has_the_options_of_a_local_run(tmp_path: Path) -> None:
    """It leaves a fleet that only operators can move on, accepts a changed plan, and does the rest in a new log."""
    async with cluster(tmp_path, steps=2, agents=1, tasks=1, hopeless=1, detection_s=30) as sandbox:
        sandbox.hold()
        sandbox.begin_host("one")
        sandbox.begin_run("--no-wait")
        await sandbox.until_working(1)
        sandbox.call("pause", "a0")
        assert await ended(sandbox, "run") == 4, sandbox.output("run")
        assert "only an operator can move this fleet on" in sandbox.output("run")
        sandbox.call("resume", "a0")
        fleet = tmp_path / "fleet.toml"
        fleet.write_text(fleet.read_text().replace("Do t0.", "Do t0 well."))
        sandbox.release()
        sandbox.begin_run("--accept")
        assert await ended(sandbox, "run") == 1, sandbox.output("run")
        assert "the fleet file was changed (change 1)" in sandbox.output("run")
        assert (await sandbox.journal()).settled == {"t0": "closed", "hopeless0": "failed"}
        (tmp_path / "agent.sh").write_text("exit 0\n")
        sandbox.kill("one")  # a host has one log
        then = tmp_path / "fleet.run-2.db"
        sandbox.begin_run("--again", "--watch")
        await sandbox.until(then.exists)
        sandbox.begin_host("two", db=str(then))
        await sandbox.until(lambda: "all tasks are settled, and more may come" in sandbox.output("run"))
        sandbox.call("finish", log=then)
        assert await ended(sandbox, "run") == 0, sandbox.output("run")
        assert "1 of 1 tasks closed" in sandbox.output("run")


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
        # An interrupted session is no failed attempt, so no pause comes before the next one.
        assert [each for each in await sandbox.problems() if not each.startswith("next attempt too early")] == []
