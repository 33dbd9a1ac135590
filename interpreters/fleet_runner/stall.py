"""Handlers of the stall detector: they look for progress of a session, report silence, warn, and interrupt.

Nothing is reported of a session that makes progress; it is examined once in the time before a warning. On the ladder of
warnings it is examined every second. Each step lasts its full time, even if all are overdue after a time without a
runner: a nudged session gets its time to answer. The time of a step counts from its entry in the log, so that a crash
of the runner neither extends nor repeats it.
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
from lifefold.interpreters.processes import SessionError, Silence, SilentSince, interrupt

LOOK_MS: Final = 1_000
"""The interval at which a session on the ladder is examined."""


class Watcher:
    """Performs the effects and activities of stall detectors."""

    def __init__(self, folder: FleetFolder, operator: Notices) -> None:
        """Take the folder of the sessions, and the notices."""
        self._folder = folder
        self._operator = operator

    @handles(WatchOutput)
    async def watch_output(self, _activity: WatchOutput, context: ActivityContext) -> None:
        """Watch the progress of a session until cancelled; there is nothing to clean up."""
        if context.cleanup_only:
            return
        agent, attempt = session_of(context.origin)
        silence = Silence(self._folder.last_start(agent, attempt), self._folder.heartbeat(agent, attempt))

        def lasts_ms() -> int | None:
            try:
                return silence.lasts_ms()
            except (SessionError, OSError):
                return None  # the handler of the session reports what is wrong with its records

        entered_ms = context.origin.entity.entered_ms
        await watch(lasts_ms, context, on_step_ms=max(0, time.time_ns() // 1_000_000 - entered_ms))

    @handles(WarnOfSilence)
    async def warn(self, effect: WarnOfSilence, context: EffectContext) -> None:
        """Show the operator a notice."""
        silent_s, end_s = effect.silent_ms // 1_000, effect.end_ms // 1_000
        said = f"its session has shown no sign of progress for {silent_s} s, neither output nor heartbeat"
        self._operator.tell_while(About.SILENCE, context.within.key, f"{said}; it is ended after {end_s} s")

    @handles(InterruptSession)
    async def interrupt(self, effect: InterruptSession, context: EffectContext) -> None:
        """Let the shim signal its session once; the shim of an ended session ignores that.

        The effect can be performed late, after a crash of the runner. A session that has shown a sign meanwhile may
        wait for an operator, and a signal would end its turn. The last sign before the silence is a whole silence
        older than the entry, and half of a silence is more than files and the log differ in time.
        """
        name, version, index = context.identity
        agent, attempt = session_of(context)
        since_ms = context.entity.entered_ms - effect.silent_ms // 2
        silent = SilentSince(since_ms, self._folder.heartbeat(agent, attempt))
        await interrupt(self._folder.last_start(agent, attempt), f"{name} {version} {index}", silent)


def session_of(context: EffectContext) -> tuple[str, int]:
    """Return the agent, and the number of its session."""
    return context.within.key, context.within.record("session").attempt


async def watch(lasts_ms: Callable[[], int | None], context: ActivityContext, *, on_step_ms: int = 0) -> None:
    """Report the due events of the stall detector until cancelled: silence for its next step, or progress.

    ``lasts_ms`` returns the length of the silence; None if it is unknown. ``on_step_ms`` is the time since the present
    step began.
    """
    record: stall_detector.StallDetector = context.origin.entity.record
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
