"""Simulated processes for the engine: handlers that do, in virtual time, what a simulation decides for a process.

The course of a process comes from ``Chance``, by names, so it is that of a simulation. A process continues without an
engine; the next engine gets the reports of the meantime.
"""

from collections.abc import Awaitable, Iterable
from typing import Final

import anyio

from lifefold.core.kernel import Input, System
from lifefold.effects import Activity, Effect
from lifefold.interpreters.engine import ActivityContext, EffectContext, Interpreter, Unreached
from lifefold.interpreters.missing import wanted
from lifefold.interpreters.simulate.environment import Chance, Said
from lifefold.interpreters.simulate.scheduler import WAITED, Part, Process, turn
from lifefold.interpreters.simulate.virtual_time import VirtualClock


class _Role(Process):
    """A simulated process: when it reports its next event, and which handler waits for it."""

    __slots__ = ("attended_in", "due_ms", "kind", "waits")

    def __init__(self, kind: type[Activity], said: list[Said], now_ms: int) -> None:
        """Begin now."""
        super().__init__(said)
        self.kind = kind
        self.attended_in = 0
        """The life of the engine that attends to it, or did last."""
        self.waits = anyio.CancelScope()
        self.due_ms = now_ms
        self.arrange()

    def arrange(self) -> None:
        """Schedule the next report after its delay."""
        if self.spoken < len(self.said):
            self.due_ms += self.said[self.spoken].after_ms

    def go_on(self, now_ms: int) -> None:
        """Make the reports that were due before now, without an engine."""
        while self.spoken < len(self.said) and self.due_ms < now_ms:
            self.spoken += 1
            self.arrange()


class Actors:
    """The processes of a simulation, for the engine. They outlive it: the next engine finds them as they are."""

    def __init__(self, system: System, chance: Chance, clock: VirtualClock) -> None:
        """Take the system, the choices and the clock."""
        self.clock: Final = clock
        self.chance: Final = chance
        self._system: Final = system
        self._life = 1
        self._point = ""
        """The point at which the last engine has died."""
        self._roles: Final[dict[Part, _Role]] = {}
        self._ends: Final[set[anyio.CancelScope]] = set()

    def interpreter(self) -> Interpreter:
        """Return handlers for all effects and activities of the system."""
        effects, activities = wanted(self._system)
        return Interpreter(dict.fromkeys(effects, self.perform), dict.fromkeys(activities, self.act))

    def lose_engine(self, point: str, heard: Iterable[Input]) -> None:
        """Continue without an engine, after its last inputs: no handler waits for an end any more."""
        self._life += 1
        self._point = point
        for name, envelope in heard:
            role = self._roles.get((name, envelope.entity, envelope.slot, envelope.generation))
            if role is not None:
                role.heard += 1
        for scope in self._ends:
            scope.cancel()

    async def pause(self, crash: int) -> None:
        """Return when there is an engine again."""
        took_ms = self.chance.takes_ms(self.chance.environment.restart_ms, "restart", crash, self._point, self._life)
        await self.clock.sleep_until(self.clock.now_ms() + took_ms, WAITED)
        self._life += 1

    async def perform(self, effect: Effect, context: EffectContext) -> None:
        """Perform an effect: a process that it ends soon makes its last report soon, if this engine attends to it."""
        hastened = self.chance.environment.hastens.get(type(effect), ())
        for part, role in self._roles.items():
            is_meant = part[:2] == (context.within.name, context.ref) and issubclass(role.kind, hastened)
            if is_meant and role.spoken < len(role.said):  # a process without further reports cannot be ended
                if role.attended_in != self._life:
                    raise Unreached(role.kind)
                self._hasten(part, role)

    def act(self, activity: Activity, context: ActivityContext) -> Awaitable[None]:
        """Start an activity, or attend a running one."""
        origin, begin = context.origin, context.begin
        part = (origin.within.name, origin.ref, begin.slot, begin.generation)
        if context.cleanup_only:
            return self._end(part)
        if part not in self._roles:
            machine = self._system.type_of(part[0]).machine_of(part[1])
            assert machine is not None  # noqa: S101 - it has begun there
            said = self.chance.course(machine, origin.within, origin.entity, *part[2:])
            self._roles[part] = _Role(type(activity), said, self.clock.now_ms())
        return self._live(part, self._roles[part], context)

    async def _live(self, part: Part, role: _Role, context: ActivityContext) -> None:
        role.attended_in = self._life
        context.attend()
        try:
            if not await self._say_all(part, role, context):
                await anyio.sleep_forever()
        finally:
            if context.ending and not context.resumed:  # otherwise its end is requested again
                await self._end(part)

    async def _say_all(self, part: Part, role: _Role, context: ActivityContext) -> bool:
        """Make the reports of a process; tell whether it is over then."""
        machine = self._system.type_of(part[0]).machine_of(part[1])
        assert machine is not None  # noqa: S101 - it has begun there
        role.go_on(self.clock.now_ms())
        while role.heard < len(role.said):
            if role.heard == role.spoken:
                await self._wait(part, role)
                role.spoken += 1
                role.arrange()
            else:
                await self.clock.sleep_until(self.clock.now_ms(), turn(part))
            place, life = role.heard, self._life
            event = role.said[place].event
            taken = await context.report(event)
            if life != self._life:
                await anyio.sleep_forever()  # the engine is gone, and this with it
            role.heard = max(role.heard, place + 1)
            if taken and type(event) in machine.last[part[2]]:
                del self._roles[part]
                return True
        return False

    async def _wait(self, part: Part, role: _Role) -> None:
        """Wait for the next report, which may become due sooner."""
        while True:
            with anyio.CancelScope() as role.waits:
                await self.clock.sleep_until(role.due_ms, turn(part))
                return

    async def _end(self, part: Part) -> None:
        """End a process, after its delay."""
        self._roles.pop(part, None)
        took_ms = self.chance.takes_ms(self.chance.environment.end_ms, "end", *part, self._life)
        with anyio.CancelScope(shield=True) as scope:
            self._ends.add(scope)
            await self.clock.sleep_until(self.clock.now_ms() + took_ms, turn(part))
        self._ends.discard(scope)

    def _hasten(self, part: Part, role: _Role) -> None:
        role.heard = role.spoken = len(role.said) - 1
        took_ms = self.chance.takes_ms(self.chance.environment.end_ms, "hastened", *part, self._life)
        role.due_ms = min(role.due_ms, self.clock.now_ms() + took_ms)
        role.waits.cancel()
