"""The property monitor: checks the properties after every step of a run, for the changed entities and the system.

``always`` and invariants are checked for every changed entity and its aggregate, ``always_step`` for every transition,
and properties of the system for the whole system. A reachability property (``sometimes``) is noted when it holds. A
liveness property is owed from the step in which it is due until it holds. After healing nothing may stay owed.

An aggregate or a system of more than ``WHOLE`` entities is checked as a whole at intervals only. Between them, every
step is checked by ``localized`` properties, near its transitions.
"""

from collections.abc import Callable, Container, Hashable, Iterable, Mapping
from typing import Any, Final

import msgspec

from lifefold.core.kernel import (
    Aggregate,
    AggregateType,
    Event,
    Fairness,
    Projection,
    Property,
    PropertyKind,
    Reaction,
    System,
    SystemState,
    Transition,
    always,
)


class Violation(Exception):
    """A broken property: its owner, its name, and the subject."""

    def __init__(self, owner: str, prop: str, of: str) -> None:
        super().__init__(f"{owner}: {prop}: not so of {of}")
        self.owner: Final = owner
        self.prop: Final = prop
        self.of: Final = of


class Debt(msgspec.Struct, frozen=True):
    """A due liveness property of one subject."""

    owner: str
    prop: str
    of: str


class _Properties(msgspec.Struct, frozen=True):
    """The properties of one kind of subject."""

    owner: str
    always: tuple[Property[Any], ...]
    steps: tuple[Property[Any], ...]
    sometimes: tuple[Property[Any], ...]
    follows: tuple[Property[Any], ...]
    localized: tuple[tuple[Callable[[Any, str, Any], Any], tuple[Property[Any], ...]], ...]
    """Invariants that need not be checked everywhere: the projection of a transition, and the properties of it."""

    @property
    def is_asked(self) -> bool:
        """Whether there is a property of a state."""
        return bool(self.always or self.sometimes or self.follows)


_Steps = tuple[tuple[str, tuple[Property[Any], ...]], ...]
"""Properties of transitions, by their owners."""


def _is_on(prop: Property[Any], event: type[Event] | None) -> bool:
    """Tell whether a property says something about the transitions by an event; None is the creation of an entity."""
    return prop.on is None or (event is not None and issubclass(event, prop.on))


WHOLE: Final = 64
"""The most entities of an aggregate or a system that is checked as a whole after every step."""

PART: Final = 4
"""A larger one is checked as a whole after so many steps as this part of the system's entities."""

_NOTHING: Final = object()


def _sorted(owner: str, properties: Iterable[Property[Any]], kinds: Container[PropertyKind]) -> _Properties:
    every = tuple(each for each in properties if each.property_kind in kinds)
    of = {
        property_kind: tuple(each for each in every if each.property_kind is property_kind)
        for property_kind in PropertyKind
    }
    touching = dict.fromkeys(each.localized for each in of[PropertyKind.ALWAYS] if each.localized is not None)
    localized = tuple(
        (touched, tuple(each for each in of[PropertyKind.ALWAYS] if each.localized is touched)) for touched in touching
    )
    return _Properties(
        owner,
        of[PropertyKind.ALWAYS],
        of[PropertyKind.ALWAYS_STEP],
        of[PropertyKind.SOMETIMES],
        of[PropertyKind.LEADS_TO],
        localized,
    )


def _of_machines(system: System, kinds: Container[PropertyKind]) -> dict[tuple[str, str], _Properties]:
    """Return the properties of each machine, by kind of aggregate and name."""
    return {
        (kind, name): _sorted(name, [*machine.properties, *map(_invariant, machine.invariants)], kinds)
        for kind, of in system.aggregates.items()
        for name, machine in of.machines.items()
    }


def _by_touched(of_system: Mapping[Any, _Properties]) -> dict[Any, list[tuple[Any, tuple[Property[Any], ...]]]]:
    """Return the localized properties of a system by the projection of a transition, each with its own projection."""
    near: dict[Any, list[tuple[Any, tuple[Property[Any], ...]]]] = {}
    for projection, properties in of_system.items():
        for touched, held in properties.localized:
            near.setdefault(touched, []).append((projection, held))
    return near


