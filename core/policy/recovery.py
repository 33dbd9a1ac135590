"""How long to wait before an agent tries to recover: the three strategies that document 000 recommends.

*Exponential* doubles with each attempt, for network failures and rate limits. *Fixed* is the same each time, for
resources that others hold. *Jittered* is exponential with a little more, so that many who failed together do not come
back together; the little more is a hash of who waits and for which attempt, so that a replay waits as long.
"""

from typing import Literal, get_args

import msgspec

from lifefold.core.policy.backoff import exponential_ms, spread_ms
from lifefold.core.policy.limits import at_least, between, one_of


def fixed_ms(_attempt: int, *, base_ms: int) -> int:
    """Return ``base_ms``, whichever attempt it is."""
    return base_ms


def jittered_ms(attempt: int, *, base_ms: int, cap_ms: int, jitter: float, who: str = "") -> int:
    """Return the exponential delay and up to the fraction ``jitter`` of it on top, which may exceed the cap by that."""
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
        """Refuse what could never work. Raises ``ValueError`` naming the field."""
        one_of(get_args(Strategy), self, "strategy")
        at_least(1, self, "base_ms", "cap_ms")
        between(0, 1, self, "jitter")

    def delay_ms(self, attempt: int, who: str = "") -> int:
        """Return how long to wait before this attempt (1 is the first); ``who`` waits decides the jitter."""
        if self.strategy == "fixed":
            return fixed_ms(attempt, base_ms=self.base_ms)
        if self.strategy == "exponential":
            return exponential_ms(attempt, base_ms=self.base_ms, cap_ms=self.cap_ms)
        return jittered_ms(attempt, base_ms=self.base_ms, cap_ms=self.cap_ms, jitter=self.jitter, who=who)
