"""The guards, the actions and the times of a lease: what may be done, and what it makes of the account."""

from typing import Never

from lifefold.core.kernel import Event, Step, replace
from lifefold.core.lifecycles.budget.account import Account
from lifefold.core.lifecycles.budget.lease.model import (
    AddBudget,
    Charge,
    Lease,
    Refresh,
    Refund,
    Reserve,
    Revoke,
    Settle,
    verdict,
)
from lifefold.effects import ReturnBudget

# Guards


def fits(x: Lease, e: Reserve) -> bool:
    """The gate admits it, or has done so under the same name and amount."""
    return verdict(x, e.name, e.amount_microusd).admits


def is_reserved(x: Lease, e: Settle | Refund) -> bool:
    """There is such a reservation, and it is not settled yet."""
    cost_microusd = e.cost_microusd if isinstance(e, Settle) else 0
    return x.account.held(e.name) is not None and cost_microusd >= 0


def uses_up(x: Lease, e: Settle | Refund | Charge) -> bool:
    """It changes something, and nothing is reserved or free after it."""
    became = _paid(x, e)
    return became is not x.account and not became.reserved and not became.free


def is_more(_x: Lease, e: AddBudget | Charge) -> bool:
    """It is about something."""
    return e.amount_microusd > 0


def has_something(x: Lease, e: Refresh) -> bool:
    """There is something left to spend, or comes with the refresh."""
    became = x.account.grant(e.amount_microusd)
    return e.amount_microusd >= 0 and became.free + became.reserved > 0


# Actions


def reserve(x: Lease, e: Reserve) -> Step[Lease, Never]:
    """Set the money aside; the same again is the same."""
    return Step(replace(x, account=x.account.reserve(e.name, e.amount_microusd)))


def settle(x: Lease, e: Settle) -> Step[Lease, ReturnBudget]:
    """Turn the reservation into what was spent; a lease that is over returns the rest of it (B12)."""
    return _become(x, _paid(x, e))


def refund(x: Lease, e: Refund) -> Step[Lease, ReturnBudget]:
    """Give the reservation up."""
    return _become(x, _paid(x, e))


def charge(x: Lease, e: Charge) -> Step[Lease, Never]:
    """Pay from what is free; what that does not cover is an overrun."""
    return Step(replace(x, account=_paid(x, e)))


def grant(x: Lease, e: AddBudget | Refresh) -> Step[Lease, Never]:
    """Raise what was granted."""
    return Step(replace(x, account=x.account.grant(e.amount_microusd)))


def close(x: Lease, _e: Event) -> Step[Lease, ReturnBudget]:
    """Return what is left (B19)."""
    return _become(x, x.account.close())


def revoke(x: Lease, e: Revoke) -> Step[Lease, ReturnBudget]:
    """Return what is left, and remember why (B19)."""
    return _become(replace(x, reason=e.reason), x.account.close())


def _paid(x: Lease, e: Settle | Refund | Charge) -> Account:
    if isinstance(e, Charge):
        return x.account.charge(e.amount_microusd)
    return x.account.settle(e.name, e.cost_microusd) if isinstance(e, Settle) else x.account.refund(e.name)


def _become(x: Lease, account: Account) -> Step[Lease, ReturnBudget]:
    back = account.returned - x.account.returned
    return Step(replace(x, account=account), (ReturnBudget(x.holder, back),) if back else ())


def duration(x: Lease) -> int:
    """Return how long the lease is active, in milliseconds."""
    return x.limits.duration_ms


def grace(x: Lease) -> int:
    """Return how long an expired lease can be refreshed, in milliseconds."""
    return x.limits.grace_ms
