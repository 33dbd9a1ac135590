"""The handlers of a simulated engine, and the processes that they attend.

The processes are those of a simulation (``activities``). They have the same conduct and the same faults, and outlive
every engine. A handler starts its process. After a crash it finds the process of an earlier engine, which takes a
moment. It passes on the reports of the process, and ends the process when the engine asks for that. Handlers also raise
errors, and take long.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import anyio
from anyio.lowlevel import checkpoint

from lifefold.core.kernel import Aggregate, RequestedEffect, System
from lifefold.effects import Activity, Effect
from lifefold.interpreters.engine import ActivityContext, EffectContext, Interpreter, Unreached
from lifefold.interpreters.missing import wanted
from lifefold.interpreters.simulate.activities import Activities
from lifefold.interpreters.simulate.environment import Chance, Range
from lifefold.interpreters.simulate.property_monitor import Violation
from lifefold.interpreters.simulate.scheduler import Part, Process
from lifefold.interpreters.simulate.witness import Witness

ERRORS: Final = 2
"""The most errors of the handler of one piece of work: with fewer than the engine's retries, none is given up."""

FIND_MS: Final = (0, 500)
"""The time until a handler has found the process of an earlier engine."""

EFFECT_MS: Final = (1, 5_000)
"""The time that a slow effect takes."""

Work: TypeAlias = tuple[str | int, ...]
"""An effect or an activity."""


class HandlerError(Exception):
    """A handler has failed."""


class Processes(Activities):
    """The processes of a simulation, attended by handlers."""

    def unreached(self, part: Part, asked: RequestedEffect) -> Exception:
        """Return the error for an effect on a process that no handler attends."""
        running = self._runner.aggregates[part[0]].entities[part[1]].find(part[2])
        activity = None if running is None else running.activity
        return super().unreached(part, asked) if activity is None else Unreached(type(activity))

    def attend(self, part: Part, aggregate: Aggregate) -> Process:
        """Start a process, or attend one that an earlier engine has started."""
        self.begin(part, aggregate)
        return self._processes[part]

    def running(self) -> Iterator[Part]:
        """Yield the running processes."""
        return iter(self._processes)

    def has(self, part: Part) -> bool:
        """Tell whether a process runs."""
        return part in self._processes

    def leave(self, part: Part) -> None:
        """Attend a process no more; it goes on."""
        self._heard.discard(part)

    def finish(self, part: Part) -> None:
        """Note that a process has come to its end by itself."""
        process = self._processes.pop(part, None)
        if process is not None:
            process.is_over = True
        self._heard.discard(part)


