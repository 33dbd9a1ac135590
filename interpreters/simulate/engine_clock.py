"""The clock of a simulated engine: virtual time, and sleepers that its driver wakes.

An engine looks for operator commands ten times a second. In a virtual day that is a million looks at nothing. A clock
may wake a sleeper later than asked. So when two looks have found nothing, the next one waits until something else
happens. The store tells which task looks (``looked``): a timer may be due just as soon as the next look.
"""

import heapq
from collections.abc import Callable
from typing import Final

import anyio
from anyio import get_current_task
from anyio.lowlevel import checkpoint

IDLE_LOOKS: Final = 2
"""The number of looks without a result after which the next one waits."""


class EngineClock:
    """A clock for one engine: the virtual time, shifted by the error of the machine's clock when the engine began."""

    def __init__(self, virtual_ms: Callable[[], int], ahead_ms: int) -> None:
        """Begin with this error."""
        self._virtual_ms: Final = virtual_ms
        self._ahead_ms = ahead_ms
        self._sleepers: Final[list[tuple[int, int, bool, anyio.Event]]] = []
        self._slept = 0
        self._looking: int | None = None
        """The task that looks for operator commands."""
        self._idle_looks = 0

    def now_ms(self) -> int:
        """Return the time in milliseconds since the Unix epoch."""
        return self._virtual_ms() + self._ahead_ms

    def jump(self, by_ms: int) -> None:
        """Let time pass at once, as a suspended machine does."""
        self._ahead_ms += by_ms

    async def sleep_until(self, at_ms: int) -> None:
        """Return at or after ``at_ms``."""
        if at_ms <= self.now_ms():
            await checkpoint()
            return
        self._slept += 1
        awake = anyio.Event()
        heapq.heappush(self._sleepers, (at_ms, self._slept, get_current_task().id == self._looking, awake))
        await awake.wait()

    def looked(self) -> None:
        """Note that the present task looks for operator commands: its next sleep is until the next look."""
        self._looking = get_current_task().id

    def stir(self) -> None:
        """Note that something has happened: the next look does not wait."""
        self._idle_looks = 0

    def wake(self) -> None:
        """Wake all whose time has come. A sleeper that was cancelled meanwhile is woken in vain."""
        while self._sleepers and self._sleepers[0][0] <= self.now_ms():
            *_, is_look, awake = heapq.heappop(self._sleepers)
            self._idle_looks += is_look
            awake.set()

    def next_ms(self) -> int | None:
        """Return the virtual time at which a sleeper is to be woken; None if there is none."""
        is_idle = self._idle_looks >= IDLE_LOOKS
        times = (
            at_ms for at_ms, _, is_look, awake in self._sleepers if not (is_idle and is_look) and _is_awaited(awake)
        )
        at_ms = min(times, default=None)
        return None if at_ms is None else at_ms - self._ahead_ms


def _is_awaited(awake: anyio.Event) -> bool:
    """Tell whether a task still waits for an event: a cancelled sleeper must not move the time."""
    return awake.statistics().tasks_waiting > 0
