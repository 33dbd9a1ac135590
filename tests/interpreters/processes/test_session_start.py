"""Launching: the agent's environment, its record, and never more than one agent."""

import json
import os
import stat
from pathlib import Path

import anyio
import pytest

from lifefold.interpreters.processes import (
    LaunchError,
    SessionExit,
    SessionProcess,
    adopt,
    identify,
    launch,
    read_exit,
    read_start,
)
from session_scripts import PATIENCE_S, Bell, processes_about, program, script

pytestmark = pytest.mark.anyio


async def test_the_exit_code_is_recorded(tmp_path: Path) -> None:
    """What the agent exits with and writes is in the run directory, where anybody finds it later."""
    session = await launch(tmp_path / "run", script("echo out; echo err >&2; exit 3", generation=7))
    ended = await session.wait()
    assert (ended.outcome, ended.code, ended.signal, ended.message) == ("exited", 3, None, "exit status 3")
    assert ended.output_bytes == 8
    assert await session.output_tail(100) == b"out\nerr\n"
    assert read_exit(tmp_path / "run") == ended
    start = read_start(tmp_path / "run")
    assert start is not None
    assert (start.generation, start.pgid, start.agent) == (7, start.pid, session.identity)


async def test_a_death_by_a_signal_is_recorded(tmp_path: Path) -> None:
    """A crash is told from an exit, and which signal it was."""
    ended = await (await launch(tmp_path / "run", script("kill -SEGV $$"))).wait()
    assert (ended.outcome, ended.code, ended.signal) == ("signalled", None, 11)


@pytest.mark.parametrize(
    ("argv", "cwd", "said"),
    [
        (("no-such-command",), "/", "cannot run 'no-such-command': not found"),
        (("/etc/passwd",), "/", "cannot run '/etc/passwd': permission denied"),
        (("true",), "/no/such/folder", "cannot enter the working directory '/no/such/folder'"),
    ],
)
async def test_a_command_that_cannot_be_run_is_reported_as_such(
    argv: tuple[str, ...], cwd: str, said: str, tmp_path: Path
) -> None:
    """A failed start is neither an exit with 127 nor an exception: it says what was not possible."""
    ended = await (await launch(tmp_path / "run", program(*argv, cwd=cwd))).wait()
    assert (ended.outcome, ended.code) == ("spawn-failed", None)
    assert ended.message.startswith(said)


async def test_the_agent_gets_what_it_was_given_and_nothing_else(tmp_path: Path) -> None:
    """Environment, open files, signals and standard input come from the order to start, not from runner or shim."""
    seen = "cat; env | grep -v -e ^PWD= -e ^SHLVL= -e ^_= | sort; ls /proc/self/fd | wc -l"
    text = f"{seen}; grep -e SigIgn -e SigBlk /proc/self/status"
    session = await launch(tmp_path / "run", script(text, env={"PATH": os.environ["PATH"], "A": "b\udcff"}))
    await session.wait()
    place, mark, *rest = sorted(
        (await session.output_tail(10_000)).splitlines(), key=lambda line: b"LIFEFOLD" not in line
    )
    assert place == b"LIFEFOLD_SESSION=" + os.fsencode(tmp_path / "run")
    assert mark.startswith(b"LIFEFOLD_SHIM=")
    assert rest[:2] == [b"A=b\xff", b"PATH=" + os.environ["PATH"].encode()]
    assert rest[2].strip() == b"4", "standard input, output, error, and the folder that is being listed"
    ours = ~(0b11 << 31)  # signals 32 and 33 belong to the C library, which permits no change of them
    assert [int(line.split()[1], 16) & ours for line in rest[3:]] == [0, 0]


async def test_the_values_of_variables_are_in_no_file_of_the_session(tmp_path: Path) -> None:
    """The agent gets them, however long they are; the record of what was started has their names."""
    value = "v4lue-" * 20_000
    text = "echo ${#API_KEY} ${#OTHER_KEY}"
    session = await launch(tmp_path / "run", script(text, env={"API_KEY": value, "OTHER_KEY": value}))
    await session.wait()
    assert await session.output_tail(100) == b"120000 120000\n"
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert all(b"v4lue" not in path.read_bytes() for path in files)
    assert json.loads((tmp_path / "run" / "spec.json").read_text())["env"] == ["API_KEY", "OTHER_KEY"]


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
async def test_a_sessions_folder_is_its_users_alone_whatever_the_umask(umask: int, tmp_path: Path) -> None:
    """No other user reads what an agent was told or has printed; the agent's own umask is the runner's."""
    before = os.umask(umask)
    try:
        session = await launch(tmp_path / "all" / "run", script("umask; echo out", output_limit_bytes=4))
        await session.wait()
    finally:
        os.umask(before)
    made = [tmp_path / "all", *(tmp_path / "all").rglob("*")]
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in made}
    assert {name: mode for name, mode in modes.items() if mode != (0o700 if name in {"all", "run"} else 0o600)} == {}


