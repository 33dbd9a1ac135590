"""The configuration of an agent of document 001, and the ranges of amounts and times."""

from typing import Final

import msgspec

from lifefold.interpreters.facades.arguments import text, whole

MOST_MICROUSD: Final = 10**12
"""The highest accepted amount: a million dollars."""

MOST_MS: Final = 10**13
"""The longest accepted time: about three hundred years."""

EXIT_CODES: Final = range(-(2**31), 2**32)


class AgentConfig(msgspec.Struct, frozen=True):
    """The configuration of an agent. Raises ``TypeError`` or ``ValueError`` for invalid values.

    ``budget_microusd`` is the total that the agent may spend, in micro-dollars; the default is 0. ``lease_ms`` is the
    time after a start during which it may spend; None is a year.
    """

    name: str = ""
    budget_microusd: int = 0
    lease_ms: int | None = None

    def __post_init__(self) -> None:
        """Check the values."""
        text("name", self.name)
        amount("budget_microusd", self.budget_microusd)
        if self.lease_ms is not None:
            whole("lease_ms", self.lease_ms, range(1, MOST_MS))


def amount(name: str, value: object) -> int:
    """Return an amount in micro-dollars, or raise ``TypeError`` or ``ValueError``."""
    return whole(name, value, range(MOST_MICROUSD + 1))
