"""A host of a fleet: the handlers of a runner, on a log that another process writes.

The fleet file and the log are the same for all hosts. A fleet with a repository has a clone for each host. A host
with sessions is drained before it ends. A host that dies leaves its sessions to their shims, until their fences.
"""

from collections.abc import Mapping
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Final, Self

import anyio

from lifefold.core.fleet import service, system
from lifefold.core.fleet.system import board
from lifefold.core.fleet.worker import desired_state, shutdown
from lifefold.core.kernel import Aggregate, AggregateType
from lifefold.effects import RunSession, VerifyWork
from lifefold.interpreters.engine import Interpreter
from lifefold.interpreters.fleet_cluster.blocked_merges import BlockedMerges
from lifefold.interpreters.fleet_cluster.brain import must_fit
from lifefold.interpreters.fleet_cluster.host_name import must_be_free
from lifefold.interpreters.fleet_cluster.plan_follower import PlanFollower
from lifefold.interpreters.fleet_cluster.presence import Presence
from lifefold.interpreters.fleet_cluster.repository import clone_of, must_be_of_cluster
from lifefold.interpreters.fleet_file import Fleet
from lifefold.interpreters.fleet_runner.blocked_merges import Waits
from lifefold.interpreters.fleet_runner.custom import RunContext, composed, found
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.handlers import Handlers
from lifefold.interpreters.fleet_runner.quoting import quoting
from lifefold.interpreters.fleet_runner.runner import is_quiet
from lifefold.interpreters.processes import Fence
from lifefold.interpreters.store import LogStore, StoreError, peek_log
from lifefold.interpreters.temporal import Cluster, Host, Performer
from lifefold.interpreters.temporal.wire import Attend
from lifefold.interpreters.worktrees.aside import make_own
from lifefold.interpreters.worktrees.pinned import is_folder
from lifefold.interpreters.worktrees.workplace import FolderWorkplace, Workplace


class HostFolders(FolderWorkplace):
    """The folders of tasks on a host. A task's check-out may have been on a lost host, so each use makes its folder."""

    def folder(self, agent: str, task: str) -> Path:
        """Return the task's folder, which is empty if this host has not worked on the task."""
        folder = super().folder(agent, task)
        if not is_folder(folder):
            make_own(folder.parent)
            make_own(folder)
        return folder


class FleetHost:
    """Runs sessions of one fleet. Make one with ``open``, and ``close`` it at the end."""

    def __init__(self, store: LogStore, handlers: Handlers, host: Host, presence: Presence) -> None:
        """Use ``open`` instead."""
        self.host: Final = host
        self.handlers: Final = handlers
        self._store: Final = store
        self.presence: Final = presence

    @property
    def sessions(self) -> int:
        """The number of sessions that are at work here."""
        return len(self.handlers.sessions.live)

    @classmethod
    async def open(  # noqa: PLR0913 - what an operator chooses, each with its name
        cls,
        fleet: Fleet,
        log: Path,
        cluster: Cluster,
        name: str,
        *,
        pools: Mapping[str, int],
        capacity: int | None = None,
        drain_s: float = 0.0,
    ) -> Self:
        """Read the log of the fleet, which its brain has begun.

        ``pools`` has the number of agents of each pool that may work here at a time, ``capacity`` that of all.

        Raises ``UnfitFleetError``, ``StoreError``, ``OtherFleetError``, ``WorkplaceError``,
        ``UnusableInterpreterError``, and ``NameTakenError`` if another host of this name is heard.
        """
        must_fit(fleet)
        factories, folder = found(fleet), FleetFolder(log)
        with ExitStack() as taken:
            store = taken.enter_context(closing(peek_log(log, patient=True)))
            must_be_of_cluster(fleet, store)
            with suppress(StoreError):  # of a user who may not read the rows of hosts
                await must_be_free(store, name)
            folder.make()
            run = store.meta("run") or ""
            cluster = cluster.of_log(run)
            workplace = taken.enter_context(closing(await _workplace_of(fleet, folder, store, name)))
            handlers = Handlers(fleet, folder, workplace, run=run, waits=Waits())  # hosts may share the folder
            standard = handlers.interpreter()
            context = RunContext(fleet, run, folder, workplace, standard, handlers.tell, handlers.present)
            whole = quoting(Interpreter().over(composed(factories, context)), handlers.secrets)
            performer = Performer(system, store, whole, cluster)
            handlers.when_blocked = BlockedMerges(handlers, performer).tell
            fenced, plan = FenceRenewal(handlers, cluster.times.fencing.grace_ms), PlanFollower(handlers, store)
            host = Host(
                cluster,
                performer,
                name,
                pools=pools,
                capacity=capacity,
                acknowledged=fenced.acknowledged,
                may_begin=plan.may_begin,
                refuses=lambda: plan.refusal,
                needs_room=lambda aggregate: aggregate != board.NAME,
                keeps_room=keeps_room,
                drain_s=drain_s,
            )
            presence = Presence(host, handlers, store, cluster, plan)
            taken.pop_all()
            return cls(store, handlers, host, presence)

    async def run(self) -> None:
        """Work until ``drain`` is called, or the call is cancelled, and say meanwhile how this host is."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.presence.run)
            await self.host.run()
            tasks.cancel_scope.cancel()
        await self.presence.end()

    def drain(self) -> None:
        """Take no further work, and let ``run`` return once the present work is over."""
        self.host.drain()

    def close(self) -> None:
        """Release the log and the clone."""
        self._store.close()
        self.handlers.workplace.close()


async def _workplace_of(fleet: Fleet, folder: FleetFolder, store: LogStore, name: str) -> Workplace:
    """Return the clone of a host, or its folders if the fleet has no repository."""
    if fleet.repository is None:
        return HostFolders.open(folder.worktrees)
    return await clone_of(fleet, folder, store, name)


def keeps_room(_of: AggregateType, aggregate: Aggregate) -> bool:
    """Tell whether an agent or a service keeps its room on its host while nothing of it is at work there.

    An agent does so until its claim is over, or its work waits for an operator. A service does so until it is down. One
    that an operator lets rest, or a brain that leaves, does so until nothing of it is live.
    """
    if aggregate.record("desired_state").state in desired_state.RESTS:
        return not is_quiet(aggregate)
    if aggregate.kind == service.KIND:
        return not service.is_down(aggregate)
    return shutdown.has_begun(aggregate) or not shutdown.quiet(aggregate)


class FenceRenewal:
    """Renews the fences of sessions and verifications after acknowledged heartbeats."""

    def __init__(self, handlers: Handlers, grace_ms: int) -> None:
        """Let a process take ``grace_ms`` after its fence."""
        self._handlers: Final = handlers
        self._grace_ms: Final = grace_ms

    async def acknowledged(self, work: Attend, until_ms: int) -> None:
        """Move the fence of the processes of an activity. The heartbeats of other activities say nothing about them."""
        agent, fence = work.aggregate.partition("/")[2], Fence(until_ms, self._grace_ms)
        if work.of.slot == RunSession.__name__:
            await self._handlers.sessions.renew_fence(agent, fence)
        elif work.of.slot == VerifyWork.__name__:
            await self._handlers.fenced.renew(agent, fence)
