"""The engine: decide, persist, perform, record, for every aggregate of a system, on anyio.

One task decides. It takes a batch of at most ``BATCH_LIMIT`` inputs, applies the pure rules to each, and writes all
decisions in one durable transaction. Only then are the effects performed. Messages to other aggregates become inputs
again. Timers are set, and activities begin or end. Other effects are performed in order, per aggregate. An activity
reports events, which are inputs too. While one batch is written, the next one gathers (group commit).

The engine has no state that a crash could lose. After a restart the log is folded, and every aggregate receives
``RunnerRecovered``. Its reaction requests all activities and timers that should run. Effects without a record that
they were performed are performed again.
"""

from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup

from lifefold.core.kernel import (
    Aggregate,
    Envelope,
    Reaction,
    Refusal,
    RequestedEffect,
    RunnerRecovered,
    System,
    delivery,
    replace,
)
from lifefold.core.kernel.forgotten import ForgottenEffect
from lifefold.core.kernel.shown import counted, shown
from lifefold.core.kernel.snapshot import must_recover
from lifefold.effects import Begin, CancelTimer, End, StartTimer, Tell
from lifefold.interpreters.engine.activities import Activities
from lifefold.interpreters.engine.clock import Clock, WallClock
from lifefold.interpreters.engine.effect_queue import EffectQueue
from lifefold.interpreters.engine.failures import Failures, OnError
from lifefold.interpreters.engine.inputs import Input, abandoned
from lifefold.interpreters.engine.interpreter import EffectContext, Interpreter
from lifefold.interpreters.engine.ledger import Decision, Ledger
from lifefold.interpreters.engine.log_writer import LogWriter
from lifefold.interpreters.engine.misuse import Stage, must_be
from lifefold.interpreters.engine.seam import Undone, must_suit
from lifefold.interpreters.engine.snapshots import SnapshotTaker, load
from lifefold.interpreters.engine.timers import Timers
from lifefold.interpreters.engine.workers import Workers
from lifefold.interpreters.rules import rules_version
from lifefold.interpreters.store import EventStore, Snapshot

BATCH_LIMIT: Final = 1_000
"""The largest number of inputs in one transaction."""

POLL_MS: Final = 100
"""The pause between two queries for operator commands."""

Work = Callable[[], Coroutine[Any, Any, None]]

Observer = Callable[[str, Reaction | Refusal], None]
"""Called after each input is durable, or refused, with the aggregate's name and the outcome."""


