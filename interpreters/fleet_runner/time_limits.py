"""The time limits of running sessions, which stand still while a question waits for an operator.

The shim of a session has its limit, and the runner has a later one of its own (``processes/overdue``). Both are held
and go on together. A runner that adopts a session whose question waits begins with a held limit.
"""

import math
from collections.abc import Awaitable, Callable
from typing import Final

import anyio

from lifefold.effects import HoldTimeLimit
from lifefold.interpreters.engine import EffectContext, handles
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.processes import SessionExit, hold


class TimeLimit:
    """A limit of the runner: a cancel scope, and the seconds that were left when it was held."""

    def __init__(self, scope: anyio.CancelScope) -> None:
        """Take a scope whose deadline is the limit."""
        self._scope: Final = scope
        self._left_s: float | None = None

    def hold(self) -> None:
        """Let the limit stand still."""
        if self._left_s is None:
            self._left_s = self._scope.deadline - anyio.current_time()
            self._scope.deadline = math.inf

    def go_on(self) -> None:
        """Let the limit go on with what was left of it."""
        if self._left_s is not None:
            self._scope.deadline = anyio.current_time() + self._left_s
            self._left_s = None


class TimeLimits:
    """The limits of the sessions that run now, by agent."""

    def __init__(self, folder: FleetFolder) -> None:
        """Take the folder of the sessions."""
        self._folder: Final = folder
        self._limits: Final[dict[str, TimeLimit]] = {}

    async def within(
        self, agent: str, seconds: float, wait: Callable[[], Awaitable[SessionExit]], *, is_held: bool
    ) -> SessionExit | None:
        """Await the end of a session for some seconds, not counting the time in which the limit is held."""
        with anyio.move_on_after(seconds) as scope:
            limit = self._limits[agent] = TimeLimit(scope)
            if is_held:
                limit.hold()
            try:
                return await wait()
            finally:
                del self._limits[agent]
        return None

    @handles(HoldTimeLimit)
    async def hold(self, effect: HoldTimeLimit, context: EffectContext) -> None:
        """Hold the limits of a session, or let them go on."""
        agent = context.within.key
        if limit := self._limits.get(agent):
            (limit.hold if effect.held else limit.go_on)()
        await hold(self._folder.last_start(agent, context.within.record("session").attempt), held=effect.held)
