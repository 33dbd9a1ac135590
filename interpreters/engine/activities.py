"""The activities of an engine: their handlers, which of them attend to their work, and how they come to an end."""

from collections.abc import Callable
from typing import Final, NamedTuple

import anyio

from lifefold.core.kernel import Ended, Envelope, Event, HandlerFailed, Phase, Reaction, replace
from lifefold.effects import Activity, Begin, End
from lifefold.interpreters.engine.failures import Then, is_failure
from lifefold.interpreters.engine.inputs import Host
from lifefold.interpreters.engine.interpreter import Interpreter, Occasion, Ongoing
from lifefold.interpreters.engine.retrying import Handled, take_note

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
        key = Key(occasion.within.name, occasion.ref, begin.slot, begin.generation)
        ongoing = self._handled[key] = self._ongoing(begin, occasion, leftover=leftover)
        self._host.beside(self._live, key, ongoing)

    def _ongoing(self, begin: Begin, occasion: Occasion, *, leftover: bool) -> "LiveActivity":
        return LiveActivity(self._host, begin, occasion, self.tell_change, leftover=leftover)

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

    async def _live(self, key: Key, ongoing: "LiveActivity") -> None:
        """Run an activity until it is over or its end is asked for, and then confirm its end if it was asked for."""
        error = await self._attempt(key, ongoing)
        while error is not None:
            again = self._ongoing(replace(ongoing.begin, resumed=True), ongoing.occasion, leftover=ongoing.ending)
            self._handled[key] = again
            then: Then | None = None
            with again.scope:
                then = await self._fail(key, again, error)
            if then is not None:
                self._give_up(key, again, then)
                return
            # Its end may have been asked for in the pause; then all that is wanted of the handler is that.
            ongoing = self._handled[key] = self._ongoing(again.begin, again.occasion, leftover=again.ending)
            error = await self._attempt(key, ongoing)
        del self._handled[key]
        if ongoing.ending and ongoing.resumed and not ongoing.leftover:
            # It may have been cancelled before it found what an earlier runner has left.
            self.begin(ongoing.begin, ongoing.occasion, leftover=True)
        elif ongoing.ending:
            self._confirm(key)
        elif not ongoing.over:
            self._returned.add(key)
        self.tell_change()

    async def _attempt(self, key: Key, ongoing: "LiveActivity") -> Exception | None:
        """Call the handler; return what it raises, or that it has returned too early. A store's error is raised."""
        handler = self._interpreter.activities[type(ongoing.begin.activity)]
        try:
            with ongoing.scope:
                await handler(ongoing.begin.activity, ongoing)
        except Exception as error:
            if not is_failure(error):
                raise
            return error
        if ongoing.ending or ongoing.over or self._host.has_ended or not self._is_live(key):
            return None
        where = f"{key.aggregate}, {key.ref}"
        message = f"{where}: the handler of {key.slot} returned, but none of what it reported ends it"
        return UnfinishedActivityError(message)

    def _is_live(self, key: Key) -> bool:
        part = self._host.ledger.aggregates[key.aggregate].entities[key.ref].find(key.slot)
        return part is not None and part.generation == key.generation

    async def _fail(self, key: Key, ongoing: "LiveActivity", error: Exception) -> Then | None:
        """See what is done about a handler that has raised; return None if it is tried again."""
        kind = type(ongoing.begin.activity)
        policy = self._host.failures.policy(self._interpreter.on_error, kind)
        meant = HandlerFailed(kind.__name__, 0, "", "", slot=key.slot, generation=key.generation)
        then = await take_note(self._host, Handled(key.aggregate, key.ref, meant), error, policy)
        if then is Then.STOP:
            raise error
        if then is Then.REPORT and policy.report is not None:
            await ongoing.report(policy.report(ongoing.begin.activity, error))
        return then

    def _give_up(self, key: Key, ongoing: "LiveActivity", then: Then) -> None:
        """Leave an activity whose handler has failed for the last time.

        Something of it may be left, so that its end is not confirmed by that, unless this was declared to be skipped.
        """
        del self._handled[key]
        if ongoing.ending and not ongoing.leftover:
            self.begin(ongoing.begin, ongoing.occasion, leftover=True)
        elif ongoing.ending and then is Then.SKIP:
            self._confirm(key)
        self.tell_change()

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
