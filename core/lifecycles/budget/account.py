"""The budget gate: money is reserved before it is spent, so a cap is a ceiling and not an observation.

A cost that is only counted afterwards overshoots its cap by whatever was under way at the same time. Here each piece of
work names a *reservation* first; it is admitted only if it still fits; then it is *settled* with what the work really
cost, or *refunded*. Everything is a whole number of one unit, micro-dollars for one; which, is its holder's to say. An
account is a value that agents, tasks and fleets can hold alike; one equation holds for it at any time, and no operation
can break it:

    cap = spent + reserved + returned + free,    none of them negative

*The same reservation twice is one.* Its name makes it so, also when it comes again after it was settled: the last
``SETTLED_LIMIT`` names are remembered. The same name with another amount is refused, and so is settling twice.

*A settlement may be higher than its reservation.* The money is gone, so refusing it would only hide it. What the
reservation does not cover is paid from what is free; what that does not cover either is the ``overrun``, kept beside
``spent``, which thus never passes the cap. While there is an overrun nothing is free and so nothing new is admitted;
money that comes free later pays the overrun first. ``spent + overrun`` is what everything has really cost.

*A charge* is what an account has to pay without any reservation, because another one of the same holder could not. It
is an overrun from the beginning.

*A closed account* admits nothing, not even again what it holds, and returns what is free, at once and whenever a late
settlement frees something (B12, B19).
"""

from enum import StrEnum
from typing import Final

import msgspec

from lifefold.core.kernel import replace

RESERVATIONS_LIMIT: Final = 1_000
"""How many reservations an account has open at a time; one more is refused."""

SETTLED_LIMIT: Final = 256
"""How many names of settled reservations an account remembers."""


class Reservation(msgspec.Struct, frozen=True, gc=False):
    """Money set aside for one named piece of work."""

    name: str
    amount: int


class Verdict(StrEnum):
    """What the gate says to a reservation."""

    ADMITTED = "admitted"
    HELD = "held already"
    CLOSED = "the account is closed"
    EXCEEDED = "more than is free"
    SETTLED = "settled already"
    DIFFERENT = "held already, with another amount"
    EXPIRED = "the lease has expired"
    CROWDED = "too many reservations are open"
    TOO_LITTLE = "less than one"

    @property
    def admits(self) -> bool:
        """Whether the money is set aside."""
        return self in {Verdict.ADMITTED, Verdict.HELD}


class Account(msgspec.Struct, frozen=True):
    """A cap and what became of it, in one unit. ``settled`` has the names of reservations that are done with."""

    cap: int = 0
    spent: int = 0
    returned: int = 0
    overrun: int = 0
    reservations: tuple[Reservation, ...] = ()
    settled: tuple[str, ...] = ()
    closed: bool = False

    @property
    def reserved(self) -> int:
        """What is set aside."""
        return sum(each.amount for each in self.reservations)

    @property
    def free(self) -> int:
        """What can still be reserved."""
        return self.cap - self.spent - self.reserved - self.returned

    @property
    def cost(self) -> int:
        """What everything has really cost, and what the account was charged with."""
        return self.spent + self.overrun

    @property
    def sound(self) -> bool:
        """Whether the account's properties hold: nothing negative, the cap kept, no overrun while something is free."""
        parts = (self.spent, self.reserved, self.returned, self.overrun)
        within = min(*parts, self.free) >= 0
        return within and (self.free == 0 or not (self.overrun or self.closed))

    def held(self, name: str) -> Reservation | None:
        """Return the open reservation of this name."""
        return next((each for each in self.reservations if each.name == name), None)

    def verdict(self, name: str, amount: int) -> Verdict:
        """Tell what would become of a reservation."""
        held = self.held(name)
        if held is not None and not self.closed:
            return Verdict.HELD if held.amount == amount else Verdict.DIFFERENT
        reasons = (
            (Verdict.SETTLED, name in self.settled),
            (Verdict.TOO_LITTLE, amount < 1),
            (Verdict.CLOSED, self.closed),
            (Verdict.EXCEEDED, amount > self.free or self.overrun > 0),
            (Verdict.CROWDED, len(self.reservations) >= RESERVATIONS_LIMIT),
        )
        return next((verdict for verdict, holds in reasons if holds), Verdict.ADMITTED)

    def reserve(self, name: str, amount: int) -> "Account":
        """Return the account with the money set aside, if the gate admits it, or else as it is."""
        if self.verdict(name, amount) is not Verdict.ADMITTED:
            return self
        return replace(self, reservations=(*self.reservations, Reservation(name, amount)))

    def settle(self, name: str, cost: int) -> "Account":
        """Return the account with a reservation turned into what its work cost; unknown names change nothing."""
        if self.held(name) is None or cost < 0:
            return self
        left = tuple(each for each in self.reservations if each.name != name)
        remembered = (*self.settled, name)[-SETTLED_LIMIT:]
        owed = self.overrun + cost
        return replace(self, reservations=left, settled=remembered, overrun=owed).balanced()

    def refund(self, name: str) -> "Account":
        """Return the account with a reservation given up: its work cost nothing."""
        return self.settle(name, 0)

    def charge(self, amount: int) -> "Account":
        """Return the account with something paid that it had no reservation for; less than 1 changes nothing."""
        if amount < 1:
            return self
        return replace(self, overrun=self.overrun + amount).balanced()

    def renewed(self) -> "Account":
        """Return the account as if nothing had been spent: a new period has begun. An overrun is paid from it first."""
        return replace(self, spent=0).balanced()

    def grant(self, amount: int) -> "Account":
        """Return the account with a higher cap; an overrun is paid from it first."""
        return replace(self, cap=self.cap + amount).balanced()

    def close(self) -> "Account":
        """Return the account closed: what is free is returned; what is reserved can still be settled (B12, B19)."""
        return replace(self, closed=True).balanced()

    def balanced(self) -> "Account":
        """Pay the overrun from what is free; a closed account returns the rest."""
        paid = min(self.free, self.overrun)
        rest = self.free - paid if self.closed else 0
        return replace(
            self,
            spent=self.spent + paid,
            overrun=self.overrun - paid,
            returned=self.returned + rest,
        )
