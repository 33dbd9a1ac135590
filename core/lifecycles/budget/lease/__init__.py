"""A lease: a budget that somebody may spend from for a time. Usage needs ACTIVE, and what is left goes back.

A lease begins ACTIVE, with what it was granted. It expires when its time is over, or when the last of the money is
used up; within the grace, 60 seconds, it can be refreshed, and after it it closes by itself. A lease can be closed or
revoked at any time before, EXPIRED ones included (B19). CLOSED and REVOKED are final.

*What is left is returned in every way out*: closing an expired lease returns granted less spent as closing an active
one does, and so does a revocation (B19). What is still reserved then is not lost: it is settled when its work reports,
whatever has become of the lease, and the difference is returned at that moment (B12).

The end of its time is a timer of its state, so it is neither lost by a restart nor fired twice. An expiry by
exhaustion needs something to have been spent, by whatever comes last: a settlement, a charge, or giving up a
reservation that only pays for another one. A lease of nothing is ACTIVE and admits nothing. The gate itself, its
equation and what a settlement above its reservation does, is ``budget.account.Account``.
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
