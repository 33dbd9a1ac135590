"""The brain of a cluster: the worker of the workflows, with the commits as its local activities.

A fleet has one brain at a time, because its log has one writer. A second brain opens the log, and the store refuses the
first one from then on. Workflows go on with whichever brain is there.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

import anyio
from anyio.abc import TaskStatus
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from lifefold.interpreters.temporal.aggregate_workflow import AggregateWorkflow
from lifefold.interpreters.temporal.commits import Commits
from lifefold.interpreters.temporal.connection import Cluster
from lifefold.interpreters.temporal.post import Post
from lifefold.interpreters.temporal.session_workflow import SessionWorkflow
from lifefold.interpreters.temporal.wire import brain_queue
from lifefold.interpreters.temporal.workers import at_work

POLL_MS: Final = 200
"""The pause between two queries for operator commands."""

STICKY: Final = timedelta(seconds=2)
"""How long the server waits for a brain that may be dead, before it gives a workflow to another one."""

WORKFLOWS: Final[tuple[type, ...]] = (AggregateWorkflow, SessionWorkflow)


async def _nothing() -> None:
    """Do nothing."""


class Brain:
    """Decides for one fleet."""

    def __init__(self, cluster: Cluster, commits: Commits, prepare: Callable[[], Awaitable[None]] = _nothing) -> None:
        """Decide with ``commits``, which ``run`` loads. It awaits ``prepare`` then, before it decides anything."""
        self._cluster: Final = cluster
        self._prepare: Final = prepare
        self._commits: Final = commits

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Work until the call is cancelled. Raises the error of the store, such as ``Fenced``."""
        await self._commits.load()
        await self._prepare()
        worker = Worker(
            self._cluster.client,
            task_queue=brain_queue(self._cluster.fleet),
            workflows=list(WORKFLOWS),
            activities=[self._commits.open, self._commits.commit, Post(self._cluster).deliver],
            workflow_runner=UnsandboxedWorkflowRunner(),  # a sandbox for each would take a third of the time
            sticky_queue_schedule_to_start_timeout=STICKY,
        )
        async with at_work(worker), anyio.create_task_group() as tasks:
            tasks.start_soon(self._cluster.forget_brain, tuple(self._commits.aggregates))
            task_status.started()
            await self._watch_commands()

    async def _watch_commands(self) -> None:
        """Wake the workflows of the aggregates for which the log has operator commands."""
        clock = self._commits.clock
        while self._commits.broken is None:
            for aggregate in self._commits.notice(await self._commits.arrived()):
                await self._cluster.look(aggregate)
            await clock.sleep_until(clock.now_ms() + POLL_MS)
        raise self._commits.broken
