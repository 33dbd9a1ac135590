"""Adopting: a restarted runner finds out about sessions that it does not know."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import msgspec
import pytest

from lifefold.interpreters.processes import (
    ProcessIdentity,
    SessionExit,
    SessionFileError,
    SessionProcess,
    SessionStart,
    adopt,
    identify,
    is_alive,
    launch,
    read_exit,
    read_start,
    signal_if_ours,
)
from lifefold.interpreters.processes.session_files import write_spec
from lifefold.interpreters.processes.shim import program as shim_program
from session_scripts import PATIENCE_S, Bell, must_die, program, run_shim, script

pytestmark = pytest.mark.anyio

RUNNER = """
import anyio, sys
from pathlib import Path
from session_scripts import script
from lifefold.interpreters.processes import launch

async def main(directory, text, lease_ms):
    await launch(Path(directory), script(text, grace_ms=50), lease_ms=int(lease_ms) or None)
    print("launched", flush=True)
    await anyio.sleep_forever()

anyio.run(main, *sys.argv[1:])
"""


async def launch_and_kill_the_runner(directory: Path, text: str, *, lease_ms: int = 0) -> SessionStart:
    """Launch from a process of its own, which is then killed."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    argv = [sys.executable, "-c", RUNNER, str(directory), text, str(lease_ms)]
    runner = subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE)  # noqa: ASYNC220 - a program of ours
    assert runner.stdout is not None
    with runner, anyio.fail_after(PATIENCE_S):
        await anyio.wait_readable(runner.stdout)
        assert runner.stdout.readline() == b"launched\n"
        runner.kill()
    start = read_start(directory)
    assert start is not None
    return start


async def test_a_session_whose_runner_was_killed_is_adopted(tmp_path: Path) -> None:
    """The session goes on as if nothing had happened; the new runner waits for it and ends it as its own."""
    bell = Bell(tmp_path / "bell")
    text = f"trap 'exit 8' TERM; echo > {bell}; while :; do sleep 0.01; done"
    start = await launch_and_kill_the_runner(tmp_path / "run", text)
    await bell.heard()
    session = await adopt(tmp_path / "run")
    assert isinstance(session, SessionProcess)
    assert session.identity == start.agent
    await session.end(60_000)
    ended = await session.wait()
    assert (ended.outcome, ended.code) == ("ended", 8)
    assert not is_alive(start.shim)


async def test_an_exit_while_no_runner_lives_is_known_afterwards(tmp_path: Path) -> None:
    """The exit code does not get lost with the parent."""
    go = Bell(tmp_path / "go")
    start = await launch_and_kill_the_runner(tmp_path / "run", f"read line < {go}; exit 3")
    go.ring()
    await must_die(start.shim)
    ended = await adopt(tmp_path / "run")
    assert isinstance(ended, SessionExit)
    assert (ended.outcome, ended.code) == ("exited", 3)


async def test_a_lease_ends_while_no_runner_lives(tmp_path: Path) -> None:
    """A deadline needs no runner."""
    start = await launch_and_kill_the_runner(tmp_path / "run", "sleep 1000", lease_ms=1000)
    await must_die(start.shim)
    ended = await adopt(tmp_path / "run")
    assert isinstance(ended, SessionExit)
    assert ended.outcome == "lease-expired"


async def test_a_session_whose_shim_was_killed_is_lost_and_its_processes_dead(tmp_path: Path) -> None:
    """Runner and shim are both dead: adopting leaves no process of the session, and reports that its end is unknown."""
    bell = Bell(tmp_path / "bell")
    daemon = f"(setsid sh -c 'echo $$ > {bell}; exec sleep 1000' &)"
    start = await launch_and_kill_the_runner(tmp_path / "run", f"{daemon}; echo written; sleep 1000")
    left = await bell.pid()
    assert signal_if_ours(start.shim, signal.SIGKILL)
    await must_die(start.shim)
    ended = await adopt(tmp_path / "run")
    assert isinstance(ended, SessionExit)
    assert (ended.outcome, ended.escaped) == ("lost", (left.pid,))
    assert not is_alive(left)
    assert not is_alive(start.agent)
    assert await adopt(tmp_path / "run") == ended == read_exit(tmp_path / "run")


