"""Retries of a failed task: how many, and when (E5, E6).

The number of retries is the least of three: the task's own limit, the fleet's, and the limit of the kind of failure
(``lifefold.core.policy.ends``). A lasting trouble is not worth another try. All others are worth three, unless the
policy sets fewer for failures of an unknown kind. Before the n-th retry (n from 0) the task rests
``min(30 * 2^n, 300)`` seconds. ``not_before_ms`` is a time that a claim must respect.
"""

from typing import Final

import msgspec

from lifefold.core.policy.backoff import exponential_ms
from lifefold.core.policy.ends import Trouble
from lifefold.core.policy.limits import at_least


class RetryPolicy(msgspec.Struct, frozen=True):
    """The settings of a fleet for retries. Times in milliseconds."""

    max_retries: int = 3
    transient_retries: int = 3
    fatal_retries: int = 0
    other_retries: int = 3
    backoff_base_ms: int = 30_000
    backoff_cap_ms: int = 300_000

    def __post_init__(self) -> None:
        """Refuse negative numbers. Raises ``ValueError``, which names the field."""
        at_least(0, self, "max_retries", "transient_retries", "fatal_retries", "other_retries")
        at_least(0, self, "backoff_base_ms", "backoff_cap_ms")


DEFAULT: Final = RetryPolicy()


def retry_limit(max_retries: int, trouble: Trouble, policy: RetryPolicy = DEFAULT) -> int:
    """Return the number of retries of a task with its own limit, after a failure of this kind."""
    suggested = {
        Trouble.TRANSIENT: policy.transient_retries,
        Trouble.FATAL: policy.fatal_retries,
        Trouble.OTHER: policy.other_retries,
        Trouble.LOST: policy.other_retries,
    }
    return min(max_retries, policy.max_retries, suggested[trouble])


def rest_ms(retries: int, policy: RetryPolicy = DEFAULT) -> int:
    """Return ``min(base * 2^retries, cap)`` milliseconds, ``retries`` being the retries so far (E6)."""
    return exponential_ms(retries + 1, base_ms=policy.backoff_base_ms, cap_ms=policy.backoff_cap_ms)


def not_before_ms(at_ms: int, retries: int, policy: RetryPolicy = DEFAULT) -> int:
    """Return the earliest time at which a task that is reopened at ``at_ms`` may be claimed (E6)."""
    return at_ms + rest_ms(retries, policy)
