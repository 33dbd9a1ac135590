"""What may be said to the runtime of document 001: texts, whole numbers, amounts of money, and a configuration."""

from typing import Final

import msgspec

TEXT_CHARACTERS: Final = 10_000
"""How long a reason or a name may be."""

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


def config(value: object) -> AgentConfig:
    """Return a configuration, the default one for None, or raise ``TypeError``."""
    if value is None:
        return AgentConfig()
    if not isinstance(value, AgentConfig):
        raise TypeError(f"config must be an AgentConfig, not {type(value).__name__}")
    return value


def text(name: str, value: object, *, empty: bool = True) -> str:
    """Return a text that can be written down, or raise ``TypeError`` or ``ValueError``."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {type(value).__name__}")
    if not empty and not value:
        raise ValueError(f"{name} must not be empty")
    if len(value) > TEXT_CHARACTERS:
        raise ValueError(f"{name} must have at most {TEXT_CHARACTERS} characters, not {len(value)}")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError(f"{name} has half a surrogate pair, which is no character")
    return str(value)


def whole(name: str, value: object, within: range) -> int:
    """Return a whole number in a range, or raise ``TypeError`` or ``ValueError``."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    if value not in within:
        raise ValueError(f"{name} must be between {within[0]} and {within[-1]}")
    return value


def amount(name: str, value: object) -> int:
    """Return an amount in micro-dollars, or raise ``TypeError`` or ``ValueError``."""
    return whole(name, value, range(MOST_MICROUSD + 1))


def yes_or_no(name: str, value: object) -> bool:
    """Return a truth value, or raise ``TypeError``."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be a bool, not {type(value).__name__}")
    return value
