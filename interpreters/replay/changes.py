"""The entities of a replayed world, and the inputs that would change it."""

from collections.abc import Iterator
from typing import Any

from lifefold.core.kernel import Aggregate, Cause, Entity, Input, Machine, Reaction, World, replace


def entities(world: World) -> Iterator[tuple[str, Machine[Any], Entity[Any]]]:
    """Yield all entities, each with its aggregate's name and its machine."""
    for name, aggregate in world.aggregates.items():
        of = world.system.type_of(name)
        for ref, entity in aggregate.entities.items():
            machine = of.machine_of(ref)
            if machine is not None:
                yield name, machine, entity


def changes(world: World, commands: int | None) -> Iterator[Input]:
    """Yield the possible inputs, without messages, that are accepted and change the state."""
    for name, aggregate in world.aggregates.items():
        for each in world.choices_of(name):
            if commands is not None and world.commands >= commands and each.cause is Cause.COMMAND:
                continue
            outcome = world.outcome(each)
            if isinstance(outcome, Reaction) and _essence(outcome.aggregate) != _essence(aggregate):
                yield each


def _essence(aggregate: Aggregate) -> dict[str, tuple[Any, ...]]:
    """Return the parts of an aggregate that a step must change: neither the time alone, nor versions."""
    return {
        ref: (
            replace(entity.record, at_ms=0) if hasattr(entity.record, "at_ms") else entity.record,
            tuple((part.slot, part.activity, part.phase) for part in entity.running),
            tuple(each.event for each in entity.postponed),
        )
        for ref, entity in aggregate.entities.items()
    } | {"": (aggregate.sent,)}
