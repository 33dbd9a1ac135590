"""A witness of the board: it remembers recalls, charges and restarts, which no state of the board shows."""

import msgspec

from lifefold.core.fleet.board import budget, fleet_task, restart_permit, worker_slot
from lifefold.core.fleet.dispatch import preemption, trust
from lifefold.core.kernel import Transition, replace
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.budget.amounts import Amounts


class Ledger(msgspec.Struct, frozen=True):
    """The reports that the board has got, and its answers."""

    worker_slots: tuple[tuple[str, worker_slot.WorkerSlot], ...] = ()
    """The worker slots of agents with trust."""
    robbed: bool = False
    """A task was recalled from a worker that was allowed to have it."""
    spent: Amounts = Amounts()
    """The cost in the last report."""
    silent: bool = False
    """The last report had no cost."""
    mischarged: bool = False
    """Another amount was charged."""
    made_room: tuple[tuple[str, int], ...] = ()
    """The last claim of each preempted task."""
    restart_permits: tuple[tuple[str, restart_permit.State], ...] = ()
    """The state of each restart permit."""
    owed: int = 0
    """The number of free permits that a worker has asked for and not got."""
    granted: tuple[tuple[str, int], ...] = ()
    """The workers with a permit, each with the number of its restart."""
    used: str = ""
    """The worker that has just used its permit."""
    misspent: bool = False
    """A permit was used or returned by another worker."""


def enter(ledger: Ledger, transition: Transition) -> Ledger:
    """Take in a transition of the board."""
    if not transition.actor.startswith("rule:"):
        ledger = replace(ledger, spent=Amounts(), silent=False, used="")
    if transition.machine == worker_slot.machine.name:
        return _seated(ledger, transition)
    if transition.machine == restart_permit.machine.name:
        return _permitted(ledger, transition)
    match transition.event:
        case task.Released() if transition.machine == fleet_task.machine.name and transition.before is not None:
            before: fleet_task.FleetTask = transition.before.record
            if transition.actor == f"rule:{preemption.take_away.name}":
                made = dict(ledger.made_room) | {before.id: before.epoch}
                return replace(ledger, made_room=tuple(sorted(made.items())))
            owner = dict(ledger.worker_slots).get(before.owner)
            by_trust = transition.actor == f"rule:{trust.withdraw.name}"
            allowed = by_trust and owner is not None and trust.is_allowed(before, owner)
            return replace(ledger, robbed=ledger.robbed or allowed)
        case budget.Settle(cost=cost) if transition.before is not None:
            due = _due(ledger, transition.before.record)
            return replace(ledger, mischarged=ledger.mischarged or cost != due)
        case _:
            return ledger


def _seated(ledger: Ledger, transition: Transition) -> Ledger:
    """Take in what is said of a worker, and how far it is trusted now."""
    now: worker_slot.WorkerSlot = transition.after.record
    if isinstance(transition.event, worker_slot.WorkWanted | worker_slot.WorkLeft | worker_slot.WorkerGone):
        ledger = replace(ledger, spent=transition.event.spent, silent=transition.event.silent)
    if isinstance(transition.event, worker_slot.RestartWanted):
        ledger = _asked(ledger, transition.entity.removeprefix("worker_slot:"))
    if isinstance(transition.event, worker_slot.RestartDone):
        ledger = replace(ledger, used=transition.entity.removeprefix("worker_slot:"))
    if now.trust is None:
        return ledger
    worker_slots = dict(ledger.worker_slots) | {
        transition.entity.removeprefix("worker_slot:"): replace(worker_slot.WorkerSlot(), trust=now.trust)
    }
    return replace(ledger, worker_slots=tuple(sorted(worker_slots.items(), key=lambda each: each[0])))


def _asked(ledger: Ledger, name: str) -> Ledger:
    """Take in the request for a restart: a permit of the worker and a shared one are due, if both are free."""
    kinds = [
        [state for ref, state in ledger.restart_permits if ref.startswith(f"restart_permit:{of}.")]
        for of in (name, "*")
    ]
    if not all(restart_permit.State.FREE in states for states in kinds):
        return ledger
    recent = sum(state is not restart_permit.State.FREE for state in kinds[0]) + 1
    granted = dict(ledger.granted) | {name: recent}
    return replace(ledger, owed=ledger.owed + len(kinds), granted=tuple(sorted(granted.items())))


def _permitted(ledger: Ledger, transition: Transition) -> Ledger:
    """Take in what becomes of a permit."""
    restart_permits = dict(ledger.restart_permits) | {transition.entity: transition.after.state}
    owed = ledger.owed - isinstance(transition.event, restart_permit.Reserved)
    wrong = False
    if transition.before is not None and isinstance(transition.event, restart_permit.Used | restart_permit.Returned):
        is_used = ledger.used == transition.before.record.worker
        wrong = is_used is not isinstance(transition.event, restart_permit.Used)
    return replace(
        ledger, restart_permits=tuple(sorted(restart_permits.items())), owed=owed, misspent=ledger.misspent or wrong
    )


def _due(ledger: Ledger, p: budget.Budget) -> Amounts:
    """Return what a claim has cost, by what was said of it."""
    spent = ledger.spent
    if not (ledger.silent and p.charges_the_silent):
        return spent
    return replace(spent, microusd=max(spent.microusd, p.share.microusd), tokens=max(spent.tokens, p.share.tokens))
