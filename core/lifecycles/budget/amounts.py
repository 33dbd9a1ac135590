"""What can be limited: money, tokens, time, and how many sessions there are; and amounts of all four together."""

from enum import StrEnum
from typing import Self

import msgspec

from lifefold.core.kernel import replace


class Resource(StrEnum):
    """What a budget is about; its value is the name of the amount, with its unit."""

    MONEY = "microusd"
    TOKENS = "tokens"
    TIME = "time_ms"
    SESSIONS = "sessions"


class Amounts(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """So much of everything: millionths of a dollar, tokens read and written, milliseconds, sessions."""

    microusd: int = 0
    tokens: int = 0
    time_ms: int = 0
    sessions: int = 0

    def of(self, resource: Resource) -> int:
        """Return how much it is of one of them."""
        amount: int = getattr(self, resource)
        return amount

    def plus(self, other: Self) -> Self:
        """Return both together."""
        return replace(self, **{each: self.of(each) + other.of(each) for each in Resource})

    def but(self, resource: Resource, amount: int) -> Self:
        """Return the same, with so much of one of them."""
        return replace(self, **{resource: amount})


class Caps(msgspec.Struct, frozen=True):
    """How much may be spent at most: millionths of a dollar, tokens, milliseconds of sessions, sessions.

    None is no limit.
    """

    microusd: int | None = None
    tokens: int | None = None
    time_ms: int | None = None
    sessions: int | None = None

    def of(self, resource: Resource) -> int | None:
        """Return how much it is of one of them."""
        cap: int | None = getattr(self, resource)
        return cap
