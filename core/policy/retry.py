"""When a failed task is tried again, and how often (E5, E6).

The number of retries is the least of the task's own limit, the fleet's, and what the reason of the failure suggests:
a trouble that cannot pass is not worth another try; all others are worth three, unless the policy says that what is
not known to pass is worth fewer. Before the n-th retry (n from
0) the task rests ``min(30 * 2^n, 300)`` seconds: ``not_before_ms`` is a time that a claim has to respect, not a wish.
"""

import re
from enum import StrEnum
from functools import lru_cache
from typing import Final

import msgspec

from lifefold.core.policy.backoff import exponential_ms
from lifefold.core.policy.limits import at_least


class Trouble(StrEnum):
    """What kind of failure it was."""

    TRANSIENT = "transient"
    FATAL = "fatal"
    OTHER = "other"


TRANSIENT_MARKERS: Final = (
    "rate limit", "rate_limit", "429", "529", "503", "overloaded", "timed out", "timeout", "connection",
    "temporarily unavailable", "try again",
)  # fmt: skip
FATAL_MARKERS: Final = (
    "permission denied", "permission_denied", "permission_error", "unauthorized", "invalid api key",
    "authentication failed", "authentication_error", "billing", "billing_error", "no such model",
)  # fmt: skip


class RetryPolicy(msgspec.Struct, frozen=True):
    """What a fleet may set. Times in milliseconds; the markers are looked for in a reason, whatever its case.

    A fatal one counts only as words of its own: ``billing`` is none in ``test_billing failed`` or in a path.
    """

    max_retries: int = 3
    transient_retries: int = 3
    fatal_retries: int = 0
    other_retries: int = 3
    backoff_base_ms: int = 30_000
    backoff_cap_ms: int = 300_000
    transient_markers: tuple[str, ...] = TRANSIENT_MARKERS
    fatal_markers: tuple[str, ...] = FATAL_MARKERS

    def __post_init__(self) -> None:
        """Refuse negative numbers. Raises ``ValueError`` naming the field."""
        at_least(0, self, "max_retries", "transient_retries", "fatal_retries", "other_retries")
        at_least(0, self, "backoff_base_ms", "backoff_cap_ms")


DEFAULT: Final = RetryPolicy()


def trouble(reason: str, policy: RetryPolicy = DEFAULT) -> Trouble:
    """Return what kind of failure a reason tells of. What cannot pass is fatal even if it looks transient, too."""
    text = reason.lower()
    if any(_as_words(marker).search(text) for marker in policy.fatal_markers):
        return Trouble.FATAL
    transient = any(marker.lower() in text for marker in policy.transient_markers)
    return Trouble.TRANSIENT if transient else Trouble.OTHER


@lru_cache(maxsize=256)
def _as_words(marker: str) -> re.Pattern[str]:
    """Return what finds a marker that is no part of a longer name and no part of a path."""
    return re.compile(rf"(?<![\w/.-]){re.escape(marker.lower())}(?![\w/-]|\.\w)")


def retry_limit(max_retries: int, reason: str, policy: RetryPolicy = DEFAULT) -> int:
    """Return how often a task with its own limit may be tried again after a failure with this reason."""
    suggested = {
        Trouble.TRANSIENT: policy.transient_retries,
        Trouble.FATAL: policy.fatal_retries,
        Trouble.OTHER: policy.other_retries,
    }
    return min(max_retries, policy.max_retries, suggested[trouble(reason, policy)])


def rest_ms(retries: int, policy: RetryPolicy = DEFAULT) -> int:
    """Return ``min(base * 2^retries, cap)`` milliseconds, ``retries`` being those that there were already (E6)."""
    return exponential_ms(retries + 1, base_ms=policy.backoff_base_ms, cap_ms=policy.backoff_cap_ms)


def not_before_ms(at_ms: int, retries: int, policy: RetryPolicy = DEFAULT) -> int:
    """Return the earliest time at which a task that is opened again at ``at_ms`` may be claimed (E6)."""
    return at_ms + rest_ms(retries, policy)
