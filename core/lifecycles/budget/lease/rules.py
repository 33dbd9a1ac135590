"""The guards, the actions and the times of a lease."""

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
    """The gate admits the reservation, or has admitted it under the same name and amount."""
    return verdict(x, e.name, e.amount_microusd).admits


def is_reserved(x: Lease, e: Settle | Refund) -> bool:
    """The reservation exists and is not settled yet."""
    cost_microusd = e.cost_microusd if isinstance(e, Settle) else 0
    return x.account.held(e.name) is not None and cost_microusd >= 0


def uses_up(x: Lease, e: Settle | Refund | Charge) -> bool:
    """The event changes something, and nothing is reserved or free after it."""
    became = _paid(x, e)
    return became is not x.account and not became.reserved and not became.free


def is_more(_x: Lease, e: AddBudget | Charge) -> bool:
    """The amount is positive."""
    return e.amount_microusd > 0


def has_something(x: Lease, e: Refresh) -> bool:
    """The lease has something left to spend, or the refresh adds something."""
    became = x.account.grant(e.amount_microusd)
    return e.amount_microusd >= 0 and became.free + became.reserved > 0


# Actions


def reserve(x: Lease, e: Reserve) -> Step[Lease, Never]:
    """Reserve the money; a repeated reservation changes nothing."""
    return Step(replace(x, account=x.account.reserve(e.name, e.amount_microusd)))


def settle(x: Lease, e: Settle) -> Step[Lease, ReturnBudget]:
    """Replace the reservation by its cost; a lease that is over returns the rest of it (B12)."""
    return _become(x, _paid(x, e))


def refund(x: Lease, e: Refund) -> Step[Lease, ReturnBudget]:
    """Drop the reservation."""
    return _become(x, _paid(x, e))


def charge(x: Lease, e: Charge) -> Step[Lease, Never]:
    """Pay from the free money; the rest is an overrun."""
    return Step(replace(x, account=_paid(x, e)))


def grant(x: Lease, e: AddBudget | Refresh) -> Step[Lease, Never]:
    """Increase the grant."""
    return Step(replace(x, account=x.account.grant(e.amount_microusd)))


def close(x: Lease, _e: Event) -> Step[Lease, ReturnBudget]:
    """Return the rest (B19)."""
    return _become(x, x.account.close())


def revoke(x: Lease, e: Revoke) -> Step[Lease, ReturnBudget]:
    """Return the rest, and keep the reason (B19)."""
    return _become(replace(x, reason=e.reason), x.account.close())


def _paid(x: Lease, e: Settle | Refund | Charge) -> Account:
    if isinstance(e, Charge):
        return x.account.charge(e.amount_microusd)
    return x.account.settle(e.name, e.cost_microusd) if isinstance(e, Settle) else x.account.refund(e.name)


def _become(x: Lease, account: Account) -> Step[Lease, ReturnBudget]:
    back = account.returned - x.account.returned
    return Step(replace(x, account=account), (ReturnBudget(x.holder, back),) if back else ())


def duration(x: Lease) -> int:
    """Return the duration of an active lease, in milliseconds."""
    return x.limits.duration_ms


def grace(x: Lease) -> int:
    """Return the time in which an expired lease can be refreshed, in milliseconds."""
    return x.limits.grace_ms
