"""The configuration of a check: its properties and its bounds."""

from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, Final

import msgspec

from lifefold.core.kernel import Aggregate, AggregateType, Property, PropertyKind, Reaction, System, always


class Bounds(msgspec.Struct, frozen=True):
    """The bounds of a search.

    ``within`` has, by the name of a machine, a predicate of its records: a step to another record is counted and not
    taken. ``postponed`` is the most events that an entity keeps, and ``commands`` the most operator commands; None for
    no limit. ``compared`` is the number of states in the cross-check (see ``cross_check``). With ``symmetry``, one
    state represents all that differ by a permutation of alike aggregates (see ``symmetry``); liveness is then not
    checked. The others end the search: ``states``, ``steps``, seconds, or mebibytes.
    """

    within: Mapping[str, Callable[[Any], bool]] = {}
    postponed: int = 2
    commands: int | None = None
    compared: int = 3_000
    symmetry: bool = False
    states: int = 10_000_000
    depth: int | None = None
    seconds: float | None = None
    memory_mib: int | None = None

    def hold(self, of: AggregateType, aggregate: Aggregate) -> bool:
        """Tell whether an aggregate is within the bounds."""
        for ref, entity in aggregate.entities.items():
            if len(entity.postponed) > self.postponed:
                return False
            machine = of.machine_of(ref)
            holds = None if machine is None else self.within.get(machine.name)
            if holds is not None and not holds(entity.record):
                return False
        return True


class PropertyError(ValueError):
    """A property could not be judged: its function has raised an error."""

    def __init__(self, prop: "NamedProperty", seen: object, error: Exception) -> None:
        self.why: Final = error
        self.declared: Final = (prop.owner, prop.property.name)
        said = f"{type(error).__name__}: {error}"
        super().__init__(f"{prop.owner}: the property {prop.property.name!r} cannot be judged: {said}, for {seen}")


class NamedProperty(msgspec.Struct, frozen=True):
    """A property with its owner: a machine, an aggregate type or the system."""

    owner: str
    property: Property[Any]

    def holds(self, seen: Any) -> bool:
        """Tell whether it holds. Raises ``PropertyError``."""
        try:
            return bool(self.property.holds(seen))
        except Exception as error:
            raise PropertyError(self, seen, error) from error

    def is_due(self, seen: Any) -> bool:
        """Tell whether a liveness property is due. Raises ``PropertyError``."""
        try:
            return self.property.when is not None and bool(self.property.when(seen))
        except Exception as error:
            raise PropertyError(self, seen, error) from error


class Subject(msgspec.Struct, frozen=True):
    """The subject of a property: an entity, an aggregate (no ``entity``), or the system (no ``component``)."""

    prop: int
    component: int = -1
    entity: str = ""


_IN_ANY_SYSTEM: Final = frozenset({PropertyKind.ALWAYS, PropertyKind.ALWAYS_STEP})


