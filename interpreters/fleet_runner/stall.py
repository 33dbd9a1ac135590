"""Watching whether a session moves: when to look at the evidence, what of it to tell its lifecycle, and what follows.

Nothing is told of a session that moves; it is looked at once in the time after which it would be warned of. On the
ladder it is looked at every second. Each step lasts as long as the ladder says, also if all of them are overdue because
nobody has watched for a while: whoever is nudged has his time to answer. The time of a step counts from when it was
taken, which the log knows, so that no crash of a runner makes it longer or takes it again.
"""

import time
from collections.abc import Callable
from typing import Final

import anyio

from lifefold.core.fleet.worker import stall_detector
from lifefold.effects import InterruptSession, WarnOfSilence, WatchOutput
from lifefold.interpreters.engine import ActivityContext, EffectContext, handles
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.notices import About, Notices
from lifefold.interpreters.processes import SessionError, Silence, interrupt

LOOK_MS: Final = 1_000
"""How often a session that is on the ladder is looked at."""


class Watcher:
    """Performs what the pulses of a fleet's workers ask for."""

    def __init__(self, folder: FleetFolder, people: Notices) -> None:
        """Take where the sessions are, and what people are told."""
        self._folder = folder
        self._people = people

    @handles(WatchOutput)
    async def watch_output(self, _activity: WatchOutput, context: ActivityContext) -> None:
        """Watch whether the session moves. It leaves nothing, and is over when it is cancelled."""
        if context.cleanup_only:
            return
        agent, attempt = _session_of(context.occasion)
        silence = Silence(self._folder.last_start(agent, attempt), self._folder.heartbeat(agent, attempt))

        def lasts_ms() -> int | None:
            try:
                return silence.lasts_ms()
            except (SessionError, OSError):
                return None  # whoever attends the session says what is wrong with its records

        entered_ms = context.occasion.entity.entered_ms
        await watch(lasts_ms, context, on_step_ms=max(0, time.time_ns() // 1_000_000 - entered_ms))

    @handles(WarnOfSilence)
    async def warn(self, effect: WarnOfSilence, occasion: EffectContext) -> None:
        """Tell people."""
        silent_s, end_s = effect.silent_ms // 1_000, effect.end_ms // 1_000
        said = f"its session has shown no sign of progress for {silent_s} s, neither output nor heartbeat"
        self._people.tell_while(About.SILENCE, occasion.within.key, f"{said}; after {end_s} s it is ended")

    @handles(InterruptSession)
    async def interrupt(self, _effect: InterruptSession, occasion: EffectContext) -> None:
        """Have the session's shim signal it, once. That of a session that is over does not listen any more."""
        name, version, index = occasion.identity
        await interrupt(self._folder.last_start(*_session_of(occasion)), f"{name} {version} {index}")


def _session_of(occasion: EffectContext) -> tuple[str, int]:
    """Return the agent, and which session of its is meant."""
    return occasion.within.key, occasion.within.record("session").attempt


async def watch(lasts_ms: Callable[[], int | None], context: ActivityContext, *, on_step_ms: int = 0) -> None:
    """Report what the pulse says is due, until cancelled: silence for its next step, or a sign of progress.

    ``lasts_ms`` looks how long the silence lasts; None if that cannot be known. ``on_step_ms`` is how long the session
    has been on its present step.
    """
    record: stall_detector.StallDetector = context.occasion.entity.record
    since_ms = _now_ms() - on_step_ms
    while record.state in stall_detector.WATCHED:
        silent_ms, wait_ms = lasts_ms(), LOOK_MS
        found = LOOK_MS if silent_ms is None else stall_detector.due(record, silent_ms, _now_ms() - since_ms)
        if isinstance(found, int):
            wait_ms = found if record.state is stall_detector.State.FRESH else min(found, LOOK_MS)
        elif await context.report(found):
            record, since_ms, wait_ms = stall_detector.after(record, found), _now_ms(), 0
        await anyio.sleep(wait_ms / 1_000)
    await anyio.sleep_forever()


def _now_ms() -> int:
    return int(anyio.current_time() * 1_000)
