"""Ending a session by order, by timeout, by lease; no process of it remains, in any group."""

import fcntl
import os
import signal
import termios
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from lifefold.interpreters.processes import (
    Fence,
    SessionExit,
    SessionProcess,
    identify,
    is_alive,
    launch,
    read_exit,
    read_start,
    signal_if_ours,
)
from lifefold.interpreters.processes.shim.proc import boot_ms
from session_scripts import PATIENCE_S, Bell, must_die, script

pytestmark = pytest.mark.anyio

LESS_THAN_A_MINUTE_S = 45
"""The time for which a shim tries to record an end, less what a slow machine takes for anything else."""

STUBBORN = "trap '' TERM; echo $$ > {bell}; while :; do sleep 1000; done"
DAEMON = "(setsid sh -c \"trap '' TERM; echo \\$\\$ > {bell}; exec sleep 1000\" &); read line < {go}; exit 5"


async def test_an_agent_that_is_asked_ends_in_its_own_way(tmp_path: Path) -> None:
    """Asked to end, an agent may tidy up and choose its exit code."""
    bell = Bell(tmp_path / "bell")
    text = f"trap 'echo tidy; exit 9' TERM; echo > {bell}; while :; do sleep 0.01; done"
    session = await launch(tmp_path / "run", script(text))
    await bell.heard()
    await session.end(60_000)
    ended = await session.wait()
    assert (ended.outcome, ended.code, ended.signal) == ("ended", 9, None)
    assert (await session.output_tail(100)).endswith(b"tidy\n")


async def test_a_session_whose_directory_its_agent_removes_is_lost_at_once(tmp_path: Path) -> None:
    """There is nowhere to record its end, and no use in trying for as long as for a disk that is full."""
    directory = tmp_path / "run"
    started = tmp_path / "started"
    session = await launch(directory, script(f"until [ -e {started} ]; do sleep 0.01; done; rm -rf {directory}"))
    started.touch()
    with anyio.fail_after(LESS_THAN_A_MINUTE_S):
        assert (await session.wait()).outcome == "lost"


async def test_an_agent_that_ignores_the_request_is_killed_after_the_grace(tmp_path: Path) -> None:
    """The grace is waited for, and not longer."""
    bell = Bell(tmp_path / "bell")
    session = await launch(tmp_path / "run", script(STUBBORN.format(bell=bell)))
    await bell.heard()
    since_ms = boot_ms()
    await session.end(200)
    ended = await session.wait()
    assert (ended.outcome, ended.signal) == ("ended", signal.SIGKILL)
    assert ended.message == "it was asked to end; it did not end on TERM; killed"
    assert boot_ms() - since_ms >= 200


async def test_a_second_request_can_shorten_the_grace(tmp_path: Path) -> None:
    """A later order can end the session before the grace of the first one is over."""
    bell = Bell(tmp_path / "bell")
    session = await launch(tmp_path / "run", script(STUBBORN.format(bell=bell)))
    await bell.heard()
    for grace_ms in (1_000_000, 0, 1_000_000):
        await session.end(grace_ms)
    with anyio.fail_after(PATIENCE_S):
        assert (await session.wait()).outcome == "ended"


async def test_an_order_to_kill_does_not_wait(tmp_path: Path) -> None:
    """To kill is also what ends a grace that is running."""
    bell = Bell(tmp_path / "bell")
    session = await launch(tmp_path / "run", script(STUBBORN.format(bell=bell)))
    await bell.heard()
    await session.end(1_000_000)
    await session.kill()
    with anyio.fail_after(PATIENCE_S):
        ended = await session.wait()
    assert (ended.outcome, ended.signal) == ("killed", signal.SIGKILL)


async def test_a_stopped_agent_can_be_ended_politely(tmp_path: Path) -> None:
    """A process that was stopped is woken to hear that it is to end."""
    bell = Bell(tmp_path / "bell")
    session = await launch(tmp_path / "run", script(f"trap 'exit 9' TERM; echo > {bell}; while :; do sleep 0.01; done"))
    await bell.heard()
    assert session.identity is not None
    assert signal_if_ours(session.identity, signal.SIGSTOP)
    await session.end(60_000)
    assert (await session.wait()).code == 9


async def test_an_agent_ends_when_its_time_is_over(tmp_path: Path) -> None:
    """The time-out is kept by the shim, and told from every other end."""
    session = await launch(tmp_path / "run", script("sleep 1000", timeout_ms=100))
    ended = await session.wait()
    assert (ended.outcome, ended.signal) == ("timeout", signal.SIGTERM)
    assert "100 ms" in ended.message


