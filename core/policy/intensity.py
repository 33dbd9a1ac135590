"""How often those who fail are restarted: restart intensity, as supervisors in Erlang/OTP have it.

At most ``max_restarts`` within any ``window_ms``; whoever would need one more is not begun again. *Only time makes
room*: neither a start that works nor a success does, or one that starts and then fails would be restarted for ever.
"""

import msgspec

from lifefold.core.policy.limits import at_least
from lifefold.core.policy.recovery import Retry


class Intensity(msgspec.Struct, frozen=True):
    """How many restarts there may be within how many milliseconds; 0 means that there are none at all."""

    max_restarts: int = 10
    window_ms: int = 3_600_000

    def __post_init__(self) -> None:
        """Refuse what could never work. Raises ``ValueError`` naming the field."""
        at_least(0, self, "max_restarts")
        at_least(1, self, "window_ms")


class Restart(Intensity, frozen=True):
    """How often one is restarted, and how long it rests before: longer with each restart in the same window."""

    max_restarts: int = 3
    pause: Retry = Retry(base_ms=10_000, cap_ms=300_000)


def span(duration_ms: int) -> str:
    """Return a duration in the largest unit that needs no fraction: ``1 h``, ``90 min``, ``1500 ms``."""
    units = ((3_600_000, "h"), (60_000, "min"), (1_000, "s"))
    return next((f"{duration_ms // ms} {name}" for ms, name in units if duration_ms % ms == 0), f"{duration_ms} ms")
