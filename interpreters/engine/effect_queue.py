"""The queue of requested effects of one aggregate, performed in order, with the version up to which all are done."""

from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial

import anyio
from anyio.lowlevel import checkpoint

from lifefold.core.kernel import Envelope, HandlerFailed, RequestedEffect
from lifefold.interpreters.engine.activities import Activities
from lifefold.interpreters.engine.failures import Handled, OnError, Then, is_failure
from lifefold.interpreters.engine.inputs import Host
from lifefold.interpreters.engine.interpreter import EffectContext, Interpreter, Unreached
from lifefold.interpreters.engine.retrying import take_note


class EffectQueue:
    """Performs the effects of one aggregate in order, one at a time."""

    def __init__(self, host: Host, interpreter: Interpreter, activities: Activities) -> None:
        """Start empty. ``activities`` are the ones that effects may need to reach."""
        self._host = host
        self._interpreter = interpreter
        self._activities = activities
        self._waiting: deque[tuple[RequestedEffect, EffectContext]] = deque()
        self._arrived = anyio.Event()
        self._new_event: type[anyio.Event] = type(self._arrived)
        """The class of the present backend: looking it up for each event would take longer than the event."""
        self._is_settled = True
        """Whether no effect can be performed now."""
        self._settled: anyio.Event | None = None
        """Set then; it is there while a task waits for it."""
        self._wait = anyio.CancelScope()
        self._may_wait = True
        self.performed = 0
        self.news = False

    def put(self, requested: RequestedEffect, context: EffectContext) -> None:
        """Add an effect."""
        self._waiting.append((requested, context))
        self._is_settled = False
        self._arrived.set()

    @property
    def is_idle(self) -> bool:
        """Whether no effect waits or is being performed."""
        return not self._waiting

    def wait_no_more(self) -> None:
        """Leave all effects that cannot be performed now to the next engine, because this one stops."""
        self._may_wait = False
        self._wait.cancel()

    async def empty(self) -> None:
        """Return when every effect that can be performed now has been performed."""
        if self._is_settled:
            await checkpoint()
            return
        self._settled = self._settled or self._new_event()
        await self._settled.wait()

    async def run(self) -> None:
        """Perform the queued effects, and later ones as they arrive."""
        while True:
            while self._waiting:
                requested, context = self._waiting[0]
                if not await self.perform(requested, context):
                    break
                self._waiting.popleft()
                # A version is performed when its last effect is: after a crash, all effects of a version are repeated.
                if not self._waiting or self._waiting[0][1].version != context.version:
                    self.performed, self.news = context.version, True
            self._is_settled = True
            if self._settled is not None:
                self._settled.set()
                self._settled = None
            self._arrived = self._new_event()
            await self._arrived.wait()

    async def perform(self, requested: RequestedEffect, context: EffectContext) -> bool:
        """Perform an effect, once that is possible. Tell whether the effect is settled."""
        while not self._host.failures.is_given_up(_handled(requested, context)):
            changes = self._activities.changes  # counted before the call, so that no change is missed
            wait: Callable[[], Awaitable[object]]
            try:
                await self._interpreter.effects[type(requested.effect)](requested.effect, context)
            except Unreached as unreached:
                if not self._activities.may_come_to_attend(context.within.name, unreached.activity):
                    return True
                wait = partial(self._activities.changed_since, changes)
            except Exception as error:
                # A stopping engine cannot wait for a retry. Under the policy STOP, the error must still surface.
                if not is_failure(error) or (self._policy(requested).then is Then.STOP and not self._may_wait):
                    raise
                wait = partial(self._fail, requested, context, error)
            else:
                return True
            is_over = False
            with anyio.CancelScope() as self._wait:
                if self._may_wait:
                    is_over = await wait() is True
            if is_over or not self._may_wait:
                return is_over
        return True

    def _policy(self, requested: RequestedEffect) -> OnError:
        return self._host.failures.policy(self._interpreter.on_error, type(requested.effect))

    async def _fail(self, requested: RequestedEffect, context: EffectContext, error: Exception) -> bool:
        """Apply the error policy of a handler that has raised. Tell whether the effect is settled."""
        host, effect, handled = self._host, requested.effect, _handled(requested, context)
        policy = self._policy(requested)
        then = await take_note(host, handled, error, policy)
        if then is Then.STOP:
            raise error
        if then is Then.REPORT and policy.report is not None:
            event = policy.report(effect, error)
            await host.answered(handled.aggregate, Envelope(requested.entity, event, host.clock.now_ms(), "engine"))
        return then is not None


def _handled(requested: RequestedEffect, context: EffectContext) -> Handled:
    """Return the identity under which failures of the handler are counted."""
    name, version, index = context.identity
    return Handled(name, requested.entity, HandlerFailed(type(requested.effect).__name__, 0, "", "", version, index))
