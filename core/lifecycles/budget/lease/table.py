"""The table of a lease: its ends, and the spending before them."""

from lifefold.core.kernel import ANY, STAY, Machine, after, row
from lifefold.core.lifecycles.budget.lease.model import (
    OPEN,
    AddBudget,
    Charge,
    Close,
    Expire,
    GraceExceeded,
    Lease,
    Refresh,
    Refund,
    Reserve,
    Revoke,
    Settle,
    State,
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

machine = Machine(
    "lease",
    Lease(),
    about="a budget with a holder and an end: active, expired, closed, revoked",
    rows=(
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
    ),
    final={State.CLOSED, State.REVOKED},
    during={State.ACTIVE: after(duration, Expire), State.EXPIRED: after(grace, GraceExceeded)},
    invariants=(cap_is_kept, account_is_sound, closed_with_the_lease, is_over_when_used_up),
    properties=PROPERTIES,
)
