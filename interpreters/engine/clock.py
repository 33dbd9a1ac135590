"""The engine's time: a protocol, so that the same engine runs on the wall clock and in virtual time."""

import time
from typing import Final, Protocol

import anyio

LONGEST_NAP_S: Final = 1.0
"""The longest sleep before the clock is read again: the machine may have been suspended meanwhile."""

STEADY: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""A clock that cannot be set, and that continues while the machine is suspended."""


class Clock(Protocol):
    """The time in milliseconds since the Unix epoch, which never goes backwards, and sleeping."""

    def now_ms(self) -> int:
        """Return the time in milliseconds since the Unix epoch."""
        ...

    async def sleep_until(self, at_ms: int) -> None:
        """Return at or after ``at_ms``, never before."""
        ...


class WallClock:
    """The machine's time when this object was made, plus the time that has passed since.

    Setting the machine's clock meanwhile does not change how long a timer waits.
    """

    def __init__(self) -> None:
        """Read the machine's clock."""
        self._ahead_ns = time.time_ns() - time.clock_gettime_ns(STEADY)

    def now_ms(self) -> int:
        """Return the time in milliseconds since the Unix epoch."""
        return (self._ahead_ns + time.clock_gettime_ns(STEADY)) // 1_000_000

    def not_before(self, at_ms: int) -> None:
        """Continue from ``at_ms`` if that is later than now.

        The last entry of a log may be later than the machine's clock. Without this step, all timers of such a log
        would wait until the clock has caught up.
        """
        self._ahead_ns += max(0, at_ms - self.now_ms()) * 1_000_000

    async def sleep_until(self, at_ms: int) -> None:
        """Return at or after ``at_ms``."""
        while (left_ms := at_ms - self.now_ms()) > 0:  # noqa: ASYNC110 - no event announces a point in time
            await anyio.sleep(min(left_ms / 1_000, LONGEST_NAP_S))