class PropertyMonitor:
    """Watches one run. ``seen`` names the reachability properties that have held, ``owed`` the due properties."""

    def __init__(
        self,
        system: System,
        more: Iterable[Property[Any]] = (),
        kinds: Container[PropertyKind] = tuple(PropertyKind),
    ) -> None:
        """Gather the properties of these kinds of a system and its parts; ``more`` are further ones of the system."""
        self.asked: int = 0
        self.seen: Final[set[tuple[str, str]]] = set()
        self.owed: dict[Debt, bool] = {}
        """The due properties, in order; whether each was due before everything was healed."""
        self._system: Final = system
        self._stale: Final[dict[str, None]] = {}
        """The aggregates that have changed since the last check of the whole."""
        self._large: Final[dict[str, None]] = {}
        """The large aggregates among them that were not checked as a whole since."""
        self._unasked: Final[dict[str, list[Transition]]] = {}
        """The transitions since the last time without messages in flight."""
        self._left = 0
        """The number of steps until the next check of the whole."""
        self._alone: Final = len(system.aggregates) == 1
        self._of_machines: Final = _of_machines(system, kinds)
        self._of_types: Final = {kind: _sorted(kind, of.properties, kinds) for kind, of in system.aggregates.items()}
        every = [*system.properties, *more]
        self._of_system: Final = {
            projection: _sorted(system.name, [each for each in every if each.projection is projection], kinds)
            for projection in dict.fromkeys([None, *(each.projection for each in every)])
        }
        """By the projection of properties of the system; None for those of the whole system."""
        self._near: Final = _by_touched(self._of_system)
        """By the localized projection of a transition: its value, and the properties of it."""
        self._steps: Final[dict[tuple[str, str], _Steps]] = {
            (kind, name): tuple(
                (each.owner, each.steps)
                for each in (properties, self._of_types[kind], *self._of_system.values())
                if each.steps
            )
            for (kind, name), properties in self._of_machines.items()
        }
        self._steps_by_event: Final[dict[tuple[str, str, type[Event] | None], _Steps]] = {}
        sorts = (*self._of_machines.values(), *self._of_types.values(), *self._of_system.values())
        self._given: Final = {(each.owner, prop.name): prop.given for each in sorts for prop in each.follows}
        self._places: Final = {each: place for place, each in enumerate(self._given)}
        self._overviews: Final[dict[Callable[[Any], Hashable], Projection]] = {}
        self._count = 0
        self._single: Final = {kind: self._alone and len(of.machines) == 1 for kind, of in system.aggregates.items()}

    def look(
        self, of: AggregateType, reaction: Reaction, system_state: Callable[[], SystemState], under_way: int
    ) -> None:
        """Check the properties after a reaction of an aggregate. Raises ``Violation``."""
        self._look_at(of, reaction)
        self._look_in(of, reaction)
        self._unasked.setdefault(reaction.aggregate.name, []).extend(reaction.transitions)
        self._left -= 1
        if self._left <= 0:
            self.look_around(system_state, under_way)
        else:
            self._look_near(reaction, system_state, under_way)

    def pass_over(self, aggregate: Aggregate) -> None:
        """Note an aggregate that has changed by a step that is not judged."""
        self._stale[aggregate.name] = None

    def _look_in(self, of: AggregateType, reaction: Reaction) -> None:
        """Check the aggregate, or, if it is large, what the transitions can break in it."""
        aggregate, mine = reaction.aggregate, self._of_types[of.kind]
        self._stale[aggregate.name] = None
        if len(aggregate.entities) <= WHOLE:
            self._ask(mine, aggregate, aggregate.name)
        else:
            self._look_in_large(mine, reaction)

    def _look_in_large(self, mine: _Properties, reaction: Reaction) -> None:
        """Check what the transitions can break in a large aggregate."""
        aggregate = reaction.aggregate
        self._large[aggregate.name] = None
        for touched, properties in mine.localized:
            part = touched(aggregate, aggregate.name, reaction.transitions)
            if part is not None:
                self._hold(mine.owner, properties, part, aggregate.name)

    def _look_at(self, of: AggregateType, reaction: Reaction) -> None:
        """Check the transitions, and the changed entities."""
        kind, entities = of.kind, reaction.aggregate.entities
        is_single = self._single[kind]
        for step in reaction.transitions:
            for owner, properties in self._steps_on(kind, step):
                self._hold(owner, properties, step, step.entity)
            if is_single and step.before is None:
                self._owe(self._of_machines[kind, step.machine], step.entity)
        for ref in reaction.changed:
            every = self._of_machines[kind, ref.partition(":")[0]]
            self._hold(every.owner, every.always, entities[ref], ref)
            if is_single:
                self._follow(every, entities[ref], ref)

    def _steps_on(self, kind: str, step: Transition) -> _Steps:
        """Return the properties of transitions that such a transition can break, by their owners."""
        key = kind, step.machine, None if step.before is None else type(step.event)
        found = self._steps_by_event.get(key)
        if found is None:
            can = [
                (owner, tuple(each for each in held if _is_on(each, key[2]))) for owner, held in self._steps[key[:2]]
            ]
            found = self._steps_by_event[key] = tuple((owner, held) for owner, held in can if held)
        return found

    def _look_near(self, reaction: Reaction, system_state: Callable[[], SystemState], under_way: int) -> None:
        """Check what the transitions can break in the system.

        After the last message in flight, transitions since the first one are checked again: some properties need that.
        """
        touching = {reaction.aggregate.name: reaction.transitions}
        if not under_way:
            touching = {name: tuple(each) for name, each in self._unasked.items()}
            self._unasked.clear()
        name, now = self._system.name, system_state() if self._near else None
        for touched, every in self._near.items():
            for aggregate, transitions in touching.items():
                part = touched(now, aggregate, transitions)
                if part is None:
                    continue
                for projection, properties in every:
                    seen = part
                    if projection is not None:
                        seen = Projection({each: projection(of) for each, of in part.aggregates.items()}, under_way)
                    self._hold(name, properties, seen, name)

    def look_around(self, system_state: Callable[[], SystemState], under_way: int) -> None:
        """Check the whole: large aggregates and the system. Raises ``Violation``."""
        now = system_state()
        entities = sum(len(each.entities) for each in now.aggregates.values())
        self._left = self._interval(entities)
        for name in self._large:
            self._ask(self._of_types[now.aggregates[name].kind], now.aggregates[name], name)
        stale = [now.aggregates[name] for name in self._stale]
        self._large.clear()
        self._stale.clear()
        if not under_way:
            self._unasked.clear()
        for projection, properties in self._of_system.items():
            if projection is not None:
                self._oversee(projection, properties, stale, under_way)
            elif properties.is_asked:
                self._ask(properties, now, properties.owner)

    def _interval(self, entities: int) -> int:
        """Return the number of steps until the next check of the whole."""
        return 1 if entities <= WHOLE else int(entities // PART)

    def _oversee(
        self, projection: Callable[[Any], Hashable], properties: _Properties, stale: Iterable[Aggregate], under_way: int
    ) -> None:
        """Check a projection of the system, if it has changed."""
        overview = self._overviews.get(projection) or Projection({}, -1)
        fresh = {each.name: projection(each) for each in stale}
        changed = any(overview.aggregates.get(name, _NOTHING) != seen for name, seen in fresh.items())
        if changed or overview.under_way != under_way:
            overview = Projection({**overview.aggregates, **fresh}, under_way)
            self._overviews[projection] = overview
            if len(overview.aggregates) == self._count:
                self._ask(properties, overview, properties.owner)

    def _ask(self, properties: _Properties, subject: Any, name: str) -> None:
        self._hold(properties.owner, properties.always, subject, name)
        self._follow(properties, subject, name)

    def _hold(self, owner: str, properties: tuple[Property[Any], ...], subject: Any, name: str) -> None:
        self.asked += len(properties)
        for prop in properties:
            if not prop.holds(subject):
                raise Violation(owner, prop.name, name)

    def _follow(self, properties: _Properties, subject: Any, name: str) -> None:
        """Note reachability properties that hold; add and remove due liveness properties."""
        owner = properties.owner
        for prop in properties.sometimes:
            if (owner, prop.name) not in self.seen and prop.holds(subject):
                self.seen.add((owner, prop.name))
        for prop in properties.follows:
            debt = Debt(owner, prop.name, name)
            if prop.holds(subject):
                self.owed.pop(debt, None)
            elif prop.when is not None and prop.when(subject):
                self.owed.setdefault(debt, False)

    def begin(self, names: Mapping[str, AggregateType]) -> None:
        """Add the liveness properties that are due from the beginning."""
        self._count = len(names)
        subjects = [(each, each.owner) for each in self._of_system.values()]
        subjects += [(self._of_types[of.kind], name) for name, of in names.items()]
        for properties, name in subjects:
            self._owe(properties, name)

    def _owe(self, properties: _Properties, name: str) -> None:
        """Add the liveness properties that are due from the beginning."""
        owed = (Debt(properties.owner, each.name, name) for each in properties.follows if each.when is None)
        self.owed.update(dict.fromkeys(owed, False))

    def heal(self) -> None:
        """Note that everything is healed: debts of now must be paid; later ones may stay."""
        self.owed = dict.fromkeys(self.owed, True)

    def overdue(self) -> list[Debt]:
        """Return the properties that are due since before everything was healed, in the order of their declaration.

        The order in which they became due is not used: in a large system it depends on the intervals between checks.
        """
        return sorted((debt for debt, is_old in self.owed.items() if is_old), key=self._place)

    def _place(self, debt: Debt) -> tuple[int, str]:
        return self._places[debt.owner, debt.prop], debt.of

    def relied_on(self, debt: Debt) -> tuple[Fairness, ...]:
        """Return the fairness assumptions of a due property."""
        return self._given[debt.owner, debt.prop]


def _invariant(holds: Callable[[Any], bool]) -> Property[Any]:
    return always(holds.__name__.replace("_", " "), lambda entity: holds(entity.record))
