"""The progress of a session, the time without it, and one signal for a session that hangs, to no other process."""

import os
import signal
import time
from pathlib import Path

import pytest

from lifefold.interpreters.processes import Silence, SilentSince, interrupt, last_progress_ms, launch
from lifefold.interpreters.processes import progress as measured
from lifefold.interpreters.processes.shim import output
from session_scripts import Bell, script

pytestmark = pytest.mark.anyio

WAITS = "echo > {bell}; read line < {go}"
HEARS = "trap 'echo heard > {bell}' INT; echo begun > {bell}; until [ -e {go} ]; do sleep 0.01; done"
"""A shell that waits in a read may hear a signal only when that is over: this one hears it wherever it is."""


def set_ms(path: Path, at_ms: int) -> None:
    """Say when a file was touched last."""
    os.utime(path, ns=(at_ms * 1_000_000, at_ms * 1_000_000))


async def test_progress_is_the_start_the_output_and_the_heartbeat_whichever_came_last(tmp_path: Path) -> None:
    """Of what was never started nothing is known (E31, E32)."""
    run, beat = tmp_path / "run", tmp_path / "heartbeat"
    assert last_progress_ms(run, beat) is None
    assert Silence(run, beat).lasts_ms() is None
    bell, go = Bell(tmp_path / "bell"), Bell(tmp_path / "go")
    session = await launch(run, script(WAITS.format(bell=bell, go=go)))
    await bell.heard()
    assert session.start is not None
    began_ms = session.start.at_ms
    set_ms(run / "output.log", began_ms - 5_000)
    assert last_progress_ms(run, beat) == began_ms
    set_ms(run / "output.log", began_ms + 5_000)
    assert last_progress_ms(run, beat) == began_ms + 5_000
    beat.touch()
    set_ms(beat, began_ms + 9_000)
    assert last_progress_ms(run, beat) == began_ms + 9_000
    go.ring()
    await session.wait()


async def test_output_that_is_written_over_is_progress_too(tmp_path: Path) -> None:
    """A log that has reached its limit does not grow, and the session still moves: where it is written goes on."""
    run, bell, go = tmp_path / "run", Bell(tmp_path / "bell"), Bell(tmp_path / "go")
    session = await launch(run, script(WAITS.format(bell=bell, go=go)))
    await bell.heard()
    assert session.start is not None
    log = output.OutputLog(str(run), 1_000)
    log.write(bytes(9_000))
    for name in ("output.log", "output.position"):
        set_ms(run / name, session.start.at_ms - 5_000)
    assert last_progress_ms(run, tmp_path / "none") == session.start.at_ms
    log.write(bytes(9_000))
    set_ms(run / "output.log", session.start.at_ms - 5_000)
    moved_ms = (run / "output.position").stat().st_mtime_ns // 1_000_000
    assert last_progress_ms(run, tmp_path / "none") == moved_ms
    assert moved_ms >= session.start.at_ms
    go.ring()
    await session.wait()


