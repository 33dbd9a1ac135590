"""Waiting for what triggers services, and telling people what becomes of them. Whether anything is run is core's.

What is a matter of time is due by the wall clock, counted from when the log says that it was due last: a runner that
comes after a while finds what was due meanwhile, and says so once. With files it is the same: the log knows what was
there when that was looked at last.
"""

import time
from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Final

import anyio
from anyio import to_thread

from lifefold.core.fleet import trigger
from lifefold.effects import AwaitTrigger, Effect, NotifyProcess, PauseTriggers, ResumeTriggers
from lifefold.effects.service import Changed, Cron, Every
from lifefold.interpreters.engine import Occasion, Ongoing, handles
from lifefold.interpreters.fleet import Fleet
from lifefold.interpreters.fleet.units import format_duration
from lifefold.interpreters.run.changes import mark_of, notices
from lifefold.interpreters.run.moments import last_due_ms, next_due_ms
from lifefold.interpreters.run.notices import About, Notices

LOOK_MS: Final = 60_000
"""How long is waited at most before the wall clock is looked at again: it may be set, or stand still in a sleep."""

AGAIN_S: Final = 1.0
"""How long is waited before a folder that could not be watched is tried again."""


class Attendant:
    """Performs what services ask for, beside their runs."""

    def __init__(self, fleet: Fleet, people: Notices) -> None:
        """Take the fleet, and what people are told."""
        self._folders: Final = {each.name: fleet.place_of(each) for each in fleet.services}
        self._people = people

    @handles(AwaitTrigger)
    async def await_trigger(self, activity: AwaitTrigger, ongoing: Ongoing) -> None:
        """Wait for a trigger, time and again. It leaves nothing, and is over when it is cancelled."""
        if ongoing.leftover:
            return
        match activity.source:
            case Changed() as source:
                name = ongoing.occasion.within.key
                await wait_for_changes(source, self._folders[name], ongoing, partial(self._waits, name, source.path))
            case Every() | Cron() as source:
                await wait_for_time(source, ongoing)

    @handles(NotifyProcess)
    async def notify(self, effect: NotifyProcess, occasion: Occasion) -> None:
        """Tell people of what has gone wrong; the rest is in the log, and in the status."""
        if effect.kind in _BAD_NEWS:
            said = f"{_BAD_NEWS[effect.kind]}: {effect.reason}"
            self._people.tell_while(About.DOWN, occasion.within.key, said, effect.kind)

    def _waits(self, name: str, path: str, why: str) -> None:
        """Tell people why nobody can watch a path; nothing is in the way any more if there is no reason."""
        what = f"watch {path}"
        if why:
            self._people.tell_while(About.WAITING, name, f"waits to {what}: {why}", what)
        else:
            self._people.over(About.WAITING, name, what)

    @handles(PauseTriggers, ResumeTriggers)
    async def follow(self, effect: Effect, occasion: Occasion) -> None:
        """Do nothing: what is run, and when, is decided by the rules of a service."""


_BAD_NEWS: Final = {"failed": "the service has failed", "restart_exhausted": "the service stays down"}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


async def wait_for_time(source: Every | Cron, ongoing: Ongoing, now_ms: Callable[[], int] = _now_ms) -> None:
    """Report a time whenever it is due, until cancelled."""
    entity = ongoing.occasion.entity
    last_ms = entity.record.last_ms or entity.entered_ms
    what = f"every {format_duration(source.every_ms)}" if isinstance(source, Every) else f"cron {source.expression}"
    while True:
        due_ms = last_due_ms(source, last_ms, now_ms())
        if due_ms > last_ms:
            await _reported(ongoing, trigger.Triggered(due_ms, what))
            last_ms = due_ms
        left_ms = next_due_ms(source, last_ms) - now_ms()
        await anyio.sleep(min(max(left_ms, 0), LOOK_MS) / 1_000)


async def wait_for_changes(source: Changed, folder: Path, ongoing: Ongoing, tell: Callable[[str], None]) -> None:
    """Report that files have changed whenever they have, until cancelled.

    ``tell`` of what is in the way, and of nothing when nothing is any more.
    """
    known: str = ongoing.occasion.entity.record.mark
    told = ""
    while True:
        try:
            async with aclosing(notices(folder, source.path)) as found:
                async for _ in found:
                    if told:
                        told = ""
                        tell(told)
                    known = await _looked(source, folder, ongoing, known)
        except OSError as error:
            if str(error) != told:
                told = str(error)
                tell(told)
        await anyio.sleep(AGAIN_S)


async def _looked(source: Changed, folder: Path, ongoing: Ongoing, known: str) -> str:
    """Look at the files, say what is new, and return what is there; the first look only says what there is."""
    mark = await to_thread.run_sync(mark_of, folder, source.path, abandon_on_cancel=True)
    if not known:
        await _reported(ongoing, trigger.Noticed(mark))
    elif mark != known:
        await _reported(ongoing, trigger.Triggered(_now_ms(), f"changed {source.path}", mark))
    return mark


async def _reported(ongoing: Ongoing, event: trigger.Triggered | trigger.Noticed) -> None:
    """Report something; if it is refused, nothing is wanted any more, and whoever asked is about to say so."""
    if not await ongoing.report(event):
        await anyio.sleep_forever()
