"""The child workflow of one activity, such as a session. It outlives each history of its aggregate's workflow.

A host attends to the activity, once. A host without a heartbeat for the detection time is lost. The last act of the
child tells the workflow of the aggregate what became of it.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, TimeoutError, is_cancelled_exception  # noqa: A004 - its name in the library

with workflow.unsafe.imports_passed_through():
    from lifefold.interpreters.temporal.wire import NO_ROOM, Attend, Gone, aggregate_id


@workflow.defn(name="lifefold-session")
class SessionWorkflow:
    """One activity of an aggregate."""

    @workflow.run
    async def run(self, work: Attend) -> None:
        """Let a host attend to the activity, and report the end. A cancellation is the wish to end the activity."""
        detection = timedelta(milliseconds=work.times.detection_ms)
        child = workflow.info().workflow_id
        try:
            has_ended = await workflow.execute_activity(
                "lifefold-attend",
                work,
                result_type=bool,
                task_queue=work.queue,
                schedule_to_start_timeout=detection,
                start_to_close_timeout=timedelta(days=3650),
                heartbeat_timeout=detection,
                retry_policy=RetryPolicy(maximum_attempts=1),
                cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            )
            gone = Gone(child, work.queue, has_ended=has_ended)
        except ActivityError as error:
            # Cancelled before a host has taken it: nothing has begun, and nothing is confirmed.
            begins = work.at if _has_found_no_room(error) else None
            gone = Gone(child, work.queue, is_lost=not is_cancelled_exception(error) and begins is None, begins=begins)
            if gone.is_lost and not isinstance(error.cause, TimeoutError):
                # A host has left its session, which may live until its fence.
                await _although_cancelled(workflow.sleep(detection))
        except asyncio.CancelledError:
            # The activity and the wish to end it came to their ends in one step, and the library tells the wish only.
            # So the host may have left a session, as above; another host ends or confirms what is left.
            gone = Gone(child, work.queue, is_lost=True)
            await _although_cancelled(workflow.sleep(detection))
        parent = workflow.get_external_workflow_handle(aggregate_id(work.fleet, work.aggregate))
        try:
            await _although_cancelled(parent.signal("gone", gone))
        except ApplicationError:
            workflow.logger.warning("the aggregate has no workflow any more")


def _has_found_no_room(error: ActivityError) -> bool:
    """Tell whether the host had no room for the activity, so that another one may begin with it at once."""
    return isinstance(error.cause, ApplicationError) and error.cause.type == NO_ROOM


async def _although_cancelled(work: Coroutine[Any, Any, None]) -> None:
    """Finish some work, also if the wish to end the activity arrives meanwhile."""
    task = asyncio.create_task(work)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.shield(task)
    task.result()
