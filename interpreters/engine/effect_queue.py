"""The effects of one aggregate, performed one after the other, and how far that has come."""

from collections import deque

import anyio

from lifefold.core.kernel import Asked
from lifefold.interpreters.engine.interpreter import Interpreter, Occasion


class EffectQueue:
    """Performs the effects of one aggregate, one after the other."""

    def __init__(self, interpreter: Interpreter) -> None:
        """Begin empty."""
        self._interpreter = interpreter
        self._waiting: deque[tuple[Asked, Occasion]] = deque()
        self._arrived = anyio.Event()
        self._idle = anyio.Event()
        self._idle.set()
        self.performed = 0
        self.news = False

    def put(self, asked: Asked, occasion: Occasion) -> None:
        """Add an effect."""
        self._waiting.append((asked, occasion))
        self._idle = anyio.Event() if self._idle.is_set() else self._idle
        self._arrived.set()

    async def empty(self) -> None:
        """Return when everything has been performed."""
        await self._idle.wait()

    async def run(self) -> None:
        """Perform what is there and what comes."""
        while True:
            while self._waiting:
                asked, occasion = self._waiting[0]
                await self._interpreter.effects[type(asked.effect)](asked.effect, occasion)
                self._waiting.popleft()
                if not self._waiting or self._waiting[0][1].version != occasion.version:
                    self.performed, self.news = occasion.version, True
            self._idle.set()
            self._arrived = anyio.Event()
            await self._arrived.wait()
