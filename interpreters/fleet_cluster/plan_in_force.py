"""The plan in force as the brain says it to the hosts, and whether the brain's own fleet file is behind it.

The brain is the writer of the log, and speaks with the epoch of that. A brain that another one has replaced is refused.
"""

import os
import socket
from collections.abc import Mapping
from typing import Final

import msgspec

from lifefold.core.fleet.system import board, plan_change
from lifefold.core.kernel import Aggregate
from lifefold.interpreters.fleet_file import Fleet
from lifefold.interpreters.fleet_runner.hosts import BrainSaid, digest_of
from lifefold.interpreters.store import Fenced, LogStore, StoreError


class PlanInForce:
    """Says, in the word of the log's writer, which plan is in force by the log."""

    def __init__(self, store: LogStore, aggregates: Mapping[str, Aggregate], began_ms: int) -> None:
        """Take the log and its present state; the brain has begun at ``began_ms``, in Unix milliseconds."""
        self.has_changed = False
        """Whether a change has come into force that is not said yet."""
        self._store: Final = store
        self._there: Final = aggregates
        self._began_ms: Final = began_ms
        self._begun: Final = store.meta("meaning") or "{}"
        self._told = ""

    @property
    def meaning(self) -> str:
        """The meaning of the fleet file that is in force."""
        of = self._there.get(board.NAME)
        return self._begun if of is None else plan_change.meaning_of(of, self._begun)

    @property
    def change(self) -> int:
        """The number of the change in force; 0 without one."""
        of = self._there.get(board.NAME)
        return 0 if of is None else plan_change.last_in_force(of)

    def is_behind(self, fleet: Fleet) -> bool:
        """Tell whether a fleet file is not the plan in force."""
        return digest_of(fleet.meaning) != digest_of(self.meaning)

    async def say(self) -> None:
        """Say which plan is in force. Raises ``Fenced`` if another brain has replaced this one."""
        said = BrainSaid(socket.gethostname(), os.getpid(), self._began_ms, digest_of(self.meaning), self.change)
        if await self._is_said(msgspec.json.encode(said).decode()):
            self.has_changed = False

    async def end(self) -> None:
        """Remove the word of the brain: it leaves. Raises ``Fenced`` as ``say`` does."""
        await self._is_said(None)

    async def _is_said(self, said: str | None) -> bool:
        """Say something, and tell whether that was possible: an unwritable table hinders no brain."""
        try:
            await self._store.say_as_writer(said)
        except Fenced:
            raise
        except StoreError:
            return False
        return True

    def tell(self, notices: list[tuple[str, str]], message: str) -> None:
        """Add a notice about the plan in force, unless it is the last one about it."""
        said = f"the plan has changed: change {self.change}: {message}" if message else ""
        if said != self._told:
            self._told = said
            notices.append(("brain", said))