def replaced(directory: Path, by: str) -> None:
    """Put something else in place of a session's directory, as an agent can."""
    directory.rename(directory.with_name("moved"))
    match by:
        case "file":
            directory.write_text("x")
        case "nothing":
            directory.symlink_to("nothing")
        case _:
            directory.symlink_to(directory)


@pytest.mark.parametrize("by", ["file", "nothing", "loop"])
async def test_a_session_whose_directory_was_replaced_is_lost(tmp_path: Path, by: str) -> None:
    """Waiting does not last for ever: the outcome names the path."""
    bell, directory = Bell(tmp_path / "bell"), tmp_path / "run"
    session = await launch(directory, script(f"read line < {bell}"))
    replaced(directory, by)
    bell.ring()
    with anyio.fail_after(PATIENCE_S):
        ended = await session.wait()
    assert ended.outcome == "lost"
    assert str(directory) in ended.message


@pytest.mark.parametrize("by", ["file", "nothing", "loop"])
async def test_adopting_a_replaced_directory_kills_the_session_that_works_there(tmp_path: Path, by: str) -> None:
    """Its shim is found by its arguments, its processes by the mark of the shim; no other shim is touched."""
    directory = tmp_path / "run"
    start = await launch_and_kill_the_runner(directory, "setsid sleep 1000 & sleep 1000")
    other = await launch(tmp_path / "other", script("sleep 1000"))
    replaced(directory, by)
    with anyio.fail_after(PATIENCE_S):
        ended = await adopt(directory)
    assert isinstance(ended, SessionExit)
    assert ended.outcome == "lost"
    assert str(directory) in ended.message
    assert not is_alive(start.shim)
    assert not is_alive(start.agent)
    assert other.start is not None
    assert is_alive(other.start.shim)
    await other.kill()
    await other.wait()


@pytest.mark.parametrize("how", ["moved", "removed"])
async def test_adopting_a_directory_that_has_gone_kills_the_session_that_began_there(tmp_path: Path, how: str) -> None:
    """Otherwise the next runner would begin a second session beside it."""
    directory = tmp_path / "run"
    start = await launch_and_kill_the_runner(directory, "sleep 1000")
    directory.rename(tmp_path / "moved")
    if how == "removed":
        shutil.rmtree(tmp_path / "moved")
    with anyio.fail_after(PATIENCE_S):
        ended = await adopt(directory)
    assert isinstance(ended, SessionExit)
    assert (ended.outcome, ended.message) == ("lost", f"{directory} was moved or removed")
    assert not is_alive(start.shim)
    assert not is_alive(start.agent)
    assert await adopt(directory) is None


@pytest.mark.parametrize("by", ["file", "nothing", "loop", None])
async def test_a_gone_directory_whose_shim_is_dead_leaves_no_process_behind(tmp_path: Path, by: str | None) -> None:
    """The agent dies with its shim, and what it has begun does not: it names the directory itself. Others stay."""
    directory, bell = tmp_path / "run", Bell(tmp_path / "bell")
    start = await launch_and_kill_the_runner(directory, f"setsid sleep 1000 & echo $! > {bell}; sleep 1000")
    other = await launch(tmp_path / "run2", script("sleep 1000"))
    left = identify(int(await bell.heard()))
    assert left is not None
    os.kill(start.shim_pid, signal.SIGKILL)
    await must_die(start.shim)
    assert is_alive(left)
    if by is None:
        directory.rename(tmp_path / "moved")
    else:
        replaced(directory, by)
    with anyio.fail_after(PATIENCE_S):
        ended = await adopt(directory)
    assert isinstance(ended, SessionExit)
    assert ended.outcome == "lost"
    assert not is_alive(start.agent)
    assert not is_alive(left)
    assert other.start is not None
    assert is_alive(other.start.agent)
    await other.kill()
    await other.wait()


async def test_a_process_whose_only_argument_is_a_replaced_directory_is_no_shim(tmp_path: Path) -> None:
    """An agent chooses the arguments of its processes; the session is adopted all the same."""
    directory = tmp_path / "run"
    directory.symlink_to("nothing")
    argv = [str(directory)]
    with subprocess.Popen(argv, executable="/bin/cat", stdin=subprocess.PIPE) as process:  # noqa: ASYNC220 - a program of ours
        other = identify(process.pid)
        ended = await adopt(directory)
        assert isinstance(ended, SessionExit)
        assert ended.outcome == "lost"
        assert other is not None
        assert is_alive(other)


