"""Waiting for what triggers services, and telling people what becomes of them. Whether anything is run is core's.

An interval is due by the wall clock, counted from when the log says that it was due last: a runner that comes after a
while finds what was due meanwhile, and says so once.
"""

import time
from collections.abc import Callable
from typing import Final

import anyio

from lifefold.core.fleet import trigger
from lifefold.effects import AwaitTrigger, Every, NotifyProcess, PauseTriggers, ResumeTriggers
from lifefold.interpreters.engine import Occasion, Ongoing, handles
from lifefold.interpreters.fleet.units import format_duration

LOOK_MS: Final = 60_000
"""How long is waited at most before the wall clock is looked at again: it may be set, or stand still in a sleep."""


class Attendant:
    """Performs what services ask for, beside their runs."""

    def __init__(self, tell: Callable[[str, str], None]) -> None:
        """Take how people are told something of an agent."""
        self._tell = tell

    @handles(AwaitTrigger)
    async def await_trigger(self, activity: AwaitTrigger, ongoing: Ongoing) -> None:
        """Wait for a trigger, time and again. It leaves nothing, and is over when it is cancelled."""
        if not ongoing.leftover:
            await wait_for_interval(activity.source, ongoing)

    @handles(NotifyProcess)
    async def notify(self, effect: NotifyProcess, occasion: Occasion) -> None:
        """Tell people of what has gone wrong; the rest is in the log, and in the status."""
        if effect.kind in _BAD_NEWS:
            self._tell(occasion.within.key, f"{_BAD_NEWS[effect.kind]}: {effect.reason}")

    @handles(PauseTriggers, ResumeTriggers)
    async def follow(self, effect: PauseTriggers | ResumeTriggers, occasion: Occasion) -> None:
        """Do nothing: what is run, and when, is decided by the rules of a service."""


_BAD_NEWS: Final = {"failed": "the service has failed", "restart_exhausted": "the service stays down"}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


async def wait_for_interval(every: Every, ongoing: Ongoing, now_ms: Callable[[], int] = _now_ms) -> None:
    """Report an interval whenever it is due, until cancelled."""
    entity = ongoing.occasion.entity
    last_ms = entity.record.last_ms or entity.entered_ms
    while True:
        due_ms = trigger.last_due_ms(every.every_ms, last_ms, now_ms())
        if due_ms > last_ms:
            if not await ongoing.report(trigger.Triggered(due_ms, f"every {format_duration(every.every_ms)}")):
                await anyio.sleep_forever()  # it is not wanted any more; whoever asked is about to say so
            last_ms = due_ms
        left_ms = trigger.next_due_ms(every.every_ms, last_ms) - now_ms()
        await anyio.sleep(min(max(left_ms, 0), LOOK_MS) / 1_000)
