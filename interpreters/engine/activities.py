"""The running activities of an engine: calls of their handlers, retries, and confirmed ends."""

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

import anyio
from anyio.lowlevel import checkpoint

from lifefold.core.kernel import ActivityEnded, Aggregate, Envelope, Event, HandlerFailed, Phase, Reaction, replace
from lifefold.effects import Activity, Begin, End
from lifefold.interpreters.engine.failures import Handled, Then, is_failure
from lifefold.interpreters.engine.inputs import Host
from lifefold.interpreters.engine.interpreter import ActivityContext, EffectContext, Interpreter
from lifefold.interpreters.engine.retrying import take_note

Notice = Callable[[], None]
"""Called when an activity may have changed."""

Present = Callable[[str], Awaitable[Aggregate]]
"""Returns the present state of an aggregate."""


class UnfinishedActivityError(RuntimeError):
    """A handler returned, but none of the events that it reported ends its activity."""


class Key(NamedTuple):
    """The identity of one activity among all past and present ones."""

    aggregate: str
    ref: str
    slot: str
    generation: int


class Activities:
    """The running activities of all entities of an engine."""

    def __init__(self, host: Host, interpreter: Interpreter, present: Present | None = None) -> None:
        """Start without activities. ``present`` finds the state of an aggregate if the host's ledger may be behind."""
        self.changes = 0
        """How many times a handler has come to attend to its activity, or has returned."""
        self._awaited: anyio.Event | None = None
        self._host: Final = host
        self._interpreter: Final = interpreter
        self._present: Final = present
        self._handled: Final[dict[Key, RunningActivity]] = {}
        self._returned: Final[set[Key]] = set()
        self._new_scope: type[anyio.CancelScope] | None = None
        """The class of the present backend: looking it up for each activity would take longer than the scope."""

    def begin(self, begin: Begin, origin: EffectContext, *, cleanup_only: bool = False) -> None:
        """Call the handler of an activity; with ``cleanup_only`` the handler only ends it."""
        key = Key(origin.within.name, origin.ref, begin.slot, begin.generation)
        context = self._handled[key] = self._running(begin, origin, cleanup_only=cleanup_only)
        self._host.beside(self._run, key, context)

    def _running(self, begin: Begin, context: EffectContext, *, cleanup_only: bool) -> "RunningActivity":
        if self._new_scope is None:
            self._new_scope = type(anyio.CancelScope())
        scope, attends = self._new_scope(), self.tell_change
        return RunningActivity(self._host, begin, context, attends, scope, cleanup_only=cleanup_only)

    def end(self, end: End, origin: EffectContext) -> None:
        """End an activity: cancel its handler, or, after a crash, call a handler that ends its remains."""
        key = Key(origin.within.name, origin.ref, end.slot, end.generation)
        context, part = self._handled.get(key), origin.entity.find(end.slot, Phase.ENDING)
        if context is not None:
            context.ending = True
            context.scope.cancel()
        elif key in self._returned or part is None or part.activity is None:
            self._returned.discard(key)
            self._confirm(key)
        else:
            self.begin(Begin(end.slot, part.activity, end.generation, resumed=True), origin, cleanup_only=True)

    def may_come_to_attend(self, aggregate: str, kind: type[Activity]) -> bool:
        """Tell whether a handler of such an activity is running and does not attend to it yet."""
        return any(
            key.aggregate == aggregate and isinstance(each.begin.activity, kind) and not each.attended
            for key, each in self._handled.items()
        )

    def handles(self, key: Key) -> bool:
        """Tell whether a handler of this activity is running, or waits for its next attempt."""
        return key in self._handled

    def is_known(self, key: Key) -> bool:
        """Tell whether a handler of this activity is running, or has returned here without the activity's end."""
        return key in self._handled or key in self._returned

    def leave(self, key: Key) -> None:
        """Cancel a handler without an end, because another host attends to its activity from now on."""
        context = self._handled.get(key)
        if context is not None:
            context.left = True
            context.scope.cancel()

    def tell_change(self) -> None:
        """Wake the tasks that wait until an activity is attended."""
        self.changes += 1
        if self._awaited is not None:  # seldom: an event for each change would cost more than the change
            self._awaited.set()
            self._awaited = None

    @property
    def changed(self) -> anyio.Event:
        """An event that the next change sets."""
        if self._awaited is None:
            self._awaited = anyio.Event()
        return self._awaited

    async def changed_since(self, changes: int) -> None:
        """Return once there are more changes than these."""
        if self.changes == changes:
            await self.changed.wait()
        else:
            await checkpoint()

    async def _run(self, key: Key, context: "RunningActivity") -> None:
        """Run an activity until it is over or its end is requested. Confirm a requested end."""
        error = await self._attempt(key, context)
        while error is not None:
            again = self._running(replace(context.begin, resumed=True), context.origin, cleanup_only=context.ending)
            self._handled[key] = again
            then: Then | None = None
            with again.scope:
                then = await self._fail(key, again, error)
            if again.left:
                context = again
                break
            if then is not None:
                self._give_up(key, again, then)
                return
            # The end may have been requested during the pause. The handler then only cleans up.
            context = self._handled[key] = self._running(again.begin, again.origin, cleanup_only=again.ending)
            error = await self._attempt(key, context)
        del self._handled[key]
        if context.ending and context.resumed and not context.cleanup_only:
            # The handler may have been cancelled before it found the remains of an earlier runner.
            self.begin(context.begin, context.origin, cleanup_only=True)
        elif context.ending:
            self._confirm(key)
        elif not context.over and not context.left:
            self._returned.add(key)
        self.tell_change()

    async def _attempt(self, key: Key, context: "RunningActivity") -> Exception | None:
        """Call the handler. Return its error, or an error if it returned too early. Raise an error of the store."""
        handler = self._interpreter.activities[type(context.begin.activity)]
        try:
            with context.scope:
                await handler(context.begin.activity, context)
        except Exception as error:
            if not is_failure(error):
                raise
            return error
        if context.ending or context.over or context.left or self._host.has_ended or not await self._is_current(key):
            return None
        where = f"{key.aggregate}, {key.ref}"
        message = f"{where}: the handler of {key.slot} returned, but none of its reports ends the activity"
        return UnfinishedActivityError(message)

    async def _is_current(self, key: Key) -> bool:
        if self._present is None:
            within = self._host.ledger.aggregates[key.aggregate]
        else:
            within = await self._present(key.aggregate)
        entity = within.entities[key.ref]
        return entity.find(key.slot, generation=key.generation) is not None

    async def _fail(self, key: Key, context: "RunningActivity", error: Exception) -> Then | None:
        """Apply the error policy of a handler that has raised. Return None if the handler is tried again."""
        kind = type(context.begin.activity)
        policy = self._host.failures.policy(self._interpreter.on_error, kind)
        meant = HandlerFailed(kind.__name__, 0, "", "", slot=key.slot, generation=key.generation)
        then = await take_note(self._host, Handled(key.aggregate, key.ref, meant), error, policy)
        if then is Then.STOP:
            raise error
        if then is Then.REPORT and policy.report is not None:
            await context.report(policy.report(context.begin.activity, error))
        return then

    def _give_up(self, key: Key, context: "RunningActivity", then: Then) -> None:
        """Give up an activity whose handler has failed for the last time.

        Parts of the activity may remain. So its end is not confirmed, unless its policy is ``Then.SKIP``.
        """
        del self._handled[key]
        if context.ending and not context.cleanup_only:
            self.begin(context.begin, context.origin, cleanup_only=True)
        elif context.ending and then is Then.SKIP:
            self._confirm(key)
        self.tell_change()

    def _confirm(self, key: Key) -> None:
        ended = ActivityEnded(key.slot, key.generation)
        self._host.report(key.aggregate, Envelope(key.ref, ended, self._host.clock.now_ms(), "engine"))


