"""What an agent of document 001 is spawned with, and which amounts and times may be named."""

from typing import Final

import msgspec

from lifefold.interpreters.facades.arguments import text, whole

MOST_MICROUSD: Final = 10**12
"""The highest amount that may be named at once: a million dollars."""

MOST_MS: Final = 10**13
"""The longest time that may be named: some three hundred years."""

EXIT_CODES: Final = range(-(2**31), 2**32)


class AgentConfig(msgspec.Struct, frozen=True):
    """What an agent is spawned with. Raises ``TypeError`` or ``ValueError`` for what makes no sense.

    ``budget_microusd`` is what it may spend in all, in micro-dollars: nothing, unless something is said.
    ``lease_ms`` is how long it may spend from it after a start; None for a year.
    """

    name: str = ""
    budget_microusd: int = 0
    lease_ms: int | None = None

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        text("name", self.name)
        amount("budget_microusd", self.budget_microusd)
        if self.lease_ms is not None:
            whole("lease_ms", self.lease_ms, range(1, MOST_MS))


def amount(name: str, value: object) -> int:
    """Return an amount in micro-dollars, or raise ``TypeError`` or ``ValueError``."""
    return whole(name, value, range(MOST_MICROUSD + 1))
