"""Restart intensity: how often failing entities are restarted, as supervisors in Erlang/OTP limit it.

At most ``max_restarts`` happen within any ``window_ms``; an entity that needs one more is not restarted. *Only time
frees a restart*: a start that works or a success does not. Otherwise an entity that starts and then fails would be
restarted for ever.
"""

import msgspec

from lifefold.core.policy.limits import at_least
from lifefold.core.policy.recovery import Retry


class Intensity(msgspec.Struct, frozen=True):
    """The number of restarts within so many milliseconds; 0 means none at all."""

    max_restarts: int = 10
    window_ms: int = 3_600_000

    def __post_init__(self) -> None:
        """Refuse values that cannot work. Raises ``ValueError``, which names the field."""
        at_least(0, self, "max_restarts")
        at_least(1, self, "window_ms")


class Restart(Intensity, frozen=True):
    """The restart intensity of one entity, and its delay before a restart, longer with each one in a window."""

    max_restarts: int = 3
    pause: Retry = Retry(base_ms=10_000, cap_ms=300_000)


def span(duration_ms: int) -> str:
    """Return a duration in the largest unit that needs no fraction: ``1 h``, ``90 min``, ``1500 ms``."""
    units = ((3_600_000, "h"), (60_000, "min"), (1_000, "s"))
    return next((f"{duration_ms // ms} {name}" for ms, name in units if duration_ms % ms == 0), f"{duration_ms} ms")
