"""An agent and its money: a status, and a lease for each of its incarnations, as one aggregate.

*Money is spent only while RUNNING* (I2), although neither lifecycle knows the other: the lease is opened with the
agent's start and closed with its end, in the same step, so a lease that is ACTIVE belongs to an agent that is RUNNING.
What was reserved before is settled after it at the lease that it came from (B12), while the record of a failed agent
stays as it is (B4); and what is not needed is returned by the closing lease (B19).

*The ceiling is the agent's, not the incarnation's.* A restart is granted what all leases before it have neither cost
nor still hold, so restarting is no way around a budget (B7). What they have cost is the view ``COST``; so a lease that
is over and has nothing open need not be kept.
"""

from collections.abc import Iterator
from typing import Any, Final

from lifefold.core import status
from lifefold.core.budget import lease
from lifefold.core.budget.account import Account
from lifefold.core.kernel import Aggregate, AggregateType, Create, Dispatch, Record, Transition, View, rule

KIND: Final = "agent"

COST: Final = "cost_microusd"
"""The view of what all leases of the agent have cost."""


def lease_ref(incarnation: int) -> str:
    """Return the reference of an incarnation's lease."""
    return f"lease:{incarnation}"


def opening(agent: status.Status) -> dict[str, Record]:
    """Return the records with which an agent's life begins."""
    return {"status": agent, lease_ref(agent.incarnation): granted(agent, agent.budget_microusd)}


def granted(agent: status.Status, amount_microusd: int) -> lease.Lease:
    """Return the lease of the agent's present incarnation."""
    limits = lease.Limits() if agent.lease_ms is None else lease.Limits(duration_ms=agent.lease_ms)
    return lease.Lease(holder=agent.agent_id, account=Account(cap_microusd=amount_microusd), limits=limits)


def left_microusd(agent: Aggregate) -> int:
    """Return what may still be granted to the agent: its budget less what leases have cost or still hold."""
    record: status.Status = agent.record("status")
    held_microusd: int = sum(each.record.account.reserved_microusd for each in leases(agent))
    return max(0, record.budget_microusd - int(agent.views[COST]) - held_microusd)


def leases(agent: Aggregate) -> tuple[Any, ...]:
    """Return the leases that are kept, the newest first."""
    refs = [ref for ref in agent.entities if ref.startswith("lease:")]
    return tuple(agent.entities[ref] for ref in sorted(refs, key=_number, reverse=True))


def is_settled(of: lease.Lease) -> bool:
    """Tell whether nothing will happen to the lease any more."""
    return of.state in lease.machine.final and not of.account.reservations


def _number(ref: str) -> int:
    return int(ref.partition(":")[2])


@rule(on=status.machine)
def lease_follows_agent(agent: Aggregate, transition: Transition) -> Iterator[Create | Dispatch]:
    """A restart opens a lease with what is left; stopping and failing close the one there is (B19)."""
    if transition.before is None or transition.entered is None:
        return
    record: status.Status = transition.after.record
    if record.state is status.State.RUNNING:
        yield Create(lease_ref(record.incarnation), granted(record, left_microusd(agent)))
    else:
        yield Dispatch(lease_ref(record.incarnation), lease.Close())


def _with_cost(cost_microusd: int, transition: Transition) -> int:
    """Add what a lease has cost in this transition."""
    if not isinstance(transition.after.record, lease.Lease):
        return cost_microusd
    before = 0 if transition.before is None else transition.before.record.account.cost_microusd
    return cost_microusd + int(transition.after.record.account.cost_microusd) - int(before)


agent_type = AggregateType(
    KIND,
    machines=(status.machine, lease.machine),
    rules=(lease_follows_agent,),
    views={COST: View(0, _with_cost)},
)
