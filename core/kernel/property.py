"""What a lifecycle promises: properties that the worlds check, named for what they promise.

A property looks at a *subject*: the entity, for properties of a machine; the aggregate, for those of an aggregate's
type; the ``SystemState`` with all aggregates and the messages between them, for those of a system. It says that
something holds ``always``; that it is possible, ``sometimes``; that every step is as it should be (``always_step``); or
that something that is so ``leads_to`` something else, sooner or later. ``eventually`` is the last from the beginning. A
machine may also promise what it ``accepts``: what it refuses is no step, so that no other property can speak of it.

Nothing would ever follow if whoever has to act never did. That timers elapse, that ends are confirmed and that messages
arrive is the engine's part and taken for granted. What else a property relies on it says itself, with ``given``:
``weakly`` means that what is possible without interruption happens, ``strongly`` that what is possible again and again
does. (The terms are those of L. Lamport, The Temporal Logic of Actions, 1994.)

A system has many more states than its aggregates have together. A property of it that looks at little says at what
(``projected``) and is then asked about an ``Projection``, once for all states that look alike. A property that speaks
of everybody says what a transition can have touched (``localized``), and need not be asked of all of them at every
step.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, TypeGuard, TypeVar, cast

import msgspec

from lifefold.core.kernel.record import Event
from lifefold.core.kernel.row import Pattern, Source
from lifefold.core.kernel.step import IllegalTransition
from lifefold.effects import Activity

if TYPE_CHECKING:
    from lifefold.core.kernel.entity import Transition

C = TypeVar("C", bound=Callable[..., object])
S = TypeVar("S")


class PropertyKind(StrEnum):
    """The kinds of properties."""

    ALWAYS = "always"
    ALWAYS_STEP = "always step"
    SOMETIMES = "sometimes"
    LEADS_TO = "leads to"


class Fairness(msgspec.Struct, frozen=True):
    """That something happens if it is possible: an event, a variant of one, or that an activity is over by itself.

    It is assumed of every entity and slot by itself. ``strong``: it suffices that it is possible again and again.
    """

    of: type[Event] | Pattern[Any] | type[Activity]
    strong: bool = False

    def __post_init__(self) -> None:
        """Check what it is of. Raises ``TypeError``."""
        _see_to(
            _may_be_fair(self.of),
            f"weakly() and strongly() take classes of events and of activities, and patterns; not {self.of!r}",
        )


def weakly(*of: type[Event] | Pattern[Any] | type[Activity]) -> tuple[Fairness, ...]:
    """Assume that each of these happens if it stays possible."""
    return tuple(Fairness(each) for each in of)


def strongly(*of: type[Event] | Pattern[Any] | type[Activity]) -> tuple[Fairness, ...]:
    """Assume that each of these happens if it is possible again and again."""
    return tuple(Fairness(each, strong=True) for each in of)


class Property(msgspec.Struct, Generic[S], frozen=True):
    """A property. For ``leads_to``, ``when`` is what leads to ``holds``, and None stands for the beginning.

    With ``projection`` a property of a system is asked about an ``Projection`` (see ``projected``); with ``localized``
    it need not be asked of all of its subject at every step.
    """

    name: str
    property_kind: PropertyKind
    holds: Callable[[S], bool]
    when: Callable[[S], bool] | None = None
    given: tuple[Fairness, ...] = ()
    projection: Callable[[Any], Hashable] | None = None
    of: Callable[[Any], Callable[[S], bool]] | None = None
    """How to make ``holds`` for a machine, of a property that asks its table."""
    localized: "Callable[[Any, str, tuple[Transition, ...]], Any] | None" = None

    def __post_init__(self) -> None:
        """Check its parts. Raises ``TypeError`` with what is accepted."""
        name, given = self.name, self.given
        _see_to(_is_text(name), f"a property begins with its name, a text; not {name!r}")
        _see_to(callable(self.holds), f"{name!r}: what holds has to be a function, not {self.holds!r}")
        _see_to(
            self.when is None or callable(self.when),
            f"{name!r}: when it is due has to be a function, not {self.when!r}",
        )
        _see_to(
            _are_fair(given),
            f"{name!r}: given= takes weakly(...) or strongly(...), or both as (*weakly(...), *strongly(...)); "
            f"not {given!r}",
        )
        _see_to(
            self.projection is None or callable(self.projection),
            f"{name!r}: seeing() takes a function first, not {self.projection!r}",
        )
        _see_to(
            self.localized is None or callable(self.localized),
            f"{name!r}: near() takes a function first, not {self.localized!r}",
        )

    def about(self, machine: Any) -> "Property[S]":
        """Return it as a property of this machine."""
        return self if self.of is None else msgspec.structs.replace(self, holds=self.of(machine))


def always(name: str, holds: Callable[[S], bool]) -> Property[S]:
    """Declare that this holds of the subject at all times."""
    return Property(name, PropertyKind.ALWAYS, holds)


def always_step(name: str, holds: "Callable[[Transition], bool]") -> Property[Any]:
    """Declare that this holds of every ``Transition`` of the subject's entities, whatever the subject is."""
    return Property(name, PropertyKind.ALWAYS_STEP, holds)


