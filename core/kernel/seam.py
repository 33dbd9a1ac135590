"""Other rules go on with a log: what their tables cannot take, and which of their properties do not hold.

A log keeps what was decided, so it folds without the rules that decided. The state that comes of it must suit the rules
that go on. ``misfits`` names each part of it that they cannot take. Such a part is an entity in a state that no longer
exists, or an activity or a timer that no table serves. A pending event, message or effect without a type of today is
one, too. ``broken`` names each invariant and each ``always`` property that does not hold. Both are empty if the rules
can go on.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from lifefold.core.kernel.aggregate import Aggregate
from lifefold.core.kernel.entity import Entity, Phase, Running
from lifefold.core.kernel.evolution import removed_of
from lifefold.core.kernel.forgotten import ForgottenActivity, ForgottenEffect, ForgottenEvent
from lifefold.core.kernel.machine import Machine
from lifefold.core.kernel.property import Property, PropertyKind, SystemState, subject_of
from lifefold.core.kernel.row import Does
from lifefold.core.kernel.system import System
from lifefold.effects import Effect, Tell


def misfits(system: System, aggregates: Iterable[Aggregate], owed: Iterable[Effect]) -> tuple[str, ...]:
    """Return what these rules cannot take, a phrase for each part; ``owed`` are effects and messages to come."""
    found = (line for of in aggregates for entity in of.entities.values() for line in _of_entity(system, of, entity))
    return tuple(dict.fromkeys((*_of_effects(system, owed), *found)))


def _of_effects(system: System, owed: Iterable[Effect]) -> Iterator[str]:
    machines = (machine for of in system.aggregates.values() for machine in of.machines.values())
    dropped = frozenset[str]().union(*map(removed_of, machines))
    for effect in owed:
        if isinstance(effect, ForgottenEffect):
            if effect.name in dropped:
                continue
            yield f"the effect {effect.name}"
        elif isinstance(effect, Tell) and isinstance(effect.event, ForgottenEvent):
            yield f"the message {effect.event.name} to {effect.aggregate}"


def _of_entity(system: System, of: Aggregate, entity: Entity[Any]) -> Iterator[str]:
    machine = system.type_of(of.name).machine_of(entity.ref)
    where = f"{of.name}, {entity.ref}"
    if machine is None:
        yield f"{where}: the machine {entity.ref.partition(':')[0]}"
        return
    if entity.state not in machine.states:
        yield f"the state {entity.state} of {where}"
    for part in entity.running:
        what = "timer" if part.activity is None else "activity"
        if not _is_served(machine, entity, part):
            name = part.activity.name if isinstance(part.activity, ForgottenActivity) else part.slot
            yield f"the {what} {name or part.slot} of {where}"
    for envelope in entity.postponed:
        if isinstance(envelope.event, ForgottenEvent) and envelope.event.name not in removed_of(machine):
            yield f"the postponed event {envelope.event.name} of {where}"


def _is_served(machine: Machine[Any], entity: Entity[Any], part: Running) -> bool:
    """Tell whether a table can go on with an activity or a timer: the slot is its own, and of the present state.

    The end of an activity is requested in any state, and confirmed there.
    """
    span = machine.spans.get(part.slot)
    if span is None or isinstance(part.activity, ForgottenActivity):
        return False
    is_same_kind = isinstance(span.during, Does) == (part.activity is not None)
    return is_same_kind and (part.phase is Phase.ENDING or entity.state in span.states)


def broken(system: System, state: SystemState) -> tuple[str, ...]:
    """Return the properties that do not hold in a state, a sentence for each with its subject."""
    return tuple(_broken(system, state))


def _broken(system: System, state: SystemState) -> Iterator[str]:
    for name, of in state.aggregates.items():
        kind = system.type_of(name)
        for ref, entity in of.entities.items():
            machine = kind.machine_of(ref)
            if machine is not None and ref not in of.quarantined:
                for holds in machine.invariants:
                    yield from _unless(holds, entity.record, f"{name}, {ref}", holds.__name__.replace("_", " "))
                yield from _of_properties(machine.properties, entity, f"{name}, {ref}")
        yield from _of_properties(kind.properties, of, name)
    for each in system.properties:
        if each.property_kind is PropertyKind.ALWAYS:
            yield from _unless(each.holds, subject_of(each, state), system.name, each.name)


def _of_properties(declared: Iterable[Property[Any]], subject: Any, where: str) -> Iterator[str]:
    for each in declared:
        if each.property_kind is PropertyKind.ALWAYS:
            yield from _unless(each.holds, subject, where, each.name)


def _unless(holds: Callable[[Any], bool], subject: Any, where: str, name: str) -> Iterator[str]:
    """Yield a property that does not hold, or whose function raises on a state that it was not written for."""
    try:
        if not holds(subject):
            yield f"{where}: {name}"
    except Exception as error:  # noqa: BLE001 - whatever it is, the property does not hold
        yield f"{where}: {name} ({type(error).__name__}: {error})"
