"""A nudge that is performed late: a session that has shown a sign meanwhile is not interrupted."""

import os
import time
from pathlib import Path

import pytest

from lifefold.core.fleet.worker.stall_detector import StallDetector, State
from lifefold.core.kernel import Aggregate, Entity, PersistentMap
from lifefold.core.lifecycles.session import Session
from lifefold.effects import InterruptSession
from lifefold.interpreters.engine import EffectContext
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.notices import Notices
from lifefold.interpreters.fleet_runner.stall import Watcher
from lifefold.interpreters.processes import SessionProcess, launch
from session_scripts import Bell, script

pytestmark = pytest.mark.anyio

SILENT_MS = 60_000
HEARS = "trap 'echo heard > {bell}' INT; echo > {bell}; until [ -e {go} ]; do sleep 0.01; done"


async def running(folder: FleetFolder, text: str) -> SessionProcess:
    """Begin the first session of an agent."""
    start = folder.next_start("ann", 1)
    start.mkdir(parents=True)
    return await launch(start, script(text))


def set_ms(path: Path, at_ms: int) -> None:
    """Set the time of a file."""
    os.utime(path, ns=(at_ms * 1_000_000, at_ms * 1_000_000))


def nudged(version: int, at_ms: int) -> EffectContext:
    """Return the entry that has decided on a nudge at this time."""
    entities = {
        "session": Entity("session", Session(attempt=1)),
        "stall_detector": Entity("stall_detector", StallDetector(State.NUDGED), entered_ms=at_ms),
    }
    return EffectContext(Aggregate("worker/ann", entities=PersistentMap(entities)), "stall_detector", version, 0)


@pytest.mark.parametrize("by", ["output", "heartbeat"])
async def test_a_nudge_does_not_reach_a_session_that_has_shown_a_sign_since_it_was_decided(
    by: str, tmp_path: Path
) -> None:
    """A runner has died between the decision and the signal. A nudge for the next silence reaches it."""
    folder = FleetFolder(tmp_path / "fleet.db")
    bell, go = Bell(tmp_path / "bell"), tmp_path / "go"
    session = await running(folder, HEARS.format(bell=bell, go=go))
    await bell.heard()
    shown = folder.output("ann", 1) if by == "output" else folder.heartbeat("ann", 1)
    shown.touch()
    watcher, now_ms = Watcher(folder, Notices()), time.time_ns() // 1_000_000
    set_ms(folder.output("ann", 1), now_ms - SILENT_MS)
    set_ms(shown, now_ms + 1_000)
    await watcher.interrupt(InterruptSession(SILENT_MS), nudged(7, now_ms))
    await watcher.interrupt(InterruptSession(SILENT_MS), nudged(9, now_ms + 1_000 + SILENT_MS))
    assert await bell.heard() == "heard"
    go.touch()
    await session.wait()
    assert bell.is_silent()
