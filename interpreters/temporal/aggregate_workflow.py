"""The workflow of one aggregate: the loop, and no decision.

The loop takes inputs, has them committed, and arranges what the commit wants. A message goes to another workflow. A
timer is a durable sleep. An activity is a child workflow. Any other effect is performed by a host, one after the other.
No rule of a lifecycle is workflow code, so changed rules are no nondeterminism.

The workflow continues as new when its history is long. It then carries over the version that it knows, its inbox, its
deadlines, and the names of its children. Children are not ended by that.
"""

import asyncio
from collections import deque
from contextlib import suppress
from datetime import timedelta
from typing import Final

from temporalio import workflow
from temporalio.common import RetryPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import ActivityError, ApplicationError, WorkflowAlreadyStartedError

with workflow.unsafe.imports_passed_through():
    from lifefold.interpreters.temporal.wire import (
        BATCH_LIMIT,
        FENCED,
        TASK_TIMEOUT,
        Attend,
        Child,
        Commit,
        Committed,
        Due,
        Gone,
        Opened,
        Opening,
        Perform,
        Place,
        Report,
        Requested,
        Slot,
        Start,
        Started,
        State,
        Stopped,
        TimerCancelled,
        TimerSet,
        Told,
        Wanted,
        child_id,
        host_queue,
        pool_queue,
    )

LOCAL_TIMEOUT: Final = timedelta(seconds=60)
AGAIN: Final = RetryPolicy(initial_interval=timedelta(milliseconds=100), maximum_interval=timedelta(seconds=5))
ONCE: Final = RetryPolicy(maximum_attempts=1)
FOR_EVER: Final = timedelta(days=3650)
PAUSE_MS: Final = 200
"""The pause before an effect is tried again on another host, and before a child is started again."""


