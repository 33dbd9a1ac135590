"""A session with a stopped shim: an order wakes the shim, and a shim that does not act is killed."""

import signal
from pathlib import Path

import anyio
import pytest

from lifefold.interpreters.processes import SessionProcess, is_alive, launch, signal_if_ours
from lifefold.interpreters.processes.overdue import KILLED, end_of
from lifefold.interpreters.processes.session_files import SessionSpec
from session_scripts import PATIENCE_S, Bell, must_die, processes_about, script

pytestmark = pytest.mark.anyio

LONG_MS = 1_000_000
STOPS = "trap '' TERM; echo > {bell}; while :; do kill -STOP $PPID; sleep 0.01; done"
"""An agent that stops its shim over and over."""


async def stopped(tmp_path: Path, spec: SessionSpec, bell: Bell) -> SessionProcess:
    """Launch a session, and stop its shim once the agent has rung."""
    session = await launch(tmp_path / "run", spec)
    await bell.heard()
    assert session.start is not None
    assert signal_if_ours(session.start.shim, signal.SIGSTOP)
    return session


async def test_a_stopped_shim_hears_that_its_agent_is_to_end(tmp_path: Path) -> None:
    """It is woken by what it is told, and the agent may end in its own way."""
    bell = Bell(tmp_path / "bell")
    agent = script(f"trap 'exit 9' TERM; echo > {bell}; while :; do sleep 0.01; done")
    session = await stopped(tmp_path, agent, bell)
    await session.end(LONG_MS)
    with anyio.fail_after(PATIENCE_S):
        ended = await session.wait()
    assert (ended.outcome, ended.code) == ("ended", 9)


async def test_a_stopped_shim_hears_that_its_agent_is_to_be_killed(tmp_path: Path) -> None:
    """No grace passes, and the end is on record."""
    bell = Bell(tmp_path / "bell")
    session = await stopped(tmp_path, script(f"echo > {bell}; sleep 1000"), bell)
    await session.kill()
    with anyio.fail_after(PATIENCE_S):
        assert (await session.wait()).outcome == "killed"


async def test_a_shim_that_was_stopped_ends_a_session_that_is_over_time_when_it_is_woken(tmp_path: Path) -> None:
    """Its own limit counts then, and the runner is told why it took so long."""
    bell, told = Bell(tmp_path / "bell"), list[str]()
    session = await stopped(tmp_path, script(f"echo > {bell}; sleep 1000", timeout_ms=2_000), bell)
    with anyio.fail_after(PATIENCE_S):
        ended = await end_of(session, 3_000, LONG_MS, told.append)
    assert (ended.outcome, ended.signal) == ("timeout", signal.SIGTERM)
    assert len(told) <= 1  # none, if this machine was so slow that the shim was stopped too late


async def test_an_agent_that_was_done_while_its_shim_stood_still_has_succeeded(tmp_path: Path) -> None:
    """It is not a failure of the work."""
    bell, go, told = Bell(tmp_path / "bell"), Bell(tmp_path / "go"), list[str]()
    session = await stopped(tmp_path, script(f"echo > {bell}; read line < {go}; exit 0"), bell)
    go.ring()
    assert session.identity is not None
    await must_die(session.identity)
    with anyio.fail_after(PATIENCE_S):
        ended = await end_of(session, 1, LONG_MS, told.append)
    assert (ended.outcome, ended.code) == ("exited", 0)
    assert len(told) == 1


async def test_a_shim_that_never_acts_is_killed_with_its_whole_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with what has left the agent's group: the session has timed out, and nothing of it is alive."""
    monkeypatch.setattr("lifefold.core.policy.overdue.MARGIN_MS", 300)
    bell, hidden, told = Bell(tmp_path / "bell"), Bell(tmp_path / "hidden"), list[str]()
    daemon = f"(setsid sh -c \"trap '' TERM; echo \\$\\$ > {hidden}; exec sleep 1000\" &)"
    session = await launch(tmp_path / "run", script(f"{daemon}; {STOPS.format(bell=bell)}"))
    await bell.heard()
    escaped = await hidden.pid()
    with anyio.fail_after(PATIENCE_S):
        ended = await end_of(session, 1, 0, told.append)
    assert (ended.outcome, ended.message) == ("timeout", KILLED)
    assert len(told) == 2
    assert session.start is not None
    assert not any(is_alive(each) for each in (session.start.shim, session.start.agent, escaped))
    assert processes_about(tmp_path) == []


async def test_a_session_without_a_limit_is_only_waited_for(tmp_path: Path) -> None:
    """Its shim is left alone."""
    told: list[str] = []
    session = await launch(tmp_path / "run", script("exit 4"))
    ended = await end_of(session, None, 0, told.append)
    assert (ended.outcome, ended.code, told) == ("exited", 4, [])
