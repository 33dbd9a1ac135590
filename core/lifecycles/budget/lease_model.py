"""The parts of a lease: its states, its events, its limits, its record."""

from typing import Final

import msgspec

from lifefold.core.kernel import Event, Record
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.lifecycles.budget.account import Account, Verdict
from lifefold.core.policy.limits import at_least


class State(AnyLifecycleState):
    """The four states of a lease."""

    ACTIVE = "ACTIVE"
    EXPIRED = "EXPIRED"
    CLOSED = "CLOSED"
    REVOKED = "REVOKED"


OPEN: Final = (State.ACTIVE, State.EXPIRED)


class Reserve(Event, frozen=True):
    """Work that may cost this much is about to begin."""

    name: str
    amount_microusd: int

    @classmethod
    def examples(cls) -> tuple["Reserve", ...]:
        """Return two that fit, with different names, and one that does not fit."""
        return cls("a", 3), cls("b", 1), cls("c", 1_000)


class Settle(Event, frozen=True):
    """The work of this reservation is done and has this cost."""

    name: str
    cost_microusd: int

    @classmethod
    def examples(cls) -> tuple["Settle", ...]:
        """Return one below, one at, and one far above the reserved amount."""
        return cls("a", 2), cls("b", 1), cls("a", 100)


class Refund(Event, frozen=True):
    """The work of this reservation was not done, or cost nothing."""

    name: str

    @classmethod
    def examples(cls) -> tuple["Refund", ...]:
        """Return one."""
        return (cls("a"),)


class Charge(Event, frozen=True):
    """Another lease of this holder has exceeded its grant by this amount; this lease pays."""

    amount_microusd: int

    @classmethod
    def examples(cls) -> tuple["Charge", ...]:
        """Return a low and a high one, and one of nothing, which is refused."""
        return cls(1), cls(100), cls(0)


class AddBudget(Event, frozen=True):
    """The grant is increased."""

    amount_microusd: int

    @classmethod
    def examples(cls) -> tuple["AddBudget", ...]:
        """Return a grant, and one of nothing, which is refused."""
        return cls(4), cls(0)


class Expire(Event, frozen=True):
    """The time of the lease is over."""


class Refresh(Event, frozen=True):
    """The lease is continued, with this additional amount."""

    amount_microusd: int = 0

    @classmethod
    def examples(cls) -> tuple["Refresh", ...]:
        """Return one with more money and one without."""
        return cls(4), cls()


class GraceExceeded(Event, frozen=True):
    """The expired lease was not refreshed in time."""


class Close(Event, frozen=True):
    """The lease is not needed any more."""


class Revoke(Event, frozen=True):
    """The grantor takes the lease back, or its token is invalid."""

    reason: str = ""


class Limits(msgspec.Struct, frozen=True):
    """The duration of a lease, and the time after it in which it can be refreshed, in milliseconds."""

    duration_ms: int = 366 * 24 * 3_600_000
    grace_ms: int = 60_000

    def __post_init__(self) -> None:
        """Refuse values that cannot work. Raises ``ValueError``, which names the field."""
        at_least(1, self, "duration_ms")
        at_least(0, self, "grace_ms")


class Lease(Record, frozen=True):
    """A lease of ``holder``; the cap of its ``account`` is the granted amount."""

    state: State = State.ACTIVE
    holder: str = ""
    account: Account = Account()
    limits: Limits = Limits()
    reason: str = ""


def verdict(x: Lease, name: str, amount_microusd: int) -> Verdict:
    """Return the gate's answer to a reservation."""
    return Verdict.EXPIRED if x.state is State.EXPIRED else x.account.verdict(name, amount_microusd)
