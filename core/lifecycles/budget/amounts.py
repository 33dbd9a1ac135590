"""The limited resources: money, tokens, time, and sessions; and amounts of all four together."""

from enum import StrEnum
from typing import Self

import msgspec

from lifefold.core.kernel import replace


class Resource(StrEnum):
    """A limited resource; its value is the name of the amount, with its unit."""

    MONEY = "microusd"
    TOKENS = "tokens"
    TIME = "time_ms"
    SESSIONS = "sessions"


class Amounts(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """An amount of each resource: millionths of a dollar, tokens read and written, milliseconds, sessions."""

    microusd: int = 0
    tokens: int = 0
    time_ms: int = 0
    sessions: int = 0

    def of(self, resource: Resource) -> int:
        """Return the amount of one resource."""
        amount: int = getattr(self, resource)
        return amount

    def plus(self, other: Self) -> Self:
        """Return the sum."""
        return replace(self, **{each: self.of(each) + other.of(each) for each in Resource})

    def but(self, resource: Resource, amount: int) -> Self:
        """Return the same amounts with another amount of one resource."""
        return replace(self, **{resource: amount})


class Caps(msgspec.Struct, frozen=True):
    """Upper limits: millionths of a dollar, tokens, milliseconds of sessions, sessions.

    None is no limit.
    """

    microusd: int | None = None
    tokens: int | None = None
    time_ms: int | None = None
    sessions: int | None = None

    def of(self, resource: Resource) -> int | None:
        """Return the limit of one resource."""
        cap: int | None = getattr(self, resource)
        return cap
