"""When a session is so late that its supervisor must be gone or stopped, and the runner ends it itself.

A session's own supervisor, the shim, ends it at its ``session_timeout``, and kills it when the grace after that is
over. An agent runs as the same user, so it can stop its shim (SIGSTOP): then neither limit holds. The runner has limits
of its own, which lie behind those, so that it never competes with a shim that works:

1. After the time-out, the grace, and ``MARGIN_MS``, it wakes the shim (SIGCONT), which then does what is due.
2. After another grace and ``MARGIN_MS`` it kills the shim and what is left of the session (SIGKILL).

The margin is what a shim on a busy machine may need to kill, to see dead, and to record. Both limits count while a
runner attends the session, so that neither a clock that jumps nor a machine that slept ends one that is healthy.
"""

from typing import Final

MARGIN_MS: Final = 10_000
"""How much longer than its own limits a session may last before the runner takes it that its shim does not act."""


def wake_after_ms(timeout_ms: int | None, grace_ms: int) -> int | None:
    """Return after what time a session's shim is woken; None for a session that may last for ever."""
    return None if timeout_ms is None else timeout_ms + kill_after_ms(grace_ms)


def kill_after_ms(grace_ms: int) -> int:
    """Return how long a session that was asked to end, or whose shim was woken, has until the runner kills it."""
    return max(grace_ms, 0) + MARGIN_MS
