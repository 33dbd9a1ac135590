"""Notifications of what only a runner sees, and how long it waits for the last ones when its fleet is over."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from lifefold.core.fleet.board import notifier
from lifefold.core.fleet.dispatch import notifications
from lifefold.core.fleet.system import board
from lifefold.core.kernel import Aggregate, Envelope
from lifefold.effects import Notification
from lifefold.interpreters.engine import Engine

LONGEST_MS: Final = 30_000
"""How long a runner waits, when its fleet is over, for notifications; the next run delivers the others."""


class LastDeliveries:
    """Tells when a runner whose fleet is over need not wait for notifications any more."""

    def __init__(self, aggregates: Callable[[], Mapping[str, Aggregate]], now_ms: Callable[[], int]) -> None:
        """Take the present state of the fleet, and the clock of its runner in Unix milliseconds."""
        self._aggregates: Final = aggregates
        self._now_ms: Final = now_ms
        self._since_ms: int | None = None

    def are_done(self) -> bool:
        """Tell whether no notification waits, or the runner has waited since the first call for long enough."""
        of, now_ms = self._aggregates().get(board.NAME), self._now_ms()
        if of is None or notifications.are_quiet(of):
            return True
        if self._since_ms is None:
            self._since_ms = now_ms
        return now_ms - self._since_ms >= LONGEST_MS


def tell_notifiers(engine: Engine, notification: Notification, key: str) -> None:
    """Tell the notifiers that listen what only a runner sees, unless they have heard of this ``key`` already."""
    of = engine.aggregates.get(board.NAME)
    if of is not None:
        for each in observed(of, notification, key, engine.clock.now_ms()):
            engine.offer(board.NAME, each)


def observed(of: Aggregate, notification: Notification, key: str, now_ms: int) -> Iterator[Envelope]:
    """Yield the inputs of a board for the notifiers that listen, and have not heard of this ``key`` yet."""
    for each in notifications.notifiers(of):
        if notification.kind in each.record.kinds and key not in each.record.keys:
            yield Envelope(each.ref, notifier.Observed(notification, key), now_ms, "runner")
