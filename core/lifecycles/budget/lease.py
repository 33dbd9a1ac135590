"""A lease: a budget with a holder and an end. Usage needs ACTIVE, and the rest is returned.

A lease begins ACTIVE, with its granted amount. It expires at the end of its time, or when the last of the money is used
up. Within the grace, 60 seconds, it can be refreshed; after the grace it closes by itself. A lease can be closed or
revoked at any time before, also when EXPIRED (B19). CLOSED and REVOKED are final.

*The rest is returned at every end*: closing an expired lease returns granted less spent, as closing an active one does.
So does a revocation (B19). Money that is still reserved then is not lost. It is settled when its work reports, in any
state of the lease, and the difference is returned at that moment (B12).

The end of its time is a timer of its state, so it is neither lost by a restart nor fired twice. An expiry by exhaustion
needs something to have been spent. Its last step can be a settlement, a charge, or a refund of a reservation that only
pays for another one. A lease of nothing is ACTIVE and admits nothing. The gate itself, its equation, and the effect of
a settlement above its reservation are in ``budget.account.Account``.
"""

from typing import Final, Never

from lifefold.core.kernel import ANY, STAY, Event, Machine, Row, Step, after, replace, row
from lifefold.core.lifecycles.budget.account import Account
from lifefold.core.lifecycles.budget.lease_model import (
    OPEN,
    AddBudget,
    Charge,
    Close,
    Expire,
    GraceExceeded,
    Lease,
    Limits,
    Refresh,
    Refund,
    Reserve,
    Revoke,
    Settle,
    State,
    verdict,
)
from lifefold.core.lifecycles.budget.lease_properties import (
    PROPERTIES,
    account_is_sound,
    cap_is_kept,
    closed_with_the_lease,
    is_over_when_used_up,
)
from lifefold.core.lifecycles.property_forms import follows_table
from lifefold.effects import ReturnBudget

__all__ = [
    "OPEN", "AddBudget", "Charge", "Close", "Expire", "GraceExceeded", "Lease", "Limits", "Refresh", "Refund",
    "Reserve", "Revoke", "Settle", "State", "charge", "close", "duration", "fits", "grace", "grant", "has_something",
    "is_more", "is_reserved", "machine", "refund", "reserve", "revoke", "settle", "uses_up", "verdict",
]  # fmt: skip

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


ROWS: Final[tuple[Row[Lease], ...]] = (
    row(State.ACTIVE, Expire, State.EXPIRED),
    row(State.ACTIVE, Settle, State.EXPIRED, settle, when=uses_up),
    row(State.ACTIVE, Refund, State.EXPIRED, refund, when=uses_up),
    row(State.ACTIVE, Charge, State.EXPIRED, charge, when=uses_up),
    row(State.EXPIRED, Refresh, State.ACTIVE, grant, when=has_something),
    row(State.EXPIRED, GraceExceeded, State.CLOSED, close),
    row(OPEN, Close, State.CLOSED, close),
    row(OPEN, Revoke, State.REVOKED, revoke),
    row(State.ACTIVE, Reserve, STAY, reserve, when=fits),
    row(State.ACTIVE, AddBudget, STAY, grant, when=is_more),
    row(OPEN, Charge, STAY, charge, when=is_more),
    row(ANY, Settle, STAY, settle, when=is_reserved),
    row(ANY, Refund, STAY, refund, when=is_reserved),
)

machine = Machine(
    "lease",
    Lease(),
    about="a budget with a holder and an end: active, expired, closed, revoked",
    rows=ROWS,
    final={State.CLOSED, State.REVOKED},
    during={State.ACTIVE: after(duration, Expire), State.EXPIRED: after(grace, GraceExceeded)},
    invariants=(cap_is_kept, account_is_sound, closed_with_the_lease, is_over_when_used_up),
    properties=(*PROPERTIES, *follows_table(ROWS, but=(fits, is_reserved, has_something, uses_up))),
)