async def test_a_directory_that_never_started_is_known_to_never_start(tmp_path: Path) -> None:
    """After None, a shim that was on its way refuses; but who decides to launch anew may."""
    write_spec(tmp_path / "run", script("exit 1"), lease_until_boot_ms=None)
    assert await adopt(tmp_path / "run") is None
    assert run_shim(tmp_path / "run") == shim_program.CANCELLED
    assert read_start(tmp_path / "run") is None
    assert await adopt(tmp_path / "run") is None
    assert await adopt(tmp_path / "not even a directory") is None
    assert (await (await launch(tmp_path / "run", script("exit 2"))).wait()).code == 2


async def test_a_process_with_a_recycled_pid_is_left_alone(tmp_path: Path) -> None:
    """A record with a pid that another process has now kills no process."""
    other = subprocess.Popen(["/bin/sleep", "1000"], start_new_session=True)  # noqa: ASYNC220 - returns at once
    try:
        innocent = identify(other.pid)
        assert innocent is not None
        forge_start(tmp_path, ProcessIdentity(other.pid, innocent.start_time - 1, innocent.boot_id))
        ended = await adopt(tmp_path)
        assert isinstance(ended, SessionExit)
        assert ended.outcome == "lost"
        assert is_alive(innocent)
    finally:
        other.kill()
        other.wait()


async def test_a_session_of_an_earlier_boot_is_lost_without_a_signal(tmp_path: Path) -> None:
    """After a restart of the machine, pid and start time may match another process."""
    me = identify(os.getpid())
    assert me is not None
    forge_start(tmp_path, ProcessIdentity(me.pid, me.start_time, "an earlier boot"))
    ended = await adopt(tmp_path)
    assert isinstance(ended, SessionExit)
    assert (ended.outcome, ended.escaped) == ("lost", ())
    assert "restarted" in ended.message


def forge_start(directory: Path, agent: ProcessIdentity) -> None:
    """Leave the record of a start whose shim is dead."""
    start = SessionStart(
        pid=agent.pid,
        pgid=agent.pid,
        start_time=agent.start_time,
        boot_id=agent.boot_id,
        shim_pid=agent.pid,
        shim_start_time=agent.start_time,
        at_ms=0,
        generation=1,
    )
    (directory / "started.json").write_bytes(msgspec.json.encode(start))


async def test_a_record_that_was_tampered_with_is_named(tmp_path: Path) -> None:
    """What cannot be read is not guessed at: the error says which file it is."""
    (tmp_path / "exit.json").write_text('{"outcome": "fine"}')
    with pytest.raises(SessionFileError, match=r"exit\.json"):
        await adopt(tmp_path)


async def test_a_record_of_the_end_that_the_agent_has_written_is_replaced(tmp_path: Path) -> None:
    """Waiting does not fail: the rest of the session is killed, and the session is lost."""
    bell, spoilt = Bell(tmp_path / "bell"), Bell(tmp_path / "spoilt")
    daemon = f"(setsid sh -c 'echo $$ > {bell}; exec sleep 1000' &)"
    text = f"{daemon}; echo garbage > {tmp_path}/run/exit.json; echo > {spoilt}; sleep 1000"
    session = await launch(tmp_path / "run", script(text))
    left, start = await bell.pid(), read_start(tmp_path / "run")
    await spoilt.heard()
    assert start is not None
    assert signal_if_ours(start.shim, signal.SIGKILL)
    ended = await session.wait()
    assert ended.outcome == "lost"
    assert "damaged" in ended.message
    assert not is_alive(left)
    assert read_exit(tmp_path / "run") == ended


async def test_a_session_that_is_over_can_be_launched_for_its_exit(tmp_path: Path) -> None:
    """A runner that does not remember whether it had launched may simply launch."""
    ended = await (await launch(tmp_path / "run", program("false"))).wait()
    assert await (await launch(tmp_path / "run", program("true"))).wait() == ended
