"""A host of a cluster: the activities of Temporal that call handlers, and their worker.

A heartbeat is awaited. Its acknowledgement moves the fence of the session, counted from the time at which it was sent.
So the server waits for a host longer than its sessions can live without the server. If the server refuses a heartbeat,
another host may have the session. The handler is then cancelled without an end, and the fence is not moved any more.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Final

import anyio
from anyio.abc import TaskStatus
from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.worker import Worker

from lifefold.interpreters.engine.activities import Key
from lifefold.interpreters.temporal.attendance import Acknowledged, Attendance, MayBegin, always, key_of
from lifefold.interpreters.temporal.commits import DEFAULT_POOL
from lifefold.interpreters.temporal.connection import Cluster
from lifefold.interpreters.temporal.performer import Performer
from lifefold.interpreters.temporal.wire import Attend, Perform, host_queue, pool_queue
from lifefold.interpreters.temporal.workers import at_work

DEFAULT_POOLS: Final[Mapping[str, int]] = {DEFAULT_POOL: 100}


async def _ignore(_work: Attend, _until_ms: int) -> None:
    """Renew nothing: the activities have no processes."""


ACTIVITIES_OF_AN_AGGREGATE: Final = 20
"""The activities and effects of one aggregate that a host has room for; more than any aggregate has at a time."""


class Host:
    """Attends to activities and performs effects, for aggregates of some pools.

    ``pools`` has the number of aggregates of each pool that may work here at a time, ``capacity`` that of all together.
    """

    def __init__(  # noqa: PLR0913 - what an operator chooses, each with its name
        self,
        cluster: Cluster,
        performer: Performer,
        name: str,
        *,
        pools: Mapping[str, int] = DEFAULT_POOLS,
        capacity: int | None = None,
        acknowledged: Acknowledged = _ignore,
        may_begin: MayBegin = always,
        refuses: Callable[[], str] = lambda: "",
        drain_s: float = 0.0,
    ) -> None:
        """Prepare a host. After ``run`` is asked to drain, it waits ``drain_s`` for its activities.

        ``refuses`` returns why the host takes no further aggregates; empty if it does.
        """
        self.name: Final = name
        self._cluster: Final = cluster
        self._performer: Final = performer
        self._pools: Final = dict(pools)
        self.capacity: Final = sum(pools.values()) if capacity is None else capacity
        self._pool_of: Final[dict[str, str]] = {}
        self._awaited: Final[dict[str, float]] = {}
        self._acknowledged: Final = acknowledged
        self._may_begin: Final = may_begin
        self._refuses: Final = refuses
        self._drain_s: Final = drain_s
        self._attended: Final[dict[Key, None]] = {}
        self._draining = anyio.Event()

    @property
    def is_draining(self) -> bool:
        """Whether the host takes no further work and leaves once its present work is over."""
        return self._draining.is_set()

    def drain(self) -> None:
        """Take no further work, and let ``run`` return once the present work is over."""
        self._draining.set()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Work until ``drain`` is called, or the call is cancelled."""
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._performer.run)
            async with contextlib.AsyncExitStack() as workers:
                own = self._worker(host_queue(self._cluster.fleet, self.name), [self.attend, self.perform])
                await workers.enter_async_context(at_work(own))
                for pool in self._pools:
                    shared = self._worker(pool_queue(self._cluster.fleet, pool), [self.place])
                    await workers.enter_async_context(at_work(shared))
                task_status.started()
                await self._draining.wait()
            tasks.cancel_scope.cancel()

    def _worker(self, queue: str, activities: list[Callable[..., object]]) -> Worker:
        # A frozen host takes nothing but what its one open poll has taken already.
        return Worker(
            self._cluster.client,
            task_queue=queue,
            activities=activities,
            max_concurrent_activity_task_polls=1,
            # What waits for room here for the detection time would count as lost.
            max_concurrent_activities=ACTIVITIES_OF_AN_AGGREGATE * (self.capacity + 1),
            graceful_shutdown_timeout=timedelta(seconds=self._drain_s),
            identity=self.name,
        )

    @activity.defn(name="lifefold-place")
    async def place(self, aggregate: str) -> str:
        """Take an aggregate, and return the name of this host. Fails if the host is full, or takes none now."""
        queue = activity.info().task_queue
        pool = next(each for each in self._pools if pool_queue(self._cluster.fleet, each) == queue)
        working = self.working() - {aggregate}
        in_pool = sum(1 for each in working if self._pool_of.get(each) == pool)
        is_full = len(working) >= self.capacity or in_pool >= self._pools[pool]
        why_not = self._refuses() or ("it is full" if is_full else "")
        if why_not:
            raise ApplicationError(f"{self.name}: {why_not}", category=ApplicationErrorCategory.BENIGN)
        self._pool_of[aggregate], self._awaited[aggregate] = pool, time.monotonic()
        return self.name

    def pools(self) -> Iterator[tuple[str, int, int]]:
        """Yield each pool: its name, how many of its aggregates may work here at a time, and how many do."""
        working = self.working()
        for pool, room in self._pools.items():
            yield pool, room, sum(1 for each in working if self._pool_of.get(each) == pool)

    def working(self) -> set[str]:
        """Return the aggregates that work here, and those that were placed here and whose work is on its way."""
        since_s = time.monotonic() - self._cluster.times.detection_ms / 1_000
        for name in [each for each, at_s in self._awaited.items() if at_s < since_s]:
            del self._awaited[name]
        return {key.aggregate for key in self._attended} | self._awaited.keys()

    @activity.defn(name="lifefold-perform")
    async def perform(self, work: Perform) -> None:
        """Perform an effect, with heartbeats."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._beat_for_ever)
            await self._performer.perform(work, self._cluster.times.detection_ms)
            tasks.cancel_scope.cancel()

    async def _beat_for_ever(self) -> None:
        while True:
            activity.heartbeat()
            await anyio.sleep(self._cluster.times.beat_ms / 1_000)

    def _attendance(self, work: Attend) -> Attendance:
        return Attendance(self._cluster, self._performer, work, self._acknowledged, self._may_begin)

    @activity.defn(name="lifefold-attend")
    async def attend(self, work: Attend) -> bool:
        """Attend to an activity until it is over. Return whether it was ended because that was wanted."""
        attendance, key = self._attendance(work), key_of(work)
        self._attended[key] = None
        self._awaited.pop(work.aggregate, None)
        attending = asyncio.create_task(attendance.run())
        try:
            while True:
                try:
                    return await asyncio.shield(attending)
                except asyncio.CancelledError:
                    details = activity.cancellation_details()
                    if attending.done():
                        raise
                    if details is not None and details.cancel_requested:
                        await attendance.end()
                    else:
                        attendance.leave()
        finally:
            self._attended.pop(key, None)
