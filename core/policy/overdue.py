"""Overdue sessions: when the runner itself ends a session whose supervisor is gone or stopped.

A session's own supervisor, the shim, ends it at its ``session_timeout``, and kills it at the end of the grace period.
An agent runs as the same user, so it can stop its shim (SIGSTOP), and then neither limit holds. The runner has limits
of its own, later than those, so that it never competes with a working shim:

1. After the time-out, the grace, and ``MARGIN_MS``, it wakes the shim (SIGCONT), which then does what is due.
2. After another grace and ``MARGIN_MS`` it kills the shim and the rest of the session (SIGKILL).

The margin is the time that a shim on a busy machine may need to kill, to see the death, and to record it. Both limits
count only while a runner attends the session. A clock that jumps or a machine that slept ends no healthy session.
"""

from typing import Final

MARGIN_MS: Final = 10_000
"""The time past its own limits after which the runner concludes that a session's shim does not act."""


def wake_after_ms(timeout_ms: int | None, grace_ms: int) -> int | None:
    """Return the time after which a session's shim is woken; None for a session without a limit."""
    return None if timeout_ms is None else timeout_ms + kill_after_ms(grace_ms)


def kill_after_ms(grace_ms: int) -> int:
    """Return the time after which the runner kills a session that was asked to end, or whose shim was woken."""
    return max(grace_ms, 0) + MARGIN_MS
