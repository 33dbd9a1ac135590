"""The driver of one entity in this process, by calls and without an engine; all facades use it.

A call has five steps:

1. Timers that are due fire.
2. The machine *decides*, purely.
3. Hooks before the transition are called.
4. The decision is *committed*.
5. The observer gets the transition, and its effects are performed, in the order of commits.

User code runs without any lock held, so it may call the facade again, from this thread or another one. Such a call
decides and commits at once. Its effects are performed after those in progress, by the thread that performs them. So a
call from another thread may return before its hooks have been called.

If another call commits first, a call decides again on the new state of the entity. It does not repeat a hook that both
decisions have in common. Two concurrent calls for the same transition may both call the hook before it, although only
one is committed. Preventing that would need a lock that is held while user code runs.

A hook before a transition prevents it by raising. Later errors are kept in ``failures``, and the transition stands
(A14, E42).

Activities belong to the caller: the caller works while a state lasts, and reports with calls. Nothing runs by itself.
``tick`` fires the timers that are due.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from threading import RLock
from typing import Any, Final, Generic, TypeVar

from returns.result import Failure, Result, Success

from lifefold.core.kernel import (
    Does,
    Entity,
    EntityStep,
    Envelope,
    Event,
    Machine,
    Record,
    Refusal,
    State,
    TimerFired,
    Transition,
    advance,
    create,
)
from lifefold.effects import CallHook, CancelTimer, Effect, StartTimer
from lifefold.interpreters.facades.outbox import Outbox
from lifefold.interpreters.missing import MissingHandlersError

R = TypeVar("R", bound=Record)

Performer = Callable[[Any], None]
Observer = Callable[[Transition], None]
Consequence = tuple[Callable[[Any], None], Any]
Commit = Callable[[Entity[Any], Entity[Any]], None]


def wall_ms() -> int:
    """Return Unix time in milliseconds."""
    return time.time_ns() // 1_000_000


class RefusedError(Exception):
    """The entity refuses the event; nothing has changed. ``refusal`` has the reason."""

    def __init__(self, refusal: Refusal) -> None:
        """Wrap a refusal."""
        super().__init__(refusal.reason)
        self.refusal = refusal


class Driver(Generic[R]):
    """An entity, with functions for its transitions.

    ``performers`` has a function for every effect that the machine's rows can request; the one for ``CallHook`` also
    gets the hooks before a transition. ``commit`` is called under the lock, with the entity before and after, and
    refuses by raising. ``clock`` returns Unix time in milliseconds.
    """

    def __init__(  # noqa: PLR0913 - the environment of an entity, by keyword
        self,
        machine: Machine[R],
        record: R,
        performers: Mapping[type[Effect], Performer] | None = None,
        *,
        observer: Observer | None = None,
        commit: Commit | None = None,
        clock: Callable[[], int] = wall_ms,
    ) -> None:
        """Begin the entity's life with a record. Raises ``MissingHandlersError`` if an effect has no performer."""
        self.machine: Final[Machine[R]] = _served(machine)
        self._performers: Final = dict(performers or {})
        self._observer: Final = observer
        self._commit: Final = commit
        self._clock: Final = clock
        self._lock: Final = RLock()
        self._outbox: Final[Outbox[Consequence]] = Outbox(lambda consequence: consequence[0](consequence[1]))
        self._last_ms = 0
        _must_perform(machine, self._performers)
        self._entity: Entity[R]
        self.restore(record)

    @property
    def failures(self) -> deque[Exception]:
        """The last hundred errors of hooks, observers and performers after a commit."""
        return self._outbox.failures

    @property
    def entity(self) -> Entity[R]:
        """The present entity; timers that are due have not fired yet."""
        return self._entity

    @property
    def record(self) -> R:
        """The entity's record."""
        return self._entity.record

    def restore(self, record: R) -> None:
        """Replace the record, as if the entity began its life with it: timers start, and the observer is not called."""
        with self._lock:
            self._entity = create(self.machine, self.machine.name, record, self._now_ms(), "").entity

    def would_take(self, event: Event) -> bool:
        """Tell whether the entity would accept this event now."""
        return isinstance(self._decide(self._entity, event), Success)

    def would_enter(self, event: Event) -> State | None:
        """Return the state that the entity would enter by this event now; None if it would not change."""
        return self._decide(self._entity, event).map(_entered).value_or(None)

    def take(self, event: Event, actor: str = "") -> Transition | None:
        """Send an event to the entity, and perform its effects. Raises ``RefusedError``.

        Returns the transition, or None for a postponed event.
        """
        self.tick()
        return self._take(event, actor)

    def tick(self) -> None:
        """Fire the timers that are due, the earliest first."""
        for due in self._due():
            with suppress(RefusedError):  # an earlier timer, or another thread, has left the state
                self._take(due, "timer")

    def _due(self) -> list[TimerFired]:
        entity, now_ms = self._entity, self._now_ms()
        timers = sorted((part.deadline_ms, part.slot, part.generation) for part in entity.running if not part.activity)
        return [TimerFired(slot, generation) for deadline_ms, slot, generation in timers if deadline_ms <= now_ms]

    def _take(self, event: Event, actor: str) -> Transition | None:
        called: list[Effect] = []
        while True:
            before = self._entity
            answer = self._decide(before, event, actor)
            if isinstance(answer, Failure):
                raise RefusedError(answer.failure())
            decided = answer.unwrap()
            for hook in _hooks_before(decided):
                if hook not in called:
                    called.append(hook)
                    self._performers[CallHook](hook)
            if self._committed(before, decided):
                self._outbox.flush()
                return decided.transitions[0] if decided.transitions else None

    def _decide(self, entity: Entity[R], event: Event, actor: str = "") -> Result[EntityStep, Refusal]:
        decided = advance(self.machine, entity, Envelope(entity.ref, event, self._now_ms(), actor))
        return Failure(decided) if isinstance(decided, Refusal) else Success(decided)

    def _committed(self, before: Entity[R], decided: EntityStep) -> bool:
        """Commit a decision, unless another call was faster; raises the errors of ``commit``."""
        with self._lock:
            if self._entity is not before:
                return False
            if self._commit is not None:
                self._commit(before, decided.entity)
            self._entity = decided.entity
            self._outbox.put(*(each for transition in decided.transitions for each in self._consequences(transition)))
            return True

    def _consequences(self, transition: Transition) -> Iterator[Consequence]:
        """Yield the calls after a commit: the observer's, then those of the effects."""
        if self._observer is not None:
            yield self._observer, transition
        for effect in transition.effects:
            if not isinstance(effect, StartTimer | CancelTimer) and not _is_before(effect):
                yield self._performers[type(effect)], effect

    def _now_ms(self) -> int:
        """Return the time, which never goes backwards for one entity."""
        with self._lock:
            self._last_ms = max(self._last_ms, self._clock())
            return self._last_ms


@lru_cache
def _served(machine: Machine[R]) -> Machine[R]:
    """Return the machine with all its activities served by the caller."""
    activities = [slot for slot, span in machine.spans.items() if isinstance(span.during, Does)]
    return machine.serving(*activities) if activities else machine


@lru_cache
def effects_of(machine: Machine[Any]) -> frozenset[type[Effect]]:
    """Return the types of effects that the machine's rows can request."""
    return frozenset(effect for row in machine.rows for effect in row.effects)


def _entered(decided: EntityStep) -> State | None:
    return next((each.entered for each in decided.transitions), None)


def _is_before(effect: Effect) -> bool:
    return isinstance(effect, CallHook) and effect.before


def _hooks_before(decided: EntityStep) -> Iterator[Effect]:
    return (effect for effect in decided.effects if _is_before(effect))


def _must_perform(machine: Machine[Any], performers: Mapping[type[Effect], Performer]) -> None:
    missing = sorted(effect.__name__ for effect in effects_of(machine) if effect not in performers)
    if missing:
        message = (
            f"no performer for {', '.join(missing)}: the machine {machine.name!r} can request it; give one for each"
        )
        raise MissingHandlersError(message)
