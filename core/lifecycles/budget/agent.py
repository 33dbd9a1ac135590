"""An agent and its money: a status, and a lease for each of its incarnations, as one aggregate.

*Money is spent only while RUNNING* (I2), although neither lifecycle knows the other: the lease is opened with the
agent's start and closed with its end, in the same step, so a lease that is ACTIVE belongs to an agent that is RUNNING.
What was reserved before is settled after it at the lease that it came from (B12), while the record of a failed agent
stays as it is (B4); and what is not needed is returned by the closing lease (B19).

*The ceiling is the agent's, not the incarnation's.* A restart is granted what all leases before it have neither cost
nor still hold, so restarting is no way around a budget (B7). If they have cost too much, the new lease begins with that
debt. What an earlier lease overruns afterwards, the present one is charged with, or it could be spent a second time. So
nothing is admitted unless it fits beside all that has been spent or is held by any incarnation. What the leases have
cost is the view ``COST``, and what was added to them, for the agent's whole life, is ``ADDED``; so a lease that is over
and has nothing open need not be kept.
"""

from collections.abc import Iterator
from typing import Any, Final

from lifefold.core.kernel import (
    Aggregate,
    AggregateType,
    Create,
    Dispatch,
    Entity,
    Property,
    Record,
    Transition,
    View,
    always,
    rule,
    sometimes,
)
from lifefold.core.lifecycles import status
from lifefold.core.lifecycles.budget import lease
from lifefold.core.lifecycles.budget.account import Account

KIND: Final = "agent"

STATUS: Final = status.draining.name
"""The reference of the agent's status."""

COST: Final = "cost_microusd"
"""The view of what all leases of the agent have cost."""

ADDED: Final = "added_microusd"
"""The view of what was added to leases of the agent, beyond what it began with."""


def lease_ref(incarnation: int) -> str:
    """Return the reference of an incarnation's lease."""
    return f"lease:{incarnation}"


def opening(agent: status.Status) -> dict[str, Record]:
    """Return the records with which an agent's life begins."""
    return {STATUS: agent, lease_ref(agent.incarnation): granted(agent, agent.budget_microusd)}


def granted(agent: status.Status, amount_microusd: int) -> lease.Lease:
    """Return the lease of the agent's present incarnation; less than nothing is granted as a debt."""
    limits = lease.Limits() if agent.lease_ms is None else lease.Limits(duration_ms=agent.lease_ms)
    account = Account(cap=max(0, amount_microusd), overrun=max(0, -amount_microusd))
    return lease.Lease(holder=agent.agent_id, account=account, limits=limits)


def left_microusd(agent: Aggregate) -> int:
    """Return what may still be granted to the agent: its budget less what leases have cost or still hold.

    It is below zero if they have cost too much.
    """
    record: status.Status = agent.record(STATUS)
    held_microusd: int = sum(each.record.account.reserved for each in leases(agent))
    return record.budget_microusd + int(agent.views[ADDED]) - int(agent.views[COST]) - held_microusd


def leases(agent: Aggregate) -> tuple[Any, ...]:
    """Return the leases that are kept, the newest first."""
    refs = [ref for ref in agent.entities if ref.startswith("lease:")]
    return tuple(agent.entities[ref] for ref in sorted(refs, key=_number, reverse=True))


def is_settled(of: lease.Lease) -> bool:
    """Tell whether nothing will happen to the lease any more."""
    return of.state in lease.machine.final and not of.account.reservations


def open_lease(agent: Aggregate) -> Entity[lease.Lease] | None:
    """Return the lease of the agent's present incarnation, unless it is over."""
    record: status.Status = agent.record(STATUS)
    found: Entity[lease.Lease] | None = agent.entities.get(lease_ref(record.incarnation))
    return found if found is not None and found.record.state in lease.OPEN else None


def _number(ref: str) -> int:
    return int(ref.partition(":")[2])


@rule(on=status.draining)
def lease_follows_agent(agent: Aggregate, transition: Transition) -> Iterator[Create | Dispatch]:
    """A restart opens a lease with what is left; stopping and failing close the one that is open (B19)."""
    if transition.before is None or transition.entered is None:
        return
    record: status.Status = transition.after.record
    if record.state is status.State.RUNNING:
        yield Create(lease_ref(record.incarnation), granted(record, left_microusd(agent)))
    elif (present := open_lease(agent)) is not None:
        yield Dispatch(present.ref, lease.Close())


@rule(on=lease.machine)
def present_lease_pays_for_earlier_ones(agent: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """What a lease of an earlier incarnation overruns is charged to the one that is open (B7)."""
    present, change = open_lease(agent), _changed(transition)
    if change is None or present is None or present.ref == transition.entity:
        return
    before, after = change
    if after.overrun > before.overrun:
        yield Dispatch(present.ref, lease.Charge(after.overrun - before.overrun))


def _changed(transition: Transition) -> tuple[Account, Account] | None:
    """Return a lease's account before and after a transition that is not its birth."""
    if transition.machine != lease.machine.name or transition.before is None:
        return None
    return transition.before.record.account, transition.after.record.account


def _with_cost(cost_microusd: int, transition: Transition) -> int:
    """Add what a lease has cost in this transition; what it is charged with was counted at another one."""
    change = _changed(transition)
    if change is None or isinstance(transition.event, lease.Charge):
        return cost_microusd
    before, after = change
    return cost_microusd + after.cost - before.cost


def _with_added(added_microusd: int, transition: Transition) -> int:
    """Add what a lease was granted in this transition."""
    change = _changed(transition)
    if change is None:
        return added_microusd
    before, after = change
    return added_microusd + after.cap - before.cap


def keeps_the_ceiling(agent: Aggregate) -> bool:
    """What all leases together have spent and hold is within the budget, and what was added to it (B7)."""
    record: status.Status = agent.record(STATUS)
    accounts: list[Account] = [each.record.account for each in leases(agent)]
    used_microusd = sum(each.spent + each.reserved for each in accounts)
    return used_microusd <= record.budget_microusd + int(agent.views[ADDED])


def spends_only_while_running(agent: Aggregate) -> bool:
    """A lease that is open is the present incarnation's, and its agent runs (I2)."""
    record: status.Status = agent.record(STATUS)
    opened = [each.ref for each in leases(agent) if each.record.state in lease.OPEN]
    return not opened or (record.state is status.State.RUNNING and opened == [lease_ref(record.incarnation)])


def accounts_agree(agent: Aggregate) -> bool:
    """What may still be granted is what all leases have not cost and do not hold (B7)."""
    accounts: list[Account] = [each.record.account for each in leases(agent)]
    return int(agent.views[COST]) <= sum(each.cost for each in accounts)


PROPERTIES: Final[tuple[Property[Aggregate], ...]] = (
    always("no incarnation brings more than the budget", keeps_the_ceiling),
    always("money is spent only while the agent runs, and from one lease", spends_only_while_running),
    always("no cost is forgotten", accounts_agree),
    sometimes("a second lease begins with less", lambda a: any(each.ref != lease_ref(1) for each in leases(a))),
    sometimes("the budget is used up", lambda a: left_microusd(a) == 0),
)

agent_type = AggregateType(
    KIND,
    machines=(status.draining, lease.machine),
    rules=(lease_follows_agent, present_lease_pays_for_earlier_ones),
    views={COST: View(0, _with_cost), ADDED: View(0, _with_added)},
    properties=PROPERTIES,
)
