"""The effects of one aggregate, performed one after the other, and how far that has come."""

from collections import deque

import anyio

from lifefold.core.kernel import Asked
from lifefold.interpreters.engine.activities import Activities
from lifefold.interpreters.engine.interpreter import Interpreter, Occasion, Unreached


class EffectQueue:
    """Performs the effects of one aggregate, one after the other."""

    def __init__(self, interpreter: Interpreter, activities: Activities) -> None:
        """Begin empty. The activities are those that effects may concern."""
        self._interpreter = interpreter
        self._activities = activities
        self._waiting: deque[tuple[Asked, Occasion]] = deque()
        self._arrived = anyio.Event()
        self._idle = anyio.Event()
        self._idle.set()
        self._wait = anyio.CancelScope()
        self._may_wait = True
        self.performed = 0
        self.news = False

    def put(self, asked: Asked, occasion: Occasion) -> None:
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

    async def _is_over(self, asked: Asked, occasion: Occasion) -> bool:
        """Perform an effect, when it can be; tell whether nothing is left of it to be done."""
        while True:
            changed = self._activities.changed
            try:
                await self._interpreter.effects[type(asked.effect)](asked.effect, occasion)
            except Unreached as unreached:
                if not self._activities.may_come_to_attend(occasion.within.name, unreached.activity):
                    return True
            else:
                return True
            with anyio.CancelScope() as self._wait:
                if self._may_wait:
                    await changed.wait()
            if not self._may_wait:
                return False
