"""One entity of a machine in this process, driven by calls: what every handle stands on.

A call is taken in five steps: timers that are due happen first; the machine *decides*, purely; hooks that stand before
the transition are called; the decision is *committed*; then the observer is told of the transition and its effects are
performed, in the order in which transitions were committed.

User code runs without any lock held, so it may call the handle again, from this thread or another one. Such a call
decides and commits at once, and what it leads to is performed after what is being performed already, by the thread that
is at it; so a call from another thread may return before its hooks have been called. When two calls meet, the later one
decides again on what the earlier one has made of the entity; it does not call a hook a second time that stands before
both decisions. Of two calls that want the same, each may have called that hook, though only one of them is taken: to
let the other one wait for it would be a lock that is held while user code runs.

A hook that stands before its transition prevents it by raising. Whatever fails afterwards is kept in ``failures``, and
the transition stands (A14, E42).

Activities belong to the caller here: it is he who works while a state holds, and says so by his calls. Nothing runs by
itself, timers included; ``tick`` lets those happen that are due.
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
    """Return the wall clock's time, Unix, in milliseconds."""
    return time.time_ns() // 1_000_000


class RefusedError(Exception):
    """The entity does not take the event; nothing has changed. ``refusal`` says why."""

    def __init__(self, refusal: Refusal) -> None:
        """Take the refusal."""
        super().__init__(refusal.reason)
        self.refusal = refusal


class Driver(Generic[R]):
    """An entity, and what is done about its transitions.

    ``performers`` has a function for every effect that the machine's rows can ask for; the one for ``CallHook`` is
    given those that stand before a transition, too. ``commit`` is called with the entity before and after, under the
    lock, and refuses by raising. ``clock`` returns Unix time in milliseconds.
    """

    def __init__(  # noqa: PLR0913 - what surrounds an entity, each with its name
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
        """What hooks, observers and performers have raised after a commit, the last hundred."""
        return self._outbox.failures

    @property
    def entity(self) -> Entity[R]:
        """The entity as it is now, timers that are due not counted."""
        return self._entity

    @property
    def record(self) -> R:
        """The entity's record."""
        return self._entity.record

    def restore(self, record: R) -> None:
        """Go on with another record, as if the entity began its life with it: timers start, and nobody is told."""
        with self._lock:
            self._entity = create(self.machine, self.machine.name, record, self._now_ms(), "").entity

    def would_take(self, event: Event) -> bool:
        """Tell whether the entity would take this event now."""
        return isinstance(self._decide(self._entity, event), Success)

    def would_enter(self, event: Event) -> State | None:
        """Return the state that the entity would change to by this event now; None if it would not change."""
        return self._decide(self._entity, event).map(_entered).value_or(None)

    def take(self, event: Event, actor: str = "") -> Transition | None:
        """Let the entity take an event and perform what follows. Raises ``RefusedError``.

        Returns the transition, or None for an event that waits for the next state.
        """
        self.tick()
        return self._take(event, actor)

    def tick(self) -> None:
        """Let the timers happen that are due, the earliest first."""
        for due in self._due():
            with suppress(RefusedError):  # an earlier one, or somebody else, has left the state
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
        """Make the decision the present, unless somebody else has been faster; raises what ``commit`` raises."""
        with self._lock:
            if self._entity is not before:
                return False
            if self._commit is not None:
                self._commit(before, decided.entity)
            self._entity = decided.entity
            self._outbox.put(*(each for transition in decided.transitions for each in self._consequences(transition)))
            return True

    def _consequences(self, transition: Transition) -> Iterator[Consequence]:
        """Yield what follows a commit: the observer is told, then the effects are performed."""
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
    """Return the machine with all its activities served by somebody else: by the caller."""
    activities = [slot for slot, span in machine.spans.items() if isinstance(span.during, Does)]
    return machine.serving(*activities) if activities else machine


@lru_cache
def asked_by(machine: Machine[Any]) -> frozenset[type[Effect]]:
    """Return the effects that the machine's rows can ask for."""
    return frozenset(effect for row in machine.rows for effect in row.effects)


def _entered(decided: EntityStep) -> State | None:
    return next((each.entered for each in decided.transitions), None)


def _is_before(effect: Effect) -> bool:
    return isinstance(effect, CallHook) and effect.before


def _hooks_before(decided: EntityStep) -> Iterator[Effect]:
    return (effect for effect in decided.effects if _is_before(effect))


def _must_perform(machine: Machine[Any], performers: Mapping[type[Effect], Performer]) -> None:
    missing = sorted(effect.__name__ for effect in asked_by(machine) if effect not in performers)
    if missing:
        message = (
            f"no performer for {', '.join(missing)}: the machine {machine.name!r} can ask for it; give one for each"
        )
        raise MissingHandlersError(message)
