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

from typing import Any, Final, Never

import msgspec

from lifefold.core.budget.account import Account, Verdict
from lifefold.core.kernel import (
    ANY,
    STAY,
    Event,
    Machine,
    Property,
    Record,
    Step,
    Transition,
    after,
    always_step,
    leads_to,
    replace,
    row,
    sometimes,
    weakly,
)
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.policy.limits import at_least
from lifefold.core.policy.promises import passes
from lifefold.effects import ReturnBudget


class State(AnyLifecycleState):
    """The four states of a lease."""

    ACTIVE = "ACTIVE"
    EXPIRED = "EXPIRED"
    CLOSED = "CLOSED"
    REVOKED = "REVOKED"


OPEN: Final = (State.ACTIVE, State.EXPIRED)


class Reserve(Event, frozen=True):
    """Work is about to begin that may cost this much."""

    name: str
    amount_microusd: int

    @classmethod
    def examples(cls) -> tuple["Reserve", ...]:
        """Return two that fit, one of them under another name, and one that does not fit."""
        return cls("a", 3), cls("b", 1), cls("c", 1_000)


class Settle(Event, frozen=True):
    """The work of this reservation is done and has cost this much."""

    name: str
    cost_microusd: int

    @classmethod
    def examples(cls) -> tuple["Settle", ...]:
        """Return one below, one at, and one far above what was reserved."""
        return cls("a", 2), cls("b", 1), cls("a", 100)


class Refund(Event, frozen=True):
    """The work of this reservation was not done, or has cost nothing."""

    name: str

    @classmethod
    def examples(cls) -> tuple["Refund", ...]:
        """Return one."""
        return (cls("a"),)


class Charge(Event, frozen=True):
    """Another lease of this holder has cost so much more than it was granted; this one pays."""

    amount_microusd: int

    @classmethod
    def examples(cls) -> tuple["Charge", ...]:
        """Return a low and a high one, and one of nothing, which is refused."""
        return cls(1), cls(100), cls(0)


class AddBudget(Event, frozen=True):
    """More is granted."""

    amount_microusd: int

    @classmethod
    def examples(cls) -> tuple["AddBudget", ...]:
        """Return a grant, and one of nothing, which is refused."""
        return cls(4), cls(0)


class Expire(Event, frozen=True):
    """The lease's time is over."""


class Refresh(Event, frozen=True):
    """The lease is to go on, with so much more."""

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
    """Whoever granted the lease takes it back, or its token is invalid."""

    reason: str = ""


class Limits(msgspec.Struct, frozen=True):
    """How long a lease lasts, and for how long after that it can be refreshed, in milliseconds."""

    duration_ms: int = 366 * 24 * 3_600_000
    grace_ms: int = 60_000

    def __post_init__(self) -> None:
        """Refuse what could never work. Raises ``ValueError`` naming the field."""
        at_least(1, self, "duration_ms")
        at_least(0, self, "grace_ms")


class Lease(Record, frozen=True):
    """A lease of ``holder``; its ``account``'s cap is what was granted."""

    state: State = State.ACTIVE
    holder: str = ""
    account: Account = Account()
    limits: Limits = Limits()
    reason: str = ""


def verdict(x: Lease, name: str, amount_microusd: int) -> Verdict:
    """Tell what would become of a reservation."""
    return Verdict.EXPIRED if x.state is State.EXPIRED else x.account.verdict(name, amount_microusd)


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
    return became is not x.account and not became.reserved_microusd and not became.free_microusd


def is_more(_x: Lease, e: AddBudget | Charge) -> bool:
    """It is about something."""
    return e.amount_microusd > 0


def has_something(x: Lease, e: Refresh) -> bool:
    """There is something left to spend, or comes with the refresh."""
    became = x.account.grant(e.amount_microusd)
    return e.amount_microusd >= 0 and became.free_microusd + became.reserved_microusd > 0


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
    back = account.returned_microusd - x.account.returned_microusd
    return Step(replace(x, account=account), (ReturnBudget(x.holder, back),) if back else ())


def duration(x: Lease) -> int:
    """Return how long the lease is active, in milliseconds."""
    return x.limits.duration_ms


def grace(x: Lease) -> int:
    """Return how long an expired lease can be refreshed, in milliseconds."""
    return x.limits.grace_ms


