"""The properties of a lease, for its grantor and its holder: of its record, and of every transition."""

from typing import Any, Final

from lifefold.core.kernel import (
    ANY,
    Entity,
    Event,
    Pattern,
    Property,
    Transition,
    accepts,
    always_step,
    leads_to,
    sometimes,
    weakly,
)
from lifefold.core.lifecycles.budget.lease_model import (
    OPEN,
    AddBudget,
    Charge,
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
from lifefold.core.lifecycles.property_forms import asks_once, goes_on, is_transient, keeps_time
from lifefold.effects import ReturnBudget

# Properties of every lease


def cap_is_kept(x: Lease) -> bool:
    """The spent and reserved amounts never exceed the grant."""
    return x.account.spent + x.account.reserved <= x.account.cap


def account_is_sound(x: Lease) -> bool:
    """No amount is negative, and nothing is free beside an overrun."""
    return x.account.sound


def closed_with_the_lease(x: Lease) -> bool:
    """The account is closed exactly when the lease is over."""
    return x.account.closed is (x.state not in OPEN)


def is_over_when_used_up(x: Lease) -> bool:
    """An active lease with spent money has some left: free, or reserved for running work."""
    left_microusd = x.account.free + x.account.reserved
    return x.state is not State.ACTIVE or left_microusd > 0 or not x.account.spent


# Properties of every transition


def admits_only_while_active(step: Transition) -> bool:
    """Nothing new is reserved unless the lease is ACTIVE, and then no more than was free (B12, B19)."""
    before, now = step.was.account, step.after.record.account
    held = {each.name for each in before.reservations}
    new_microusd: int = sum(each.amount for each in now.reservations if each.name not in held)
    return not new_microusd or (step.was.state is State.ACTIVE and new_microusd <= before.free)


def cost_is_what_was_reported(step: Transition) -> bool:
    """The cost grows by the amount of a settlement or a charge, and by nothing else."""
    grown: int = step.after.record.account.cost - step.was.account.cost
    match step.event:
        case Settle(cost_microusd=amount) | Charge(amount_microusd=amount):
            return grown == amount
        case _:
            return grown == 0


def settles_once(step: Transition) -> bool:
    """A settlement or a refund removes the reservation that it names, which was open (B12)."""
    if not isinstance(step.event, Settle | Refund):
        return True
    before, now = step.was.account, step.after.record.account
    return before.held(step.event.name) is not None and now.held(step.event.name) is None


def reservations_stay(step: Transition) -> bool:
    """A reservation is removed or changed by its settlement only, in any state of the lease (B12)."""
    named = step.event.name if isinstance(step.event, Settle | Refund) else None
    kept = {each for each in step.was.account.reservations if each.name != named}
    return kept <= set(step.after.record.account.reservations)


def returned_is_reported(step: Transition) -> bool:
    """Every returned amount is requested as an effect, and a lease that is over has nothing free (B19)."""
    before, now = step.was.account, step.after.record.account
    returned: int = sum(each.amount_microusd for each in step.effects if isinstance(each, ReturnBudget))
    over = step.after.state not in OPEN
    return bool(returned == now.returned - before.returned and not (over and now.free))


def grants_the_added_amount(step: Transition) -> bool:
    """The grant grows by added amounts, and by nothing else; an addition of nothing is refused."""
    grown: int = step.after.record.account.cap - step.was.account.cap
    match step.event:
        case AddBudget(amount_microusd=added):
            return grown == added > 0
        case Refresh(amount_microusd=added):
            return grown == added >= 0
        case _:
            return grown == 0


def reserves_the_admitted_amount(step: Transition) -> bool:
    """An admitted amount is reserved under its name; a charge of nothing is refused."""
    match step.event:
        case Reserve(name=name, amount_microusd=amount):
            held = step.after.record.account.held(name)
            return held is not None and held.amount == amount
        case Charge(amount_microusd=amount):
            return amount > 0
        case _:
            return True


def ends_when_it_is_used_up(step: Transition) -> bool:
    """A payment ends a lease that has nothing left, and changes the state of no other."""
    x: Lease = step.after.record
    used_up = not (x.account.reserved or x.account.free)
    ends = step.was.state is State.ACTIVE and used_up
    return step.entered is (State.EXPIRED if ends else None)


# Accepted inputs of every lease


def something_fits(e: Entity[Lease]) -> bool:
    """Tell whether an example asks for no more than is free, under a new name."""
    x = e.record.account
    known = {*x.settled, *(each.name for each in x.reservations)}
    return any(each.name not in known and each.amount_microusd <= x.free for each in Reserve.examples())


_WITH_MORE: Final = Pattern(Refresh, "more", lambda e: e.amount_microusd > 0)
_AS_IT_IS: Final = Pattern(Refresh, "nothing", lambda e: e.amount_microusd == 0)

ACCEPTED: Final[tuple[Property[Any], ...]] = (
    accepts("free money can be reserved", {State.ACTIVE: (Reserve,)}, when=something_fits),
    accepts(
        "the cost of work can be settled, also when the lease is over",
        {ANY: (Settle,)},
        when=lambda e: any(e.record.account.held(each.name) for each in Settle.examples()),
    ),
    accepts(
        "a reservation can be refunded, also when the lease is over",
        {ANY: (Refund,)},
        when=lambda e: any(e.record.account.held(each.name) for each in Refund.examples()),
    ),
    accepts(
        "an expired lease can be refreshed with more",
        {State.EXPIRED: (_WITH_MORE,)},
        when=lambda e: not e.record.account.overrun,
    ),
    accepts(
        "a lease with something left can be refreshed as it is",
        {State.EXPIRED: (_AS_IT_IS,)},
        when=lambda e: e.record.account.free + e.record.account.reserved > 0,
    ),
    goes_on("Expire", State.ACTIVE),
    goes_on("GraceExceeded", State.EXPIRED),
)
"""Accepted inputs, and the timers of the states."""

PROPERTIES: Final[tuple[Property[Any], ...]] = (
    *ACCEPTED,
    always_step("only an active lease reserves, and no more than is free", admits_only_while_active, on=Event),
    always_step("the cost grows by settlements and charges only", cost_is_what_was_reported, on=Event),
    always_step("the grant grows by additions only", grants_the_added_amount, on=Event),
    always_step("an admitted amount is reserved under its name", reserves_the_admitted_amount),
    always_step("a lease that has paid its last is over", ends_when_it_is_used_up, on=Settle | Refund | Charge),
    always_step(
        "a revoked lease has the reason",
        lambda step: not isinstance(step.event, Revoke) or step.after.record.reason == step.event.reason,
    ),
    *keeps_time(
        {
            Expire: ((State.ACTIVE,), lambda x: x.limits.duration_ms),
            GraceExceeded: ((State.EXPIRED,), lambda x: x.limits.grace_ms),
        }
    ),
    asks_once(),
    always_step("a reservation is settled or refunded once", settles_once, on=Event),
    always_step("no reservation is forgotten", reservations_stay, on=Event),
    always_step(
        "every returned amount is reported, and a lease that is over keeps nothing", returned_is_reported, on=Event
    ),
    leads_to(
        "every reservation is settled or refunded, if its work reports",
        lambda e: bool(e.record.account.reservations),
        lambda e: not e.record.account.reservations,
        given=weakly(Settle),
    ),
    is_transient(State.EXPIRED),
    sometimes("a lease is used up", lambda e: e.state is State.EXPIRED and e.record.account.spent > 0),
    sometimes("a lease is closed with money left", lambda e: e.record.account.returned > 0),
    sometimes("more is spent than was granted", lambda e: e.record.account.overrun > 0),
    sometimes(
        "work reports after its lease is over", lambda e: e.state not in OPEN and bool(e.record.account.reservations)
    ),
)
