"""The budget gate: money is reserved before it is spent, so a cap is a ceiling and not an observation.

A cost that is counted afterwards overshoots its cap by all the work that ran at the same time. Here each piece of work
names a *reservation* first, and is admitted only if the reservation still fits. Later it is *settled* with the real
cost, or *refunded*. Everything is a whole number of one unit of the holder's choice, for example micro-dollars. An
account is a value that agents, tasks and fleets can hold alike. One equation always holds, and no operation can break
it:

    cap = spent + reserved + returned + free,    none of them negative

*The same reservation twice is one.* Its name identifies it, also after it was settled: the last ``SETTLED_LIMIT`` names
are remembered. The same name with another amount is refused, and so is settling twice.

*A settlement may be higher than its reservation.* The money is gone, so refusing it would only hide it. The excess is
paid from the free money. The rest is the ``overrun``, kept beside ``spent``, which thus never passes the cap. While
there is an overrun, nothing is free and nothing new is admitted. Money that becomes free later pays the overrun first.
``spent + overrun`` is the real cost of everything.

*A charge* is paid by an account without any reservation, because another account of the same holder could not pay. It
is an overrun from the beginning.

*A closed account* admits nothing, not even a repeated reservation. It returns its free money at once, and again when a
late settlement frees some (B12, B19).
"""

from enum import StrEnum
from typing import Final

import msgspec

from lifefold.core.kernel import replace

RESERVATIONS_LIMIT: Final = 1_000
"""The number of open reservations of an account; one more is refused."""

SETTLED_LIMIT: Final = 256
"""The number of names of settled reservations that an account remembers."""


class Reservation(msgspec.Struct, frozen=True, gc=False):
    """Money set aside for one named piece of work."""

    name: str
    amount: int


class Verdict(StrEnum):
    """The answer of the gate to a reservation."""

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
        """Whether the money is reserved."""
        return self in {Verdict.ADMITTED, Verdict.HELD}


class Account(msgspec.Struct, frozen=True):
    """A cap and its use, in one unit. ``settled`` has the names of finished reservations."""

    cap: int = 0
    spent: int = 0
    returned: int = 0
    overrun: int = 0
    reservations: tuple[Reservation, ...] = ()
    settled: tuple[str, ...] = ()
    closed: bool = False

    @property
    def reserved(self) -> int:
        """The sum of the open reservations."""
        return sum(each.amount for each in self.reservations)

    @property
    def free(self) -> int:
        """The amount that can still be reserved."""
        return self.cap - self.spent - self.reserved - self.returned

    @property
    def cost(self) -> int:
        """The real cost of everything, charges included."""
        return self.spent + self.overrun

    @property
    def sound(self) -> bool:
        """Whether the equation holds: nothing is negative, the cap is kept, no overrun while something is free."""
        parts = (self.spent, self.reserved, self.returned, self.overrun)
        within = min(*parts, self.free) >= 0
        return within and (self.free == 0 or not (self.overrun or self.closed))

    def held(self, name: str) -> Reservation | None:
        """Return the open reservation of this name."""
        return next((each for each in self.reservations if each.name == name), None)

    def verdict(self, name: str, amount: int) -> Verdict:
        """Return the answer to a reservation."""
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
        """Return the account with the money reserved if the gate admits it, and unchanged otherwise."""
        if self.verdict(name, amount) is not Verdict.ADMITTED:
            return self
        return replace(self, reservations=(*self.reservations, Reservation(name, amount)))

    def settle(self, name: str, cost: int) -> "Account":
        """Return the account with a reservation replaced by its cost; unknown names change nothing."""
        if self.held(name) is None or cost < 0:
            return self
        left = tuple(each for each in self.reservations if each.name != name)
        remembered = (*self.settled, name)[-SETTLED_LIMIT:]
        owed = self.overrun + cost
        return replace(self, reservations=left, settled=remembered, overrun=owed).balanced()

    def refund(self, name: str) -> "Account":
        """Return the account without a reservation: its work cost nothing."""
        return self.settle(name, 0)

    def charge(self, amount: int) -> "Account":
        """Return the account after a payment without a reservation; less than 1 changes nothing."""
        if amount < 1:
            return self
        return replace(self, overrun=self.overrun + amount).balanced()

    def renewed(self) -> "Account":
        """Return the account of a new period, with nothing spent. An overrun is paid from it first."""
        return replace(self, spent=0).balanced()

    def grant(self, amount: int) -> "Account":
        """Return the account with a higher cap; an overrun is paid from it first."""
        return replace(self, cap=self.cap + amount).balanced()

    def close(self) -> "Account":
        """Return the account closed: free money is returned; reserved money can still be settled (B12, B19)."""
        return replace(self, closed=True).balanced()

    def balanced(self) -> "Account":
        """Pay the overrun from the free money; a closed account returns the rest."""
        paid = min(self.free, self.overrun)
        rest = self.free - paid if self.closed else 0
        return replace(self, spent=self.spent + paid, overrun=self.overrun - paid, returned=self.returned + rest)
