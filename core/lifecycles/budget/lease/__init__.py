"""A lease: a budget with a holder and an end. Usage needs ACTIVE, and the rest is returned.

A lease begins ACTIVE, with its granted amount. It expires at the end of its time, or when the last of the money is used
up. Within the grace, 60 seconds, it can be refreshed; after the grace it closes by itself. A lease can be closed or
revoked at any time before, also when EXPIRED (B19). CLOSED and REVOKED are final.

*The rest is returned at every end*: closing an expired lease returns granted less spent as closing an active one does,
and so does a revocation (B19). Money that is still reserved then is not lost. It is settled when its work reports,
in any state of the lease, and the difference is returned at that moment (B12).

The end of its time is a timer of its state, so it is neither lost by a restart nor fired twice. An expiry by exhaustion
needs something to have been spent. Its last step can be a settlement, a charge, or a refund of a reservation that only
pays for another one. A lease of nothing is ACTIVE and admits nothing. The gate itself, its equation, and the effect of
a settlement above its reservation are in ``budget.account.Account``.
"""

from lifefold.core.lifecycles.budget.lease.model import (
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
from lifefold.core.lifecycles.budget.lease.properties import (
    PROPERTIES,
    account_is_sound,
    cap_is_kept,
    closed_with_the_lease,
    is_over_when_used_up,
)
from lifefold.core.lifecycles.budget.lease.rules import (
    charge,
    close,
    duration,
    fits,
    grace,
    grant,
    has_something,
    is_more,
    is_reserved,
    refund,
    reserve,
    revoke,
    settle,
    uses_up,
)
from lifefold.core.lifecycles.budget.lease.table import machine

__all__ = [
    "OPEN", "PROPERTIES", "AddBudget", "Charge", "Close", "Expire", "GraceExceeded", "Lease", "Limits", "Refresh",
    "Refund", "Reserve", "Revoke", "Settle", "State", "account_is_sound", "cap_is_kept", "charge", "close",
    "closed_with_the_lease", "duration", "fits", "grace", "grant", "has_something", "is_more", "is_over_when_used_up",
    "is_reserved", "machine", "refund", "reserve", "revoke", "settle", "uses_up", "verdict",
]  # fmt: skip
