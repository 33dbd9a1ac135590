"""Virtual time for the engine, on either event loop: it stands still while anybody is busy, and then jumps.

Whoever sleeps is woken one at a time, each when nothing is left to do of what follows from the one before. At one time
they go in a fixed order (see ``outside``), so an engine that runs on it does the same every time. Threads are nobody's
business of an event loop: a store that works in one is ``Attended``, and no time passes meanwhile.
"""

import heapq
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

import anyio
from anyio.abc import TaskStatus
from anyio.lowlevel import checkpoint

from lifefold.interpreters.simulate.scheduler import Order
from lifefold.interpreters.store import Batch, Entry, EventStore, Post

TURNS: Final = 8
"""How many turns everybody has before it is asked whether somebody is busy, which may take long to answer."""

FIRST: Final[Order] = (0,)


class VirtualClock:
    """A clock for ``Engine``. Somebody has to ``run`` it beside what it is for."""

    def __init__(self, now_ms: int) -> None:
        """Begin at that time."""
        self._now_ms = now_ms
        self._sleepers: Final[list[tuple[int, Order, int, anyio.Event]]] = []
        self._gone: Final[set[int]] = set()
        self._slept = 0
        self._somebody = anyio.Event()
        self._busy = 0
        self._free = anyio.Event()
        self._is_over = False

    def now_ms(self) -> int:
        """Return the time."""
        return self._now_ms

    async def sleep_until(self, at_ms: int, order: Order = FIRST) -> None:
        """Return when it is that time, and all who sleep until then and go before have done what they do.

        When the clock has stopped, which is when all is being cancelled, it is at once.
        """
        if self._is_over:
            await checkpoint()
            return
        self._slept += 1
        number, awake = self._slept, anyio.Event()
        heapq.heappush(self._sleepers, (max(at_ms, self._now_ms), order, number, awake))
        self._somebody.set()
        try:
            await awake.wait()
        finally:
            if not awake.is_set():
                self._gone.add(number)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Let time pass, until this is cancelled: then whoever sleeps, shielded perhaps, is woken for good."""
        self._is_over = False
        task_status.started()
        try:
            await self._pass()
        finally:
            self._stop()

    async def _pass(self) -> None:
        while True:
            await self.quiet()
            while self._busy:
                self._free = anyio.Event()
                await self._free.wait()
                await self.quiet()
            await self._wake_next()

    def _stop(self) -> None:
        self._is_over = True
        for *_, awake in self._sleepers:
            awake.set()
        self._sleepers.clear()
        self._gone.clear()

    async def quiet(self) -> None:
        """Return when everybody else waits for something."""
        for _ in range(TURNS):
            await checkpoint()
        if not self._busy:
            await anyio.wait_all_tasks_blocked()

    @contextmanager
    def still(self) -> Generator[None]:
        """Let no time pass meanwhile."""
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1
            self._free.set()

    async def _wake_next(self) -> None:
        while not self._sleepers:
            self._somebody = anyio.Event()
            await self._somebody.wait()
        at_ms, _, number, awake = heapq.heappop(self._sleepers)
        if number in self._gone:
            self._gone.discard(number)
        else:
            self._now_ms = at_ms
            awake.set()


class Attended:
    """A store in whose work no time passes. A batch is written when all have said what they have to say just now."""

    def __init__(self, inner: EventStore, clock: VirtualClock) -> None:
        """Take the store."""
        self.inner: Final = inner
        self._clock: Final = clock

    async def append(self, batch: Batch) -> None:
        """Write a batch; see ``EventStore``."""
        with self._clock.still():
            await self._clock.quiet()
            await self.write(batch)

    async def write(self, batch: Batch) -> None:
        """Write it now."""
        await self.inner.append(batch)

    async def read(self, stream: str | None = None, after: int = 0) -> Sequence[Entry]:
        """Return entries; see ``EventStore``."""
        with self._clock.still():
            return await self.inner.read(stream, after)

    async def performed(self) -> Mapping[str, int]:
        """Return what is known to be performed; see ``EventStore``."""
        with self._clock.still():
            return await self.inner.performed()

    async def post(self, stream: str, envelope: bytes) -> int:
        """Leave an input for the writer; see ``EventStore``."""
        with self._clock.still():
            return await self.inner.post(stream, envelope)

    async def posts(self, *, unanswered: bool = True) -> Sequence[Post]:
        """Return posts; see ``EventStore``."""
        with self._clock.still():
            return await self.inner.posts(unanswered=unanswered)
