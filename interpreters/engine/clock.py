"""The engine's time: a protocol, so that the same engine runs on the wall clock and in virtual time."""

import time
from typing import Final, Protocol

import anyio

LONGEST_NAP_S: Final = 1.0
"""A sleeper looks at the clock again at least this often: the machine may have been asleep itself."""

STEADY: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""The machine's clock that nobody sets, and that goes on while the machine sleeps."""


class Clock(Protocol):
    """Tells the time in milliseconds since the Unix epoch, and sleeps. It goes forward only."""

    def now_ms(self) -> int:
        """Return the time."""
        ...

    async def sleep_until(self, at_ms: int) -> None:
        """Return at or after ``at_ms``, never before."""
        ...


class WallClock:
    """The time that the machine's clock had when this one was made, and what has passed since.

    So it does not matter to anything that waits whether somebody sets the machine's clock meanwhile.
    """

    def __init__(self) -> None:
        """Look at the machine's clock."""
        self._ahead_ns = time.time_ns() - time.clock_gettime_ns(STEADY)

    def now_ms(self) -> int:
        """Return the time."""
        return (self._ahead_ns + time.clock_gettime_ns(STEADY)) // 1_000_000

    def not_before(self, at_ms: int) -> None:
        """Go on from ``at_ms`` if that is later: a log may end later than the machine's clock says that it is.

        Otherwise whatever is to happen some time after the log's last entry would wait until the clock has caught up.
        """
        self._ahead_ns += max(0, at_ms - self.now_ms()) * 1_000_000

    async def sleep_until(self, at_ms: int) -> None:
        """Return at or after ``at_ms``."""
        while (left_ms := at_ms - self.now_ms()) > 0:  # noqa: ASYNC110 - nobody tells when the time has come
            await anyio.sleep(min(left_ms / 1_000, LONGEST_NAP_S))
