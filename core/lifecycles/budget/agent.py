"""An agent and its money: a status, and a lease for each of its incarnations, as one aggregate.

*Money is spent only while RUNNING* (I2), although neither lifecycle knows the other. The lease is opened with the
agent's start and closed with its end, in the same step, so an ACTIVE lease belongs to a RUNNING agent. A reservation is
settled at its own lease, also after the agent's end (B12), and the record of a failed agent does not change (B4). The
closing lease returns the rest (B19).

*The ceiling is the agent's, not the incarnation's.* A restart is granted the budget less the costs and reservations of
all earlier leases, so a restart cannot extend a budget (B7). If they have cost too much, the new lease begins with that
debt. A later overrun of an earlier lease is charged to the present one, or it could be spent a second time. So nothing
is admitted unless it fits beside everything that all incarnations have spent or reserved. The view ``COST`` has the
cost of all leases, and ``ADDED`` the additions to them, for the agent's whole life. So a lease that is over without an
open reservation need not be kept.
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
"""The view with the cost of all leases of the agent."""

ADDED: Final = "added_microusd"
"""The view with the additions to leases of the agent, beyond its first budget."""


def lease_ref(incarnation: int) -> str:
    """Return the reference of an incarnation's lease."""
    return f"lease:{incarnation}"


def opening(agent: status.Status) -> dict[str, Record]:
    """Return the first records of an agent."""
    return {STATUS: agent, lease_ref(agent.incarnation): granted(agent, agent.budget_microusd)}


def granted(agent: status.Status, amount_microusd: int) -> lease.Lease:
    """Return the lease of the agent's present incarnation; a negative amount is granted as a debt."""
    limits = lease.Limits() if agent.lease_ms is None else lease.Limits(duration_ms=agent.lease_ms)
    account = Account(cap=max(0, amount_microusd), overrun=max(0, -amount_microusd))
    return lease.Lease(holder=agent.agent_id, account=account, limits=limits)


def left_microusd(agent: Aggregate) -> int:
    """Return the amount that may still be granted: the agent's budget less the costs and reservations of its leases.

    It is below zero if they have cost too much.
    """
    record: status.Status = agent.record(STATUS)
    held_microusd: int = sum(each.record.account.reserved for each in leases(agent))
    return record.budget_microusd + int(agent.views[ADDED]) - int(agent.views[COST]) - held_microusd


def leases(agent: Aggregate) -> tuple[Any, ...]:
    """Return the kept leases, the newest first."""
    refs = [ref for ref in agent.entities if ref.startswith("lease:")]
    return tuple(agent.entities[ref] for ref in sorted(refs, key=_number, reverse=True))


def is_settled(of: lease.Lease) -> bool:
    """Tell whether nothing more can happen to the lease."""
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
    """A restart opens a lease with the remaining budget; stopping and failing close the open one (B19)."""
    if transition.before is None or transition.entered is None:
        return
    record: status.Status = transition.after.record
    if record.state is status.State.RUNNING:
        yield Create(lease_ref(record.incarnation), granted(record, left_microusd(agent)))
    elif (present := open_lease(agent)) is not None:
        yield Dispatch(present.ref, lease.Close())


@rule(on=lease.machine)
def present_lease_pays_for_earlier_ones(agent: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """An overrun of an earlier incarnation's lease is charged to the open one (B7)."""
    present, change = open_lease(agent), _changed(transition)
    if change is None or present is None or present.ref == transition.entity:
        return
    before, after = change
    if after.overrun > before.overrun:
        yield Dispatch(present.ref, lease.Charge(after.overrun - before.overrun))


def _changed(transition: Transition) -> tuple[Account, Account] | None:
    """Return a lease's account before and after a transition, unless that created the lease."""
    if transition.machine != lease.machine.name or transition.before is None:
        return None
    return transition.before.record.account, transition.after.record.account


def _with_cost(cost_microusd: int, transition: Transition) -> int:
    """Add a lease's cost in this transition; a charge was counted at another lease."""
    change = _changed(transition)
    if change is None or isinstance(transition.event, lease.Charge):
        return cost_microusd
    before, after = change
    return cost_microusd + after.cost - before.cost


def _with_added(added_microusd: int, transition: Transition) -> int:
    """Add the grant to a lease in this transition."""
    change = _changed(transition)
    if change is None:
        return added_microusd
    before, after = change
    return added_microusd + after.cap - before.cap


def keeps_the_ceiling(agent: Aggregate) -> bool:
    """All leases together have spent and reserved no more than the budget and its additions (B7)."""
    record: status.Status = agent.record(STATUS)
    accounts: list[Account] = [each.record.account for each in leases(agent)]
    used_microusd = sum(each.spent + each.reserved for each in accounts)
    return used_microusd <= record.budget_microusd + int(agent.views[ADDED])


def spends_only_while_running(agent: Aggregate) -> bool:
    """An open lease is the present incarnation's, and its agent runs (I2)."""
    record: status.Status = agent.record(STATUS)
    opened = [each.ref for each in leases(agent) if each.record.state in lease.OPEN]
    return not opened or (record.state is status.State.RUNNING and opened == [lease_ref(record.incarnation)])


def accounts_agree(agent: Aggregate) -> bool:
    """The amount that may still be granted is the budget less the costs and reservations of all leases (B7)."""
    accounts: list[Account] = [each.record.account for each in leases(agent)]
    return int(agent.views[COST]) <= sum(each.cost for each in accounts)


PROPERTIES: Final[tuple[Property[Aggregate], ...]] = (
    always("no incarnation extends the budget", keeps_the_ceiling),
    always("money is spent only while the agent runs, and from one lease", spends_only_while_running),
    always("every cost is counted", accounts_agree),
    sometimes("a second lease begins with less", lambda a: any(each.ref != lease_ref(1) for each in leases(a))),
    sometimes("the budget is used up", lambda a: left_microusd(a) == 0),
)

agent_type = AggregateType(
    KIND,
    machines=(status.draining, lease.machine),
    rules=(lease_follows_agent, present_lease_pays_for_earlier_ones),
    views={COST: View(0, _with_cost, int), ADDED: View(0, _with_added, int)},
    properties=PROPERTIES,
)
