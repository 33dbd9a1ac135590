"""The engine's time: a protocol, so that the same engine runs on the wall clock and in virtual time."""

import time
from typing import Final, Protocol

import anyio

LONGEST_NAP_S: Final = 1.0
"""A sleeper looks at the wall clock again at least this often: it may have been set, or the machine been asleep."""


class Clock(Protocol):
    """Tells the time in milliseconds since the Unix epoch, and sleeps."""

    def now_ms(self) -> int:
        """Return the time."""
        ...

    async def sleep_until(self, at_ms: int) -> None:
        """Return at or after ``at_ms``, never before."""
        ...


class WallClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        """Return the time."""
        return time.time_ns() // 1_000_000

    async def sleep_until(self, at_ms: int) -> None:
        """Return at or after ``at_ms``."""
        while (left_ms := at_ms - self.now_ms()) > 0:  # noqa: ASYNC110 - nobody tells when the time has come
            await anyio.sleep(min(left_ms / 1_000, LONGEST_NAP_S))
