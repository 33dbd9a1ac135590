"""Virtual time for the engine, on either event loop: it stands still while a task runs, and then jumps.

Sleeping tasks are woken one at a time, each after all consequences of the one before. Tasks with the same time go in a
fixed order (see ``scheduler``), so an engine on this clock does the same every time. An event loop does not know about
threads: a store that works in one is ``Attended``, and no time passes meanwhile.
"""

import heapq
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

import anyio
from anyio.abc import TaskStatus
from anyio.lowlevel import checkpoint

from lifefold.interpreters.simulate.scheduler import Order
from lifefold.interpreters.store import Batch, Entry, EventStore, StoredCommand

TURNS: Final = 8
"""The number of turns of the event loop before the check for busy tasks, which may take long."""

FIRST: Final[Order] = (0,)


class VirtualClock:
    """A clock for ``Engine``. It has to ``run`` in a task of its own."""

    def __init__(self, now_ms: int) -> None:
        """Begin at that time."""
        self._now_ms = now_ms
        self._sleepers: Final[list[tuple[int, Order, int, anyio.Event]]] = []
        self._gone: Final[set[int]] = set()
        self._slept = 0
        self._waiting = anyio.Event()
        self._busy = 0
        self._free = anyio.Event()
        self._is_over = False

    def now_ms(self) -> int:
        """Return the time."""
        return self._now_ms

    async def sleep_until(self, at_ms: int, order: Order = FIRST) -> None:
        """Return when it is that time, and all earlier tasks of that time are done.

        When the clock has stopped, because all is being cancelled, it returns at once.
        """
        if self._is_over:
            await checkpoint()
            return
        self._slept += 1
        number, awake = self._slept, anyio.Event()
        heapq.heappush(self._sleepers, (max(at_ms, self._now_ms), order, number, awake))
        self._waiting.set()
        try:
            await awake.wait()
        finally:
            if not awake.is_set():
                self._gone.add(number)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Let time pass until this is cancelled; sleeping tasks, shielded perhaps, are then woken for good."""
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
        """Return when all other tasks wait."""
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
            self._waiting = anyio.Event()
            await self._waiting.wait()
        at_ms, _, number, awake = heapq.heappop(self._sleepers)
        if number in self._gone:
            self._gone.discard(number)
        else:
            self._now_ms = at_ms
            awake.set()


class Attended:
    """A store during whose work no time passes. A batch is written after all tasks have made their present inputs."""

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
        """Return the performed effects; see ``EventStore``."""
        with self._clock.still():
            return await self.inner.performed()

    async def submit(self, stream: str, envelope: bytes) -> int:
        """Leave an input for the writer; see ``EventStore``."""
        with self._clock.still():
            return await self.inner.submit(stream, envelope)

    async def commands(self, *, unanswered: bool = True) -> Sequence[StoredCommand]:
        """Return commands; see ``EventStore``."""
        with self._clock.still():
            return await self.inner.commands(unanswered=unanswered)