def sometimes(name: str, holds: Callable[[S], bool]) -> Property[S]:
    """Declare that this can come to be."""
    return Property(name, PropertyKind.SOMETIMES, holds)


def eventually(name: str, holds: Callable[[S], bool], *, given: tuple[Fairness, ...] = ()) -> Property[S]:
    """Declare that this comes to be, whatever happens."""
    return Property(name, PropertyKind.LEADS_TO, holds, None, given)


def leads_to(
    name: str, when: Callable[[S], bool], holds: Callable[[S], bool], *, given: tuple[Fairness, ...] = ()
) -> Property[S]:
    """Declare that whenever ``when`` is so, ``holds`` is so then or later."""
    return Property(name, PropertyKind.LEADS_TO, holds, when, given)


def accepts(
    name: str,
    events: Mapping[Source, tuple[type[Event] | Pattern[Any], ...]],
    *,
    when: Callable[[Any], bool] | None = None,
) -> Property[Any]:
    """Declare that in these states each of these events is taken, or waits: of its examples, one at least.

    With ``when`` it is promised of those entities only of which that is so.
    """

    def of(machine: Any) -> Callable[[Any], bool]:
        asked = {
            state: [kind for source, kinds in events.items() if state in machine.over(source) for kind in kinds]
            for state in machine.states
        }

        def holds(entity: Any) -> bool:
            if when is not None and not when(entity):
                return True
            return all(
                any(_is_taken(machine, entity.record, each) for each in _examples(kind, entity))
                for kind in asked[entity.state]
            )

        return holds

    return Property(name, PropertyKind.ALWAYS, _unbound, of=of)


def _unbound(_entity: Any) -> bool:
    message = "what a machine takes can be asked of a machine only: give it properties="
    raise TypeError(message)


def _is_taken(machine: Any, record: Any, event: Event) -> bool:
    return not isinstance(machine.step(record, event), IllegalTransition)


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
    """What a property sees of a system that says what it looks at: of each aggregate, and how much is ``under_way``.

    ``aggregates`` has by name what ``projection`` makes of them; ``under_way`` is how many messages have not arrived.
    """

    aggregates: Mapping[str, Any]
    under_way: int = 0


def projected(
    projection: Callable[[Any], Hashable], *properties: Property[Projection]
) -> tuple[Property[SystemState], ...]:
    """Let properties of a system look at nothing of an aggregate but what ``projection`` makes of it."""
    return tuple(
        cast("Property[SystemState]", msgspec.structs.replace(each, projection=projection))
        for each in properties_of("seeing()", properties)
    )


def localized(
    touched: "Callable[[S, str, tuple[Transition, ...]], S | None]", *properties: Property[S]
) -> tuple[Property[S], ...]:
    """Let properties that speak of everybody be asked, after a step, of those alone that it can have touched.

    ``touched(subject, aggregate, transitions)`` returns a part of the subject, a smaller aggregate or ``SystemState``,
    as it is after these transitions in the aggregate of this name; None if they touch nothing. What a property says of
    the whole it says of a part as well, and what held before the step is broken after it only if it is broken there.
    Worlds that visit many states of large systems rely on that, and ask of the whole now and then.
    """
    return tuple(msgspec.structs.replace(each, localized=touched) for each in properties_of("near()", properties))


def properties_of(whose: str, given: Iterable[Property[S]]) -> tuple[Property[S], ...]:
    """Return what somebody is given as properties. Raises ``TypeError`` with what is accepted if it is something else."""
    _see_to(
        not isinstance(given, Property),
        f"{whose}: properties= takes several properties, (promise,) if there is one; not {given!r}",
    )
    found = tuple(given)
    for each in found:
        _see_to(
            not isinstance(each, tuple),
            f"{whose}: several properties where one is accepted; a star is missing: *seeing(...) or *near(...)",
        )
        _see_to(
            _is_property(each),
            f"{whose}: {each!r} is no property; accepted: always(), always_step(), sometimes(), eventually(), "
            "leads_to(), takes(), *seeing(), *near()",
        )
    return found


def unprojected(whose: str, given: Iterable[Property[S]]) -> tuple[Property[S], ...]:
    """Return the properties of somebody who is no system. Raises ``TypeError`` for one that says what it looks at."""
    found = properties_of(whose, given)
    for each in found:
        _see_to(each.projection is None, f"{whose}: {each.name!r}: seeing() is for properties of a System")
    return found


def invariants_of(whose: str, given: Iterable[C]) -> tuple[C, ...]:
    """Return what somebody is given as invariants. Raises ``TypeError`` for what is no function."""
    found = tuple(given)
    for each in found:
        _see_to(
            callable(each),
            f"{whose}: an invariant is a function of the record, a property goes to properties=: {each!r}",
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


def subject_of(declared: Property[Any], scene: SystemState) -> SystemState | Projection:
    """Return what a property of a system is asked about in this scene."""
    if declared.projection is None:
        return scene
    seen = {name: declared.projection(aggregate) for name, aggregate in scene.aggregates.items()}
    return Projection(seen, len(scene.in_flight))
