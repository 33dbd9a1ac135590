"""Waiting for what triggers services, and telling people what becomes of them. Whether anything is run is core's.

What is a matter of time is due by the clock that the log's times are of, counted from when the log says that it was due
last: a runner that comes after a while finds what was due meanwhile, and says so once. With files it is the same: the
log knows what was there when that was looked at last.
"""

from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import msgspec
from anyio import to_thread

from lifefold.core.fleet.service import trigger
from lifefold.effects import AwaitTrigger, Effect, NotifyProcess, PauseTriggers, ResumeTriggers
from lifefold.effects.service import Changed, Cron, Every
from lifefold.interpreters.engine import ActivityContext, EffectContext, handles
from lifefold.interpreters.fleet_file import Fleet
from lifefold.interpreters.fleet_file.units import format_duration
from lifefold.interpreters.fleet_runner.file_changes import mark_of, notices
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.notices import About, Notices
from lifefold.interpreters.fleet_runner.schedules import last_due_ms, next_due_ms

LOOK_MS: Final = 60_000
"""How long is waited at most before the clock is looked at again: it goes on while the machine sleeps."""

AGAIN_S: Final = 1.0
"""How long is waited before a folder that could not be watched is tried again."""

TROUBLES: Final = (OSError, ValueError, LookupError, ArithmeticError, RuntimeError)
"""What looking at files, and asking when a time is due, may raise: none of it is to stop a fleet."""


class Attendant:
    """Performs what services ask for, beside their runs."""

    def __init__(self, fleet: Fleet, folder: FleetFolder, people: Notices, now_ms: Callable[[], int]) -> None:
        """Take the fleet, where it keeps its things, what people are told, and what time it is."""
        self._now_ms: Final = now_ms
        self._own: Final = folder.own
        self._folders: Final = {each.name: fleet.place_of(each) for each in fleet.services}
        self._people = people

    def adopt(self, fleet: Fleet) -> None:
        """Go on by a changed fleet file."""
        self._folders.update({each.name: fleet.place_of(each) for each in fleet.services})

    @handles(AwaitTrigger)
    async def await_trigger(self, activity: AwaitTrigger, context: ActivityContext) -> None:
        """Wait for a trigger, time and again. It leaves nothing, and is over when it is cancelled."""
        if context.cleanup_only:
            return
        name = context.occasion.within.key
        match activity.source:
            case Changed() as source:
                tell = partial(self._waits, name, f"watch {source.path}")
                watched = Watched(self._folders[name], source.path, self._own)
                await wait_for_changes(watched, context, tell, self._now_ms)
            case Every() | Cron() as source:
                tell = partial(self._waits, name, "know when it is due")
                await wait_for_time(source, context, tell, self._now_ms)

    @handles(NotifyProcess)
    async def notify(self, effect: NotifyProcess, occasion: EffectContext) -> None:
        """Tell people of what has gone wrong; the rest is in the log, and in the status."""
        if effect.kind in _BAD_NEWS:
            said = f"{_BAD_NEWS[effect.kind]}: {effect.reason}"
            self._people.tell_while(About.DOWN, occasion.within.key, said, effect.kind)

    def _waits(self, name: str, what: str, why: str) -> None:
        """Tell people why something cannot be done; nothing is in the way any more if there is no reason."""
        if why:
            self._people.in_the_way(name, what, why)
        else:
            self._people.out_of_the_way(name, what)

    @handles(PauseTriggers, ResumeTriggers)
    async def follow(self, effect: Effect, occasion: EffectContext) -> None:
        """Do nothing: what is run, and when, is decided by the rules of a service."""


_BAD_NEWS: Final = {"failed": "the service has failed", "restart_exhausted": "the service stays down"}


async def wait_for_time(
    source: Every | Cron, context: ActivityContext, tell: Callable[[str], None], now_ms: Callable[[], int]
) -> None:
    """Report a time whenever it is due, until cancelled."""
    entity = context.occasion.entity
    last_ms = entity.record.last_ms or entity.entered_ms
    what = f"every {format_duration(source.every_ms)}" if isinstance(source, Every) else f"cron {source.expression}"
    told = ""
    while True:
        try:
            due_ms = last_due_ms(source, last_ms, now_ms())
            left_ms = next_due_ms(source, due_ms) - now_ms()
            told = _told("", told, tell)
        except TROUBLES as error:
            due_ms, left_ms = last_ms, LOOK_MS
            told = _told(str(error), told, tell)
        if due_ms > last_ms:
            await _reported(context, trigger.Triggered(due_ms, what))
        last_ms = due_ms
        await anyio.sleep(min(max(left_ms, 0), LOOK_MS) / 1_000)


class Watched(msgspec.Struct, frozen=True):
    """What is watched: a path or a glob from a folder, without the places ``apart``."""

    folder: Path
    path: str
    apart: Collection[Path] = ()


async def wait_for_changes(
    watched: Watched, context: ActivityContext, tell: Callable[[str], None], now_ms: Callable[[], int]
) -> None:
    """Report that files have changed whenever they have, until cancelled."""
    known: str = context.occasion.entity.record.mark
    async with aclosing(_marks(watched, tell)) as marks:
        async for mark in marks:
            if not known:
                await _reported(context, trigger.Noticed(mark))
            elif mark != known:
                await _reported(context, trigger.Triggered(now_ms(), f"changed {watched.path}", mark))
            known = mark


async def _marks(watched: Watched, tell: Callable[[str], None]) -> AsyncGenerator[str]:
    """Yield what is there whenever it is time to look. What cannot be looked at is told once, and tried again."""
    told = ""
    while True:
        try:
            async with aclosing(notices(watched.folder, watched.path, watched.apart)) as found:
                async for _ in found:
                    mark = await to_thread.run_sync(
                        mark_of, watched.folder, watched.path, watched.apart, abandon_on_cancel=True
                    )
                    told = _told("", told, tell)
                    yield mark
        except TROUBLES as error:
            told = _told(str(error), told, tell)
        await anyio.sleep(AGAIN_S)


def _told(why: str, told: str, tell: Callable[[str], None]) -> str:
    """Tell what is in the way, or that nothing is any more, if that is not what was told; return it."""
    if why != told:
        tell(why)
    return why


async def _reported(context: ActivityContext, event: trigger.Triggered | trigger.Noticed) -> None:
    """Report something; if it is refused, nothing is wanted any more, and whoever asked is about to say so."""
    if not await context.report(event):
        await anyio.sleep_forever()
