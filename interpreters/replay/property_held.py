"""Whether a property held on a replayed trace."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from lifefold.core.kernel import (
    Cause,
    Envelope,
    Fairness,
    Input,
    Machine,
    Pattern,
    Property,
    PropertyKind,
    System,
    SystemStep,
    Transition,
    World,
    always,
    restarted,
    subject_of,
)
from lifefold.effects import Activity
from lifefold.interpreters.replay.changes import changes, entities

Key = tuple[Any, ...]


class Way(NamedTuple):
    """A trace: each step leads from the world of its number to the next. The cycle begins at ``mark``."""

    commands: int | None
    worlds: Sequence[World]
    steps: Sequence[SystemStep]
    mark: int


class DeclaredProperty(NamedTuple):
    """A property, with the projection of its subject in a world, by name, and its transitions."""

    property: Property[Any]
    subjects: Callable[[World], dict[Key, Any]]
    concerns: Callable[[SystemStep, Transition], bool]


def properties(system: System, name: str, of: str) -> Iterator[DeclaredProperty]:
    """Yield the properties of a machine, a type of aggregates or the system with this name."""
    machines = {m.name: m for each in system.aggregates.values() for m in each.machines.values()}
    if of in machines:
        yield from (_of_machine(each, of) for each in _declared(machines[of]) if each.name == name)
    if of in system.aggregates:
        yield from (_of_type(system, each, of) for each in system.aggregates[of].properties if each.name == name)
    if of == system.name:
        yield from (_of_system(each) for each in system.properties if each.name == name)


def of_states(system: System) -> Iterator[tuple[str, DeclaredProperty]]:
    """Yield all properties of states and of transitions, each with its owner: a short run can break only these."""
    machines = {m.name: m for each in system.aggregates.values() for m in each.machines.values()}
    every = [(name, _of_machine(each, name)) for name, machine in machines.items() for each in _declared(machine)]
    every += [(kind, _of_type(system, each, kind)) for kind, of in system.aggregates.items() for each in of.properties]
    every += [(system.name, _of_system(each)) for each in system.properties]
    kinds = {PropertyKind.ALWAYS, PropertyKind.ALWAYS_STEP}
    yield from (each for each in every if each[1].property.property_kind in kinds)


def _declared(machine: Machine[Any]) -> Iterator[Property[Any]]:
    yield from machine.properties
    for holds in machine.invariants:
        yield always(holds.__name__.replace("_", " "), _of_record(holds))


def _of_record(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda entity: holds(entity.record)


def _of_machine(declared: Property[Any], name: str) -> DeclaredProperty:
    def subjects(world: World) -> dict[Key, Any]:
        return {(at, entity.ref): entity for at, machine, entity in entities(world) if machine.name == name}

    def concerns(_step: SystemStep, transition: Transition) -> bool:
        return transition.machine == name

    return DeclaredProperty(declared, subjects, concerns)


def _of_type(system: System, declared: Property[Any], kind: str) -> DeclaredProperty:
    def subjects(world: World) -> dict[Key, Any]:
        return {(at,): each for at, each in world.aggregates.items() if system.type_of(at).kind == kind}

    def concerns(step: SystemStep, _transition: Transition) -> bool:
        return system.type_of(step.aggregate).kind == kind

    return DeclaredProperty(declared, subjects, concerns)


def _of_system(declared: Property[Any]) -> DeclaredProperty:
    def subjects(world: World) -> dict[Key, Any]:
        return {(): subject_of(declared, world.system_state())}

    def concerns(_step: SystemStep, _transition: Transition) -> bool:
        return True

    return DeclaredProperty(declared, subjects, concerns)


def is_kept(way: Way, declared: DeclaredProperty) -> bool:
    """Tell whether a property held."""
    holds = declared.property.holds
    match declared.property.property_kind:
        case PropertyKind.ALWAYS:
            return all(holds(subject) for world in way.worlds for subject in declared.subjects(world).values())
        case PropertyKind.ALWAYS_STEP:
            return all(
                holds(each) for step in way.steps for each in step.reaction.transitions if declared.concerns(step, each)
            )
        case PropertyKind.SOMETIMES:
            return any(holds(subject) for world in way.worlds for subject in declared.subjects(world).values())
        case PropertyKind.LEADS_TO:
            return not (_is_put_off(way, declared) and _is_fair(way, declared.property.given))


def _is_put_off(way: Way, declared: DeclaredProperty) -> bool:
    """Tell whether the property was due before the cycle, and holds nowhere in it."""
    seen = [declared.subjects(world) for world in way.worlds]
    return any(
        all(_waiting(declared.property, [each.get(key) for each in seen])[way.mark :])
        for key in dict.fromkeys(key for each in seen for key in each)
    )


def _waiting(declared: Property[Any], seen: Sequence[Any]) -> list[bool]:
    """Tell for each world whether the property is due there."""
    waiting, told = declared.when is None, list[bool]()
    for subject in seen:
        if subject is not None:
            due = declared.when is not None and declared.when(subject)
            waiting = (waiting or due) and not declared.holds(subject)
        told.append(waiting)
    return told


def _is_fair(way: Way, given: Sequence[Fairness]) -> bool:
    """Tell whether the cycle is fair."""
    system = way.worlds[0].system
    done = {key for step in way.steps[way.mark :] for key in _keys(system, step.given, given)}
    done.update(_put_off(way))
    ready = [set(_ready(way, world, given)) for world in way.worlds[way.mark :]]
    for key in set[Key]().union(*ready) - done:
        is_strong = key[0]
        if is_strong or all(key in each for each in ready):
            return False
    return True


def _put_off(way: Way) -> Iterator[Key]:
    """Yield the timers that restart in the cycle: none of their starts need elapse."""
    for world, step in zip(way.worlds[way.mark :], way.steps[way.mark :], strict=False):
        for entity, slot in restarted(world.aggregates[step.aggregate], step.reaction):
            yield (False, Cause.TIMER, step.aggregate, entity, slot)


def _ready(way: Way, world: World, given: Sequence[Fairness]) -> Iterator[Key]:
    for each in (*changes(world, way.commands), *world.next_messages().values()):
        yield from _keys(world.system, each, given)


def _keys(system: System, given: Input, fair: Sequence[Fairness]) -> Iterator[Key]:
    """Yield the fairness of an input: its key, and whether it is strong."""
    name, envelope = given
    cause, slot = given.cause, envelope.slot or getattr(envelope.event, "slot", "")
    if cause is Cause.MESSAGE:
        yield (False, cause, name, envelope.sender)
    elif cause in {Cause.TIMER, Cause.CONFIRMATION}:
        yield (False, cause, name, envelope.entity, slot)
    elif cause in {Cause.COMMAND, Cause.REPORT}:
        machine = system.type_of(name).machine_of(envelope.entity)
        for number, each in enumerate(fair):
            if machine is not None and _is_of(machine, envelope, each):
                yield (each.strong, number, name, envelope.entity, slot)


def _is_of(machine: Machine[Any], envelope: Envelope, fair: Fairness) -> bool:
    event = envelope.event
    if isinstance(fair.of, Pattern):
        return type(event) is fair.of.event and fair.of.test(event)
    if issubclass(fair.of, Activity):
        return envelope.slot == fair.of.__name__ and type(event) in machine.last.get(envelope.slot, ())
    return type(event) is fair.of
