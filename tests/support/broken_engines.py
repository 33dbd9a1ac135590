"""Engines with one deliberate mistake each: the simulation of the real engine has to find them."""

from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

from lifefold.core.kernel import Envelope, Phase, Refusal, RequestedEffect, RunnerRecovered
from lifefold.effects import Begin, End
from lifefold.interpreters.engine import Decision, EffectContext, Engine
from lifefold.interpreters.engine.activities import Key
from lifefold.interpreters.engine.effect_queue import EffectQueue
from lifefold.interpreters.engine.inputs import Input
from lifefold.interpreters.store import Batch, SnapshotPart


class PerformsBeforePersisting(Engine):
    """It releases the effects of a batch, and writes the batch then."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        append = self._store.append

        async def keep(batch: Batch) -> None:
            self.beside(append, batch)

        self._writer._store = _Kept(self._store, keep)  # type: ignore[misc]


class _Kept:
    def __init__(self, store: Any, append: Callable[[Batch], Any]) -> None:
        self._store = store
        self.append = append

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class AnswersBeforePersisting(Engine):
    """It answers the callers of ``send`` as soon as it has decided."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        decide = self._writer._decisions

        def answered(given: Input) -> Any:
            for each in decide(given):
                if isinstance(each.decision, Decision):
                    each.given.settle(each.decision.reaction)
                yield each

        self._writer._decisions = answered  # type: ignore[method-assign]


class RecordsTooEarly(Engine):
    """It records effects as performed when they are queued."""

    def _queue(self, aggregate: str) -> EffectQueue:
        queue = super()._queue(aggregate)
        put = EffectQueue.put

        def put_and_record(requested: RequestedEffect, context: EffectContext) -> None:
            put(queue, requested, context)
            queue.performed, queue.news = context.version, True

        queue.put = put_and_record  # type: ignore[method-assign]
        return queue


class RecordsTheFirstOfAVersion(Engine):
    """It records a version as performed when the first of its effects is."""

    def _queue(self, aggregate: str) -> EffectQueue:
        queue = super()._queue(aggregate)
        over = EffectQueue.perform

        async def is_over(requested: RequestedEffect, context: EffectContext) -> bool:
            done = await over(queue, requested, context)
            queue.performed, queue.news = context.version, True
            return done

        queue.perform = is_over  # type: ignore[method-assign]
        return queue


class PerformsInAnyOrder(Engine):
    """It performs the newest effect first."""

    def _queue(self, aggregate: str) -> EffectQueue:
        queue = super()._queue(aggregate)

        def put(requested: RequestedEffect, context: EffectContext) -> None:
            EffectQueue.put(queue, requested, context)
            queue._waiting.rotate(1)

        queue.put = put  # type: ignore[method-assign]
        return queue


class ForgetsMessages(Engine):
    """It does not repeat the messages that no receiver has accepted before a restart."""

    def resume(self) -> None:
        self._snapshots.untold.clear()
        super().resume()


class ForgetsEffects(Engine):
    """It does not perform the effects that were not performed before a restart."""

    async def load(self) -> None:
        await super().load()
        self._owed.clear()


class PerformsEverythingAgain(Engine):
    """It performs all effects of the log again after a restart."""

    async def load(self) -> None:
        performed = self._store.performed

        async def nothing() -> dict[str, int]:
            await performed()
            return {}

        self._store.performed = nothing  # type: ignore[method-assign]
        await super().load()


class ForgetsTimers(Engine):
    """It does not set timers again after a restart."""

    def _perform(self, decision: Decision, index: int, requested: RequestedEffect) -> None:
        is_back = isinstance(decision.envelope.event, RunnerRecovered)
        if not (is_back and type(requested.effect).__name__ == "StartTimer"):
            super()._perform(decision, index, requested)


