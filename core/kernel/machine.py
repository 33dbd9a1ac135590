"""A machine: a transition table, and the work that its states stand for, as one immutable value.

``reduce`` is the pure reducer of the lifecycle, ``step`` the same without the container; ``plain_step`` defines what
both do, and is written to be read. A row fits if its source is
the record's state, its event the event's type, and its guard agrees; the first that fits is taken. The record that its
action returns goes to the row's target. What the change of state means for activities and timers (``Begin``, ``End``,
``StartTimer``, ``CancelTimer``) is derived from ``during`` and follows the row's own effects, so that no row can forget
it.

A machine is checked when it is built (see ``problems``); profiles of it are made with ``with_rows`` and
``without_rows``.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Generic, TypeVar, cast

import msgspec
from returns.result import Failure, Result, Success

from lifefold.core.kernel.compiled import Arm, Arms, compiled
from lifefold.core.kernel.problems import InvalidMachine, problems
from lifefold.core.kernel.record import Event, Record, State, replace
from lifefold.core.kernel.row import After, AnyState, Does, During, Row, Source, states
from lifefold.core.kernel.step import IllegalTransition, Step
from lifefold.effects import Begin, CancelTimer, Effect, End, Postpone, StartTimer

R = TypeVar("R", bound=Record)

Invariant = Callable[[R], bool]


class Span(msgspec.Struct, Generic[R], frozen=True):
    """An activity or a timer together with the states that it lasts for."""

    during: During[R]
    states: frozenset[State]


class Machine(Generic[R]):
    """One lifecycle. ``final`` states cannot be left; ``postpone`` maps states to events that wait for the next state.

    ``during`` maps a state, or several, to what goes on in them. ``invariants`` hold of every reachable record; they
    are checked by the worlds, not by the reducer. ``detached`` states are outside the table: no row enters or leaves
    them.
    """

    __slots__ = (
        "_allowed", "_arms", "_waiting", "about", "clocked", "detached", "during", "events", "final", "initial",
        "invariants", "last", "name",
        "postpone", "record", "reduce", "reports", "rows", "served", "spans", "states", "step", "yielded",
    )  # fmt: skip

    reduce: Callable[[R, Event], Result[Step[R, Effect], IllegalTransition]]
    """Take the transition: ``Success(Step)``, or ``Failure(IllegalTransition)`` with nothing changed."""

    step: Callable[[R, Event], Step[R, Effect] | IllegalTransition]
    """Take the transition as ``reduce`` does, with the bare answer."""

    def __init__(  # noqa: PLR0913 - the parts of a machine, each with its name
        self,
        name: str,
        initial: R,
        *,
        rows: Iterable[Row[R]],
        final: Iterable[State] = (),
        during: Mapping[Source, During[R] | tuple[During[R], ...]] | None = None,
        postpone: Mapping[Source, type[Event] | tuple[type[Event], ...]] | None = None,
        invariants: Iterable[Invariant[R]] = (),
        detached: Iterable[State] = (),
        served: Iterable[str] = (),
        about: str = "",
    ) -> None:
        """Build and check the machine. Raises ``InvalidMachine``, which lists everything that is wrong with it."""
        self.name: Final = name
        self.about: Final = about
        self.initial: Final = initial
        self.record: Final[type[R]] = type(initial)
        self.states: Final[tuple[State, ...]] = tuple(cast("type[State]", type(initial.state)))
        self.rows: Final = tuple(rows)
        self.final: Final = frozenset(final)
        self.during: Final = dict(during or {})
        self.postpone: Final = dict(postpone or {})
        self.invariants: Final = tuple(invariants)
        self.detached: Final = frozenset(detached)
        self.served: Final = frozenset(served)
        self.clocked: Final = "at_ms" in self.record.__struct_fields__
        self.spans: Final = {
            part.slot: Span(part, self._over(source))
            for source, parts in self.during.items()
            for part in (parts if isinstance(parts, tuple) else (parts,))
        }
        self.last: Final = {slot: _last(span.during) for slot, span in self.spans.items()}
        self.yielded: Final[frozenset[type[Event]]] = frozenset(
            event for span in self.spans.values() for event in span.during.yields
        )
        anywhere = frozenset(r.event for r in self.rows if r.sources is None)
        self.reports: Final = self.yielded - anywhere
        waiting = [event for events in self.postpone.values() for event in _tuple(events)]
        self.events: Final[tuple[type[Event], ...]] = tuple(dict.fromkeys([*(r.event for r in self.rows), *waiting]))
        wrong = problems(self)
        if wrong:
            raise InvalidMachine(name, wrong)
        self._arms: Final[Arms] = {state: self._rows_from(state) for state in self.states}
        self._waiting: Final = {state: self._waits(state) for state in self.states}
        self._allowed: Final = {
            state: tuple(e.__name__ for e in self.events if e in self._arms[state] or e in self._waiting[state])
            for state in self.states
        }
        self.step = compiled(self._arms, self._refused, contained=False)
        self.reduce = compiled(self._arms, self._declined, contained=True)

    def plain_step(self, record: R, event: Event) -> Step[R, Effect] | IllegalTransition:
        """Take the transition as ``step`` does, which is this in compiled form."""
        for arm in self._arms[record.state].get(type(event), ()):
            if (arm.test is None or arm.test(event)) and (arm.when is None or arm.when(record, event)):
                done = Step(record) if arm.action is None else arm.action(record, event)
                became = replace(done.record, state=arm.target)
                return Step(became, (*done.effects, *arm.ended, *(_begin(during, became) for during in arm.begun)))
        return self._refused(record, event)

    def _refused(self, record: R, event: Event) -> Step[R, Effect] | IllegalTransition:
        """Answer for an event that no row takes: it waits for the next state, or is illegal."""
        if type(event) in self._waiting[record.state]:
            return Step(record, (Postpone(event),))
        return IllegalTransition(self.name, record.state, event, self._allowed[record.state])

    def _declined(self, record: R, event: Event) -> Result[Step[R, Effect], IllegalTransition]:
        answer = self._refused(record, event)
        return Failure(answer) if isinstance(answer, IllegalTransition) else Success(answer)

    def allowed(self, state: State) -> tuple[str, ...]:
        """Return the names of the events that this state takes or postpones, in the order of the table."""
        return self._allowed[state]

    def postponed(self, state: State) -> frozenset[type[Event]]:
        """Return the events that wait while this state holds."""
        return self._waiting[state]

    def entering(self, record: R) -> tuple[Effect, ...]:
        """Return what begins when an entity starts its life with this record."""
        return tuple(_begin(span.during, record) for span in self.spans.values() if record.state in span.states)

    def starting(self, initial: R, name: str | None = None) -> "Machine[R]":
        """Return a profile of this machine that starts with another record."""
        return self._but(initial=initial, name=name or self.name)

    def with_rows(
        self, *rows: Row[R], during: Mapping[Source, During[R]] | None = None, name: str | None = None
    ) -> "Machine[R]":
        """Return a profile of this machine with these rows ahead of its own, and other activities for some states."""
        return self._but(rows=(*rows, *self.rows), during=self.during | dict(during or {}), name=name or self.name)

    def without_rows(self, *pairs: tuple[Source, type[Event]], name: str | None = None) -> "Machine[R]":
        """Return a profile of this machine that does not take these events in these states."""
        gone = {(state, event) for source, event in pairs for state in self._over(source)}
        kept: list[Row[R]] = []
        for r in self.rows:
            sources = frozenset(s for s in self._sources(r) if (s, r.event) not in gone)
            if sources == self._sources(r):
                kept.append(r)
            elif sources:
                kept.append(replace(r, sources=sources))
        return self._but(rows=kept, name=name or self.name)

    def serving(self, *slots: str) -> "Machine[R]":
        """Return this machine with these activities served by the rules of its aggregate, not by an interpreter."""
        return self._but(served=slots)

    def _but(self, **changes: Any) -> "Machine[R]":
        return Machine(**({name: getattr(self, name) for name in _PARTS} | changes))

    def _over(self, source: Source) -> frozenset[State]:
        return frozenset(self.states) if isinstance(source, AnyState) else states(source) or frozenset()

    def _waits(self, state: State) -> frozenset[type[Event]]:
        return frozenset(
            e for source, events in self.postpone.items() if state in self._over(source) for e in _tuple(events)
        )

    def _sources(self, r: Row[R]) -> frozenset[State]:
        return frozenset(self.states) if r.sources is None else r.sources

    def _rows_from(self, state: State) -> dict[type[Event], tuple[Arm, ...]]:
        arms: dict[type[Event], tuple[Arm, ...]] = {}
        for r in self.rows:
            if state in self._sources(r):
                test = None if r.pattern is None else r.pattern.test
                target = r.goes(state)
                ended, begun = self._ends(state, target, r.event), self._begins(state, target)
                arms[r.event] = (*arms.get(r.event, ()), Arm(test, r.when, r.action, target, ended, begun))
        return arms

    def _ends(self, before: State, now: State, event: type[Event]) -> tuple[Effect, ...]:
        return tuple(
            CancelTimer(slot) if isinstance(span.during, After) else End(slot)
            for slot, span in self.spans.items()
            if before in span.states and now not in span.states and event not in self.last[slot]
        )

    def _begins(self, before: State, now: State) -> tuple[During[R], ...]:
        return tuple(span.during for span in self.spans.values() if now in span.states and before not in span.states)


_PARTS = (
    "name", "initial", "rows", "final", "during", "postpone", "invariants", "detached", "served", "about",
)  # fmt: skip


def _last(during: During[Any]) -> frozenset[type[Event]]:
    """Return the events with which an activity or a timer is over by itself, so that nothing is left to be ended."""
    return frozenset(during.last if isinstance(during, Does) else during.yields)


def _begin(during: During[Any], record: Record) -> Effect:
    if isinstance(during, After):
        return StartTimer(during.slot, during.duration_ms(record))
    return Begin(during.slot, during.make(record))


def _tuple(events: type[Event] | tuple[type[Event], ...]) -> tuple[type[Event], ...]:
    return events if isinstance(events, tuple) else (events,)
