"""The restarts of a process that is down: whether, when, and how often, within the operator's limits.

A failed process restarts if its policy says so, after a pause that doubles, and at most ``max_restarts`` times without
a successful run in between. *Only a successful run clears that count*: a start that works or a restart does not.
Otherwise a process that starts and then fails would be restarted for ever.
"""

from enum import StrEnum
from typing import Final, Literal, get_args

import msgspec

from lifefold.core.policy.backoff import exponential_ms, spread_ms
from lifefold.core.policy.limits import at_least, between, one_of

RestartPolicy = Literal["never", "on_failure", "always"]


class Comeback(StrEnum):
    """The reason of a start without a request, planned or under way."""

    NONE = "none"
    RESTART = "restart"
    RECYCLE = "recycle"


class Limits(msgspec.Struct, frozen=True):
    """The settings of an operator. Times in milliseconds; 0 for the idle timeout and the lifetime means never."""

    restart_policy: RestartPolicy = "never"
    max_restarts: int = 3
    restart_backoff_ms: int = 1_000
    restart_backoff_cap_ms: int = 60_000
    jitter: float = 0.0
    max_consecutive_failures: int = 3
    idle_timeout_ms: int = 0
    max_lifetime_ms: int = 0
    drain_timeout_ms: int = 5_000
    concurrency: int = 1
    queue_limit: int = 1_000

    def __post_init__(self) -> None:
        """Refuse values that cannot work. Raises ``ValueError``, which names the field."""
        one_of(get_args(RestartPolicy), self, "restart_policy")
        at_least(0, self, "max_restarts", "idle_timeout_ms", "max_lifetime_ms", "drain_timeout_ms")
        at_least(1, self, "restart_backoff_ms", "restart_backoff_cap_ms", "max_consecutive_failures", "queue_limit")
        between(1, _CONCURRENCY_LIMIT, self, "concurrency")
        between(0, 1, self, "jitter")

    def backoff_ms(self, restarts: int, name: str = "") -> int:
        """Return the pause before a restart: ``min(base * 2^restarts, cap)``, less the jitter, if there is any."""
        base_ms, cap_ms = self.restart_backoff_ms, self.restart_backoff_cap_ms
        delay_ms = exponential_ms(restarts + 1, base_ms=base_ms, cap_ms=cap_ms)
        return spread_ms(delay_ms, self.jitter, name, restarts)


_CONCURRENCY_LIMIT: Final = 100
