"""The activities of an engine: their handlers, which of them attend to their work, and how they come to an end."""

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

import anyio

from lifefold.core.kernel import Ended, Envelope, Event, Phase, Reaction
from lifefold.effects import Activity, Begin, End
from lifefold.interpreters.engine.inputs import Host
from lifefold.interpreters.engine.interpreter import Interpreter, Occasion, Ongoing

Notice = Callable[[], None]
"""Is called when something may have changed."""


class UnfinishedActivityError(RuntimeError):
    """A handler returned although its activity is not over: it reported no event with which it is."""


class Key(NamedTuple):
    """Which activity, of all that ever were."""

    aggregate: str
    ref: str
    slot: str
    generation: int


class Activities:
    """What goes on for the entities of an engine."""

    def __init__(self, host: Host, interpreter: Interpreter) -> None:
        """Begin without any."""
        self.changed = anyio.Event()
        """Set, and then replaced, when a handler attends to its activity, or has returned."""
        self._host: Final = host
        self._interpreter: Final = interpreter
        self._handled: Final[dict[Key, LiveActivity]] = {}
        self._returned: Final[set[Key]] = set()

    def begin(self, begin: Begin, occasion: Occasion, *, leftover: bool = False) -> None:
        """Call the handler of an activity; with ``leftover`` only for its end."""
        ongoing = LiveActivity(self._host, begin, occasion, self.tell_change, leftover=leftover)
        key = Key(occasion.within.name, occasion.ref, begin.slot, begin.generation)
        self._handled[key] = ongoing
        handler = self._interpreter.activities[type(begin.activity)]
        self._host.beside(self._live, key, ongoing, handler(begin.activity, ongoing))

    def end(self, end: End, occasion: Occasion) -> None:
        """End an activity: cancel its handler, or, after a crash, have one end what may be left of it."""
        key = Key(occasion.within.name, occasion.ref, end.slot, end.generation)
        ongoing, part = self._handled.get(key), occasion.entity.find(end.slot, Phase.ENDING)
        if ongoing is not None:
            ongoing.ending = True
            ongoing.scope.cancel()
        elif key in self._returned or part is None or part.activity is None:
            self._returned.discard(key)
            self._confirm(key)
        else:
            self.begin(Begin(end.slot, part.activity, end.generation, resumed=True), occasion, leftover=True)

    def may_come_to_attend(self, aggregate: str, kind: type[Activity]) -> bool:
        """Tell whether a handler of such an activity is called and does not attend to it yet."""
        return any(
            key.aggregate == aggregate and isinstance(each.begin.activity, kind) and not each.attended
            for key, each in self._handled.items()
        )

    def tell_change(self) -> None:
        """Let those look again who wait for an activity to be attended."""
        self.changed.set()
        self.changed = anyio.Event()

    async def _live(self, key: Key, ongoing: "LiveActivity", work: Awaitable[None]) -> None:
        """Run an activity until it is over or its end is asked for, and then confirm its end if it was asked for."""
        with ongoing.scope:
            await work
        del self._handled[key]
        if ongoing.ending and ongoing.resumed and not ongoing.leftover:
            # It may have been cancelled before it found what an earlier runner has left.
            self.begin(ongoing.begin, ongoing.occasion, leftover=True)
        elif ongoing.ending:
            self._confirm(key)
        elif not ongoing.over and not self._host.has_ended:
            self._returned.add(key)
            self._must_be_over(key)
        self.tell_change()

    def _must_be_over(self, key: Key) -> None:
        part = self._host.ledger.aggregates[key.aggregate].entities[key.ref].find(key.slot)
        if part is not None and part.generation == key.generation:
            where = f"{key.aggregate}, {key.ref}"
            message = f"{where}: the handler of {key.slot} returned, but none of what it reported ends it"
            raise UnfinishedActivityError(message)

    def _confirm(self, key: Key) -> None:
        ended = Ended(key.slot, key.generation)
        self._host.report(key.aggregate, Envelope(key.ref, ended, self._host.clock.now_ms(), "engine"))


class LiveActivity(Ongoing):
    """An activity that a handler is busy with."""

    __slots__ = ("_attends", "_host", "over", "scope")

    def __init__(self, host: Host, begin: Begin, occasion: Occasion, attends: Notice, *, leftover: bool) -> None:
        """Take what began; ``attends`` is called when its handler attends to it."""
        super().__init__(begin, occasion, leftover=leftover)
        self._host = host
        self._attends = attends
        self.scope = anyio.CancelScope()
        self.over = False

    def attend(self) -> None:
        """Say that what is asked of this activity reaches it from now on."""
        if not self.attended:
            super().attend()
            self._attends()

    async def report(self, event: Event) -> bool:
        """Let the entity take an event of this activity. True once it is durably taken, False if it was refused."""
        self.attend()
        name, ref, host = self.occasion.within.name, self.occasion.ref, self._host
        slot = self.begin.slot
        envelope = Envelope(ref, event, host.clock.now_ms(), slot, slot=slot, generation=self.generation)
        machine = host.ledger.system.type_of(name).machine_of(ref)
        last = machine is not None and type(event) in machine.last[slot]
        taken = False
        with anyio.CancelScope(shield=last):
            taken = isinstance(await host.answered(name, envelope), Reaction)
        self.over = self.over or (taken and last)
        return taken