async def test_an_agent_with_an_expired_lease_ends(tmp_path: Path) -> None:
    """A runner that is cut off loses the session, at a moment that it knows."""
    until_ms = boot_ms() + 150
    session = await launch(tmp_path / "run", script("sleep 1000"), lease_ms=150)
    assert (await session.wait()).outcome == "lease-expired"
    assert boot_ms() >= until_ms


async def test_the_latest_deadline_of_a_lease_counts(tmp_path: Path) -> None:
    """A renewal that ends earlier takes nothing away from the agent."""
    go = Bell(tmp_path / "go")
    session = await launch(tmp_path / "run", script(f"read line < {go}; exit 6"))
    await session.renew(1_000_000)
    await session.renew(0)
    await orders_are_read(tmp_path / "run")
    go.ring()
    ended = await session.wait()
    assert (ended.outcome, ended.code) == ("exited", 6)


async def orders_are_read(directory: Path) -> None:
    """Wait until the shim has taken all orders out of its pipe."""
    control = os.open(directory / "control", os.O_RDONLY | os.O_NONBLOCK)
    try:
        with anyio.fail_after(PATIENCE_S):
            while fcntl.ioctl(control, termios.FIONREAD, bytes(4)) != bytes(4):
                await anyio.lowlevel.checkpoint()
    finally:
        os.close(control)


async def test_a_renewal_is_a_deadline_where_there_was_none(tmp_path: Path) -> None:
    """What was launched without a lease ends when one that it was given runs out."""
    session = await launch(tmp_path / "run", script("sleep 1000"))
    await session.renew(1)
    assert (await session.wait()).outcome == "lease-expired"


async def test_a_session_past_its_fence_is_killed_after_its_short_grace(tmp_path: Path) -> None:
    """Another host may have the session soon: the grace of the fence counts, and not the long one of the session."""
    bell = Bell(tmp_path / "bell")
    session = await launch(tmp_path / "run", script(STUBBORN.format(bell=bell), grace_ms=1_000_000))
    await bell.heard()
    fence = Fence(boot_ms() + 50, 50)
    await session.renew_fence(fence)
    with anyio.fail_after(PATIENCE_S):
        ended = await session.wait()
    assert (ended.outcome, ended.signal) == ("lease-expired", signal.SIGKILL)
    assert boot_ms() >= fence.until_boot_ms + fence.grace_ms


async def test_a_fence_cuts_the_grace_of_an_ending_session_short(tmp_path: Path) -> None:
    """A session that was asked to end may take its grace, but no longer than its host may have it."""
    bell = Bell(tmp_path / "bell")
    session = await launch(tmp_path / "run", script(STUBBORN.format(bell=bell)))
    await bell.heard()
    await session.end(1_000_000)
    await orders_are_read(tmp_path / "run")
    await session.renew_fence(Fence(boot_ms() + 50, 0))
    with anyio.fail_after(PATIENCE_S):
        ended = await session.wait()
    assert (ended.outcome, ended.signal) == ("ended", signal.SIGKILL)


async def test_a_renewed_fence_is_never_shortened(tmp_path: Path) -> None:
    """A session without a fence gets one with the first renewal; an earlier fence takes nothing away."""
    session = await launch(tmp_path / "run", script("sleep 1000"))
    await session.renew_fence(Fence(boot_ms() + 1_000_000, 0))
    await orders_are_read(tmp_path / "run")
    assert read_exit(tmp_path / "run") is None
    await session.renew_fence(Fence(0, 0))
    await orders_are_read(tmp_path / "run")
    assert read_exit(tmp_path / "run") is None
    await session.kill()
    await session.wait()


async def test_nothing_begins_past_its_fence(tmp_path: Path) -> None:
    """A host that was frozen while it launched a session opens no gate afterwards."""
    session = await launch(tmp_path / "run", script(f"echo > {tmp_path}/ran"), fence=Fence(boot_ms(), 1_000_000))
    ended = await session.wait()
    assert ended.outcome == "spawn-failed"
    assert "its fence has passed" in ended.message
    assert not (tmp_path / "ran").exists()


