"""What became of the notifications of a fleet: a projection for displays."""

from collections.abc import Iterator, Mapping

import msgspec

from lifefold.core.fleet.board import notifier
from lifefold.core.fleet.dispatch import notifications
from lifefold.core.fleet.system import board
from lifefold.core.kernel import Aggregate, Entity
from lifefold.interpreters.explain.plain_reasons import in_plain_words


class Undelivered(msgspec.Struct, frozen=True):
    """A notification that was not delivered, and the reason of its last try."""

    kind: str
    task: str
    text: str
    reason: str


class NotifierStatus(msgspec.Struct, frozen=True):
    """The notifier ``name``: how many of its notifications are delivered, wait, and have failed for good.

    ``tries`` counts the failed tries of the oldest one that waits. ``next_ms`` is the time of its next try, in Unix
    milliseconds; 0 while it is being tried. ``failures`` are the last failures.
    """

    name: str
    state: str
    delivered: int
    waiting: int
    failed: int
    tries: int = 0
    next_ms: int = 0
    failures: tuple[Undelivered, ...] = ()


def notifiers(aggregates: Mapping[str, Aggregate]) -> tuple[NotifierStatus, ...]:
    """Return the notifiers of a fleet, in the order of its file."""
    if board.NAME not in aggregates:
        return ()
    return tuple(map(_status, notifications.notifiers(aggregates[board.NAME])))


def _status(entity: Entity[notifier.Notifier]) -> NotifierStatus:
    n = entity.record
    due = entity.find(notifier.DeliveryDue.__name__)
    lost = sum(each.number == 0 for each in n.failures)
    return NotifierStatus(
        n.name,
        n.state,
        sum(number for _, number in n.accepted) - len(n.waiting) - (n.failed - lost),
        len(n.waiting),
        n.failed,
        n.tries,
        due.deadline_ms if due is not None and due.deadline_ms else 0,
        tuple(
            Undelivered(
                str(each.notification.kind), each.notification.task, in_plain_words(each.notification.text), each.reason
            )
            for each in n.failures
        ),
    )


def troubles(aggregates: Mapping[str, Aggregate], task: str = "") -> Iterator[str]:
    """Yield a sentence for each notifier with failures or a failed try; with ``task`` for failures about that only."""
    for each in notifiers(aggregates):
        about = [failure for failure in each.failures if task in {"", failure.task}]
        if about:
            last = about[-1]
            number = f"{len(about) if task else each.failed} of its notifications"
            yield f'notifier {each.name} has not delivered {number}; the last one, "{last.text}": {last.reason}'
        if each.tries and not task:
            yield f"notifier {each.name} has failed {each.tries} times to deliver, and tries again; {each.waiting} wait"
