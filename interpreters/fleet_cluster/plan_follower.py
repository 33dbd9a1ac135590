"""How a host follows the plan in force: its fleet file has to be the one by which the brain decides.

The brain says which plan is in force, before anything leaves it that follows from a change. A host with another fleet
file takes no agents, and begins nothing for those that it has. It reads its file again until that is the plan in force.

A host believes the newest brain that it has heard of. A standby of the database may show what an earlier one said.
"""

import contextlib
import time
from collections.abc import Callable
from typing import Final

from lifefold.interpreters.fleet_file import FleetFileError, load
from lifefold.interpreters.fleet_runner.handlers import Handlers
from lifefold.interpreters.fleet_runner.hosts import BrainSaid, brain_said, digest_of
from lifefold.interpreters.store import LogStore, Members, StoreError
from lifefold.interpreters.temporal.wire import Attend

WHAT: Final = "begin its work"
"""What an agent waits to do while its host has another plan."""

AGAIN_S: Final = 1.0
"""How long a host stays with a refusal before work that waits lets it look again."""


class PlanFollower:
    """Compares the fleet file of a host with the plan in force, and adopts a changed file."""

    def __init__(self, handlers: Handlers, store: LogStore, now_s: Callable[[], float] = time.monotonic) -> None:
        """Begin with the fleet of the handlers. ``now_s`` is a clock that no operator sets."""
        self.refusal = ""
        """Why this host takes no work; empty if it does."""
        self._handlers: Final = handlers
        self._store: Final = store
        self._digest = digest_of(handlers.fleet.meaning)
        self._now_s: Final = now_s
        self._looked_s = -AGAIN_S
        self._epoch = 0
        """The epoch of the newest brain that this host has heard of."""

    async def follow(self) -> bool:
        """Tell whether the fleet of this host is the plan in force; adopt the fleet file if it is by now."""
        self._looked_s = self._now_s()
        with contextlib.suppress(StoreError):  # an unreadable table hinders no host
            found = await self._store.members()
            if self._is_newest(found):
                self.refusal = self._refusal_of(brain_said(found))
        return not self.refusal

    def _is_newest(self, found: Members) -> bool:
        """Tell whether no later brain has spoken than the one that speaks now."""
        if found.writer is not None and found.writer.epoch < self._epoch:
            return False
        self._epoch = self._epoch if found.writer is None else found.writer.epoch
        return True

    def _refusal_of(self, said: BrainSaid | None) -> str:
        """Return why this host takes no work, by what the brain says; empty without a brain."""
        if said is None or said.plan == self._digest:
            return ""
        return self._read_again(said.plan, said.change)

    def _read_again(self, plan: str, change: int) -> str:
        """Adopt the fleet file if it is the plan in force; return why not."""
        before = self._handlers.fleet
        try:
            fleet = load(before.source, watch=before.watch)
        except FleetFileError as error:
            return f"its fleet file cannot be read: {error}"
        in_force = f"change {change}" if change else "the plan"
        if digest_of(fleet.meaning) != plan:
            return f"{before.source} is not the fleet file with {in_force} in force; copy that of the brain there"
        self._handlers.adopt(fleet)
        self._digest = plan
        self._handlers.tell(fleet.name, f"follows its fleet file: {in_force} is in force")
        return ""

    async def may_begin(self, work: Attend) -> bool:
        """Tell whether an activity may begin; show what it waits for if not.

        A refusal holds for ``AGAIN_S``, however many activities wait. Without one the plan may have changed since, so
        each activity asks again.
        """
        agent = work.aggregate.partition("/")[2] or work.aggregate
        is_fresh = self._now_s() < self._looked_s + AGAIN_S
        if not (self.refusal and is_fresh) and await self.follow():
            self._handlers.operator.out_of_the_way(agent, WHAT)
            return True
        self._handlers.operator.in_the_way(agent, WHAT, self.refusal)
        return False
