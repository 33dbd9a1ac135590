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
from functools import partial
from typing import Final

import anyio
from anyio.abc import TaskStatus
from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.worker import Worker

from lifefold.core.kernel import Aggregate, AggregateType
from lifefold.core.kernel.snapshot import must_recover
from lifefold.interpreters.temporal.attendance import Acknowledged, Attendance, MayBegin, always
from lifefold.interpreters.temporal.commits import DEFAULT_POOL
from lifefold.interpreters.temporal.connection import Cluster
from lifefold.interpreters.temporal.log_reader import UNREADABLE
from lifefold.interpreters.temporal.performer import Performer
from lifefold.interpreters.temporal.rooms import Rooms
from lifefold.interpreters.temporal.wire import NO_ROOM, Attend, Perform, host_queue, pool_queue
from lifefold.interpreters.temporal.workers import at_work

DEFAULT_POOLS: Final[Mapping[str, int]] = {DEFAULT_POOL: 100}


async def _ignore(_work: Attend, _until_ms: int) -> None:
    """Renew nothing: the activities have no processes."""


FULL: Final = "it is full"

KeepsRoom = Callable[[AggregateType, Aggregate], bool]
"""Tells whether an aggregate keeps its room while nothing of it is at work on its host."""

ACTIVITIES_OF_AN_AGGREGATE: Final = 20
"""The activities and effects of one aggregate that a host has room for; more than any aggregate has at a time."""


class Host:
    """Attends to activities and performs effects, for aggregates of some pools.

    ``pools`` has the number of aggregates of each pool that may work here at a time, ``capacity`` that of all together.
    ``Rooms`` says which ones count.
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
        needs_room: Callable[[str], bool] = lambda _aggregate: True,
        keeps_room: KeepsRoom = must_recover,
        drain_s: float = 0.0,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare a host. After ``run`` is asked to drain, it waits ``drain_s`` for its activities.

        ``refuses`` returns why the host takes no further aggregates; empty if it does. ``needs_room`` tells of the name
        of an aggregate whether it counts. ``keeps_room`` tells whether one keeps its room while nothing of it is at
        work here. ``now_s`` is a clock that no operator sets.
        """
        self.name: Final = name
        self._cluster: Final = cluster
        self._performer: Final = performer
        self._pools: Final = tuple(pools)
        self.capacity: Final = sum(pools.values()) if capacity is None else capacity
        self._rooms: Final = Rooms(pools, self.capacity, cluster.times.detection_ms / 1_000, now_s)
        self._needs_room: Final = needs_room
        self._keeps_room: Final = keeps_room
        self._acknowledged: Final = acknowledged
        self._may_begin: Final = may_begin
        self._refuses: Final = refuses
        self._drain_s: Final = drain_s
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
    async def place(self, aggregate: str, is_end: bool = False) -> str:  # noqa: FBT001, FBT002 - as the server gives it
        """Take an aggregate, and return the name of this host. Fails if the host is full, or takes none now.

        The end of an activity, ``is_end``, needs no room.
        """
        queue = activity.info().task_queue
        pool = next(each for each in self._pools if pool_queue(self._cluster.fleet, each) == queue)
        why_not, needs_room = self._refuses(), self._needs_room(aggregate) and not is_end
        if not why_not and needs_room and not await self._gets_room(lambda: self._rooms.is_placed(aggregate, pool)):
            why_not = FULL
        if why_not:
            raise ApplicationError(f"{self.name}: {why_not}", category=ApplicationErrorCategory.BENIGN)
        return self.name

    def pools(self) -> Iterator[tuple[str, int, int]]:
        """Yield each pool: its name, how many of its aggregates may work here at a time, and how many do."""
        return self._rooms.pools()

    def working(self) -> set[str]:
        """Return the aggregates that have a room here."""
        return self._rooms.taken()

    async def empty_rooms(self) -> None:
        """Give the rooms of settled aggregates back, by what the log says of them now, and those of other hosts.

        An aggregate that cannot be read keeps its room.
        """
        async with anyio.create_task_group() as tasks:
            for name in self._rooms.idle():
                tasks.start_soon(self._look_at_room, name)

    async def _look_at_room(self, name: str) -> None:
        keeps = await self._keeps(name)
        if not keeps and name in self._rooms.idle():  # its next work may have arrived meanwhile
            self._rooms.leave(name)

    async def _keeps(self, name: str) -> bool:
        reader = self._performer.reader
        try:
            if not self._keeps_room(reader.ledger.system.type_of(name), await reader.present(name)):
                return False
        except UNREADABLE:  # it is looked at again when a room is needed
            return True
        if not self._rooms.is_doubtful(name):
            return True
        self._rooms.see(name)  # so the workflow is asked once in the detection time
        return await self._cluster.is_at(name, self.name)

    @activity.defn(name="lifefold-perform")
    async def perform(self, work: Perform) -> None:
        """Perform an effect, with heartbeats. Raises ``ApplicationError`` if another host has to perform it."""
        is_performed = False
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._beat_for_ever)
            is_here = partial(self._cluster.is_at, work.aggregate, self.name)
            is_performed = await self._performer.perform(work, self._cluster.times.detection_ms, is_here)
            tasks.cancel_scope.cancel()
        if not is_performed:
            message = f"{self.name}: {work.aggregate} is at another host"
            raise ApplicationError(message, category=ApplicationErrorCategory.BENIGN)

    async def _beat_for_ever(self) -> None:
        while True:
            activity.heartbeat()
            await anyio.sleep(self._cluster.times.beat_ms / 1_000)

    def _attendance(self, work: Attend) -> Attendance:
        return Attendance(self._cluster, self._performer, work, self._acknowledged, self._may_begin)

    @activity.defn(name="lifefold-attend")
    async def attend(self, work: Attend) -> bool:
        """Attend to an activity until it is over. Return whether it was ended because that was wanted.

        Raises ``ApplicationError`` of the type ``NO_ROOM`` if the host is full, before anything begins.
        """
        attendance = self._attendance(work)
        attending = asyncio.create_task(self._in_a_room(attendance, work))
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

    async def _in_a_room(self, attendance: Attendance, work: Attend) -> bool:
        """Attend to an activity whose aggregate has a room; the end of an activity needs none."""
        needs_room = self._needs_room(work.aggregate) and await self._performer.is_to_begin(work)
        if needs_room and not await self._gets_room(lambda: self._rooms.is_kept(work.aggregate, work.pool)):
            raise ApplicationError(f"{self.name}: {FULL}", type=NO_ROOM, category=ApplicationErrorCategory.BENIGN)
        try:
            with self._rooms.at_work(work.aggregate):
                return await attendance.run()
        except ApplicationError:
            self._rooms.leave(work.aggregate)  # another host has it
            raise

    async def _gets_room(self, take: Callable[[], bool]) -> bool:
        """Take a room, if necessary that of an aggregate that is settled by now; tell whether there was one."""
        if take():
            return True
        await self.empty_rooms()
        return take()