def test_silence_does_not_last_longer_because_the_machine_slept_or_a_clock_was_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No process can work meanwhile: only time in which the machine was awake is silence."""
    last: list[int | None] = [0]
    wall_s, awake_s = [1_000.0], [50.0]

    def progressed(_directory: Path, _heartbeat: Path) -> int | None:
        return last[0]

    monkeypatch.setattr(measured, "last_progress_ms", progressed)
    monkeypatch.setattr(time, "time_ns", lambda: int(wall_s[0] * 1e9))
    monkeypatch.setattr(time, "monotonic_ns", lambda: int(awake_s[0] * 1e9))

    def passes(awake: float, asleep: float = 0) -> None:
        wall_s[0] += awake + asleep
        awake_s[0] += awake

    silence = Silence(tmp_path, tmp_path)
    last[0] = 990_000
    assert silence.lasts_ms() == 10_000
    passes(5, asleep=3_600)
    assert silence.lasts_ms() == 15_000
    last[0] = 991_000
    passes(2)
    assert silence.lasts_ms() == 2_000
    wall_s[0] -= 7_200
    last[0] = 9_999_000
    assert silence.lasts_ms() == 0
    passes(30)
    assert silence.lasts_ms() == 30_000


async def test_a_repeated_request_to_interrupt_sends_one_signal(tmp_path: Path) -> None:
    """A restarted runner may repeat a request; another request is another signal."""
    run, bell, go = tmp_path / "run", Bell(tmp_path / "bell"), tmp_path / "go"
    session = await launch(run, script(HEARS.format(bell=bell, go=go)))
    assert await bell.heard() == "begun"
    for request in ("worker/ann 7 0", "worker/ann 7 0", "worker/ann 7 0"):
        await interrupt(run, request)
    assert await bell.heard() == "heard"
    await interrupt(run, "worker/ann 9 0")
    assert await bell.heard() == "heard"
    go.touch()
    ended = await session.wait()
    assert (ended.outcome, ended.code) == ("exited", 0)
    assert bell.is_silent()


@pytest.mark.parametrize("sign", ["output.log", "output.position", "heartbeat"])
async def test_a_request_about_a_silence_that_is_over_sends_no_signal(sign: str, tmp_path: Path) -> None:
    """It came late, and the session may wait for an operator by now. The next request is about another silence."""
    run, bell, go = tmp_path / "run", Bell(tmp_path / "bell"), tmp_path / "go"
    session = await launch(run, script(HEARS.format(bell=bell, go=go)))
    assert await bell.heard() == "begun"
    assert session.start is not None
    began_ms, beat = session.start.at_ms, tmp_path / "heartbeat"
    shown = beat if sign == "heartbeat" else run / sign
    shown.touch()
    set_ms(run / "output.log", began_ms)
    set_ms(shown, began_ms + 5_000)
    await interrupt(run, "late", SilentSince(began_ms + 4_999, beat))
    await interrupt(run, "late", SilentSince(began_ms + 5_000, beat))
    await interrupt(run, "in time", SilentSince(began_ms + 5_000, beat))
    assert await bell.heard() == "heard"
    go.touch()
    assert (await session.wait()).code == 0
    assert bell.is_silent()


async def test_a_session_that_has_ended_or_is_being_ended_is_not_signalled(tmp_path: Path) -> None:
    """A late request reaches no process: not the session, and no other process with its reused pid."""
    run, bell, go = tmp_path / "run", Bell(tmp_path / "bell"), Bell(tmp_path / "go")
    text = "trap 'echo int > {bell}' INT; trap 'echo term > {bell}; read l < {go}; exit 3' TERM; echo > {bell}; "
    session = await launch(run, script((text + "while :; do sleep 0.01; done").format(bell=bell, go=go)))
    await bell.heard()
    await session.end(60_000)
    assert await bell.heard() == "term"
    await interrupt(run, "late")
    go.ring()
    assert (await session.wait()).code == 3
    assert bell.is_silent()
    await interrupt(run, "later")
    await interrupt(tmp_path / "never", "there is nobody")


async def test_only_the_sessions_own_process_hears_the_signal(tmp_path: Path) -> None:
    """Its children are its own affair."""
    run, bell, go = tmp_path / "run", Bell(tmp_path / "bell"), tmp_path / "go"
    child = f"trap 'echo child > {bell}' INT; while :; do sleep 0.01; done"
    text = f"trap 'echo agent > {bell}' INT; (exec sh -c \"{child}\") & echo > {bell}; "
    text += f"until [ -e {go} ]; do sleep 0.01; done"
    session = await launch(run, script(text))
    await bell.heard()
    await interrupt(run, "once")
    assert await bell.heard() == "agent"
    go.touch()
    await session.wait()
    assert bell.is_silent()


async def test_a_stopped_process_hears_it(tmp_path: Path) -> None:
    """It is let go on, as it could not hear anything."""
    run, bell, go = tmp_path / "run", Bell(tmp_path / "bell"), tmp_path / "go"
    session = await launch(run, script(HEARS.format(bell=bell, go=go)))
    assert await bell.heard() == "begun"
    assert session.start is not None
    os.kill(session.start.pid, signal.SIGSTOP)
    await interrupt(run, "once")
    assert await bell.heard() == "heard"
    go.touch()
    await session.wait()
