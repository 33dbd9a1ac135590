"""All timers of an engine, in one heap and one task. Nothing here is durable: the deadlines are in the log."""

import heapq
from collections.abc import Callable

import anyio

from lifefold.core.kernel import Envelope, TimerFired
from lifefold.interpreters.engine.clock import Clock


class Timers:
    """All timers of an engine, in one heap and one task."""

    def __init__(self, clock: Clock, offer: Callable[[str, Envelope], None]) -> None:
        """Start without timers."""
        self._clock = clock
        self._offer = offer
        self._heap: list[tuple[int, str, str, str, int]] = []
        self._wanted: set[tuple[str, str, str, int]] = set()
        self._sooner = anyio.CancelScope()

    def start(self, aggregate: str, ref: str, slot: str, generation: int, deadline_ms: int) -> None:
        """Report ``TimerFired`` at the deadline."""
        self._wanted.add((aggregate, ref, slot, generation))
        heapq.heappush(self._heap, (deadline_ms, aggregate, ref, slot, generation))
        if self._heap[0][0] == deadline_ms:
            self._sooner.cancel()  # the sleep is for a later deadline

    def cancel(self, aggregate: str, ref: str, slot: str, generation: int) -> None:
        """Cancel a timer. If it has fired already, the entity refuses the event as stale."""
        self._wanted.discard((aggregate, ref, slot, generation))

    async def run(self) -> None:
        """Report each timer when it is due."""
        while True:
            self._report_due()
            with anyio.CancelScope() as self._sooner:
                if self._heap:
                    await self._clock.sleep_until(self._heap[0][0])
                else:
                    await anyio.sleep_forever()

    def _report_due(self) -> None:
        now_ms = self._clock.now_ms()
        while self._heap and self._heap[0][0] <= now_ms:
            _deadline_ms, aggregate, ref, slot, generation = heapq.heappop(self._heap)
            if (aggregate, ref, slot, generation) in self._wanted:
                self._wanted.discard((aggregate, ref, slot, generation))
                self._offer(aggregate, Envelope(ref, TimerFired(slot, generation), now_ms, "timer"))
