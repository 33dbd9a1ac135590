"""The delay before an agent tries to recover: the three strategies that document 000 recommends.

*Exponential* doubles with each attempt, for network failures and rate limits. *Fixed* is the same each time, for
resources that other processes hold. *Jittered* is exponential with a small addition, so that agents that failed
together do not return together. The addition is a hash of the agent and the attempt, so a replay waits as long.
"""

from typing import Literal, get_args

import msgspec

from lifefold.core.policy.backoff import exponential_ms, spread_ms
from lifefold.core.policy.limits import at_least, between, one_of


def fixed_ms(_attempt: int, *, base_ms: int) -> int:
    """Return ``base_ms`` for every attempt."""
    return base_ms


def jittered_ms(attempt: int, *, base_ms: int, cap_ms: int, jitter: float, who: str = "") -> int:
    """Return the exponential delay plus up to the fraction ``jitter`` of it; the sum may exceed the cap by that."""
    delay_ms = exponential_ms(attempt, base_ms=base_ms, cap_ms=cap_ms)
    return 2 * delay_ms - spread_ms(delay_ms, jitter, who, attempt)


Strategy = Literal["exponential", "fixed", "jittered"]


class Retry(msgspec.Struct, frozen=True):
    """A strategy with its numbers; the defaults are those of the document's example, and a cap of a minute."""

    strategy: Strategy = "exponential"
    base_ms: int = 1_000
    cap_ms: int = 60_000
    jitter: float = 0.1

    def __post_init__(self) -> None:
        """Refuse values that cannot work. Raises ``ValueError``, which names the field."""
        one_of(get_args(Strategy), self, "strategy")
        at_least(1, self, "base_ms", "cap_ms")
        between(0, 1, self, "jitter")

    def delay_ms(self, attempt: int, who: str = "") -> int:
        """Return the delay before this attempt (1 is the first); ``who``, the agent's name, decides the jitter."""
        if self.strategy == "fixed":
            return fixed_ms(attempt, base_ms=self.base_ms)
        if self.strategy == "exponential":
            return exponential_ms(attempt, base_ms=self.base_ms, cap_ms=self.cap_ms)
        return jittered_ms(attempt, base_ms=self.base_ms, cap_ms=self.cap_ms, jitter=self.jitter, who=who)
