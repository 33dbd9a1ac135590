"""The engine: decide, persist, perform, record, for every aggregate of a system, on anyio.

One task decides. It takes whatever inputs have come in (at most ``BATCH_LIMIT``), lets the pure rules decide on each,
writes all of it in one durable transaction, and only then lets the effects go: messages to other aggregates become
inputs again, timers are set, activities begin or end, other effects are performed one after the other per aggregate.
What comes of an activity is reported as its next input. While a batch is being written the next one gathers (group
commit).

The engine keeps no state of its own that matters: after a crash the log is folded, every aggregate is told
``RunnerRecovered``, and its reaction asks for all that should be going on. Effects that are not known to be performed
are performed again.
"""

from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup

from lifefold.core.kernel import (
    Aggregate,
    DecisionError,
    EntityQuarantined,
    Envelope,
    Reaction,
    Refusal,
    RequestedEffect,
    RunnerRecovered,
    System,
    UnreadableEntry,
    replace,
)
from lifefold.effects import Begin, CancelTimer, End, StartTimer, Tell
from lifefold.interpreters.engine.activities import Activities
from lifefold.interpreters.engine.clock import Clock, WallClock
from lifefold.interpreters.engine.effect_queue import EffectQueue
from lifefold.interpreters.engine.failures import OnError
from lifefold.interpreters.engine.inputs import Input, abandoned
from lifefold.interpreters.engine.interpreter import EffectContext, Interpreter
from lifefold.interpreters.engine.ledger import Decision, Ledger
from lifefold.interpreters.engine.misuse import Stage, must_be
from lifefold.interpreters.engine.retrying import Failures
from lifefold.interpreters.engine.timers import Timers
from lifefold.interpreters.store import Batch, EventStore, Post

BATCH_LIMIT: Final = 1_000
"""How many inputs one transaction takes at most."""

POLL_MS: Final = 100
"""How often posts of operators are looked for."""

Work = Callable[[], Coroutine[Any, Any, None]]

Observer = Callable[[str, Reaction | Refusal], None]
"""Called after each input is durably taken, or refused: ``(aggregate, what came of it)``."""