@workflow.defn(name="lifefold-aggregate")
class AggregateWorkflow:
    """One aggregate."""

    @workflow.init
    def __init__(self, state: State) -> None:
        """Go on from a state."""
        self._of: Final = state
        self._is_open = state.is_open
        self._pool = state.pool
        self._host = state.host
        self._after = state.after
        self._pending: Final = deque(state.pending)
        self._inbox: Final = deque(state.inbox)
        self._timers: Final = {due.of: (due, at_ms) for due, at_ms in state.timers}
        self._children: Final = {child.of: child for child in state.children}
        self._starts: Final = deque(state.starts)
        self._starting: Final[set[str]] = set()
        self._placing: Final = asyncio.Lock()
        self._gone: Final[deque[Gone]] = deque()
        self._asked: Final[dict[str, str | None]] = {}
        self._looks = False
        self._is_performing = False

    @workflow.signal(name="offer")
    def offer(self, envelopes: list[str]) -> None:
        """Take inputs, as JSON."""
        self._inbox.extend(envelopes)

    @workflow.signal(name="look")
    def look(self, _nothing: list[str]) -> None:
        """Commit although there is no input: an operator command waits in the log."""
        self._looks = True

    @workflow.signal(name="gone")
    def gone(self, gone: Gone) -> None:
        """Take the end of a child."""
        self._gone.append(gone)

    @workflow.update(name="decide")
    async def decide(self, report: Report) -> str:
        """Take an input, and return its answer once it is durable. The input has a key."""
        envelope = report.envelope
        if report.child and all(each.id != report.child for each in self._children.values()):
            return FENCED
        if envelope not in self._asked:
            self._asked[envelope] = None
            self._inbox.append(envelope)
        await workflow.wait_condition(lambda: self._asked[envelope] is not None)
        return self._asked.pop(envelope) or ""

    @workflow.query(name="state")
    def state(self) -> State:
        """Return what the workflow would carry over now."""
        return State(
            fleet=self._of.fleet,
            aggregate=self._of.aggregate,
            times=self._of.times,
            is_open=self._is_open,
            pool=self._pool,
            after=self._after,
            pending=tuple(self._pending),
            inbox=tuple(self._inbox),
            timers=tuple(self._timers.values()),
            children=tuple(self._children.values()),
            starts=tuple(self._starts),
            host=self._host,
        )

    @workflow.run
    async def run(self, _state: State) -> None:
        """Run until the history is long, then continue as new."""
        beside = [asyncio.create_task(self._perform_all())]
        beside += [asyncio.create_task(self._start_all(ends=ends)) for ends in (False, True)]
        if not self._is_open:
            await self._open()
        while not self._may_continue_as_new():
            await self._wait()
            await self._settle_children()
            due = self._due()
            if self._inbox or self._looks or due:
                await self._commit(due)
        for task in beside:
            task.cancel()
        workflow.continue_as_new(self.state())

    def _may_continue_as_new(self) -> bool:
        info, limit = workflow.info(), self._of.times.history_events
        is_long = info.is_continue_as_new_suggested() or 0 < limit < info.get_current_history_length()
        is_quiet = not self._gone and not self._looks and not self._is_performing and not self._starting
        return is_long and is_quiet and workflow.all_handlers_finished()

    async def _open(self) -> None:
        opened = await self._opened()
        self._is_open, self._pool = True, opened.pool
        if opened.recovery:
            self._inbox.appendleft(opened.recovery)
        await self._arrange(opened.committed)

    async def _opened(self) -> Opened:
        opened: Opened = await workflow.execute_local_activity(
            "lifefold-open",
            Opening(self._of.aggregate),
            result_type=Opened,
            start_to_close_timeout=LOCAL_TIMEOUT,
            retry_policy=AGAIN,
        )
        return opened

    async def _wait(self) -> None:
        """Wait for an input, for the end of a child, or for the next deadline."""
        next_ms = min((at_ms for _, at_ms in self._timers.values()), default=None)
        timeout = None if next_ms is None else timedelta(milliseconds=max(0, next_ms - _now_ms()))
        if timeout is not None and not timeout:
            return
        try:
            await workflow.wait_condition(self._has_work, timeout=timeout)
        except TimeoutError:
            return

    def _has_work(self) -> bool:
        return bool(self._inbox or self._gone or self._looks) or self._may_continue_as_new()

    def _due(self) -> tuple[Due, ...]:
        now_ms = _now_ms()
        return tuple(due for due, at_ms in self._timers.values() if at_ms <= now_ms)

    async def _commit(self, due: tuple[Due, ...]) -> None:
        inputs = tuple(self._inbox.popleft() for _ in range(min(len(self._inbox), BATCH_LIMIT)))
        self._looks = False
        for each in due:
            del self._timers[each.of]
        performed = self._pending[0].version - 1 if self._pending else self._after
        committed = await workflow.execute_local_activity(
            "lifefold-commit",
            Commit(self._of.aggregate, self._after, performed, inputs, due),
            result_type=Committed,
            start_to_close_timeout=LOCAL_TIMEOUT,
            retry_policy=AGAIN,
        )
        await self._arrange(committed)
        for text, answer in zip(inputs, committed.answers, strict=True):
            if text in self._asked:
                self._asked[text] = answer

    async def _arrange(self, committed: Committed) -> None:
        """Arrange what a commit wants, in its order."""
        self._after = committed.version
        told: list[Told] = []
        for early in committed.early:
            self._set(early)
        for wanted in committed.wanted:
            if isinstance(wanted, Told):
                told.append(wanted)
            else:
                await self._arrange_one(wanted)
        if told:
            await workflow.execute_local_activity(
                "lifefold-deliver", tuple(told), start_to_close_timeout=LOCAL_TIMEOUT, retry_policy=AGAIN
            )

    async def _arrange_one(self, wanted: Wanted) -> None:
        match wanted:
            case TimerSet():
                self._set(wanted)
            case TimerCancelled(of=of):
                self._timers.pop(of, None)
            case Requested(at=at):
                self._pending.append(at)
            case Started(of=of, at=at):
                if of not in self._children:
                    self._begin(Child(of, self._id(of, at)), at)
            case Stopped(of=of, at=at):
                await self._end(of, at)
            case Told():
                pass

    def _set(self, timer: TimerSet) -> None:
        self._timers[timer.of] = Due(timer.of, timer.deadline_ms), _now_ms() + timer.left_ms

    def _begin(self, child: Child, at: Place, *, again: bool = False) -> None:
        """Let a child workflow attend to an activity, once the aggregate has a host."""
        self._children[child.of] = child
        self._starts.append(Start(child.of, at, again))

    async def _end(self, of: Slot, at: Place) -> None:
        """Ask a child to end its activity; without a child, start one that ends what is left."""
        child = self._children.get(of)
        waiting = next((each for each in self._starts if each.of == of), None)
        if waiting is not None:
            self._starts.remove(waiting)
        if child is None or waiting is not None:
            self._begin(Child(of, self._id(of, at), is_ending=True, end=at), at)
            return
        self._children[of] = Child(of, child.id, is_ending=True, end=at)
        await workflow.wait_condition(lambda: child.id not in self._starting)
        with suppress(ApplicationError):  # it may have ended; its signal is on its way then
            await workflow.get_external_workflow_handle(child.id).cancel()

    async def _start_all(self, *, ends: bool) -> None:
        """Start the children that wait for a host, in their order: those that end an activity, or the others.

        An end needs no room at its host. So it does not wait for a beginning that does.
        """
        while True:
            await workflow.wait_condition(lambda: self._next_start(ends=ends) is not None)
            queue = await self._queue(is_end=ends)
            start = self._next_start(ends=ends)
            if start is not None:  # its end may have been wanted meanwhile
                self._starts.remove(start)
                await self._start(start, queue)

    def _next_start(self, *, ends: bool) -> Start | None:
        def is_end(start: Start) -> bool:
            child = self._children.get(start.of)
            return child is not None and child.is_ending

        return next((each for each in self._starts if is_end(each) is ends), None)

    async def _start(self, start: Start, queue: str) -> None:
        # A restored log gives its versions again, so the server may have had the name: as that of an ended workflow.
        name = self._id(start.of, start.at)
        self._starting.add(name)
        of = self._of
        work = Attend(of.fleet, of.aggregate, start.of, start.at, queue, of.times, self._pool)
        try:
            while not await self._has_started(name, work) and start.again:
                await workflow.sleep(timedelta(milliseconds=PAUSE_MS))  # its first child has told its end, and ends
        finally:
            self._starting.discard(name)

    async def _has_started(self, name: str, work: Attend) -> bool:
        """Start a child; return False if it runs: an earlier workflow of this aggregate has started it.

        Its end is told to this workflow then.
        """
        try:
            begun = await workflow.start_child_workflow(
                "lifefold-session",
                work,
                id=name,
                parent_close_policy=workflow.ParentClosePolicy.ABANDON,
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                task_timeout=TASK_TIMEOUT,
            )
        except WorkflowAlreadyStartedError:
            return False
        begun.add_done_callback(_retrieve)
        return True

    def _id(self, of: Slot, at: Place) -> str:
        return child_id(self._of.fleet, self._of.aggregate, of, at)

    async def _settle_children(self) -> None:
        """Take the ends of children. A lost activity is requested again by the kernel, as after a crash of a runner."""
        while self._gone:
            gone = self._gone.popleft()
            child = next((each for each in self._children.values() if each.id == gone.child), None)
            if child is None:
                continue
            del self._children[child.of]
            if (gone.is_lost or gone.begins is not None) and gone.queue == host_queue(self._of.fleet, self._host):
                self._host = ""  # a later host stays
            if child.is_ending and not gone.has_ended and gone.child != self._id(child.of, child.end):
                await self._end(child.of, child.end)
            elif gone.begins is not None:
                self._begin(Child(child.of, child.id), gone.begins, again=True)
            elif gone.is_lost:
                await self._recover()

    async def _recover(self) -> None:
        opened = await self._opened()
        if opened.recovery:
            self._inbox.append(opened.recovery)

    async def _queue(self, *, is_end: bool = False) -> str:
        """Return the queue of the host of this aggregate; a host of its pool takes the aggregate if it has none.

        A host that only ends an activity does not take the aggregate, because it may be full.
        """
        if is_end and not self._host:
            return host_queue(self._of.fleet, await self._placed(is_end=True))
        async with self._placing:
            if not self._host:
                self._host = await self._placed(is_end=False)
            return host_queue(self._of.fleet, self._host)

    async def _placed(self, *, is_end: bool) -> str:
        host: str = await workflow.execute_activity(
            "lifefold-place",
            args=[self._of.aggregate, is_end],
            result_type=str,
            task_queue=pool_queue(self._of.fleet, self._pool),
            start_to_close_timeout=timedelta(seconds=10),
            retry_policy=AGAIN,
        )
        return host

    async def _perform_all(self) -> None:
        """Perform the effects that wait, in their order, one at a time."""
        while True:
            await workflow.wait_condition(lambda: bool(self._pending))
            self._is_performing = True
            if await self._perform(self._pending[0]):
                self._pending.popleft()
            self._is_performing = False

    async def _perform(self, at: Place) -> bool:
        """Let a host perform an effect. Tell whether it is settled; it is not if its host is lost."""
        detection = timedelta(milliseconds=self._of.times.detection_ms)
        queue = await self._queue()
        try:
            await workflow.execute_activity(
                "lifefold-perform",
                Perform(self._of.aggregate, at),
                task_queue=queue,
                start_to_close_timeout=FOR_EVER,
                schedule_to_start_timeout=detection,
                heartbeat_timeout=detection,
                retry_policy=ONCE,
            )
        except ActivityError:
            if queue == host_queue(self._of.fleet, self._host):
                self._host = ""
            await workflow.sleep(timedelta(milliseconds=PAUSE_MS))
            return False
        return True


def _retrieve(child: asyncio.Task[object]) -> None:
    """Take the result of a child, which its signal has told already; otherwise asyncio would print its error."""
    if not child.cancelled():
        child.exception()


def _now_ms() -> int:
    return workflow.time_ns() // 1_000_000