class RunningActivity(ActivityContext):
    """An activity with a running handler."""

    __slots__ = ("_attends", "_host", "_last", "left", "over", "scope")

    def __init__(  # noqa: PLR0913 - the parts of an activity, each with its name
        self,
        host: Host,
        begin: Begin,
        origin: EffectContext,
        attends: Notice,
        scope: anyio.CancelScope,
        *,
        cleanup_only: bool,
    ) -> None:
        """Attend nothing yet; ``attends`` is called when the handler attends to the activity.

        The handler runs in ``scope``, whose cancellation ends it.
        """
        super().__init__(begin, origin, cleanup_only=cleanup_only)
        self._host = host
        self._attends = attends
        machine = host.ledger.system.type_of(origin.within.name).machine_of(origin.ref)
        self._last = () if machine is None else machine.last[begin.slot]
        self.scope = scope
        self.over = False
        self.left = False
        """Whether another host attends to the activity from now on."""

    def attend(self) -> None:
        """State that effects for this activity reach it from now on."""
        if not self.attended:
            super().attend()
            self._attends()

    async def report(self, event: Event) -> bool:
        """Send an event to the entity. Return True once the event is durable, False if the entity refused it."""
        if not self.attended:
            self.attend()
        begin, host, name = self.begin, self._host, self.origin.within.name
        at_ms, slot = host.clock.now_ms(), begin.slot
        envelope = Envelope(self.origin.ref, event, at_ms, slot, slot=slot, generation=begin.generation)
        last = type(event) in self._last
        if not last:
            return isinstance(await host.answered(name, envelope), Reaction)
        taken = False
        # The transition of the last report cancels this handler: the shield lets the handler get its answer.
        with type(self.scope)(shield=True):  # of the same backend, which need not be looked up
            taken = isinstance(await host.answered(name, envelope), Reaction)
        self.over = self.over or taken
        return taken