class Engine:
    """Runs one system on one store, once. ``offer`` and ``send`` give it inputs, before ``run`` and meanwhile.

    ``run`` loads the log and goes on where it ends. ``load`` and ``resume`` do the two steps before it, for a caller
    that looks at ``aggregates`` in between. An engine used in the wrong order raises ``EngineMisuseError``.
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
    ) -> None:
        """Put the parts together; ``on_error`` is for handlers for which nothing else is declared.

        Raises ``MissingHandlersError`` if the interpreter cannot serve the system.
        """
        self.failures: Final = Failures(on_error or OnError())
        interpreter.must_serve(system)
        self.ledger: Final = Ledger(system)
        self.clock: Final = clock or WallClock()
        self.has_heard = False
        """Whether all that operators had left in the store when the engine began is among its inputs."""
        self._store: Final = store
        self._interpreter: Final = interpreter
        self._observer: Final = observer
        self._inputs: Final[deque[Input]] = deque()
        self._arrived = anyio.Event()
        self._awaited: Final[set[Input]] = set()
        self._stage = Stage.NEW
        self._spawned: Final[list[Work]] = []
        self._timers: Final = Timers(self.clock, self.report)
        self._activities: Final = Activities(self, interpreter)
        self._owed: Final[list[tuple[str, RequestedEffect, EffectContext]]] = []
        """What may not have been performed, in order: it is performed when what goes on has been begun again."""
        self._unrecovered: Final[set[str]] = set()
        self._queues: Final[dict[str, EffectQueue]] = {}
        self._performed: dict[str, int] = {}
        self._untold: Final[dict[tuple[str, str, int], Tell]] = {}
        self._tasks: TaskGroup | None = None

    @property
    def aggregates(self) -> dict[str, Aggregate]:
        """The present state of every aggregate. Read it, do not write it."""
        return self.ledger.aggregates

    @property
    def quarantined(self) -> dict[tuple[str, str], str]:
        """Which entities take nothing more until they are released: aggregate and reference, with the reason."""
        return {(name, ref): why for name, each in self.aggregates.items() for ref, why in each.quarantined.items()}

    @property
    def has_ended(self) -> bool:
        """Whether ``run`` is over: the engine takes no more inputs."""
        return self._stage is Stage.ENDED

    async def load(self) -> None:
        """Fold the log; a second call changes nothing.

        Raises ``LogMismatchError`` if the log does not fit the rules, or is damaged.
        """
        if self._stage is not Stage.NEW:
            return
        self._stage = Stage.LOADING
        performed = self._performed = dict(await self._store.performed())
        for decision in self.ledger.fold(await self._store.read()):
            stream, version = decision.entry.stream, decision.entry.version
            for index, asked in enumerate(decision.reaction.effects):
                effect = asked.effect
                if isinstance(effect, Tell):
                    self._untold[stream, effect.aggregate, effect.ordinal] = effect
                elif not isinstance(effect, Begin | End | StartTimer | CancelTimer) and version > performed.get(
                    stream, 0
                ):
                    occasion = EffectContext(decision.reaction.aggregate, asked.entity, version, index)
                    self._owed.append((stream, asked, occasion))
            self.failures.note(stream, decision.envelope)
            if decision.envelope.sender:
                self._untold.pop((decision.envelope.sender, stream, decision.envelope.ordinal), None)
        self._stage = Stage.LOADED

    def resume(self) -> None:
        """Go on where the log ends: ask again for everything that should be going on or may not have been done.

        A second call changes nothing. It needs a log that is loaded, or raises ``EngineMisuseError``.
        """
        must_be("resume", self._stage, Stage.LOADED, Stage.RESUMED, Stage.RUNNING)
        if self._stage is not Stage.LOADED:
            return
        self._stage = Stage.RESUMED
        offered = list(self._inputs)
        self._inputs.clear()  # before what was offered: an input that is taken now begins what RunnerRecovered begins again
        down_ms = max(0, self.clock.now_ms() - self.ledger.last_ms)
        self._unrecovered.update(self.aggregates)
        for name in self.aggregates:
            self.report(name, Envelope("", RunnerRecovered(down_ms), self.clock.now_ms(), "engine"))
        for (sender, _, _), tell in self._untold.items():  # after RunnerRecovered, or what they begin would begin twice
            self._tell(sender, tell)
        self._untold.clear()
        self._inputs.extend(offered)

    def offer(self, aggregate: str, envelope: Envelope) -> None:
        """Give the engine an input without waiting for what comes of it; the engine's clock says when it came.

        Raises ``EngineMisuseError`` when the engine has ended: the input would be lost.
        """
        must_be("offer", self._stage, *Stage.before_the_end())
        self.report(aggregate, self._stamped(envelope))

    async def send(self, aggregate: str, envelope: Envelope) -> Reaction | Refusal:
        """Give the engine an input; return what came of it, once that is durable. The engine says when it came.

        If the engine stops before that is known, the answer is a refusal of the kind ``stopped``.
        """
        return await self.answered(aggregate, self._stamped(envelope))

    async def answered(self, aggregate: str, envelope: Envelope) -> Reaction | Refusal:
        """Take an input that has the time at which it came about, and return what came of it, as ``send`` does."""
        given = Input(aggregate, envelope, awaited=True)
        if self.has_ended:
            return abandoned(envelope)
        self._awaited.add(given)
        self._put(given)
        assert given.done is not None  # noqa: S101 - made so above
        try:
            await given.done.wait()
        finally:
            self._awaited.discard(given)
        assert given.outcome is not None  # noqa: S101 - set before done
        return given.outcome

    def spawn(self, work: Work) -> None:
        """Do something beside the work, for as long as the engine runs; before ``run``, as soon as it does.

        Raises ``EngineMisuseError`` when the engine has ended.
        """
        must_be("spawn", self._stage, *Stage.before_the_end())
        if self._tasks is None:
            self._spawned.append(work)
        else:
            self._tasks.start_soon(work)

    def beside(self, work: Callable[..., Coroutine[Any, Any, None]], *given: Any) -> None:
        """Do something beside the decisions; the engine is running."""
        assert self._tasks is not None  # noqa: S101 - decisions are made inside run only
        self._tasks.start_soon(work, *given)

    def wake(self) -> None:
        """Have ``until`` looked at again although no input has come."""
        self._arrived.set()

    def _stamped(self, envelope: Envelope) -> Envelope:
        """Return an input from outside as one of now: a time of the sender's would move deadlines."""
        return replace(envelope, at_ms=self.clock.now_ms())

    def report(self, aggregate: str, envelope: Envelope) -> None:
        """Take an input of the engine's own, which has the time at which it came about."""
        self._put(Input(aggregate, envelope))

    def _put(self, given: Input) -> None:
        self._inputs.append(given)
        self._arrived.set()

    async def run(self, until: Callable[["Engine"], bool]) -> None:
        """Run until ``until(engine)`` holds after some batch. Cancelling it stops the work at once.

        The log is loaded and resumed first, if it was not. An engine runs once; a second call raises
        ``EngineMisuseError``. Raises ``LogMismatchError`` as ``load`` does.
        """
        must_be("run", self._stage, Stage.NEW, Stage.LOADED, Stage.RESUMED)
        await self.load()
        self.resume()
        self._stage = Stage.RUNNING
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            for queue in self._queues.values():
                tasks.start_soon(queue.run)
            for work in self._spawned:
                tasks.start_soon(work)
            tasks.start_soon(self._timers.run)
            tasks.start_soon(self._watch_posts)
            try:
                await self._decide(until)
                await self._drain()
            finally:
                self._abandon()
            tasks.cancel_scope.cancel()

    def _abandon(self) -> None:
        """Let nobody wait for an answer that will not come: a handler that is shielded would wait for ever."""
        self._stage = Stage.ENDED
        for given in self._awaited:
            given.settle(abandoned(given.envelope))

    async def _decide(self, until: Callable[["Engine"], bool]) -> None:
        while True:
            if not self._inputs:
                if until(self):
                    return
                self._arrived = anyio.Event()
                await self._arrived.wait()
            batch = [self._inputs.popleft() for _ in range(min(len(self._inputs), BATCH_LIMIT))]
            decided = [each for given in batch for each in self._decisions(given)]
            entries = [decision.entry for _, decision in decided if isinstance(decision, Decision)]
            answers = {given.post: _answer(decision) for given, decision in decided if given.post}
            performed = self._take_performed()
            if entries or answers or performed:
                await self._store.append(Batch(entries, performed, answers))
            for given, decision in decided:
                self._release(given, decision)

    def _decisions(self, given: Input) -> Iterator[tuple[Input, Decision | Refusal]]:
        """Decide on an input. Of one that has no sender to be told, the entity that raises is quarantined first."""
        while True:
            try:
                decision = self.ledger.decide(given.aggregate, given.envelope)
            except DecisionError as failed:
                yield self._quarantine(given, failed)
            else:
                yield given, decision
                return

    def _quarantine(self, given: Input, failed: DecisionError) -> tuple[Input, Decision]:
        """Quarantine an entity of which rules have raised. Raises ``DecisionError`` if that is of no avail."""
        envelope = Envelope(failed.entity, EntityQuarantined(str(failed)), given.envelope.at_ms, "engine")
        decision = self.ledger.decide(given.aggregate, envelope)
        if isinstance(decision, Refusal):
            raise failed
        return Input(given.aggregate, envelope), decision

    def _release(self, given: Input, decision: Decision | Refusal) -> None:
        """Let a durable decision have its effects."""
        outcome: Reaction | Refusal = decision if isinstance(decision, Refusal) else decision.reaction
        self.failures.note(given.aggregate, given.envelope)
        if isinstance(decision, Decision):
            for index, asked in enumerate(decision.reaction.effects):
                self._perform(decision, index, asked)
            self._perform_owed(decision)
        given.settle(outcome)
        if self._observer is not None:
            self._observer(given.aggregate, outcome)

    def _perform(self, decision: Decision, index: int, asked: RequestedEffect) -> None:
        name, ref, version = decision.entry.stream, asked.entity, decision.entry.version
        occasion = EffectContext(decision.reaction.aggregate, ref, version, index)
        match asked.effect:
            case Tell() as tell:
                self._tell(name, tell)
            case StartTimer(slot=slot, generation=generation, deadline_ms=deadline_ms):
                self._timers.start(name, ref, slot, generation, deadline_ms)
            case CancelTimer(slot=slot, generation=generation):
                self._timers.cancel(name, ref, slot, generation)
            case Begin() as begin:
                self._activities.begin(begin, occasion)
            case End() as end:
                self._activities.end(end, occasion)
            case _:
                self._queue(name).put(asked, occasion)

    def _perform_owed(self, decision: Decision) -> None:
        """Perform what is owed, once all aggregates are recovered.

        Before that no handler is there for an activity that an earlier engine has begun, and an effect that concerns
        it would reach nothing.
        """
        if self._unrecovered and isinstance(decision.envelope.event, RunnerRecovered):
            self._unrecovered.discard(decision.entry.stream)
            if not self._unrecovered:
                for name, asked, occasion in self._owed:
                    self._queue(name).put(asked, occasion)
                self._owed.clear()

    def _tell(self, sender: str, tell: Tell) -> None:
        envelope = Envelope(
            tell.entity, tell.event, self.clock.now_ms(), actor=sender, sender=sender, ordinal=tell.ordinal
        )
        self.report(tell.aggregate, envelope)

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
        """Let what has been asked for be performed before the engine stops, and remember that it was."""
        for queue in self._queues.values():
            queue.wait_no_more()
        for queue in self._queues.values():
            await queue.empty()
        performed = self._take_performed()
        if performed:
            await self._store.append(Batch(performed=performed))

    async def _watch_posts(self) -> None:
        """Take what operators have left in the store, and see to it that what was performed is written down."""
        taken: set[int] = set()
        while True:
            posts = await self._store.posts()
            for post in posts:
                if post.id not in taken:
                    await self._take_post(post)
            taken = {post.id for post in posts}
            if not self.has_heard:
                self.has_heard = True
                self.wake()
            if any(queue.news for queue in self._queues.values()):
                self.wake()  # so that an idle engine, too, remembers what it has performed
            await self.clock.sleep_until(self.clock.now_ms() + POLL_MS)

    async def _take_post(self, post: Post) -> None:
        """Let a post be an input of this moment, whatever time its sender had; answer it if it cannot be read."""
        try:
            envelope = self.ledger.codec.decode(post.stream, post.envelope)
        except UnreadableEntry as error:
            await self._store.append(Batch(answers={post.id: f"refused: {error}"}))
        else:
            self._put(Input(post.stream, replace(envelope, at_ms=self.clock.now_ms()), post.id))


def _answer(decision: Decision | Refusal) -> str:
    return f"refused: {decision.reason}" if isinstance(decision, Refusal) else "accepted"
