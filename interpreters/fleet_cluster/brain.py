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
from lifefold.core.kernel import Aggregate, Envelope, Event, Reaction, Refusal
from lifefold.core.policy.reasons import AbortReason
from lifefold.interpreters.engine import Observer, WallClock
from lifefold.interpreters.fleet_cluster.repository import must_be_of_cluster, target_of
from lifefold.interpreters.fleet_file import Fleet
from lifefold.interpreters.fleet_file.cluster import DEFAULT_POOL
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.log_owner import (
    CLAIM_KEY,
    NONE_BEFORE,
    before_of,
    must_mean,
    written_of,
)
from lifefold.interpreters.fleet_runner.refused_events import RefusedEvents
from lifefold.interpreters.fleet_runner.runner import is_quiet
from lifefold.interpreters.fleet_runner.verdict import Verdict, verdict_of
from lifefold.interpreters.processes.private import make_private
from lifefold.interpreters.store import LogStore, create_log, open_log
from lifefold.interpreters.temporal import Brain, Cluster, Commits
from lifefold.interpreters.worktrees.workplace import FolderWorkplace


class UnfitFleetError(Exception):
    """The fleet cannot run on a cluster yet; the message says why."""


def must_fit(fleet: Fleet) -> None:
    """Raise ``UnfitFleetError`` for a fleet that needs what a cluster does not have."""
    if fleet.repository is not None and not fleet.cluster.remote:
        said = "hosts get the repository of a fleet from a git remote; name it by remote in [cluster]"
        raise UnfitFleetError(f"{fleet.source}: {said}, or run the fleet on one machine: lifefold run --engine local")