class Handlers:
    """The handlers of one engine."""

    def __init__(  # noqa: PLR0913, PLR0917 - the parts of a run
        self,
        system: System,
        chance: Chance,
        processes: Processes,
        witness: Witness,
        errors: Counter[Work],
        life: int,
        broken: Callable[[Violation], None],
    ) -> None:
        """Take the parts of a run. ``errors`` has the errors so far; ``broken`` takes a broken guarantee."""
        self.handled: Final[Counter[Part]] = Counter()
        """The activities whose handlers run now."""
        self.failed: Final[set[Part]] = set()
        """The activities whose handlers have failed, until they are called again."""
        self.reporting: Final[dict[Part, tuple[Process, int]]] = {}
        """By activity: its process, and the number of the report that the engine has got and not answered yet."""
        self.is_dead = False
        """Whether the engine has crashed: what a handler still does then has no effect."""
        self.has_ended: Callable[[], bool] = _never
        """Whether the engine has stopped: a report that is not accepted then was not decided on."""
        self._system: Final = system
        self._chance: Final = chance
        self._processes: Final = processes
        self._witness: Final = witness
        self._errors: Final = errors
        self._life: Final = life
        self._broken: Final = broken
        self._calls: Final[Counter[Work]] = Counter()
        self._places: Final[dict[Part, deque[int]]] = {}
        self._arrived: Final[dict[Part, anyio.Event]] = {}
        self._ended: Final[dict[Part, anyio.Event]] = {}

    def interpreter(self) -> Interpreter:
        """Return handlers for all effects and activities of the system."""
        effects, activities = wanted(self._system)
        return Interpreter(dict.fromkeys(effects, self._perform), dict.fromkeys(activities, self._act))

    def know(self, part: Part) -> bool:
        """Tell whether a handler is at work on an activity, or is to be called again after an error."""
        return self.handled[part] > 0 or part in self.failed

    def hear(self, part: Part, place: int) -> None:
        """Take a report of a process."""
        if part in self._places:
            self._places[part].append(place)
            self._arrived[part].set()

    def confirm(self, part: Part) -> None:
        """Note that nothing remains of a process."""
        if part in self._ended:
            self._ended[part].set()

    async def _perform(self, effect: Effect, context: EffectContext) -> None:
        await self._live()
        identity = context.identity
        call = self._call(identity)
        self._may_fail(identity, call)
        await self._hold(lambda: self._witness.performing(identity, effect))
        self._processes.hasten(context.within.name, RequestedEffect(context.ref, effect))
        if self._chance.strikes("slow handler", *identity, call, self._life):
            await self._sleep(EFFECT_MS, "effect", *identity, call)
        self._witness.performed(identity)

    async def _act(self, activity: Activity, context: ActivityContext) -> None:
        del activity  # its process is made from the state of the entity
        await self._live()
        origin, begin = context.origin, context.begin
        part = (origin.within.name, origin.ref, begin.slot, begin.generation)
        self.failed.discard(part)
        self.handled[part] += 1
        try:
            if context.cleanup_only:
                await self._end(part)
            else:
                await self._attend(part, context)
        except HandlerError:
            self.failed.add(part)
            raise
        finally:
            self.handled[part] -= 1

    async def _attend(self, part: Part, context: ActivityContext) -> None:
        call = self._call(part)
        self._may_fail(part, call)
        if context.resumed:
            await self._sleep(FIND_MS, "find", *part, call)
        await self._hold(lambda: self._witness.began(part, self._processes.running()))
        self._places[part], self._arrived[part] = deque(), anyio.Event()
        process = self._processes.attend(part, context.origin.within)
        context.attend()
        try:
            await self._report_all(part, process, context)
        finally:
            del self._places[part], self._arrived[part]
            self.reporting.pop(part, None)
            if context.ending and not self.is_dead:
                await self._end(part)
            elif not self.is_dead:
                self._processes.leave(part)

    async def _report_all(self, part: Part, process: Process, context: ActivityContext) -> None:
        """Pass on the reports of a process until one of them ends the activity."""
        machine = self._system.type_of(part[0]).machine_of(part[1])
        assert machine is not None  # noqa: S101 - it has begun there
        while True:
            while not self._places[part]:
                self._arrived[part] = anyio.Event()
                await self._arrived[part].wait()
            place = self._places[part].popleft()
            if place < process.heard:
                continue
            event = process.said[place].event
            self.reporting[part] = process, place
            taken = await context.report(event)
            if self.is_dead:
                return
            self.reporting.pop(part, None)
            if not taken and self.has_ended():  # the next engine gets the report
                return
            process.heard = max(process.heard, place + 1)
            if taken and type(event) in machine.last[part[2]]:
                return

    async def _end(self, part: Part) -> None:
        """End a process, after its delay."""
        if self.is_dead or not self._processes.has(part):
            await checkpoint()
            return
        ended = self._ended[part] = anyio.Event()
        self._processes.end(part)
        with anyio.CancelScope(shield=True):
            await ended.wait()
        del self._ended[part]

    async def _hold(self, check: Callable[[], None]) -> None:
        """Check a guarantee. Stay here for ever if it is broken: the run is over then."""
        await self._live()
        try:
            check()
        except Violation as broken:
            self._broken(broken)
            await anyio.sleep_forever()

    async def _live(self) -> None:
        """Stay here for ever if the engine is dead."""
        if self.is_dead:
            await anyio.sleep_forever()

    def _call(self, work: Work) -> int:
        """Return the number of this call of the handler of an effect or activity, by this engine."""
        self._calls[work] += 1
        return self._calls[work]

    def _may_fail(self, work: Work, call: int) -> None:
        if self._errors[work] < ERRORS and self._chance.strikes("handler raises", *work, call, self._life):
            self._errors[work] += 1
            raise HandlerError("no answer")

    async def _sleep(self, span_ms: Range, *name: Any) -> None:
        await anyio.sleep(self._chance.takes_ms(span_ms, *name, self._life) / 1_000)


def _never() -> bool:
    return False
