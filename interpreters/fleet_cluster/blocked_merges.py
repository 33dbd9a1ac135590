"""The notifications of a host about merges that wait there, which only the host sees."""

from contextlib import suppress
from typing import Final

from lifefold.core.fleet.system import board
from lifefold.effects import Notification
from lifefold.interpreters.fleet_runner.handlers import Handlers
from lifefold.interpreters.fleet_runner.last_deliveries import observed
from lifefold.interpreters.store import StoreError
from lifefold.interpreters.temporal import Performer


class BlockedMerges:
    """Tells the notifiers on the board of a merge that waits, once for each claim."""

    def __init__(self, handlers: Handlers, performer: Performer) -> None:
        """Report by the performer of the host. ``tell`` is for its handlers."""
        self._handlers: Final = handlers
        self._performer: Final = performer

    def tell(self, notification: Notification, key: str) -> None:
        """Tell the notifiers that listen, unless they have heard of this ``key`` already. It may be called again."""
        if self._handlers.fleet.notify:
            self._performer.beside(self._tell, notification, key)

    async def _tell(self, notification: Notification, key: str) -> None:
        with suppress(StoreError):  # the next try of the merge tells it again
            of = await self._performer.reader.present(board.NAME)
            for each in observed(of, notification, key, self._performer.clock.now_ms()):
                self._performer.report(board.NAME, each)