async def test_a_closed_control_pipe_alone_ends_nothing(tmp_path: Path) -> None:
    """A pipe without a writer means nothing: another runner may come."""
    bell, go = Bell(tmp_path / "bell"), Bell(tmp_path / "go")
    session = await launch(tmp_path / "run", script(f"echo > {bell}; read line < {go}; exit 6"))
    for nonsense in (b"", b"no order\n", b'{"end": "now"}\n[1]\n', b"x" * 10_000):
        (tmp_path / "run" / "control").write_bytes(nonsense)
    await bell.heard()
    go.ring()
    ended = await session.wait()
    assert (ended.outcome, ended.code) == ("exited", 6)


async def test_sigterm_to_the_shim_ends_the_agent_within_its_grace(tmp_path: Path) -> None:
    """A shutdown of the machine ends the sessions with TERM, and their ends are recorded."""
    bell = Bell(tmp_path / "bell")
    session = await launch(tmp_path / "run", script(STUBBORN.format(bell=bell), grace_ms=50))
    await bell.heard()
    start = read_start(tmp_path / "run")
    assert start is not None
    assert signal_if_ours(start.shim, signal.SIGHUP), "which is ignored"
    assert signal_if_ours(start.shim, signal.SIGTERM)
    assert (await session.wait()).outcome == "ended"


async def test_a_grandchild_that_became_a_daemon_is_killed(tmp_path: Path) -> None:
    """To fork twice and to call setsid does not save a process from the end of its session."""
    bell, go = Bell(tmp_path / "bell"), Bell(tmp_path / "go")
    session = await launch(tmp_path / "run", script(DAEMON.format(bell=bell, go=go), grace_ms=50))
    daemon = await bell.pid()
    assert session.identity is not None
    assert os.getsid(daemon.pid) == daemon.pid, "it got away from group and session"
    go.ring()
    with anyio.fail_after(PATIENCE_S):  # although it holds the pipe of the output
        ended = await session.wait()
    assert (ended.outcome, ended.code, ended.escaped) == ("exited", 5, (daemon.pid,))
    assert not is_alive(daemon)


async def test_what_an_agent_leaves_in_its_group_ends_with_it(tmp_path: Path) -> None:
    """The end is recorded when the last of the group is dead, and not when the agent is."""
    bell, go = Bell(tmp_path / "bell"), Bell(tmp_path / "go")
    left = f"sh -c \"trap '' TERM; echo \\$\\$ > {bell}; while :; do sleep 1000; done\" & read line < {go}; exit 0"
    session = await launch(tmp_path / "run", script(left, grace_ms=50))
    child = await bell.pid()
    go.ring()
    ended = await session.wait()
    assert (ended.outcome, ended.code, ended.escaped) == ("exited", 0, ())
    assert not is_alive(child)


async def test_a_wait_can_be_given_up_and_shared(tmp_path: Path) -> None:
    """Waiting changes nothing: it may be cancelled, repeated, and done by many."""
    go = Bell(tmp_path / "go")
    session = await launch(tmp_path / "run", script(f"read line < {go}; exit 2"))
    found: list[SessionExit] = []

    async def wait(process: SessionProcess) -> None:
        found.append(await process.wait())

    async with anyio.create_task_group() as tasks:
        with anyio.move_on_after(0.01):
            await session.wait()
        for _ in range(3):
            tasks.start_soon(wait, session)
        go.ring()
    assert [each.code for each in found] == [2, 2, 2]
    assert await session.wait() == found[0]


async def test_orders_to_a_session_that_is_over_do_nothing(tmp_path: Path) -> None:
    """A late order finds the session ended, and affects no process."""
    session = await launch(tmp_path / "run", script("exit 1"))
    ended = await session.wait()
    await session.end(0)
    await session.kill()
    await session.renew(1000)
    assert await session.wait() == ended


async def test_a_killed_shim_takes_its_agent_along(tmp_path: Path) -> None:
    """When only the shim is killed, nothing of the session lives on, and waiting says that it is lost."""
    bell, go = Bell(tmp_path / "bell"), Bell(tmp_path / "go")
    session = await launch(tmp_path / "run", script(DAEMON.format(bell=bell, go=go)))
    daemon, start = await bell.pid(), read_start(tmp_path / "run")
    assert start is not None
    assert signal_if_ours(start.shim, signal.SIGKILL)
    await must_die(start.agent)
    with anyio.fail_after(PATIENCE_S):
        ended = await session.wait()
    assert (ended.outcome, ended.code, ended.escaped) == ("lost", None, (daemon.pid,))
    assert identify(daemon.pid) != daemon