class Judge:
    """Judges every new state of an aggregate by the properties that concern it alone.

    In a system, a machine is judged by its invariants and transition properties. Its reachability and liveness
    properties depend on operator commands to the machine alone, so the system has properties of its own for them.
    """

    def __init__(self, system: System, more: Iterable[Property[Any]] = (), kinds: Container[str] | None = None) -> None:
        """Gather the properties of a system and its parts; ``more`` are further properties of the system.

        ``kinds`` are the aggregate types with an aggregate, if not all: the others have nothing to judge.
        """
        self.properties: Final[list[NamedProperty]] = []
        self.wrong: Final[dict[tuple[int, int], tuple[int, ...]]] = {}
        """By component and state: the properties that are broken there."""
        self.seen: Final[dict[int, dict[int, set[int]]]] = {}
        """By reachability property and component: the states in which it holds."""
        self.truths: Final[dict[Subject, dict[int, tuple[bool, bool]]]] = {}
        """By subject of a property and state of its component: whether it is due, and whether it holds."""
        self._of_machines: Final[dict[tuple[str, str], list[int]]] = {}
        self._of_types: Final[dict[str, list[int]]] = {}
        self._of_steps: Final[dict[tuple[str, str], list[int]]] = {}
        there = {kind: of for kind, of in system.aggregates.items() if kinds is None or kind in kinds}
        for kind, of in there.items():
            for machine in of.machines.values():
                invariants = (always(_words(holds), _of_record(holds)) for holds in machine.invariants)
                alone = len(system.aggregates) == len(of.machines) == 1
                properties = [each for each in machine.properties if alone or each.property_kind in _IN_ANY_SYSTEM]
                numbers = [self._add(machine.name, each) for each in (*invariants, *properties)]
                self._of_machines[kind, machine.name] = numbers
            self._of_types[kind] = [self._add(kind, each) for each in of.properties]
        self.of_system: Final = [self._add(system.name, each) for each in (*system.properties, *more)]
        for of_machine, declared in self._of_machines.items():
            every = (*declared, *self._of_types[of_machine[0]], *self.of_system)
            self._of_steps[of_machine] = [each for each in every if self._is_of_steps(each)]

    def _add(self, owner: str, declared: Property[Any]) -> int:
        self.properties.append(NamedProperty(owner, declared))
        return len(self.properties) - 1

    def _is_of_steps(self, prop: int) -> bool:
        return self.properties[prop].property.property_kind is PropertyKind.ALWAYS_STEP

    def meet(self, component: int, number: int, of: AggregateType, aggregate: Aggregate) -> None:
        """Judge a new state of an aggregate."""
        broken: list[int] = []
        for each in self._of_types[of.kind]:
            self._look(Subject(each, component), number, aggregate, broken)
        for ref, entity in aggregate.entities.items():
            machine = of.machine_of(ref)
            if machine is not None:
                for each in self._of_machines[of.kind, machine.name]:
                    self._look(Subject(each, component, ref), number, entity, broken)
        if broken:
            self.wrong[component, number] = tuple(broken)

    def _look(self, subject: Subject, number: int, seen: Any, broken: list[int]) -> None:
        prop = self.properties[subject.prop]
        match prop.property.property_kind:
            case PropertyKind.ALWAYS:
                if not prop.holds(seen):
                    broken.append(subject.prop)
            case PropertyKind.SOMETIMES:
                if prop.holds(seen):
                    self.seen.setdefault(subject.prop, {}).setdefault(subject.component, set()).add(number)
            case PropertyKind.LEADS_TO:
                self.truths.setdefault(subject, {})[number] = (prop.is_due(seen), prop.holds(seen))
            case PropertyKind.ALWAYS_STEP:
                pass

    def opinion(self, of: AggregateType, aggregate: Aggregate) -> Mapping[tuple[int, str], tuple[bool, bool]]:
        """Return the truth of every property in an aggregate: whether it is due, and whether it holds."""
        subjects: list[tuple[int, str, Any]] = [(each, "", aggregate) for each in self._of_types[of.kind]]
        for ref, entity in aggregate.entities.items():
            machine = of.machine_of(ref)
            if machine is not None:
                subjects += [(each, ref, entity) for each in self._of_machines[of.kind, machine.name]]
        return {
            (each, ref): (self.properties[each].is_due(seen), self.properties[each].holds(seen))
            for each, ref, seen in subjects
            if self.properties[each].property.property_kind is not PropertyKind.ALWAYS_STEP
        }

    def step(self, of: AggregateType, reaction: Reaction) -> tuple[int, ...]:
        """Return the transition properties that a reaction breaks."""
        return tuple(
            each
            for transition in reaction.transitions
            for each in self._of_steps[of.kind, transition.machine]
            if not self.properties[each].holds(transition)
        )


def _of_record(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda entity: holds(entity.record)


def _words(holds: Callable[..., object]) -> str:
    return getattr(holds, "__name__", repr(holds)).replace("_", " ")
