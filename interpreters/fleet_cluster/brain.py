"""The brain of a fleet: it is the writer of the fleet's log, and gives the plan to the workflows of the aggregates.

A brain that ends leaves the fleet at work: sessions go on, and their reports wait. The next brain takes them.
"""

from collections.abc import Mapping
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Final, Self

import anyio
from msgspec.structs import replace
from temporalio.service import RPCError

from lifefold.core.fleet import opening, service, system
from lifefold.core.fleet.system import board as board_type
from lifefold.core.fleet.system import plan_change, worker
from lifefold.core.fleet.system.rerun import is_over, remainder
from lifefold.core.fleet.worker import desired_state
from lifefold.core.kernel import Envelope
from lifefold.interpreters.engine import WallClock
from lifefold.interpreters.fleet_file import Fleet
from lifefold.interpreters.fleet_file.cluster import DEFAULT_POOL
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.log_owner import (
    CLAIM_KEY,
    NONE_BEFORE,
    before_of,
    must_belong,
    must_mean,
    written_of,
)
from lifefold.interpreters.fleet_runner.verdict import Verdict, verdict_of
from lifefold.interpreters.processes.private import make_private
from lifefold.interpreters.store import LogStore, create_log, open_log
from lifefold.interpreters.temporal import Brain, Cluster, Commits
from lifefold.interpreters.worktrees.workplace import FolderWorkplace


class UnfitFleetError(Exception):
    """The fleet cannot run on a cluster yet; the message says why."""


def must_fit(fleet: Fleet) -> None:
    """Raise ``UnfitFleetError`` for a fleet that needs what a cluster does not have."""
    if fleet.repository is not None:
        raise UnfitFleetError(f"{fleet.source}: a fleet with a repository runs on one machine only: lifefold run")


class FleetBrain:
    """Decides for one fleet. Make one with ``open``, and ``close`` it at the end."""

    def __init__(self, fleet: Fleet, store: LogStore, cluster: Cluster, pools: Mapping[str, str]) -> None:
        """Use ``open`` instead."""
        self.fleet: Final = fleet
        self._store: Final = store
        self._cluster: Final = cluster
        self._clock: Final = WallClock()
        self.commits: Final = Commits(
            system, store, clock=self._clock, pools=lambda name: pools.get(name.partition("/")[2], DEFAULT_POOL)
        )

    @classmethod
    async def open(cls, fleet: Fleet, log: Path, cluster: Cluster, pools: Mapping[str, str]) -> Self:
        """Open the log of the fleet, or begin one. ``pools`` has the pools of agents that are not in the default one.

        Raises ``UnfitFleetError``, ``StoreError``, ``OtherFleetError``, ``WorkplaceError``.
        """
        must_fit(fleet)
        workplace = FolderWorkplace.open(FleetFolder(log).worktrees)
        with ExitStack() as taken:
            if log.exists():  # noqa: ASYNC240 - before there is anything to wait for
                store = taken.enter_context(closing(open_log(log)))
                await must_belong(fleet, store)
            else:
                make_private(log.parent)
                said = await written_of(fleet, workplace, NONE_BEFORE)
                FleetFolder(log).make()
                store = taken.enter_context(closing(create_log(log, said)))
            taken.pop_all()
            return cls(fleet, store, cluster, pools)

    def close(self) -> None:
        """Release the log."""
        self._store.close()

    async def run(self) -> Verdict:
        """Decide until the fleet is over, then end its workflows. Raises the error of the store, such as ``Fenced``.

        Raises ``LogMismatchError``, and ``OtherFleetError`` if the fleet file has another plan than the log.
        """
        async with anyio.create_task_group() as tasks:
            await tasks.start(Brain(self._cluster, self.commits).run)
            self._clock.not_before(self.commits.ledger.last_ms)
            self._must_mean()
            await self._begin()
            while not self._is_over():
                await self.commits.changed.wait()
            await self._end_workflows()
            tasks.cancel_scope.cancel()
        return verdict_of(self.commits.aggregates)

    def _must_mean(self) -> None:
        meaning, of = self._store.meta("meaning") or "{}", self.commits.aggregates.get(board_type.NAME)
        must_mean(self.fleet, self._store, meaning if of is None else plan_change.meaning_of(of, meaning))

    async def _begin(self) -> None:
        """Open the aggregates that are not in the log, and wake the others. A held worker is told to run."""
        plan = replace(self.fleet.plan, key=self._store.meta(CLAIM_KEY) or "")
        known = dict(self.commits.aggregates)
        for name, envelope in opening(remainder(plan, before_of(self._store).ended), self._clock.now_ms()):
            if name not in known:
                await self._cluster.offer(name, replace(envelope, key="opened"))
        for name, each in known.items():
            await self._cluster.look(name)
            if (
                each.kind in {worker.KIND, service.KIND}
                and each.record("desired_state").state is desired_state.State.HOLD
            ):
                run = Envelope("desired_state", desired_state.RunWanted(), self._clock.now_ms(), "runner")
                await self._cluster.offer(name, run)

    def _is_over(self) -> bool:
        aggregates = self.commits.aggregates
        workers = [each for each in aggregates.values() if each.kind in {worker.KIND, service.KIND}]
        if len(workers) < len(self.fleet.agents) + len(self.fleet.services):
            return False
        return is_over(aggregates)

    async def _end_workflows(self) -> None:
        for name in self.commits.aggregates:
            with suppress(RPCError):
                await self._cluster.handle(name).terminate("the fleet is over")