# What holds of every lease


def cap_is_kept(x: Lease) -> bool:
    """What is spent and what is reserved never pass what was granted."""
    return x.account.spent_microusd + x.account.reserved_microusd <= x.account.cap_microusd


def account_is_sound(x: Lease) -> bool:
    """No amount is negative, and nothing is free beside an overrun."""
    return x.account.sound


def closed_with_the_lease(x: Lease) -> bool:
    """The account is closed exactly when the lease is over."""
    return x.account.closed is (x.state not in OPEN)


def is_over_when_used_up(x: Lease) -> bool:
    """Of an active lease that was spent from, something is left: free, or reserved for work that is under way."""
    left_microusd = x.account.free_microusd + x.account.reserved_microusd
    return x.state is not State.ACTIVE or left_microusd > 0 or not x.account.spent_microusd


# What holds of every step


def admits_only_while_active(step: Transition) -> bool:
    """Nothing new is reserved unless the lease is ACTIVE, and then no more than was free (B12, B19)."""
    if step.before is None:
        return True
    before, now = step.before.record.account, step.after.record.account
    held = {each.name for each in before.reservations}
    new_microusd: int = sum(each.amount_microusd for each in now.reservations if each.name not in held)
    return not new_microusd or (step.before.state is State.ACTIVE and new_microusd <= before.free_microusd)


def cost_is_what_was_said(step: Transition) -> bool:
    """The cost grows by what a settlement or a charge says, and by nothing else."""
    if step.before is None:
        return True
    grown: int = step.after.record.account.cost_microusd - step.before.record.account.cost_microusd
    match step.event:
        case Settle(cost_microusd=said) | Charge(amount_microusd=said):
            return grown == said
        case _:
            return grown == 0


def settles_once(step: Transition) -> bool:
    """A settlement or a refund takes away the reservation that it names, which was there (B12)."""
    if step.before is None or not isinstance(step.event, Settle | Refund):
        return True
    before, now = step.before.record.account, step.after.record.account
    return before.held(step.event.name) is not None and now.held(step.event.name) is None


def reservations_stay(step: Transition) -> bool:
    """What is reserved is neither forgotten nor changed but by its settlement, whatever becomes of the lease (B12)."""
    if step.before is None:
        return True
    named = step.event.name if isinstance(step.event, Settle | Refund) else None
    kept = {each for each in step.before.record.account.reservations if each.name != named}
    return kept <= set(step.after.record.account.reservations)


def returned_is_told(step: Transition) -> bool:
    """What goes back is asked for, to the last of it, and when the lease is over nothing is left free (B19)."""
    if step.before is None:
        return True
    before, now = step.before.record.account, step.after.record.account
    told: int = sum(each.amount_microusd for each in step.effects if isinstance(each, ReturnBudget))
    over = step.after.state not in OPEN
    return bool(told == now.returned_microusd - before.returned_microusd and not (over and now.free_microusd))


PROMISES: Final[tuple[Property[Any], ...]] = (
    always_step("nothing is reserved but from an active lease, and no more than is free", admits_only_while_active),
    always_step("the cost grows by what is said that it grows by", cost_is_what_was_said),
    always_step("a reservation is settled or refunded once", settles_once),
    always_step("no reservation is forgotten", reservations_stay),
    always_step("what goes back is told, and whoever ends keeps nothing", returned_is_told),
    leads_to(
        "every reservation is settled or refunded, if its work reports",
        lambda e: bool(e.record.account.reservations),
        lambda e: not e.record.account.reservations,
        given=weakly(Settle),
    ),
    passes(State.EXPIRED),
    sometimes("a lease is used up", lambda e: e.state is State.EXPIRED and e.record.account.spent_microusd > 0),
    sometimes("a lease is closed with money left", lambda e: e.record.account.returned_microusd > 0),
    sometimes("more is spent than was granted", lambda e: e.record.account.overrun_microusd > 0),
    sometimes(
        "work reports after its lease is over",
        lambda e: e.state not in OPEN and bool(e.record.account.reservations),
    ),
)


machine = Machine(
    "lease",
    Lease(),
    about="a budget to be spent from for a time: active, expired, closed, revoked",
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
    properties=PROMISES,
)
