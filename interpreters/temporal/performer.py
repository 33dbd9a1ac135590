"""The engine's side of a host: handlers are called, retried and ended by the parts of the local engine.

``Activities`` and ``EffectQueue`` see the cluster as they see an engine. A report is an update of the aggregate's
workflow, which answers once the report is in the log. The time is the clock of the host; the brain gives entries their
time.
"""

import logging
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup
from temporalio.client import WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.service import RPCError, RPCStatusCode

from lifefold.core.kernel import (
    ActivityEnded,
    Aggregate,
    Envelope,
    HandlerFailed,
    Phase,
    Reaction,
    Refusal,
    System,
    replace,
)
from lifefold.effects import Begin, End
from lifefold.interpreters.engine.activities import Activities, Key
from lifefold.interpreters.engine.clock import Clock, WallClock
from lifefold.interpreters.engine.effect_queue import EffectQueue
from lifefold.interpreters.engine.failures import Failures, OnError
from lifefold.interpreters.engine.inputs import abandoned
from lifefold.interpreters.engine.interpreter import EffectContext, Interpreter
from lifefold.interpreters.engine.ledger import Ledger
from lifefold.interpreters.store import EventStore
from lifefold.interpreters.temporal.connection import Cluster
from lifefold.interpreters.temporal.log_reader import LogReader
from lifefold.interpreters.temporal.wire import FENCED, Attend, Perform, Place, child_id

AGAIN_S: Final = 0.2
"""The pause before a report is sent again, while the server or the brain is away."""

_logger: Final = logging.getLogger(__name__)