class FleetBrain:
    """Decides for one fleet. Make one with ``open``, and ``close`` it at the end."""

    def __init__(self, fleet: Fleet, store: LogStore, cluster: Cluster, pools: Mapping[str, str]) -> None:
        """Use ``open`` instead."""
        self.fleet: Final = fleet
        self.folder: Final = FleetFolder(store.path)
        self.refused: Final = RefusedEvents(self.folder.refusals)
        self.observers: Final[list[Observer]] = []
        self.leaving = 0
        self._leaves_by = AbortReason.SHUTDOWN_SIGNAL
        self._told: Final[set[str]] = set()
        self._store: Final = store
        self._cluster: Final = cluster
        self._clock: Final = WallClock()
        self.commits: Final = Commits(
            system,
            store,
            clock=self._clock,
            pools=lambda name: pools.get(name.partition("/")[2], DEFAULT_POOL),
            observer=self._observe,
        )

    @classmethod
    async def open(cls, fleet: Fleet, log: Path, cluster: Cluster, pools: Mapping[str, str]) -> Self:
        """Open the log of the fleet, or begin one. ``pools`` has the pools of agents that are not in the default one.

        The target branch of a fleet with a repository is that of the log, or of the remote when the log begins.

        Raises ``UnfitFleetError``, ``StoreError``, ``OtherFleetError``, ``WorkplaceError``.
        """
        must_fit(fleet)
        workplace = FolderWorkplace(FleetFolder(log).worktrees)
        if fleet.repository is None:
            workplace = FolderWorkplace.open(FleetFolder(log).worktrees)
        with ExitStack() as taken:
            if log.exists():  # noqa: ASYNC240 - before there is anything to wait for
                store = taken.enter_context(closing(open_log(log)))
                must_be_of_cluster(fleet, store)
            else:
                make_private(log.parent)
                branch = {} if fleet.repository is None else {"branch": await target_of(fleet)}
                said = await written_of(fleet, workplace, NONE_BEFORE) | branch
                FleetFolder(log).make()
                store = taken.enter_context(closing(create_log(log, said)))
            taken.pop_all()
            return cls(fleet, store, cluster, pools)

    def close(self) -> None:
        """Release the log."""
        self._store.close()

    @property
    def aggregates(self) -> Mapping[str, Aggregate]:
        """The present state of the fleet."""
        return self.commits.aggregates

    @property
    def log(self) -> Path:
        """The path of the log."""
        return self._store.path

    @property
    def branch(self) -> str:
        """The target branch at the remote; empty without a repository."""
        return self._store.meta("branch") or ""

    def now_ms(self) -> int:
        """Return the time of the brain, in Unix milliseconds."""
        return self._clock.now_ms()

    def leave(self, abort_reason: AbortReason) -> None:
        """Ask the brain to leave. First it tells all workers to hold, and waits until no session runs.

        Asked again, it leaves at once: sessions go on, and their reports wait for the next brain.
        """
        self.leaving += 1
        self._told.clear()
        self._leaves_by = abort_reason
        self.commits.tell_change()

    async def run(self) -> Verdict:
        """Decide until the fleet is over or drained, then end its workflows. Raises the error of the store.

        Without workflows the log is that of a runner that has left: a brain or a local runner goes on with it.

        Raises ``LogMismatchError``, and ``OtherFleetError`` if the fleet file has another plan than the log.
        """
        async with anyio.create_task_group() as tasks:
            await tasks.start(Brain(self._cluster, self.commits).run)
            self._clock.not_before(self.commits.ledger.last_ms)
            self._must_mean()
            await self._begin()
            while not self._is_over():
                changed = self.commits.changed
                await self._hold_or_release()
                await changed.wait()
            if self.leaving <= 1:
                await self._end_workflows()
            tasks.cancel_scope.cancel()
        of = self.aggregates.get(board_type.NAME)
        return Verdict.LEFT if of is None or not board_type.finished(of) else verdict_of(self.aggregates)

    async def _hold_or_release(self) -> None:
        """Tell every worker that works to hold if the brain leaves, otherwise every held one to run; each once.

        The hold of an earlier brain may be decided by this one only.
        """
        for each in self._workers():
            state = each.record("desired_state").state
            is_due = state in desired_state.WORKS if self.leaving else state is desired_state.State.HOLD
            if is_due and each.name not in self._told:
                self._told.add(each.name)
                wanted = desired_state.HoldWanted(self._leaves_by) if self.leaving else desired_state.RunWanted()
                await self._say(each.name, wanted)
            elif not is_due:
                self._told.discard(each.name)

    async def _say(self, name: str, event: Event) -> None:
        await self._cluster.offer(name, Envelope("desired_state", event, self.now_ms(), "runner"))

    def _observe(self, aggregate: str, outcome: Reaction | Refusal) -> None:
        for refusal in (outcome,) if isinstance(outcome, Refusal) else outcome.refusals:
            self.refused.add(aggregate, refusal)
        for observer in self.observers:
            observer(aggregate, outcome)

    def _must_mean(self) -> None:
        meaning, of = self._store.meta("meaning") or "{}", self.commits.aggregates.get(board_type.NAME)
        must_mean(self.fleet, self._store, meaning if of is None else plan_change.meaning_of(of, meaning))

    async def _begin(self) -> None:
        """Open the aggregates that are not in the log, and wake the others."""
        plan = replace(self.fleet.plan, key=self._store.meta(CLAIM_KEY) or "")
        known = dict(self.commits.aggregates)
        for name, envelope in opening(remainder(plan, before_of(self._store).ended), self._clock.now_ms()):
            if name not in known:
                await self._cluster.offer(name, replace(envelope, key="opened"))
        for name in known:
            await self._cluster.look(name)

    def _is_over(self) -> bool:
        workers = self._workers()
        if self.leaving > 1:
            return True
        if len(workers) < len(self.fleet.agents) + len(self.fleet.services):
            return False
        if self.leaving:
            works = desired_state.WORKS
            return all(each.record("desired_state").state not in works and is_quiet(each) for each in workers)
        return is_over(self.aggregates)

    def _workers(self) -> list[Aggregate]:
        return [each for each in self.aggregates.values() if each.kind in {worker.KIND, service.KIND}]

    async def _end_workflows(self) -> None:
        for name in self.commits.aggregates:
            with suppress(RPCError):
                await self._cluster.handle(name).terminate("the fleet is over, or its brain has left")
