"""Handlers of services: they wait for triggers and show notices. The core decides whether a trigger starts a run.

Times are due by the clock of the log, counted from the last due time in the log. So a runner after a pause finds the
times that were due meanwhile, and reports them once. For files the log has the last fingerprint.
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
from lifefold.interpreters.fleet_runner.file_changes import mark_of, notices
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.notices import About, Notices
from lifefold.interpreters.fleet_runner.schedules import last_due_ms, next_due_ms
from lifefold.interpreters.units import format_duration

LOOK_MS: Final = 60_000
"""The longest wait before the clock is read again, because it goes on while the machine sleeps."""

AGAIN_S: Final = 1.0
"""The pause before a folder that could not be watched is tried again."""

TROUBLES: Final = (OSError, ValueError, LookupError, ArithmeticError, RuntimeError)
"""Errors of reading files and of computing times; none of them stops a fleet."""


class Attendant:
    """Performs the effects and activities of services, except their runs."""

    def __init__(self, fleet: Fleet, folder: FleetFolder, operator: Notices, now_ms: Callable[[], int]) -> None:
        """Take the fleet, its folder, the notices, and the clock."""
        self._now_ms: Final = now_ms
        self._own: Final = folder.own
        self._folders: Final = {each.name: fleet.place_of(each) for each in fleet.services}
        self._operator = operator

    def adopt(self, fleet: Fleet) -> None:
        """Follow a changed fleet file."""
        self._folders.update({each.name: fleet.place_of(each) for each in fleet.services})

    @handles(AwaitTrigger)
    async def await_trigger(self, activity: AwaitTrigger, context: ActivityContext) -> None:
        """Report a trigger whenever it occurs, until cancelled; there is nothing to clean up."""
        if context.cleanup_only:
            return
        name = context.origin.within.key
        match activity.source:
            case Changed() as source:
                tell = partial(self._waits, name, f"watch {source.path}")
                watched = Watched(self._folders[name], source.path, self._own)
                await wait_for_changes(watched, context, tell, self._now_ms)
            case Every() | Cron() as source:
                tell = partial(self._waits, name, "know when it is due")
                await wait_for_time(source, context, tell, self._now_ms)

    @handles(NotifyProcess)
    async def notify(self, effect: NotifyProcess, context: EffectContext) -> None:
        """Show the operator failures; other changes are in the log and in the status."""
        if effect.kind in _BAD_NEWS:
            said = f"{_BAD_NEWS[effect.kind]}: {effect.reason}"
            self._operator.tell_while(About.DOWN, context.within.key, said, effect.kind)

    def _waits(self, name: str, what: str, why: str) -> None:
        """Show why a service waits; an empty reason ends the wait."""
        if why:
            self._operator.in_the_way(name, what, why)
        else:
            self._operator.out_of_the_way(name, what)

    @handles(PauseTriggers, ResumeTriggers)
    async def follow(self, effect: Effect, context: EffectContext) -> None:
        """Do nothing: the rules of a service decide when it runs."""


_BAD_NEWS: Final = {"failed": "the service has failed", "restart_exhausted": "the service stays down"}


async def wait_for_time(
    source: Every | Cron, context: ActivityContext, tell: Callable[[str], None], now_ms: Callable[[], int]
) -> None:
    """Report a time whenever it is due, until cancelled."""
    entity = context.origin.entity
    last_ms = entity.record.last_ms or entity.entered_ms
    what = f"every {format_duration(source.every_ms)}" if isinstance(source, Every) else f"cron {source.expression}"
    reported = ""
    while True:
        try:
            due_ms = last_due_ms(source, last_ms, now_ms())
            left_ms = next_due_ms(source, due_ms) - now_ms()
            reported = _report_once("", reported, tell)
        except TROUBLES as error:
            due_ms, left_ms = last_ms, LOOK_MS
            reported = _report_once(str(error), reported, tell)
        if due_ms > last_ms:
            await _reported(context, trigger.Triggered(due_ms, what))
        last_ms = due_ms
        await anyio.sleep(min(max(left_ms, 0), LOOK_MS) / 1_000)


class Watched(msgspec.Struct, frozen=True):
    """The watched files: a path or a glob below a folder, without the places ``apart``."""

    folder: Path
    path: str
    apart: Collection[Path] = ()


async def wait_for_changes(
    watched: Watched, context: ActivityContext, tell: Callable[[str], None], now_ms: Callable[[], int]
) -> None:
    """Report each change of the files, until cancelled."""
    known: str = context.origin.entity.record.mark
    async with aclosing(_marks(watched, tell)) as marks:
        async for mark in marks:
            if not known:
                await _reported(context, trigger.Noticed(mark))
            elif mark != known:
                await _reported(context, trigger.Triggered(now_ms(), f"changed {watched.path}", mark))
            known = mark


async def _marks(watched: Watched, tell: Callable[[str], None]) -> AsyncGenerator[str]:
    """Yield the fingerprint whenever files should be read; an error is shown once, and reading is tried again."""
    reported = ""
    while True:
        try:
            async with aclosing(notices(watched.folder, watched.path, watched.apart)) as found:
                async for _ in found:
                    mark = await to_thread.run_sync(
                        mark_of, watched.folder, watched.path, watched.apart, abandon_on_cancel=True
                    )
                    reported = _report_once("", reported, tell)
                    yield mark
        except TROUBLES as error:
            reported = _report_once(str(error), reported, tell)
        await anyio.sleep(AGAIN_S)


def _report_once(why: str, reported: str, tell: Callable[[str], None]) -> str:
    """Show the reason of a wait, or its end, unless it is shown already; return it."""
    if why != reported:
        tell(why)
    return why


async def _reported(context: ActivityContext, event: trigger.Triggered | trigger.Noticed) -> None:
    """Report an event; if it is refused, wait for the cancellation that follows."""
    if not await context.report(event):
        await anyio.sleep_forever()
