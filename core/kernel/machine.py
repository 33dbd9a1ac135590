"""A machine: a transition table, with the activities and timers of its states, as one immutable value.

``reduce`` is the pure reducer of the lifecycle, ``step`` the same without the container. ``plain_step`` defines both,
and is written to be read. A row fits if its source is the record's state, its event is the event's type, and its guard
agrees. The first row that fits is taken, and the record of its action gets the row's target.

The effects for activities and timers (``Begin``, ``End``, ``StartTimer``, ``CancelTimer``) are derived from ``during``.
They follow the row's own effects, and no row can forget them. The last event of an activity is taken to come from that
activity, so its end is not requested. ``advance`` knows the sender, and requests the end in the other case.

A machine is checked when it is built (see ``problems``). ``with_rows`` and ``without_rows`` make profiles of it.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar, cast

import msgspec
from returns.result import Failure, Result, Success

from lifefold.core.kernel.compiled import Arm, Arms, compiled, start_timer, wrong_step
from lifefold.core.kernel.entity import Entity
from lifefold.core.kernel.evolution import Evolved, kept_by
from lifefold.core.kernel.property import Property, invariants_of, unprojected
from lifefold.core.kernel.record import Event, Record, State, replace
from lifefold.core.kernel.row import ANY, After, AnyState, Does, During, Row, Source, states
from lifefold.core.kernel.shown import counted, shown
from lifefold.core.kernel.step import IllegalTransition, Step
from lifefold.core.kernel.validation import InvalidMachine, problems
from lifefold.effects import Begin, CancelTimer, Effect, End, Postpone

R = TypeVar("R", bound=Record)

Invariant = Callable[[R], bool]


class ActivityScope(msgspec.Struct, Generic[R], frozen=True):
    """An activity or a timer with the states that it lasts for."""

    during: During[R]
    states: frozenset[State]


class Machine(Generic[R]):
    """One lifecycle. ``final`` states cannot be left; ``postpone`` maps states to events that wait for the next state.

    ``during`` maps a state, or several, to their activities and timers. ``invariants`` hold of every reachable record,
    and ``properties`` of every entity; checks and simulations verify both, the reducer does not. ``detached`` states
    are outside the table: no row enters or leaves them, and ``ANY`` does not include them. ``reports`` are the events
    that are accepted from an activity only, ``commands`` all others.

    A record is ``settled`` if nothing more must happen to it: in final states, and where ``rests`` says so. With
    ``anywhere`` that is every record. The states are those of the enumeration of the initial record's state, and the
    ``added`` ones of other enumerations. ``evolved`` says what became of names in older logs (``evolution``).

    >>> from lifefold import Event, Machine, Record, State, row
    >>> class Door(State):
    ...     OPEN = "Open"
    ...     SHUT = "Shut"
    >>> class Opened(Event, frozen=True): ...
    >>> class Closed(Event, frozen=True): ...
    >>> class Lobby(Record, frozen=True):
    ...     state: Door = Door.SHUT
    >>> rows = (row(Door.SHUT, Opened, Door.OPEN), row(Door.OPEN, Closed, Door.SHUT))
    >>> machine = Machine("lobby", Lobby(), rows=rows)
    >>> lobby, effects = machine.reduce(Lobby(), Opened()).unwrap()
    >>> print(lobby.state, effects)
    Open ()
    >>> print(machine.reduce(lobby, Opened()).failure())
    lobby: Opened is not possible in Open (possible: Closed)
    """

    __slots__ = (
        "_allowed", "_arms", "_declared", "_waiting", "about", "added", "clocked", "commands", "detached", "during",
        "events", "evolved", "final", "initial", "invariants", "last", "name", "postpone", "properties", "record",
        "reduce", "reports", "rests", "rows", "served", "spans", "states", "step", "yielded",
    )  # fmt: skip

    reduce: Callable[[R, Event], Result[Step[R, Effect], IllegalTransition]]
    """Take the transition: ``Success(Step)``, or ``Failure(IllegalTransition)`` with nothing changed."""

    step: Callable[[R, Event], Step[R, Effect] | IllegalTransition]
    """Take the transition as ``reduce`` does, without the container."""

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
        properties: "Iterable[Property[Entity[Any]]]" = (),
        rests: Callable[[R], bool] | None = None,
        detached: Iterable[State] = (),
        served: Iterable[str] = (),
        added: Iterable[State] = (),
        evolved: Iterable[Evolved] = (),
        about: str = "",
    ) -> None:
        """Build and check the machine. Raises ``InvalidMachine``, which lists all problems."""
        self.name: Final = name
        self.about: Final = about
        self.initial: Final = initial
        self.record: Final[type[R]] = type(initial)
        self.added: Final = tuple(added)
        self.evolved: Final = tuple(evolved)
        self.rows: Final = tuple(rows)
        self.states: Final[tuple[State, ...]] = (*self._enumeration(), *self.added)
        self.final: Final = frozenset(final)
        self.detached: Final = frozenset(detached)
        self._declared: Final = {"during": _declared(during or {}), "postpone": _declared(postpone or {})}
        self.during: Final[Mapping[frozenset[State], tuple[During[R], ...]]] = self._grouped("during")
        self.postpone: Final[Mapping[frozenset[State], tuple[type[Event], ...]]] = self._grouped("postpone")
        self.invariants: Final = invariants_of(name, invariants)
        self.properties: Final[tuple[Property[Any], ...]] = tuple(p.about(self) for p in unprojected(name, properties))
        self.rests: Final = rests
        self.served: Final = frozenset(served)
        self.clocked: Final = "at_ms" in self.record.__struct_fields__
        self.spans: Final = _spans(self.during)
        self.last: Final = MappingProxyType({slot: _last(span.during) for slot, span in self.spans.items()})
        self.yielded: Final = _yielded(self.spans.values(), (Does, After))
        self.reports: Final = _yielded(self.spans.values(), Does) - {r.event for r in self.rows if r.sources is None}
        self.events: Final = self._taken()
        self.commands: Final = tuple(event for event in self.events if event not in self.reports)
        self._validate()
        self._arms: Final[Arms] = {state: self._rows_from(state) for state in self.states}
        self._waiting: Final = {state: self._waits(state) for state in self.states}
        self._allowed: Final = {state: self._names_taken(state) for state in self.states}
        self.step = compiled(self._arms, self._refused, contained=False)
        self.reduce = compiled(self._arms, self._declined, contained=True)

    def __repr__(self) -> str:
        """Return its name, its size and its first state."""
        states, rows = counted(len(self.states), "state"), counted(len(self.rows), "row")
        return shown(f"Machine {self.name!r}: {states}, {rows}, starts in {self.initial.state}")

    def plain_step(self, record: R, event: Event) -> Step[R, Effect] | IllegalTransition:
        """Take the transition as ``step`` does; ``step`` is the compiled form of this method."""
        for arm in self._arms[record.state].get(type(event), ()):
            if (arm.test is None or arm.test(event)) and (arm.when is None or arm.when(record, event)):
                done = Step(record) if arm.action is None else arm.action(record, event)
                if done.__class__ is not Step or done.record.state is not record.state:
                    raise wrong_step(arm.row, record, done)
                became = replace(done.record, state=arm.target)
                return Step(became, (*done.effects, *arm.ended, *_begin_all(arm.begun, became)))
        return self._refused(record, event)

    def takes(self, record: R, event: Event) -> bool:
        """Tell whether the state of this record accepts or postpones the event. No action is performed."""
        arms = self._arms[record.state].get(type(event), ())
        return type(event) in self._waiting[record.state] or any(
            (arm.test is None or arm.test(event)) and (arm.when is None or arm.when(record, event)) for arm in arms
        )

    def _refused(self, record: R, event: Event) -> Step[R, Effect] | IllegalTransition:
        """Answer for an event that no row takes: it is postponed, or it is illegal."""
        if type(event) in self._waiting[record.state]:
            return Step(record, (Postpone(event),))
        return IllegalTransition(self.name, record.state, event, self._allowed[record.state])

    def _declined(self, record: R, event: Event) -> Result[Step[R, Effect], IllegalTransition]:
        answer = self._refused(record, event)
        return Failure(answer) if isinstance(answer, IllegalTransition) else Success(answer)

    def allowed(self, state: State) -> tuple[str, ...]:
        """Return the names of the events that this state accepts or postpones, in the order of the table."""
        return self._allowed[state]

    def postponed(self, state: State) -> frozenset[type[Event]]:
        """Return the events that this state postpones."""
        return self._waiting[state]

    def settled(self, record: R) -> bool:
        """Tell whether nothing more must happen to this record."""
        return record.state in self.final or (self.rests is not None and self.rests(record))

    def entering(self, record: R) -> tuple[Effect, ...]:
        """Return the effects that begin the activities and timers of a new entity with this record."""
        return _begin_all((span.during for span in self.spans.values() if record.state in span.states), record)

    def starting(self, initial: R, name: str | None = None) -> "Machine[R]":
        """Return a profile of this machine that starts with another record."""
        return self._but(initial=initial, name=name or self.name)

    def with_rows(
        self,
        *rows: Row[R],
        during: Mapping[Source, During[R] | tuple[During[R], ...]] | None = None,
        name: str | None = None,
    ) -> "Machine[R]":
        """Return a profile of this machine with these rows ahead of its own, and other activities for some states."""
        return self._but(rows=(*rows, *self.rows), during=self._going_on(during), name=name or self.name)

    def without_rows(self, *pairs: tuple[Source, type[Event]], name: str | None = None) -> "Machine[R]":
        """Return a profile without these events in these states. Raises ``InvalidMachine`` for a pair without a row."""
        gone = [(self.over(source), event) for source, event in pairs]
        idle = [pair for pair in gone if not any(self._left(r, [pair]) != self.sources(r) for r in self.rows)]
        if idle:
            raise InvalidMachine(name or self.name, tuple(_without(*pair) for pair in idle))
        return self._but(rows=self._rows_without(gone), name=name or self.name)

    def replacing(
        self,
        *rows: Row[R],
        without: Iterable[tuple[Source, type[Event]]] = (),
        during: Mapping[Source, During[R] | tuple[During[R], ...]] | None = None,
        added: Iterable[State] = (),
        name: str | None = None,
    ) -> "Machine[R]":
        """Return a profile in which these rows replace all rows for their states and events.

        ``without`` are pairs of states and an event without any row in the profile. ``during`` replaces the activities
        of some states. ``added`` are states of another enumeration, the targets of these rows. Declarations for ``ANY``
        include the added states. All changes are checked together, so a timer can be replaced with its row.
        """
        more = tuple(added)
        every = self.over(ANY).union(more)
        named = [*((r.sources, r.event) for r in rows), *((states(at), event) for at, event in without)]
        kept = self._rows_without([(every if at is None else at, event) for at, event in named], more)
        goes_on = self._going_on(during)
        return self._but(rows=(*rows, *kept), during=goes_on, added=(*self.added, *more), name=name or self.name)

    def _rows_without(
        self, gone: list[tuple[frozenset[State], type[Event]]], added: tuple[State, ...] = ()
    ) -> list[Row[R]]:
        """Return the rows without these pairs; a row from ``ANY`` includes the ``added`` states."""
        kept: list[Row[R]] = []
        for r in self.rows:
            where = self.sources(r).union(added if r.everywhere or r.sources is None else ())
            left = where.difference(*(pair for pair, event in gone if event is r.event))
            # An unchanged row from ANY keeps meaning any state, also of states that a later profile adds.
            if left == where and r.sources is None:
                kept.append(r)
            elif left:
                kept.append(replace(r, sources=left))
        return kept

    def _going_on(self, during: Mapping[Source, During[R] | tuple[During[R], ...]] | None) -> "_Declared":
        """Return the activities of a profile: a declaration for the same states as before replaces the earlier one."""
        changed = _declared(during or {})
        names = {self.over(source): source for source in changed}
        kept: _Declared = {}
        for source, parts in self._declared["during"].items():
            name = names.get(self.over(source), source)
            kept.setdefault(name, changed.get(name, parts))
        return {**kept, **changed}

    def without_properties(self, *names: str) -> "Machine[R]":
        """Return a profile without the properties of these names. Raises ``InvalidMachine`` for an unknown name."""
        known = {each.name for each in self.properties}
        wrong = tuple(f"without_properties: there is no {name!r}" for name in names if name not in known)
        if wrong:
            raise InvalidMachine(self.name, wrong)
        return self._but(properties=[each for each in self.properties if each.name not in names])

    def with_properties(self, *properties: "Property[Entity[Any]]") -> "Machine[R]":
        """Return this machine with these properties, too."""
        return self._but(properties=(*self.properties, *properties))

    def serving(self, *slots: str) -> "Machine[R]":
        """Return this machine with these activities served, too: by rules of its aggregate, not by an interpreter."""
        return self._but(served=self.served.union(slots))

    def _but(self, **changes: Any) -> "Machine[R]":
        kept: dict[str, Any] = {name: getattr(self, name) for name in _PARTS}
        parts: dict[str, Any] = {**kept, **self._declared, **changes}
        if self.evolved and "evolved" not in changes:
            parts["evolved"] = ()
            parts["evolved"] = kept_by(Machine(**parts), self.evolved)
        return Machine(**parts)

    def over(self, source: Source) -> frozenset[State]:
        """Return the states that a source stands for in this machine."""
        found = states(source)
        return frozenset(self.states) - self.detached if found is None else found

    def sources(self, r: Row[Any]) -> frozenset[State]:
        """Return the source states of a row."""
        return self.over(ANY) if r.sources is None else r.sources

    def _left(self, r: Row[R], gone: list[tuple[frozenset[State], type[Event]]]) -> frozenset[State]:
        """Return the source states of a row without these pairs."""
        return self.sources(r).difference(*(where for where, event in gone if event is r.event))

    def _enumeration(self) -> Iterable[State]:
        """Return all states of the first enumeration: of the initial state, or of a row if that state is added."""
        named = (self.initial.state, *(state for r in self.rows for state in (r.target, *(r.sources or ()))))
        own = (state for state in named if state is not None and all(state is not each for each in self.added))
        return cast("type[State]", type(next(own, self.initial.state)))

    def _grouped(self, part: str) -> Mapping[frozenset[State], tuple[Any, ...]]:
        """Return the declarations by states."""
        grouped: dict[frozenset[State], tuple[Any, ...]] = {}
        for source, parts in self._declared[part].items():
            grouped[self.over(source)] = grouped.get(self.over(source), ()) + parts
        return MappingProxyType(grouped)

    def _taken(self) -> tuple[type[Event], ...]:
        """Return all events that a state accepts or postpones, in the order of the table."""
        waiting = [event for events in self.postpone.values() for event in events]
        return tuple(dict.fromkeys([*(r.event for r in self.rows), *waiting]))

    def _validate(self) -> None:
        """Raise ``InvalidMachine`` if the declarations have problems."""
        wrong = problems(self)
        if wrong:
            raise InvalidMachine(self.name, wrong)

    def _names_taken(self, state: State) -> tuple[str, ...]:
        return tuple(e.__name__ for e in self.events if e in self._arms[state] or e in self._waiting[state])

    def _waits(self, state: State) -> frozenset[type[Event]]:
        return frozenset(event for where, events in self.postpone.items() if state in where for event in events)

    def _rows_from(self, state: State) -> dict[type[Event], tuple[Arm, ...]]:
        arms: dict[type[Event], tuple[Arm, ...]] = {}
        for r in self.rows:
            if state in self.sources(r):
                test = None if r.pattern is None else r.pattern.test
                target = r.goes(state)
                ended, begun = self._ends(state, target, r), self._begins(state, target, r)
                arms[r.event] = (*arms.get(r.event, ()), Arm(test, r.when, r.action, target, ended, begun, r))
        return arms

    def _ends(self, before: State, now: State, by: Row[R]) -> tuple[Effect, ...]:
        return tuple(
            CancelTimer(slot) if isinstance(span.during, After) else End(slot)
            for slot, span in self.spans.items()
            if before in span.states and (_again(span, by) if now in span.states else by.event not in self.last[slot])
        )

    def _begins(self, before: State, now: State, by: Row[R]) -> tuple[During[R], ...]:
        return tuple(
            span.during
            for span in self.spans.values()
            if now in span.states and (before not in span.states or _again(span, by))
        )


def anywhere(_record: Record) -> bool:
    """Return True: a machine that ``rests`` anywhere has no state that something must follow."""
    return True


_PARTS = (
    "name", "initial", "rows", "final", "invariants", "properties", "rests", "detached", "served", "added", "evolved",
    "about",
)  # fmt: skip


_Declared = dict[frozenset[State] | AnyState, tuple[Any, ...]]


def _declared(parts: Mapping[Any, Any]) -> _Declared:
    """Return declarations for one state or several, possibly repeated, in one form; ``ANY`` is kept."""
    declared: _Declared = {}
    for source, part in parts.items():
        found = states(source)
        where = ANY if found is None else found
        declared[where] = declared.get(where, ()) + (part if isinstance(part, tuple) else (part,))
    return declared


def _spans(during: Mapping[frozenset[State], tuple[During[R], ...]]) -> Mapping[str, ActivityScope[R]]:
    """Return the activity or timer of each slot, with its states."""
    return MappingProxyType(
        {part.slot: ActivityScope(part, where) for where, parts in during.items() for part in parts}
    )


def _again(span: ActivityScope[Any], by: Row[Any]) -> bool:
    """Tell whether a row restarts a timer that continues beyond it."""
    return by.restart and isinstance(span.during, After)


def _yielded(spans: Iterable[ActivityScope[Any]], kind: type | tuple[type, ...]) -> frozenset[type[Event]]:
    return frozenset(event for span in spans if isinstance(span.during, kind) for event in span.during.yields)


def _last(during: During[Any]) -> frozenset[type[Event]]:
    """Return the events that end an activity or a timer by itself, so that no end must be requested."""
    return frozenset(during.last if isinstance(during, Does) else during.yields)


def _begin_all(begun: Iterable[During[Any]], record: Record) -> tuple[Effect, ...]:
    return tuple(effect for during in begun for effect in _begin(during, record))


def _begin(during: During[Any], record: Record) -> tuple[Effect, ...]:
    if isinstance(during, Does):
        return (Begin(during.slot, during.make(record)),)
    return start_timer(during.slot, during.duration_ms(record))


def _without(where: frozenset[State], event: type[Event]) -> str:
    return f"without_rows: {', '.join(sorted(where))} has no row for {event.__name__}"
