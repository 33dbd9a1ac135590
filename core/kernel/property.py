"""Properties of lifecycles and systems: the statements that checks and simulations verify, each with its name.

A property is about a *subject*. The subject is the entity for a machine, the aggregate for an aggregate's type, and the
``SystemState`` with all aggregates and messages for a system. The kinds of properties:

- ``always``: it holds at all times;
- ``sometimes``: it can come to be;
- ``always_step``: it holds of every transition;
- ``leads_to``: one condition leads to another, sooner or later; ``eventually`` is the same from the beginning;
- ``accepts``: a machine accepts some events. A refused event is no step, so no other property covers it.

Nothing follows if the environment never acts. The engine guarantees that timers fire, that ends are confirmed and that
messages arrive. A property states any further assumption with ``given``. ``weakly``: an event that stays possible
happens. ``strongly``: an event that is possible again and again happens. (L. Lamport, The Temporal Logic of Actions,
1994.)

A system has many more states than its aggregates together. A property that depends on little declares a projection
(``projected``). It is then evaluated once for all states with the same ``Projection``. A property of all entities
declares the part that a transition can affect (``localized``), and is then evaluated for that part only.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from enum import StrEnum
from types import UnionType
from typing import Any, Generic, TypeGuard, TypeVar, cast

import msgspec

from lifefold.core.kernel.entity import Transition
from lifefold.core.kernel.record import Event
from lifefold.core.kernel.row import Pattern, Source
from lifefold.effects import Activity

C = TypeVar("C", bound=Callable[..., object])
S = TypeVar("S")


class PropertyKind(StrEnum):
    """The kinds of properties."""

    ALWAYS = "always"
    ALWAYS_STEP = "always step"
    SOMETIMES = "sometimes"
    LEADS_TO = "leads to"


class Fairness(msgspec.Struct, frozen=True):
    """A fairness assumption: an event, a variant of one, or the end of an activity by itself happens if possible.

    It is assumed of each entity and slot separately. ``strong``: being possible again and again suffices.
    """

    of: type[Event] | Pattern[Any] | type[Activity]
    strong: bool = False

    def __post_init__(self) -> None:
        """Check that ``of`` has a fairness. Raises ``TypeError``."""
        _see_to(
            _may_be_fair(self.of),
            f"weakly() and strongly() take classes of events and of activities, and patterns; not {self.of!r}",
        )


def weakly(*of: type[Event] | Pattern[Any] | type[Activity]) -> tuple[Fairness, ...]:
    """Assume that each of these happens if it stays possible.

    >>> from lifefold import check, eventually, weakly
    >>> from lifefold.core.fleet.board import intake
    >>> def is_closed(entity):
    ...     return entity.state is intake.State.CLOSED
    >>> check(intake.machine, properties=(eventually("it closes", is_closed, given=weakly(intake.LastTaskIn)),)).ok
    True
    >>> check(intake.machine, properties=(eventually("it closes", is_closed),)).ok
    False
    """
    return tuple(Fairness(each) for each in of)


def strongly(*of: type[Event] | Pattern[Any] | type[Activity]) -> tuple[Fairness, ...]:
    """Assume that each of these happens if it is possible again and again.

    >>> from lifefold import strongly
    >>> from lifefold.core.fleet.board import intake
    >>> [each.of.__name__ for each in strongly(intake.LastTaskIn)]
    ['LastTaskIn']
    """
    return tuple(Fairness(each, strong=True) for each in of)


class Property(msgspec.Struct, Generic[S], frozen=True):
    """A property. For ``leads_to``, ``when`` is the condition that leads to ``holds``; None is the beginning.

    A property of a system with ``projection`` is evaluated on a ``Projection`` (see ``projected``). With ``localized``
    it is evaluated on the part that a transition can affect.
    """

    name: str
    property_kind: PropertyKind
    holds: Callable[[S], bool]
    when: Callable[[S], bool] | None = None
    given: tuple[Fairness, ...] = ()
    projection: Callable[[Any], Hashable] | None = None
    of: Callable[[Any], Callable[[S], bool]] | None = None
    """Makes ``holds`` for a machine, for a property of its table."""
    localized: "Callable[[Any, str, tuple[Transition, ...]], Any] | None" = None
    on: type[Event] | UnionType | None = None
    """The events of an ``always_step``: ``holds`` is true of every other transition. None for any event."""

    def __post_init__(self) -> None:
        """Check its parts. Raises ``TypeError`` with what is accepted."""
        name, given = self.name, self.given
        _see_to(_is_text(name), f"a property begins with its name, a text; not {name!r}")
        _see_to(callable(self.holds), f"{name!r}: the condition has to be a function, not {self.holds!r}")
        _see_to(self.when is None or callable(self.when), f"{name!r}: when= has to be a function, not {self.when!r}")
        _see_to(
            _are_fair(given),
            f"{name!r}: given= takes weakly(...) or strongly(...), or both as (*weakly(...), *strongly(...)); "
            f"not {given!r}",
        )
        _see_to(
            self.projection is None or callable(self.projection),
            f"{name!r}: projected() takes a function first, not {self.projection!r}",
        )
        _see_to(
            self.localized is None or callable(self.localized),
            f"{name!r}: localized() takes a function first, not {self.localized!r}",
        )

    def about(self, machine: Any) -> "Property[S]":
        """Return this property for one machine."""
        return self if self.of is None else msgspec.structs.replace(self, holds=self.of(machine))


def always(name: str, holds: Callable[[S], bool]) -> Property[S]:
    """Declare that this holds of the subject at all times.

    >>> from lifefold import always
    >>> always("versions count up from 1", lambda entity: entity.version >= 1).name
    'versions count up from 1'
    """
    return Property(name, PropertyKind.ALWAYS, holds)


def always_step(
    name: str, holds: Callable[[Transition], bool], *, on: type[Event] | UnionType | None = None
) -> Property[Any]:
    """Declare that this holds of every ``Transition`` of the subject's entities, for any kind of subject.

    With ``on`` it is declared of the transitions by these events only. The creation of an entity is then never among
    them, so that ``Transition.was`` has a record; ``on=Event`` excludes the creation alone.

    >>> from lifefold import Event, always_step
    >>> always_step("versions grow", lambda step: step.after.version > step.before.version, on=Event).name
    'versions grow'
    """
    if on is None:
        return Property(name, PropertyKind.ALWAYS_STEP, holds)

    def holds_on(step: Transition) -> bool:
        return step.before is None or not isinstance(step.event, on) or holds(step)

    return Property(name, PropertyKind.ALWAYS_STEP, holds_on, on=on)


def sometimes(name: str, holds: Callable[[S], bool]) -> Property[S]:
    """Declare that this can come to be.

    >>> from lifefold import check, sometimes
    >>> from lifefold.core.fleet.board import intake
    >>> closes = sometimes("an intake is closed", lambda entity: entity.state is intake.State.CLOSED)
    >>> check(intake.machine, properties=(closes,)).ok
    True
    """
    return Property(name, PropertyKind.SOMETIMES, holds)


def eventually(name: str, holds: Callable[[S], bool], *, given: tuple[Fairness, ...] = ()) -> Property[S]:
    """Declare that this comes to be in every run.

    >>> from lifefold import eventually, weakly
    >>> from lifefold.core.fleet.board import intake
    >>> def is_closed(entity):
    ...     return entity.state is intake.State.CLOSED
    >>> eventually("the intake is closed", is_closed, given=weakly(intake.LastTaskIn)).name
    'the intake is closed'
    """
    return Property(name, PropertyKind.LEADS_TO, holds, None, given)


def leads_to(
    name: str, when: Callable[[S], bool], holds: Callable[[S], bool], *, given: tuple[Fairness, ...] = ()
) -> Property[S]:
    """Declare that if ``when`` holds, ``holds`` holds then or later.

    >>> from lifefold import leads_to
    >>> from lifefold.core.lifecycles import approval, task
    >>> def is_waiting(entity):
    ...     return entity.state is task.State.PENDING_APPROVAL
    >>> leads_to("waiting work is decided", is_waiting, lambda entity: not is_waiting(entity)).name
    'waiting work is decided'
    """
    return Property(name, PropertyKind.LEADS_TO, holds, when, given)


def accepts(
    name: str,
    events: Mapping[Source, tuple[type[Event] | Pattern[Any], ...]],
    *,
    when: Callable[[Any], bool] | None = None,
) -> Property[Any]:
    """Declare that in these states each of these events is accepted or postponed, in at least one of its examples.

    With ``when`` the property is restricted to entities that satisfy it.
    """

    def of(machine: Any) -> Callable[[Any], bool]:
        # An unguarded row accepts every example, so no state of it needs to be asked.
        certain = {(state, each.event) for each in machine.rows if each.unguarded for state in machine.sources(each)}
        expected = {
            state: [
                kind
                for source, kinds in events.items()
                if state in machine.over(source)
                for kind in kinds
                if (state, kind) not in certain
            ]
            for state in machine.states
        }

        def holds(entity: Any) -> bool:
            if when is not None and not when(entity):
                return True
            return all(
                any(machine.takes(entity.record, each) for each in _examples(kind, entity))
                for kind in expected[entity.state]
            )

        return holds

    return Property(name, PropertyKind.ALWAYS, _unbound, of=of)


def _unbound(_entity: Any) -> bool:
    message = "accepts() is a property of a machine: declare it in the machine's properties="
    raise TypeError(message)


def _examples(kind: type[Event] | Pattern[Any], entity: Any) -> Iterator[Event]:
    if isinstance(kind, Pattern):
        return (each for each in kind.event.examples_for(entity.record) if kind.test(each))
    return iter(kind.examples_for(entity.record))


class SystemState(msgspec.Struct, frozen=True):
    """A whole system at one moment: its aggregates by name, and the messages that have not arrived.

    ``in_flight`` has ``(sender, receiver, entity, event)``, in order for each pair of aggregates.
    """

    aggregates: Mapping[str, Any]
    in_flight: tuple[tuple[str, str, str, Event], ...] = ()


class Projection(msgspec.Struct, frozen=True):
    """The part of a system that a projected property sees: a value for each aggregate, and the number of messages.

    ``aggregates`` maps each name to the value of ``projection``; ``under_way`` counts the messages in flight.
    """

    aggregates: Mapping[str, Any]
    under_way: int = 0


def projected(
    projection: Callable[[Any], Hashable], *properties: Property[Projection]
) -> tuple[Property[SystemState], ...]:
    """Evaluate properties of a system on nothing of an aggregate but the value of ``projection``."""
    return tuple(
        cast("Property[SystemState]", msgspec.structs.replace(each, projection=projection))
        for each in properties_of("projected()", properties)
    )


def localized(
    touched: "Callable[[S, str, tuple[Transition, ...]], S | None]", *properties: Property[S]
) -> tuple[Property[S], ...]:
    """Evaluate properties of all entities, after a step, on those alone that the step can affect.

    ``touched(subject, aggregate, transitions)`` returns a part of the subject, a smaller aggregate or ``SystemState``,
    as it is after these transitions in this aggregate. It returns None if they affect nothing. A property that holds of
    the whole must hold of each part. If it held before the step and not after it, it must not hold of the part either.
    Searches of large systems rely on this, and evaluate the whole from time to time.
    """
    return tuple(msgspec.structs.replace(each, localized=touched) for each in properties_of("localized()", properties))


def properties_of(owner: str, given: Iterable[Property[S]]) -> tuple[Property[S], ...]:
    """Return the values of a ``properties=``. Raises ``TypeError``, which names the accepted ones, for other values."""
    _see_to(
        not isinstance(given, Property),
        f"{owner}: properties= takes several properties, (property,) for one; not {given!r}",
    )
    found = tuple(given)
    for each in found:
        _see_to(
            not isinstance(each, tuple),
            f"{owner}: several properties where one is accepted; a star is missing: *projected(...) or *localized(...)",
        )
        _see_to(
            _is_property(each),
            f"{owner}: {each!r} is no property; accepted: always(), always_step(), sometimes(), eventually(), "
            "leads_to(), accepts(), *projected(), *localized()",
        )
    return found


def unprojected(owner: str, given: Iterable[Property[S]]) -> tuple[Property[S], ...]:
    """Return the properties of a machine or an aggregate type. Raises ``TypeError`` for one with a projection."""
    found = properties_of(owner, given)
    for each in found:
        _see_to(each.projection is None, f"{owner}: {each.name!r}: projected() is for properties of a System")
    return found


def invariants_of(owner: str, given: Iterable[C]) -> tuple[C, ...]:
    """Return the values of an ``invariants=``. Raises ``TypeError`` for a value that is no function."""
    found = tuple(given)
    for each in found:
        _see_to(
            callable(each),
            f"{owner}: an invariant is a function of the record, a property goes to properties=: {each!r}",
        )
    return found


def _may_be_fair(of: object) -> bool:
    return isinstance(of, Pattern) or (isinstance(of, type) and issubclass(of, Event | Activity))


def _are_fair(given: object) -> bool:
    several: tuple[Any, ...] = given if _is_tuple(given) else (given,)
    return _is_tuple(given) and all(isinstance(each, Fairness) for each in several)


def _is_tuple(given: object) -> TypeGuard[tuple[Any, ...]]:
    return isinstance(given, tuple)


def _is_property(given: object) -> bool:
    return isinstance(given, Property)


def _is_text(name: object) -> bool:
    return isinstance(name, str) and name != ""


def _see_to(is_so: object, otherwise: str) -> None:
    if not is_so:
        raise TypeError(otherwise)


def subject_of(declared: Property[Any], state: SystemState) -> SystemState | Projection:
    """Return the subject of a property of a system in this state: the state, or its projection."""
    if declared.projection is None:
        return state
    projections = {name: declared.projection(aggregate) for name, aggregate in state.aggregates.items()}
    return Projection(projections, len(state.in_flight))
