"""What the board of a fleet has taken from whom, and charged for what: a witness of what no state of it shows."""

import msgspec

from lifefold.core import task
from lifefold.core.budget.amounts import Amounts
from lifefold.core.fleet import job, purse, seat, trusting
from lifefold.core.kernel import Transition, replace


class Ledger(msgspec.Struct, frozen=True):
    """What the board has been told, and has made of it.

    The ``seats`` of those whose trust counts, and that a task was taken from one who might be at it (``robbed``); what
    was ``spent``, by the word that has come last, which may have been ``silent``, and that something else was charged
    (``mischarged``).
    """

    seats: tuple[tuple[str, seat.Seat], ...] = ()
    robbed: bool = False
    spent: Amounts = Amounts()
    silent: bool = False
    mischarged: bool = False


def enter(ledger: Ledger, transition: Transition) -> Ledger:
    """Take in what has happened on the board."""
    if not transition.actor.startswith("rule:"):
        ledger = replace(ledger, spent=Amounts(), silent=False)
    if transition.machine == seat.machine.name:
        return _seated(ledger, transition)
    match transition.event:
        case task.Released() if transition.machine == job.machine.name and transition.before is not None:
            before: job.Job = transition.before.record
            owner = dict(ledger.seats).get(before.owner)
            by_trust = transition.actor == f"rule:{trusting.withdraw.name}"
            allowed = by_trust and owner is not None and trusting.is_allowed(before, owner)
            return replace(ledger, robbed=ledger.robbed or allowed)
        case purse.Settle(cost=cost) if transition.before is not None:
            due = _due(ledger, transition.before.record)
            return replace(ledger, mischarged=ledger.mischarged or cost != due)
        case _:
            return ledger


def _seated(ledger: Ledger, transition: Transition) -> Ledger:
    """Take in what is said of a worker, and how far it is trusted now."""
    now: seat.Seat = transition.after.record
    if isinstance(transition.event, seat.WorkWanted | seat.WorkerGone):
        ledger = replace(ledger, spent=transition.event.spent, silent=transition.event.silent)
    if now.trust is None:
        return ledger
    seats = dict(ledger.seats) | {transition.entity.removeprefix("seat:"): replace(seat.Seat(), trust=now.trust)}
    return replace(ledger, seats=tuple(sorted(seats.items(), key=lambda each: each[0])))


def _due(ledger: Ledger, p: purse.Purse) -> Amounts:
    """Return what a claim has cost, by what was said of it."""
    spent = ledger.spent
    if not (ledger.silent and p.charges_the_silent):
        return spent
    return replace(spent, microusd=max(spent.microusd, p.share.microusd), tokens=max(spent.tokens, p.share.tokens))
