"""One activity on a host, with its heartbeats.

The heartbeat of the SDK is sent at some later time, and its answer is not awaited. So a second heartbeat goes through
the asynchronous handle of the activity, and is awaited. Both are needed: the SDK cancels an activity without its own.
"""

import time
from collections.abc import Awaitable, Callable
from typing import Final

import anyio
from temporalio import activity
from temporalio.client import AsyncActivityCancelledError
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.service import RPCError, RPCStatusCode

from lifefold.interpreters.engine.activities import Key
from lifefold.interpreters.engine.clock import STEADY
from lifefold.interpreters.temporal.connection import Cluster
from lifefold.interpreters.temporal.performer import AGAIN_S, Performer
from lifefold.interpreters.temporal.wire import Attend, child_id

WAIT_S: Final = 1.0
"""The pause before a host looks again whether work may begin."""

Acknowledged = Callable[[Attend, int], Awaitable[None]]
"""Called with the work and the time until which its session may run, in milliseconds of the clock ``STEADY``."""

MayBegin = Callable[[Attend], Awaitable[bool]]
"""Tells whether work may begin here now. A host waits while it may not, and another host does not get the work."""


async def always(_work: Attend) -> bool:
    """Let any work begin."""
    return True


def key_of(work: Attend) -> Key:
    """Return the identity of the activity for the parts of the engine."""
    return Key(work.aggregate, work.of.entity, work.of.slot, work.of.generation)


class Attendance:
    """Attends to one activity until it is over here."""

    def __init__(
        self,
        cluster: Cluster,
        performer: Performer,
        work: Attend,
        acknowledged: Acknowledged,
        may_begin: MayBegin = always,
    ) -> None:
        """Attend to the activity of ``work``. ``acknowledged`` is called after each acknowledged heartbeat."""
        self._performer: Final = performer
        self._work: Final = work
        self._acknowledged: Final = acknowledged
        self._may_begin: Final = may_begin
        self._key: Final = key_of(work)
        self._child: Final = child_id(work.fleet, work.aggregate, work.of, work.at)
        self._beat_s: Final = work.times.beat_ms / 1_000
        self._handle: Final = cluster.client.get_async_activity_handle(task_token=activity.info().task_token)
        self._has_begun = False
        self._has_ended = False
        self._is_left = False
        self._is_acknowledged = False
        self._is_cancelled = False

    async def run(self) -> bool:
        """Return once no handler attends here any more, with True if the end was wanted.

        Raises ``ApplicationError`` if the handler was left, so that another host attends.
        """
        if not await self._is_still_wanted():
            return False  # nothing has begun here; another child confirms that nothing is left
        self._has_ended = await self._performer.begin(self._work)
        self._has_begun = True
        if self._is_cancelled:  # while it began
            await self.end()
        while self._goes_on():
            await self._beat()
            changed = self._performer.activities.changed
            if self._goes_on():
                with anyio.move_on_after(self._beat_s):
                    await changed.wait()
        self._performer.forget(self._key, self._child)
        if self._performer.has_ended or (self._is_left and not self._has_ended):
            raise _left(f"{self._work.aggregate}: this host has left {self._work.of.slot}")
        return self._has_ended

    async def _is_still_wanted(self) -> bool:
        """Wait until the work may begin, and the server has acknowledged a heartbeat just before.

        This host may have been frozen since its poll. Return False if the end is wanted already. Raises
        ``ApplicationError`` if another host may have the activity.
        """
        while True:
            self._is_acknowledged = False
            await self._beat()
            may_begin = self._is_acknowledged and await self._may_go_on()
            if self._is_cancelled:
                return False
            if self._is_left:
                raise _left(f"{self._work.aggregate}: {self._work.of.slot} is at another host")
            if may_begin:
                return True
            await anyio.sleep(min(self._beat_s, WAIT_S) if self._is_acknowledged else AGAIN_S)

    async def _may_go_on(self) -> bool:
        """Tell whether the work may begin here now; an end may."""
        return await self._may_begin(self._work) or not await self._performer.is_to_begin(self._work)

    def _goes_on(self) -> bool:
        performer = self._performer
        is_at_work = performer.activities.handles(self._key) or performer.is_reporting(self._work.aggregate)
        return is_at_work and performer.is_for(self._key, self._child) and not performer.has_ended

    async def end(self) -> None:
        """End the activity, because that is wanted. It does not begin any more. A repetition changes nothing."""
        self._is_cancelled = True
        if not self._has_begun:
            return
        if not self._has_ended and self._performer.is_for(self._key, self._child):
            self._has_ended = True
            await self._performer.end(self._work)

    def leave(self) -> None:
        """Cancel the handler without an end: the lease of its session is not renewed any more."""
        self._is_left = True
        if self._performer.is_for(self._key, self._child):  # the host may have the activity again, by a later request
            self._performer.activities.leave(self._key)

    async def _beat(self) -> None:
        activity.heartbeat()
        sent_ms = time.clock_gettime_ns(STEADY) // 1_000_000
        try:
            with anyio.fail_after(self._work.times.detection_ms / 1_000):
                await self._handle.heartbeat()
        except AsyncActivityCancelledError:
            await self.end()
            return
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                self.leave()
            return
        except TimeoutError:  # not acknowledged: the next one may be
            return
        if not self._is_left:
            self._is_acknowledged = True
            await self._acknowledged(self._work, self._work.times.fencing.until_ms(sent_ms))


def _left(message: str) -> ApplicationError:
    """Return an error of the ordinary course: the SDK logs none of its category."""
    return ApplicationError(message, category=ApplicationErrorCategory.BENIGN)
