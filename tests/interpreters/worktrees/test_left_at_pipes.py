"""Git commands at a named pipe end when their runner is gone; those of a living runner are left alone."""

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from back_ends import in_turn
from commands_run import LIFEFOLD
from fleet_sandbox import Sandbox
from git_sandbox import new_repository
from lifefold.interpreters.processes import ProcessIdentity, identify
from lifefold.interpreters.processes.shim import proc
from lifefold.interpreters.worktrees import left_at_pipes
from lifefold.interpreters.worktrees.left_at_pipes import VARIABLE, end_left_at_pipes
from lifefold.interpreters.worktrees.pipes import pipe_before
from session_scripts import PATIENCE_S, must_die

pytestmark = pytest.mark.anyio
anyio_backend = in_turn

RUNNER = """
import sys
from pathlib import Path
import anyio
from lifefold.interpreters.worktrees.git import Git
from lifefold.interpreters.worktrees import left_at_pipes
from lifefold.interpreters.worktrees.left_at_pipes import end_own_at_pipes

async def main():
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Git(Path(sys.argv[1])).run, "rev-parse", "HEAD")
        await anyio.to_thread.run_sync(sys.stdin.readline)
        end_own_at_pipes()
        print("ended", flush=True)
        await anyio.sleep_forever()

import lifefold.interpreters.processes.command as command
command.LOOK_MS = 3_600_000  # this runner itself does not notice the pipe
anyio.run(main)
"""


@contextmanager
def runner(repository: Path) -> Generator["subprocess.Popen[str]"]:
    """Run a runner whose git command waits at a pipe; it is killed at the end."""
    argv = [sys.executable, "-c", RUNNER, str(repository)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


async def at_the_pipe(process: "subprocess.Popen[str]") -> ProcessIdentity:
    """Wait until the git command of a runner waits at a pipe, and return it."""
    with anyio.fail_after(PATIENCE_S):
        while True:
            for pid in proc.pids():
                found = identify(pid)
                if found is not None and named(pid).startswith(f"{process.pid}:") and pipe_before(pid, None):
                    return found
            await anyio.sleep(0.01)


def named(pid: int) -> str:
    """Return the runner that a process names; empty if it names none."""
    try:
        variables = proc.read_bytes(f"/proc/{pid}/environ").decode(errors="replace").split("\0")
    except OSError:
        return ""
    return next((each.partition("=")[2] for each in variables if each.startswith(f"{VARIABLE}=")), "")


def blocked(folder: Path) -> Path:
    """Make a repository with a pipe in place of a branch."""
    repository = folder / "repo"
    new_repository(repository)
    branch = repository / ".git" / "refs" / "heads" / "main"
    branch.unlink()
    os.mkfifo(branch)
    return repository


async def test_a_git_command_at_a_pipe_whose_runner_was_killed_ends_at_the_next_start(tmp_path: Path) -> None:
    """The next runner begins with that, also if its own first git command waits at the pipe, too."""
    sandbox = Sandbox(tmp_path).prepare("plain-1")
    sandbox.run()
    config = tmp_path / "repo" / ".git" / "config"
    config.unlink()
    os.mkfifo(config)
    with runner(tmp_path / "repo") as process:
        left = await at_the_pipe(process)
        process.kill()
        process.wait()
    await anyio.run_process([*LIFEFOLD, "run", str(sandbox.fleet), "--transitions"], check=False)
    await must_die(left)


async def test_a_git_command_whose_pipe_was_removed_ends_at_the_next_start(tmp_path: Path) -> None:
    """The operator removes the pipe, as the message says, before the next run."""
    repository = blocked(tmp_path)
    with runner(repository) as process:
        left = await at_the_pipe(process)
        process.kill()
        process.wait()
    (repository / ".git" / "refs" / "heads" / "main").unlink()
    end_left_at_pipes((repository,))
    await must_die(left)


async def test_a_runner_that_leaves_at_once_ends_its_git_commands_at_a_pipe(tmp_path: Path) -> None:
    """A third signal does not wait for anything, but leaves no command behind that would stay for ever."""
    with runner(blocked(tmp_path)) as process:
        left = await at_the_pipe(process)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("leave\n")
        process.stdin.flush()
        assert process.stdout.readline() == "ended\n"
        await must_die(left)


async def test_a_git_command_of_a_living_runner_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own runner sees to it."""
    signalled: list[ProcessIdentity] = []

    def remember(command: ProcessIdentity, _number: int) -> None:
        signalled.append(command)

    with runner(blocked(tmp_path)) as process:
        at_work = await at_the_pipe(process)
        with monkeypatch.context() as patched:
            patched.setattr(left_at_pipes, "signal_if_ours", remember)
            end_left_at_pipes((tmp_path,))
        assert at_work not in signalled
        process.kill()
        process.wait()
        end_left_at_pipes((tmp_path,))
        await must_die(at_work)


async def test_a_git_command_of_another_fleet_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if its runner is dead: the next runner of that fleet ends it, and reports on its repository."""
    signalled: list[ProcessIdentity] = []

    def remember(command: ProcessIdentity, _number: int) -> None:
        signalled.append(command)

    repository, other = blocked(tmp_path), tmp_path / "repo2"
    with runner(repository) as process:
        left = await at_the_pipe(process)
        process.kill()
        process.wait()
    with monkeypatch.context() as patched:
        patched.setattr(left_at_pipes, "signal_if_ours", remember)
        end_left_at_pipes((other,))
        assert left not in signalled
        end_left_at_pipes((other, repository))
        assert left in signalled
    end_left_at_pipes((repository,))
    await must_die(left)
