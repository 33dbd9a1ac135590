"""One engine of a simulation with its loop, its clock, its store and its handlers, from its start to its crash."""

from collections.abc import Callable
from typing import Final

from lifefold.interpreters.engine import Engine
from lifefold.interpreters.simulate.engine_clock import EngineClock
from lifefold.interpreters.simulate.engine_handlers import Handlers
from lifefold.interpreters.simulate.event_loop import NumberedTask, SteppedLoop
from lifefold.interpreters.simulate.faulty_store import FaultyStore


class EngineLife:
    """One engine, until it ends or is discarded."""

    def __init__(self, loop: SteppedLoop, clock: EngineClock, store: FaultyStore, handlers: Handlers) -> None:
        """Take its parts; it begins with ``start``."""
        self.loop: Final = loop
        self.clock: Final = clock
        self.store: Final = store
        self.handlers: Final = handlers
        self.engine: Engine | None = None
        """The engine, as soon as it accepts inputs."""
        self.main: NumberedTask | None = None
        self._stops = False

    def start(self, make: Callable[[], Engine], begun: Callable[[Engine], None]) -> None:
        """Let an engine load the log and run. It is made inside of the loop. ``begun`` gives it its first inputs."""
        self.main = self.loop.create_task(self._run(make, begun))

    async def _run(self, make: Callable[[], Engine], begun: Callable[[Engine], None]) -> None:
        engine = self.engine = make()
        self.handlers.has_ended = lambda: engine.has_ended
        begun(engine)
        await engine.run(until=lambda _: self._stops)

    @property
    def is_at_work(self) -> bool:
        """Whether the engine decides on inputs: it has begun, and was not asked to stop."""
        return self.engine is not None and not self._stops and not self.engine.has_ended

    @property
    def is_dead(self) -> bool:
        """Whether the engine was discarded."""
        return self.handlers.is_dead

    def stop(self) -> None:
        """Ask the engine to end when it has no inputs."""
        self._stops = True
        if self.engine is not None:
            self.engine.wake()

    def next_ms(self) -> int | None:
        """Return the time at which the engine goes on by itself; None if it waits for an input."""
        times = [each for each in (self.clock.next_ms(), self.loop.next_ms()) if each is not None]
        return min(times, default=None)

    def discard(self) -> None:
        """End all tasks. What they do then has no effect outside."""
        self.handlers.is_dead = self.store.is_dead = True
        self.loop.end()
