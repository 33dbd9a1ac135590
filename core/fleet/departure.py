"""When a worker is through: it has drained, or stopped for good, and the board hears that it is gone.

What holds a drain up is what is in the worker's own hands: work that was begun, until it is home. A task that it has
asked for, or whose place is still being made, was not begun, and is given back; what waits for a person, for parts or
for another worker is in nobody's hand.
"""

from collections.abc import Iterator
from typing import Final

from lifefold.core import session
from lifefold.core.fleet import assignment, intent, mailbox, metering, restarts, seat, supervision
from lifefold.core.kernel import Aggregate, Dispatch, Property, Transition, always
from lifefold.effects import Tell


def drained(worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Who is to drain stops when nothing that it has begun is in its hands any more."""
    drains = worker.record("intent").state is intent.State.DRAIN
    came = transition.entered is intent.State.DRAIN or transition.machine == assignment.machine.name
    if drains and came and transition.entered is not None and not has_begun(worker):
        yield Dispatch("intent", intent.Drained())


def has_begun(worker: Aggregate) -> bool:
    """Tell whether the worker has something in hand that it has begun."""
    state = worker.record("assignment").state
    return state is assignment.State.WORKING or state in assignment.ON_ITS_WAY


def close_mailbox(worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Nobody reads what is sent to an agent that has stopped for good: senders are told so (D14)."""
    if transition.entered in _ENDS and is_gone(worker):
        yield Dispatch("mailbox", mailbox.MailboxClosed())


def leave(worker: Aggregate, transition: Transition) -> Iterator[Tell]:
    """The board hears that the worker is gone, as soon as it has stopped for good and has nothing in hand any more."""
    idle = worker.record("assignment").state is assignment.State.IDLE
    if is_gone(worker) and idle and transition.entered in {*_ENDS, assignment.State.IDLE}:
        reason = worker.record("intent").reason or _quarantined(worker) or "its session has stopped"
        yield Tell("board", f"seat:{worker.key}", seat.WorkerGone(reason, *metering.spent(worker)))


_ENDS: Final = frozenset({session.State.STOPPED, *supervision.OVER})
"""Whoever enters the last of these that it can enter stops for good."""


def _quarantined(worker: Aggregate) -> str:
    found = worker.entities.get(supervision.REF)
    is_so = found is not None and found.state is supervision.State.QUARANTINED
    return f"quarantined: {found.record.reason}" if found is not None and is_so else ""


def is_gone(worker: Aggregate) -> bool:
    """Tell whether the agent has stopped, for good."""
    stopped = worker.record("session").state is session.State.STOPPED
    return stopped and not restarts.comes_back(worker)


def stopped_takes_no_letters(worker: Aggregate) -> bool:
    """Whoever writes to an agent that has stopped for good is told so, and only then (D14)."""
    return is_gone(worker) is (worker.record("mailbox").state is mailbox.State.CLOSED)


def quarantined_has_nothing(worker: Aggregate) -> bool:
    """Whoever is quarantined has nothing in hand."""
    return not _quarantined(worker) or (is_gone(worker) and assignment.rests(worker.record("assignment")))


def drains_what_it_has(worker: Aggregate) -> bool:
    """Who drains has something in hand that it has begun."""
    return worker.record("intent").state is not intent.State.DRAIN or has_begun(worker)


PROMISES: Final[tuple[Property[Aggregate], ...]] = (
    always("letters are taken exactly as long as an agent may read them", stopped_takes_no_letters),
    always("an agent that drains finishes what it has in hand, and begins nothing new", drains_what_it_has),
    always("an agent that is quarantined has nothing in hand", quarantined_has_nothing),
)