class Engine:
    """Runs one system on one store, once. ``offer`` and ``send`` give it inputs, before and during ``run``.

    ``run`` loads the log and continues at its end. A caller that reads ``aggregates`` before the run begins can call
    ``load`` and ``resume`` itself. Calls in the wrong order raise ``EngineMisuseError``.

    >>> import anyio
    >>> from lifefold import Engine, Interpreter, MemoryStore, alone
    >>> from lifefold.core.fleet.board import intake
    >>> system, opening = alone(intake.machine)
    >>> async def live():
    ...     engine = Engine(system, MemoryStore(), Interpreter())  # it needs the event loop
    ...     engine.offer("intake", opening["intake"])
    ...     await engine.run(until=lambda engine: "intake" in engine.aggregates)
    ...     print(engine)
    >>> anyio.run(live)
    <Engine of 'intake': 1 aggregate; it has ended>
    """

    def __init__(  # noqa: PLR0913 - the parts of an engine, each with its name
        self,
        system: System,
        store: EventStore,
        interpreter: Interpreter,
        *,
        clock: Clock | None = None,
        observer: Observer | None = None,
        on_error: OnError | None = None,
        snapshot_every: int | None = None,
    ) -> None:
        """Connect the parts. ``on_error`` is the policy of handlers without a declared one.

        A snapshot is due after ``snapshot_every`` entries; by default after ``snapshots.EVERY``.

        Raises ``MissingHandlersError`` if the interpreter lacks a handler that the system needs.
        """
        self.failures: Final = Failures(on_error or OnError())
        interpreter.must_serve(system)
        self.ledger: Final = Ledger(system)
        self.clock: Final = clock or WallClock()
        self.has_heard = False
        """Whether the engine has read all operator commands that were in the store when it began."""
        self._store: Final = store
        self._writer: Final = LogWriter(self.ledger, store, self.clock)
        self._interpreter: Final = interpreter
        self._observer: Final = observer
        self._inputs: Final[deque[Input]] = deque()
        self._arrived = anyio.Event()
        self._new_event: Final = type(self._arrived)  # a look-up of the backend takes longer than an event
        self._awaited: Final[set[Input]] = set()
        self._stage = Stage.NEW
        self._spawned: Final[list[Work]] = []
        self._timers: Final = Timers(self.clock, self.report)
        self._activities: Final = Activities(self, interpreter)
        self._owed: Final[list[tuple[str, RequestedEffect, EffectContext]]] = []
        """Effects without a record that they were performed, in order. They wait until activities are resumed."""
        self._unrecovered: Final[set[str]] = set()
        self._queues: Final[dict[str, EffectQueue]] = {}
        self._performed: dict[str, int] = {}
        self._snapshots: Final = SnapshotTaker(self.ledger, store, snapshot_every)
        self._tasks: TaskGroup | None = None
        self._workers: Workers | None = None

    def __repr__(self) -> str:
        """Return its system, its stage and its number of aggregates."""
        size = counted(len(self.aggregates), "aggregate")
        return shown(f"Engine of {self.ledger.system.name!r}: {size}; it {self._stage}")

    @property
    def aggregates(self) -> dict[str, Aggregate]:
        """The present state of every aggregate. Read it, do not write it."""
        return self.ledger.aggregates

    @property
    def quarantined(self) -> dict[tuple[str, str], str]:
        """The quarantined entities, by aggregate and reference, each with the reason."""
        return {(name, ref): why for name, each in self.aggregates.items() for ref, why in each.quarantined.items()}

    def keep_notes(self, notes: Callable[[Aggregate], bytes]) -> None:
        """Keep with each snapshot of an aggregate what ``notes`` returns for it, unless that is empty.

        An observer that is as far as the log can so be read back without its older entries (``snapshots.Loaded``).
        """
        self._snapshots.notes = notes

    @property
    def has_ended(self) -> bool:
        """Whether ``run`` is over. The engine accepts no more inputs then."""
        return self._stage is Stage.ENDED

    async def load(self) -> None:
        """Fold the log. A second call changes nothing.

        Raises ``LogMismatchError`` if the log cannot be read, or if these rules cannot go on with those of the log.
        """
        if self._stage is not Stage.NEW:
            return
        self._stage = Stage.LOADING
        self.ledger.rules = rules_version(self.ledger.system)
        # Messages and effects of the log may have been lost with the runner: the fold collects those without a record.
        performed = self._performed = dict(await self._store.performed())
        loaded = await load(self.ledger, self._store, sampled=True)
        self._snapshots.begin(loaded)
        for stream, envelope in loaded.failures:
            self.failures.note(stream, envelope)
        undone = Undone(performed)
        for decision in self.ledger.fold(loaded.entries):
            undone.observe(decision)
            self.failures.note(decision.entry.stream, decision.envelope)
            self._snapshots.note(decision)
        # The snapshot has older messages, and knows which of them are accepted.
        undone.untold.clear()
        undone.untold.update(self._snapshots.untold)
        must_suit(self.ledger, undone)
        # What is still forgotten here is declared as removed.
        self._owed.extend(each for each in undone.owed if not isinstance(each[1].effect, ForgottenEffect))
        self._stage = Stage.LOADED

    def resume(self) -> None:
        """Continue at the end of the log: request again all activities, timers and effects that may be missing.

        A second call changes nothing. Raises ``EngineMisuseError`` if the log is not loaded.
        """
        must_be("resume", self._stage, Stage.LOADED, Stage.RESUMED, Stage.RUNNING)
        if self._stage is not Stage.LOADED:
            return
        self._stage = Stage.RESUMED
        offered = list(self._inputs)
        self._inputs.clear()  # offered inputs come last: RunnerRecovered would begin their activities a second time
        down_ms = max(0, self.clock.now_ms() - self.ledger.last_ms)
        recovering = [
            name for name, each in self.aggregates.items() if must_recover(self.ledger.system.type_of(name), each)
        ]
        self._unrecovered.update(recovering)
        for name in recovering:
            self.report(name, Envelope("", RunnerRecovered(down_ms), self.clock.now_ms(), "engine"))
        for (sender, _, _), tell in self._snapshots.untold.items():  # after RunnerRecovered, for the same reason
            self._tell(sender, tell)
        self._inputs.extend(offered)
        self._put_owed()

    def offer(self, aggregate: str, envelope: Envelope) -> None:
        """Queue an input without waiting for its outcome. The engine's clock gives its timestamp.

        Raises ``EngineMisuseError`` when the engine has ended, because the input would be lost.
        """
        must_be("offer", self._stage, *Stage.before_the_end())
        self.report(aggregate, self._stamped(envelope))

    async def send(self, aggregate: str, envelope: Envelope) -> Reaction | Refusal:
        """Queue an input, and return its outcome once that is durable. The engine's clock gives its timestamp.

        If the engine stops earlier, the answer is a refusal of the kind ``stopped``.
        """
        return await self.answered(aggregate, self._stamped(envelope))

    async def answered(self, aggregate: str, envelope: Envelope) -> Reaction | Refusal:
        """Queue an input that has its own timestamp, and return its outcome as ``send`` does."""
        done = self._new_event()
        given = Input(aggregate, envelope, done=done)
        if self._stage is Stage.ENDED:
            return abandoned(envelope)
        self._awaited.add(given)
        self._put(given)
        try:
            await done.wait()
        finally:
            self._awaited.discard(given)
        assert given.outcome is not None  # noqa: S101 - set before done
        return given.outcome

    def spawn(self, work: Work) -> None:
        """Run a coroutine beside the engine until the engine ends. Before ``run`` it waits for the engine to start.

        Raises ``EngineMisuseError`` when the engine has ended.
        """
        must_be("spawn", self._stage, *Stage.before_the_end())
        if self._tasks is None:
            self._spawned.append(work)
        else:
            self._tasks.start_soon(work)

    def beside(self, work: Callable[..., Coroutine[Any, Any, None]], *given: Any) -> None:
        """Run a coroutine beside the decisions, while the engine runs."""
        assert self._workers is not None  # noqa: S101 - decisions are made inside run only
        self._workers.start(work, *given)

    def wake(self) -> None:
        """Evaluate ``until`` again although no input has arrived."""
        self._arrived.set()

    def _stamped(self, envelope: Envelope) -> Envelope:
        """Give an input from outside the present time: a timestamp of its sender would move deadlines."""
        return replace(envelope, at_ms=self.clock.now_ms())

    def report(self, aggregate: str, envelope: Envelope) -> None:
        """Queue an input of the engine itself. Its envelope has its own timestamp."""
        self._put(Input(aggregate, envelope))

    def _put(self, given: Input) -> None:
        self._inputs.append(given)
        self._arrived.set()

    async def run(self, until: Callable[["Engine"], bool]) -> None:
        """Run until ``until(engine)`` holds after a batch. Cancelling the call stops all work at once.

        The log is loaded and resumed first, if it was not. An engine runs once: a second call raises
        ``EngineMisuseError``. Raises ``LogMismatchError`` as ``load`` does.
        """
        must_be("run", self._stage, Stage.NEW, Stage.LOADED, Stage.RESUMED)
        await self.load()
        await self._writer.change_rules()
        self.resume()
        self._stage = Stage.RUNNING
        async with anyio.create_task_group() as tasks:
            self._tasks, self._workers = tasks, Workers(tasks)
            queues = [queue.run for queue in self._queues.values()]
            for work in (*queues, *self._spawned, self._timers.run, self._watch_commands):
                tasks.start_soon(work)
            try:
                await self._decide(until)
                await self._drain()
            finally:
                self._abandon()
            tasks.cancel_scope.cancel()

    def _abandon(self) -> None:
        """Answer all waiting callers with ``stopped``: a shielded handler would wait for its answer for ever."""
        self._stage = Stage.ENDED
        for given in self._awaited:
            given.settle(abandoned(given.envelope))

    async def _decide(self, until: Callable[["Engine"], bool]) -> None:
        while True:
            if not self._inputs:
                # Only an empty queue ends the run: inputs that were offered are decided on first.
                if until(self):
                    return
                self._arrived = self._new_event()
                await self._arrived.wait()
            batch = [self._inputs.popleft() for _ in range(min(len(self._inputs), BATCH_LIMIT))]
            if any(given.envelope.key for given in batch):
                await self._writer.know(batch)
            snapshot = self._snapshot() if self._snapshots.is_due else None
            for given, decision in await self._writer.commit(batch, self._take_performed(), snapshot):
                self._release(given, decision)

    def _release(self, given: Input, decision: Decision | Refusal) -> None:
        """Perform the effects of a durable decision, and answer its sender."""
        outcome: Reaction | Refusal = decision if isinstance(decision, Refusal) else decision.reaction
        self.failures.note(given.aggregate, given.envelope)
        if isinstance(decision, Decision):
            self._snapshots.note(decision)
            for index, requested in enumerate(decision.reaction.effects):
                self._perform(decision, index, requested)
            self._perform_owed(decision)
        given.settle(outcome)
        if self._observer is not None:
            self._observer(given.aggregate, outcome)

    def _perform(self, decision: Decision, index: int, requested: RequestedEffect) -> None:
        name, ref, version = decision.entry.stream, requested.entity, decision.entry.version
        context = EffectContext(decision.reaction.aggregate, ref, version, index)
        match requested.effect:
            case Tell() as tell:
                self._tell(name, tell)
            case StartTimer(slot=slot, generation=generation, deadline_ms=deadline_ms):
                self._timers.start(name, ref, slot, generation, deadline_ms)
            case CancelTimer(slot=slot, generation=generation):
                self._timers.cancel(name, ref, slot, generation)
            case Begin() as begin:
                self._activities.begin(begin, context)
            case End() as end:
                self._activities.end(end, context)
            case _:
                self._queue(name).put(requested, context)

    def _perform_owed(self, decision: Decision) -> None:
        """Perform the owed effects of the log, once all aggregates are recovered.

        Before that, activities of an earlier engine have no handlers, and an effect for such an activity would be lost.
        """
        if self._unrecovered and isinstance(decision.envelope.event, RunnerRecovered):
            self._unrecovered.discard(decision.entry.stream)
            self._put_owed()

    def _put_owed(self) -> None:
        if not self._unrecovered:
            for name, requested, context in self._owed:
                self._queue(name).put(requested, context)
            self._owed.clear()

    def _snapshot(self) -> Snapshot | None:
        return self._snapshots.taken(self._is_quiet, self.failures.of_running)

    def _is_quiet(self, aggregate: str) -> bool:
        """Tell whether all effects of an aggregate are performed: its snapshot then has no effects to remember."""
        queue = self._queues.get(aggregate)
        return (queue is None or queue.is_idle) and all(name != aggregate for name, _, _ in self._owed)

    def _tell(self, sender: str, tell: Tell) -> None:
        self.report(*delivery(sender, tell, self.clock.now_ms()))

    def _queue(self, aggregate: str) -> "EffectQueue":
        queue = self._queues.get(aggregate)
        if queue is None:
            queue = self._queues[aggregate] = EffectQueue(self, self._interpreter, self._activities)
            if self._tasks is not None:
                self._tasks.start_soon(queue.run)
        return queue

    def _take_performed(self) -> dict[str, int]:
        news = {name: queue.performed for name, queue in self._queues.items() if queue.news}
        for name in news:
            self._queues[name].news = False
        return news

    async def _drain(self) -> None:
        """Perform the queued effects before the engine stops, and record that they are performed."""
        for queue in self._queues.values():
            queue.wait_no_more()
        for queue in self._queues.values():
            await queue.empty()
        snapshot = self._snapshot() if self._snapshots.is_due_at_end else None
        await self._writer.commit((), self._take_performed(), snapshot)

    async def _watch_commands(self) -> None:
        """Queue operator commands from the store, and have performed effects recorded."""
        while True:
            for given in await self._writer.commands():
                self._put(given)
            if not self.has_heard:
                self.has_heard = True
                self.wake()
            # An idle engine must answer unreadable commands and record its performed effects, too.
            if self._writer.has_unreadable or any(queue.news for queue in self._queues.values()):
                self.wake()
            await self.clock.sleep_until(self.clock.now_ms() + POLL_MS)