class LosesASoonerTimer(Engine):
    """It does not wake for a timer that is due before the one it waits for."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._timers._sooner = _Deaf()  # type: ignore[assignment]
        start = self._timers.start

        def deaf(*given: Any) -> None:
            self._timers._sooner = _Deaf()  # type: ignore[assignment]
            start(*given)

        self._timers.start = deaf  # type: ignore[method-assign, assignment]


class _Deaf:
    def cancel(self) -> None:
        """Wake nothing."""


class ForgetsActivities(Engine):
    """It does not call the handlers of running activities again after a restart."""

    def _perform(self, decision: Decision, index: int, requested: RequestedEffect) -> None:
        is_back = isinstance(decision.envelope.event, RunnerRecovered)
        if not (is_back and isinstance(requested.effect, Begin)):
            super()._perform(decision, index, requested)


class ConfirmsAtOnce(Engine):
    """It confirms the end of an activity when it asks for it."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        end = self._activities.end

        def confirm(effect: End, origin: EffectContext) -> None:
            end(effect, origin)
            self._activities._confirm(Key(origin.within.name, origin.ref, effect.slot, effect.generation))

        self._activities.end = confirm  # type: ignore[method-assign, assignment]


class LeavesRemains(Engine):
    """After a crash, it confirms the end of an activity without a handler that ends what is left of it."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        begin = self._activities.begin

        def begun(effect: Begin, origin: EffectContext, *, cleanup_only: bool = False) -> None:
            if cleanup_only:
                self._activities._confirm(Key(origin.within.name, origin.ref, effect.slot, effect.generation))
            else:
                begin(effect, origin)

        self._activities.begin = begun  # type: ignore[method-assign, assignment]


class RunsAnActivityTwice(Engine):
    """It calls the handler of an activity that has ended since, when that one is confirmed."""

    def _release(self, given: Input, decision: Decision | Refusal) -> None:
        super()._release(given, decision)
        for (name, ref), begin, context in self._seen():
            if isinstance(decision, Decision) and decision.entry.stream == name:
                part = decision.reaction.aggregate.entities[ref].find(begin.slot, Phase.ENDING)
                if part is None and decision.reaction.aggregate.entities[ref].find(begin.slot) is None:
                    self._kept.clear()
                    self._activities.begin(begin, context)

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._kept: list[tuple[tuple[str, str], Begin, EffectContext]] = []

    def _seen(self) -> Collection[tuple[tuple[str, str], Begin, EffectContext]]:
        return tuple(self._kept)

    def _perform(self, decision: Decision, index: int, requested: RequestedEffect) -> None:
        if isinstance(requested.effect, Begin):
            context = EffectContext(decision.reaction.aggregate, requested.entity, decision.entry.version, index)
            self._kept.append(((decision.entry.stream, requested.entity), requested.effect, context))
        super()._perform(decision, index, requested)


class TakesCommandsTwice(Engine):
    """It takes the operator commands again that it has taken, with other keys."""

    def _put(self, given: Input) -> None:
        super()._put(given)
        if given.command:
            again = Envelope(given.envelope.entity, given.envelope.event, given.envelope.at_ms)
            super()._put(Input(given.aggregate, again))


class GoesOnWithoutItsStore(Engine):
    """It goes on when its store has refused a batch."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        append = self._store.append

        async def tried(batch: Batch) -> None:
            try:
                await append(batch)
            except Exception:  # noqa: BLE001 - the mistake
                return

        self._writer._store = _Kept(self._store, tried)  # type: ignore[misc]


class SnapshotsWithoutEffects(Engine):
    """It takes a snapshot of an aggregate whose effects are not all performed."""

    def _is_quiet(self, aggregate: str) -> bool:
        del aggregate
        return True


class SnapshotsTooFew(Engine):
    """It believes that a snapshot has changes that it lacks."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        parts = self._snapshots._changed_parts

        def first(*asked: Any) -> Iterator[SnapshotPart]:
            found = list(parts(*asked))
            return iter([each for each in found if not each.ref] if self.has_heard else found)

        self._snapshots._changed_parts = first  # type: ignore[method-assign, assignment]


MISTAKES: Final[tuple[type[Engine], ...]] = (
    PerformsBeforePersisting,
    AnswersBeforePersisting,
    RecordsTooEarly,
    RecordsTheFirstOfAVersion,
    PerformsInAnyOrder,
    ForgetsMessages,
    ForgetsEffects,
    PerformsEverythingAgain,
    ForgetsTimers,
    LosesASoonerTimer,
    ForgetsActivities,
    ConfirmsAtOnce,
    LeavesRemains,
    RunsAnActivityTwice,
    TakesCommandsTwice,
    GoesOnWithoutItsStore,
    SnapshotsWithoutEffects,
    SnapshotsTooFew,
)