class Performer:
    """Performs effects and activities on one host; the ``Host`` of the engine's parts."""

    def __init__(  # noqa: PLR0913 - the parts of a host, each with its name
        self,
        system: System,
        store: EventStore,
        interpreter: Interpreter,
        cluster: Cluster,
        *,
        clock: Clock | None = None,
        on_error: OnError | None = None,
    ) -> None:
        """Read from a store, and report to a cluster. Raises ``MissingHandlersError`` as an engine does."""
        interpreter.must_serve(system)
        self.failures: Final = Failures(on_error or OnError())
        self.clock: Final = clock or WallClock()
        self.has_ended = False
        self.reader: Final = LogReader(system, store, self.failures)
        self.activities: Final = Activities(self, interpreter, self.reader.present)
        self._interpreter: Final = interpreter
        self._cluster: Final = cluster
        self._tasks: TaskGroup | None = None
        self._children: Final[dict[Key, str]] = {}
        self._in_flight: Final[Counter[str]] = Counter()

    @property
    def ledger(self) -> Ledger:
        """What this host has read of the log."""
        return self.reader.ledger

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Run the handlers until the call is cancelled. Sessions are then left to their shims."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            task_status.started()
            try:
                await anyio.sleep_forever()
            finally:
                self.has_ended = True

    async def is_to_begin(self, work: Attend) -> bool:
        """Tell whether the entry of an activity wants it to begin, and not to end."""
        _, effect = await self._requested(work.aggregate, work.at)
        return isinstance(effect, Begin)

    async def begin(self, work: Attend) -> bool:
        """Begin or end an activity, as its entry wants. Return whether its end is wanted."""
        context, effect = await self._requested(work.aggregate, work.at)
        key = Key(work.aggregate, work.of.entity, work.of.slot, work.of.generation)
        if isinstance(effect, Begin):
            while self.activities.handles(key):  # the server took this host for lost, and it is not
                changed = self.activities.changed
                self.activities.leave(key)
                await changed.wait()
            self._attend_for(key, work)
            self.activities.begin(effect, context)
            return False
        assert isinstance(effect, End)  # noqa: S101 - the brain has made a reference to one of both
        self._attend_for(key, work)
        self.activities.end(effect, context)
        return True

    def _attend_for(self, key: Key, work: Attend) -> None:
        self._children[key] = child_id(work.fleet, work.aggregate, work.of, work.at)

    def is_for(self, key: Key, child: str) -> bool:
        """Tell whether the handler of an activity runs for this child workflow, and not for a later one."""
        return self._children.get(key) == child

    def forget(self, key: Key, child: str) -> None:
        """Forget an activity that is over here."""
        if self.is_for(key, child):
            del self._children[key]

    def is_reporting(self, aggregate: str) -> bool:
        """Tell whether a report for an aggregate has no answer yet."""
        return self._in_flight[aggregate] > 0

    async def end(self, work: Attend) -> None:
        """End an activity that runs here."""
        context, _ = await self._requested(work.aggregate, work.at)
        self.activities.end(End(work.of.slot, work.of.generation), context)

    async def perform(self, work: Perform, within_ms: int, is_here: Callable[[], Awaitable[bool]]) -> bool:
        """Perform an effect by its handler and the error policy of that.

        An effect may be for an activity that is on its way to this host. So it waits at most ``within_ms`` for the
        activities of its entry. If ``is_here`` tells then that another host has the aggregate, they begin there. So the
        effect is not performed here, and the answer is False.
        """
        decision = await self.reader.decision(work.aggregate, work.at)
        context, _ = await self._requested(work.aggregate, work.at)
        with anyio.move_on_after(within_ms / 1_000) as wait:
            while await self._are_on_their_way(context.within):  # noqa: ASYNC110 - the log is of another process
                await anyio.sleep(AGAIN_S)
        if wait.cancelled_caught and not await is_here():
            return False
        queue = EffectQueue(self, self._interpreter, self.activities)
        await queue.perform(decision.reaction.effects[work.at.index], context)
        return True

    async def _are_on_their_way(self, within: Aggregate) -> bool:
        """Tell whether an activity runs according to the log, and has not begun here. Rules serve some, and no host."""
        present, kind = await self.reader.present(within.name), self.ledger.system.type_of(within.name)
        return any(
            (machine is None or part.slot not in machine.served)
            and not self.activities.is_known(Key(within.name, ref, part.slot, part.generation))
            for ref, entity in within.entities.unarchived().items()
            for machine in [kind.machine_of(ref)]
            for part in entity.running
            if part.activity is not None
            and part.phase is Phase.LIVE
            and (now := present.entities.get(ref)) is not None
            and now.find(part.slot, generation=part.generation) is not None
        )

    async def _requested(self, aggregate: str, at: Place) -> tuple[EffectContext, object]:
        decision = await self.reader.decision(aggregate, at)
        requested = decision.reaction.effects[at.index]
        context = EffectContext(decision.reaction.aggregate, requested.entity, at.version, at.index)
        return context, requested.effect

    def report(self, aggregate: str, envelope: Envelope) -> None:
        """Give an input of the engine's parts to the workflow of the aggregate."""
        self._in_flight[aggregate] += 1
        self.beside(self._reported, aggregate, envelope)

    async def _reported(self, aggregate: str, envelope: Envelope) -> None:
        try:
            await self.answered(aggregate, envelope)
        finally:
            self._in_flight[aggregate] -= 1
            self.activities.tell_change()

    async def answered(self, aggregate: str, envelope: Envelope) -> Reaction | Refusal:
        """Give an input to the workflow of the aggregate, and return its outcome once that is durable.

        The reaction has the name of the aggregate only: the host does not fold what it does not need. A report for an
        activity that another host has is refused, and its handler here is left.
        """
        key = _activity_of(aggregate, envelope)
        child = "" if key is None else self._children.get(key, "")
        keyed = replace(envelope, key=uuid.uuid4().hex)
        while not self.has_ended:
            try:
                reason = await self._cluster.decide(aggregate, keyed, child)
            except WorkflowUpdateFailedError as error:
                return Refusal(envelope, "failed", str(error.cause))
            except WorkflowUpdateRPCTimeoutOrCancelledError as error:
                _logger.info("%s: the answer to a report is late: %s", aggregate, error)
            except RPCError as error:
                if error.status is RPCStatusCode.NOT_FOUND:
                    return Refusal(envelope, "unknown", f"{aggregate} has no workflow")
                _logger.warning("%s: a report waits for the server: %s", aggregate, error)
            else:
                if reason == FENCED and key is not None:
                    self.activities.leave(key)
                return Refusal(envelope, "refused", reason) if reason else Reaction(Aggregate(aggregate, 0))
            await anyio.sleep(AGAIN_S)
        return abandoned(envelope)

    def beside(self, work: Callable[..., Coroutine[Any, Any, None]], *given: Any) -> None:
        """Run a coroutine beside the others, while the host runs."""
        assert self._tasks is not None  # noqa: S101 - the worker begins after ``run``
        self._tasks.start_soon(work, *given)


def _activity_of(aggregate: str, envelope: Envelope) -> Key | None:
    """Return the activity that a report is about; None if it is about none."""
    event = envelope.event
    if envelope.slot:
        return Key(aggregate, envelope.entity, envelope.slot, envelope.generation)
    if isinstance(event, ActivityEnded | HandlerFailed) and event.slot:
        return Key(aggregate, envelope.entity, event.slot, event.generation)
    return None
