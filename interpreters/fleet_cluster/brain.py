"""The brain of a fleet: it is the writer of the fleet's log, and gives the plan to the workflows of the aggregates.

A brain that ends leaves the fleet at work: sessions go on, and their reports wait. The next brain takes them.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Final, Self

import anyio
from msgspec.structs import replace
from temporalio.service import RPCError

from lifefold.core.fleet import opening, service, system
from lifefold.core.fleet.system import board as board_type
from lifefold.core.fleet.system import plan_change, plan_enforcement, worker
from lifefold.core.fleet.system.completion import waits_for_operators
from lifefold.core.fleet.system.rerun import is_over, remainder
from lifefold.core.fleet.worker import desired_state
from lifefold.core.kernel import Aggregate, Envelope, Event, Reaction, Refusal
from lifefold.core.policy.reasons import AbortReason
from lifefold.interpreters.engine import Observer, WallClock
from lifefold.interpreters.fleet_cluster.host_watch import HostWatch
from lifefold.interpreters.fleet_cluster.plan_in_force import PlanInForce
from lifefold.interpreters.fleet_cluster.repository import must_be_of_cluster, target_of
from lifefold.interpreters.fleet_file import Fleet, FleetFileError, load
from lifefold.interpreters.fleet_file.cluster import DEFAULT_POOL
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.last_deliveries import LastDeliveries
from lifefold.interpreters.fleet_runner.log_owner import (
    CLAIM_KEY,
    NONE_BEFORE,
    Before,
    before_of,
    must_mean,
    must_watch,
    written_of,
)
from lifefold.interpreters.fleet_runner.plan_changes import joined
from lifefold.interpreters.fleet_runner.refused_events import RefusedEvents
from lifefold.interpreters.fleet_runner.runner import is_quiet
from lifefold.interpreters.fleet_runner.verdict import Verdict, verdict_of
from lifefold.interpreters.processes.private import make_private
from lifefold.interpreters.store import LogStore, create_log, open_log
from lifefold.interpreters.temporal import Brain, Cluster, Commits
from lifefold.interpreters.worktrees.workplace import FolderWorkplace

LOOK_S: Final = 1.0
"""The longest pause between two looks at whether the fleet is over."""


class UnfitFleetError(Exception):
    """The fleet cannot run on a cluster yet; the message says why."""


def must_fit(fleet: Fleet) -> None:
    """Raise ``UnfitFleetError`` for a fleet that needs what a cluster does not have."""
    if fleet.repository is not None and not fleet.cluster.remote:
        said = "hosts get the repository of a fleet from a git remote; name it by remote in [cluster]"
        raise UnfitFleetError(f"{fleet.source}: {said}, or run the fleet on one machine: lifefold run --engine local")


PoolsOf = Callable[[Fleet], Mapping[str, str]]
"""Returns the pools of the agents and services of a fleet."""


class FleetBrain:
    """Decides for one fleet. Make one with ``open``, and ``close`` it at the end.

    ``waits_for_operators``: a fleet that only an operator can move on goes on waiting; otherwise the brain leaves it.
    """

    def __init__(self, fleet: Fleet, store: LogStore, cluster: Cluster, pools: PoolsOf) -> None:
        """Use ``open`` instead."""
        self.fleet = fleet
        self.folder: Final = FleetFolder(store.path)
        self.refused: Final = RefusedEvents(self.folder.refusals)
        self.observers: Final[list[Observer]] = []
        self.leaving = 0
        self.waits_for_operators = True
        self.clock: Final = WallClock()
        self.watch: Final = HostWatch(store)
        self._leaves_by = AbortReason.SHUTDOWN_SIGNAL
        self._is_held = False
        self._told: Final[set[str]] = set()
        self._store: Final = store
        self._cluster: Final = cluster.of_log(store.meta("run") or "")
        self._pools_of: Final = pools
        self._pools = pools(fleet)
        self.commits: Final = Commits(
            system, store, clock=self.clock, pools=self._pool_of, observer=self._observe, settle=self._settle
        )
        self._plan: Final = PlanInForce(store, self.commits.aggregates, self.clock.now_ms())
        self._last_deliveries: Final = LastDeliveries(lambda: self.aggregates, self.now_ms)

    @classmethod
    async def open(
        cls, fleet: Fleet, log: Path, cluster: Cluster, pools: PoolsOf, before: Before = NONE_BEFORE
    ) -> Self:
        """Open the log of the fleet, or begin one with the tasks that the runs ``before`` have left.

        The target branch of a fleet with a repository is that of the log, or of the remote when the log begins.
        ``pools`` has the pools of agents that are not in the default one.

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
                branch = {} if fleet.repository is None else {"branch": before.branch or await target_of(fleet)}
                said = await written_of(fleet, workplace, before) | branch
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
        return self.clock.now_ms()

    def leave(self, abort_reason: AbortReason = AbortReason.SHUTDOWN_SIGNAL) -> None:
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
            await tasks.start(Brain(self._cluster, self.commits, self._prepare).run)
            tasks.start_soon(self._look_around)
            await self._begin()
            while not self._is_over():
                changed = self.commits.changed
                await self._hold_or_release()
                with anyio.move_on_after(LOOK_S):  # the wait for the last notifications ends without a change
                    await changed.wait()
            if self.leaving <= 1:
                await self._end_workflows()
            await self._plan.end()
            tasks.cancel_scope.cancel()
        return self._verdict()

    async def _prepare(self) -> None:
        """Take the fleet file for that of the log, and let the hosts know the plan, before anything is decided."""
        self.clock.not_before(self.commits.ledger.last_ms)
        must_mean(self.fleet, self._store, self._plan.meaning)
        must_watch(self.fleet, self._store.path, self.aggregates.get(board_type.NAME))
        await self.watch.begin()
        await self._plan.say()

    def _verdict(self) -> Verdict:
        of = self.aggregates.get(board_type.NAME)
        if of is None or not board_type.finished(of):
            return Verdict.HELD if self._is_held and self.leaving == 1 else Verdict.LEFT
        return verdict_of(self.aggregates)

    async def _look_around(self) -> None:
        """Say what this brain does, hear what the hosts say, and follow a fleet file that was behind the plan."""
        while True:
            await anyio.sleep(self._cluster.times.beat_ms / 1_000)
            await self._plan.say()
            await self.watch.look()
            self.watch.hear_of_server(answers=await self._cluster.is_reached(self._cluster.times.beat_ms))
            if self._plan.is_behind(self.fleet):
                self._adopt()

    async def _settle(self) -> None:
        """Let the hosts know a changed plan before anything that follows from the change leaves the brain."""
        if self._plan.has_changed:
            await self._plan.say()

    def _adopt(self) -> None:
        """Follow the changed fleet file. One that is not the plan in force is read again, and decides nothing."""
        try:
            fleet = load(self.fleet.source, watch=self.fleet.watch)
        except FleetFileError as error:
            self._plan.tell(self.watch.notices, f"its fleet file cannot be read: {error}")
            return
        if self._plan.is_behind(fleet):
            self._plan.tell(
                self.watch.notices, f"its fleet file {fleet.source} is not the plan in force; copy it there"
            )
            return
        self.fleet = joined(self.fleet, fleet)
        self._pools = self._pools_of(self.fleet)
        self._plan.tell(self.watch.notices, "is in force")
        self.commits.tell_change()

    def _pool_of(self, aggregate: str) -> str:
        return self._pools.get(aggregate.partition("/")[2], DEFAULT_POOL)

    async def _hold_or_release(self) -> None:
        """Tell every worker that works to hold if the brain leaves, otherwise every held one to run; each once.

        The hold of an earlier brain may be decided by this one only.
        """
        if not (self.leaving or self.waits_for_operators) and self._only_operators_help():
            self._is_held = True
            self.leave()
        for each in self._workers():
            state = each.record("desired_state").state
            is_due = state in desired_state.WORKS if self.leaving else _is_held(each)
            if is_due and each.name not in self._told:
                self._told.add(each.name)
                await self._say(each.name, self._wanted_of(each))
            elif not is_due:
                self._told.discard(each.name)

    def _wanted_of(self, of: Aggregate) -> Event:
        """Return what a worker is told: to hold, to run, or to stop if a plan change has removed it meanwhile."""
        if self.leaving:
            return desired_state.HoldWanted(self._leaves_by)
        is_removed = of.kind == worker.KIND and not self._plan.is_behind(self.fleet) and not self.fleet.named(of.key)
        return desired_state.StopWanted(plan_enforcement.REMOVED) if is_removed else desired_state.RunWanted()

    def _only_operators_help(self) -> bool:
        """Tell whether the fleet waits only for operators; not before all that this brain has begun with is decided."""
        is_begun = self.commits.has_heard and self._are_all_there() and not any(map(_is_held, self._workers()))
        return is_begun and waits_for_operators(self.aggregates) and self._last_deliveries.are_done()

    def _are_all_there(self) -> bool:
        return len(self._workers()) >= len(self.fleet.agents) + len(self.fleet.services)

    async def _say(self, name: str, event: Event) -> None:
        await self._cluster.offer(name, Envelope("desired_state", event, self.now_ms(), "runner"))

    def _observe(self, aggregate: str, outcome: Reaction | Refusal) -> None:
        for refusal in (outcome,) if isinstance(outcome, Refusal) else outcome.refusals:
            self.refused.add(aggregate, refusal)
        if isinstance(outcome, Reaction) and any(
            each.entered is plan_change.State.IN_FORCE for each in outcome.transitions
        ):
            self._plan.has_changed = True
            self._adopt()
        for observer in self.observers:
            observer(aggregate, outcome)

    async def _begin(self) -> None:
        """Open the aggregates that are not in the log, and wake the others."""
        plan = replace(self.fleet.plan, key=self._store.meta(CLAIM_KEY) or "")
        known = dict(self.commits.aggregates)
        for name, envelope in opening(remainder(plan, before_of(self._store).ended), self.clock.now_ms()):
            if name not in known:
                await self._cluster.offer(name, replace(envelope, key="opened"))
        for name in known:
            await self._cluster.look(name)

    def _is_over(self) -> bool:
        workers = self._workers()
        if self.leaving > 1:
            return True
        if not self._are_all_there():
            return False
        if self.leaving:
            works = desired_state.WORKS
            return all(each.record("desired_state").state not in works and is_quiet(each) for each in workers)
        return is_over(self.aggregates) and self._last_deliveries.are_done()

    def _workers(self) -> list[Aggregate]:
        return [each for each in self.aggregates.values() if each.kind in {worker.KIND, service.KIND}]

    async def _end_workflows(self) -> None:
        """End the workflows one after the other. Raises ``Fenced`` if another brain has replaced this one meanwhile."""
        for name in self.commits.aggregates:
            await self._plan.say()
            with suppress(RPCError):
                await self._cluster.handle(name).terminate("the fleet is over, or its brain has left")


def _is_held(of: Aggregate) -> bool:
    """Tell whether an agent or a service is held, as by a brain that has left."""
    return of.record("desired_state").state is desired_state.State.HOLD
