"""The obstacles of a handler: waits that an operator sees, and ends that are confirmed before a handler returns."""

import contextlib
from collections.abc import Awaitable, Callable, Generator
from typing import Final

import anyio

from lifefold.interpreters.engine import ActivityContext
from lifefold.interpreters.fleet_runner.notices import Notices
from lifefold.interpreters.fleet_runner.retry_until import patiently
from lifefold.interpreters.processes import SessionError


class Obstacles:
    """Shows the waits of handlers, and sees to the end of what an activity has begun."""

    def __init__(self, operator: Notices) -> None:
        """Take the notices."""
        self._operator: Final = operator

    @contextlib.contextmanager
    def waits(self, agent: str, what: str) -> Generator[Callable[[str], None]]:
        """Yield a function that shows why an agent waits; the wait ends with the block, unless it is cancelled."""
        try:
            yield lambda why: self._operator.in_the_way(agent, what, why)
        except Exception:
            self._operator.out_of_the_way(agent, what)
            raise
        self._operator.out_of_the_way(agent, what)

    async def see_to_the_end(self, context: ActivityContext, end: Callable[[], Awaitable[object]]) -> None:
        """End the processes of an activity, and return only when their end is confirmed.

        A handler that is asked to end meanwhile continues.
        """
        agent, what = context.origin.within.key, "end what is left"
        try:
            with self.waits(agent, what) as tell:
                await patiently(end, (SessionError, OSError), tell)
        except anyio.get_cancelled_exc_class():
            if context.ending and not context.cleanup_only:
                with anyio.CancelScope(shield=True), self.waits(agent, what) as tell:
                    await patiently(end, (SessionError, OSError), tell)
            raise