async def test_the_agent_leads_a_group_outside_the_runners_session(tmp_path: Path) -> None:
    """What a terminal or a service manager does to the runner's session or group does not reach the agent."""
    bell = Bell(tmp_path / "bell")
    session = await launch(tmp_path / "run", script(f"read line < {bell}"))
    assert session.identity is not None
    assert os.getpgid(session.identity.pid) == session.identity.pid
    assert os.getsid(session.identity.pid) != os.getsid(0)
    bell.ring()
    await session.wait()


async def test_launching_at_once_and_again_starts_one_agent(tmp_path: Path) -> None:
    """A directory has one agent in all its life, also with several launches from several processes."""
    bell, go = Bell(tmp_path / "bell"), Bell(tmp_path / "go")
    spec = script(f"echo $$ > {bell}; read line < {go}")
    sessions: list[SessionProcess] = []

    async def start() -> None:
        sessions.append(await launch(tmp_path / "run", spec))

    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(start)
        agent = await bell.pid()
        go.ring()
        ended = {await session.wait() for session in sessions}
        again = await launch(tmp_path / "run", spec)
    assert {session.identity for session in (*sessions, again)} == {agent}
    assert ended == {await again.wait()}
    assert bell.is_silent(), "a second agent has run"


@pytest.mark.parametrize("after_ms", [0, 2, 5, 10, 15, 20, 25, 30])
async def test_a_launch_that_is_cancelled_leaves_no_process(after_ms: int, tmp_path: Path) -> None:
    """Whenever the cancellation comes, there is afterwards neither a shim nor an agent, and the end is on record."""
    session = None
    with anyio.move_on_after(after_ms / 1000):
        session = await launch(tmp_path / "run", script(f"sleep 1000; : {tmp_path}"))
    if session is not None:
        await session.kill()
        await session.wait()
    assert processes_about(tmp_path) == []
    assert isinstance(await adopt(tmp_path / "run"), SessionExit) == (read_start(tmp_path / "run") is not None)


async def test_a_cancelled_launch_can_be_launched_again(tmp_path: Path) -> None:
    """A launch without a start does not block a later one."""
    with anyio.CancelScope() as scope:
        scope.cancel()
        await launch(tmp_path / "run", program("true"))
    assert (await (await launch(tmp_path / "run", program("true"))).wait()).code == 0


async def test_what_could_run_nowhere_is_refused(tmp_path: Path) -> None:
    """An order to start that is wrong in itself fails before anything is made."""
    for wrong in (program(), program("true", "\0"), program("true", env={"A": "\0"})):
        with pytest.raises(LaunchError):
            await launch(tmp_path / "run", wrong)
    assert not (tmp_path / "run").exists()


async def test_no_zombie_is_left_after_wait(tmp_path: Path) -> None:
    """The runner's process table has nothing of a session that is over, neither the shim nor the agent."""
    session = await launch(tmp_path / "run", program("true"))
    await session.wait()
    start = read_start(tmp_path / "run")
    assert start is not None
    assert identify(start.pid) != start.agent
    assert identify(start.shim_pid) != start.shim
    with pytest.raises(ChildProcessError):
        os.waitpid(start.shim_pid, os.WNOHANG)  # noqa: ASYNC222 - does not wait


async def test_many_sessions_run_side_by_side(tmp_path: Path) -> None:
    """Sessions do not wait for each other: all of them have started before the first may go."""
    bell, go = Bell(tmp_path / "bell"), Bell(tmp_path / "go")
    ended: list[SessionExit] = []

    async def one(number: int) -> None:
        session = await launch(tmp_path / str(number), script(f"echo $$ > {bell}; read line < {go}; exit {number}"))
        ended.append(await session.wait())

    async with anyio.create_task_group() as tasks:
        for number in range(40):
            tasks.start_soon(one, number)
        for _ in range(40):
            await bell.heard()
        for _ in range(40):
            go.ring()
    assert sorted(each.code or 0 for each in ended) == list(range(40))
