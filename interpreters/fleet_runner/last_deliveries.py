"""Notifications of what only a runner sees, and how long it waits for the last ones when its fleet is over."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from lifefold.core.fleet.board import notifier
from lifefold.core.fleet.dispatch import notifications
from lifefold.core.fleet.system import board
from lifefold.core.kernel import Aggregate
from lifefold.effects import Notification

LONGEST_MS: Final = 60_000
"""How long a runner waits, when its fleet is over, for notifications; the next run delivers the others."""


class LastDeliveries:
    """Tells when a runner need not wait for notifications any more."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        """Take the clock of the engine."""
        self._now_ms: Final = now_ms
        self._since_ms: int | None = None

    def are_done(self, aggregates: Mapping[str, Aggregate]) -> bool:
        """Tell whether no notification waits, or the runner has waited since the first call for long enough."""
        if board.NAME not in aggregates or notifications.are_quiet(aggregates[board.NAME]):
            return True
        now_ms = self._now_ms()
        if self._since_ms is None:
            self._since_ms = now_ms
        return now_ms - self._since_ms >= LONGEST_MS


def observations(
    aggregates: Mapping[str, Aggregate], notification: Notification, key: str
) -> Iterator[tuple[str, notifier.Observed]]:
    """Yield the notifiers that are told of an observation, each with its event: those that do not know it yet."""
    of = aggregates.get(board.NAME)
    for each in () if of is None else notifications.notifiers(of):
        if notification.kind in each.record.kinds and key not in each.record.keys:
            yield each.ref, notifier.Observed(notification, key)
