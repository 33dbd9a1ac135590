"""Notifications of what only a runner sees, and how long it waits for the last ones when its fleet is over."""

from typing import Final

from lifefold.core.fleet.board import notifier
from lifefold.core.fleet.dispatch import notifications
from lifefold.core.fleet.system import board
from lifefold.core.kernel import Envelope
from lifefold.effects import Notification
from lifefold.interpreters.engine import Engine

LONGEST_MS: Final = 30_000
"""How long a runner waits, when its fleet is over, for notifications; the next run delivers the others."""


class LastDeliveries:
    """Tells notifiers what only a runner sees, and when a runner need not wait for notifications any more."""

    def __init__(self, engine: Engine) -> None:
        """Take the engine of the fleet."""
        self._engine: Final = engine
        self._since_ms: int | None = None

    def are_done(self) -> bool:
        """Tell whether no notification waits, or the runner has waited since the first call for long enough."""
        of, now_ms = self._engine.aggregates.get(board.NAME), self._engine.clock.now_ms()
        if of is None or notifications.are_quiet(of):
            return True
        if self._since_ms is None:
            self._since_ms = now_ms
        return now_ms - self._since_ms >= LONGEST_MS

    def observe(self, notification: Notification, key: str) -> None:
        """Tell the notifiers that listen and have not heard of this ``key`` yet."""
        of = self._engine.aggregates.get(board.NAME)
        for each in () if of is None else notifications.notifiers(of):
            if notification.kind in each.record.kinds and key not in each.record.keys:
                event = notifier.Observed(notification, key)
                self._engine.offer(board.NAME, Envelope(each.ref, event, self._engine.clock.now_ms(), "runner"))
