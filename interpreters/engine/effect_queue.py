"""The effects of one aggregate, performed one after the other, and how far that has come."""

from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial

import anyio

from lifefold.core.kernel import Envelope, HandlerFailed, RequestedEffect
from lifefold.interpreters.engine.activities import Activities
from lifefold.interpreters.engine.failures import OnError, Then, is_failure
from lifefold.interpreters.engine.inputs import Host
from lifefold.interpreters.engine.interpreter import EffectContext, Interpreter, Unreached
from lifefold.interpreters.engine.retrying import Handled, take_note


class EffectQueue:
    """Performs the effects of one aggregate, one after the other."""

    def __init__(self, host: Host, interpreter: Interpreter, activities: Activities) -> None:
        """Begin empty. The activities are those that effects may concern."""
        self._host = host
        self._interpreter = interpreter
        self._activities = activities
        self._waiting: deque[tuple[RequestedEffect, EffectContext]] = deque()
        self._arrived = anyio.Event()
        self._idle = anyio.Event()
        self._idle.set()
        self._wait = anyio.CancelScope()
        self._may_wait = True
        self.performed = 0
        self.news = False

    def put(self, asked: RequestedEffect, occasion: EffectContext) -> None:
        """Add an effect."""
        self._waiting.append((asked, occasion))
        self._idle = anyio.Event() if self._idle.is_set() else self._idle
        self._arrived.set()

    def wait_no_more(self) -> None:
        """Leave what cannot be performed now to the next engine: this one is about to stop."""
        self._may_wait = False
        self._wait.cancel()

    async def empty(self) -> None:
        """Return when everything has been performed that can be."""
        await self._idle.wait()

    async def run(self) -> None:
        """Perform what is there and what comes."""
        while True:
            while self._waiting:
                asked, occasion = self._waiting[0]
                if not await self._is_over(asked, occasion):
                    break
                self._waiting.popleft()
                if not self._waiting or self._waiting[0][1].version != occasion.version:
                    self.performed, self.news = occasion.version, True
            self._idle.set()
            self._arrived = anyio.Event()
            await self._arrived.wait()

    async def _is_over(self, asked: RequestedEffect, occasion: EffectContext) -> bool:
        """Perform an effect, when it can be; tell whether nothing is left of it to be done."""
        while not self._host.failures.is_given_up(_handled(asked, occasion)):
            changed = self._activities.changed
            wait: Callable[[], Awaitable[object]]
            try:
                await self._interpreter.effects[type(asked.effect)](asked.effect, occasion)
            except Unreached as unreached:
                if not self._activities.may_come_to_attend(occasion.within.name, unreached.activity):
                    return True
                wait = changed.wait
            except Exception as error:
                if not is_failure(error) or (self._policy(asked).then is Then.STOP and not self._may_wait):
                    raise
                wait = partial(self._fail, asked, occasion, error)
            else:
                return True
            is_over = False
            with anyio.CancelScope() as self._wait:
                if self._may_wait:
                    is_over = await wait() is True
            if is_over or not self._may_wait:
                return is_over
        return True

    def _policy(self, asked: RequestedEffect) -> OnError:
        return self._host.failures.policy(self._interpreter.on_error, type(asked.effect))

    async def _fail(self, asked: RequestedEffect, occasion: EffectContext, error: Exception) -> bool:
        """See what is done about a handler that has raised; tell whether nothing is left to be done."""
        host, effect, handled = self._host, asked.effect, _handled(asked, occasion)
        policy = self._policy(asked)
        then = await take_note(host, handled, error, policy)
        if then is Then.STOP:
            raise error
        if then is Then.REPORT and policy.report is not None:
            event = policy.report(effect, error)
            await host.answered(handled.aggregate, Envelope(asked.entity, event, host.clock.now_ms(), "engine"))
        return then is not None


def _handled(asked: RequestedEffect, occasion: EffectContext) -> Handled:
    """Return what a failure of the handler is known by."""
    name, version, index = occasion.identity
    return Handled(name, asked.entity, HandlerFailed(type(asked.effect).__name__, 0, "", "", version, index))
