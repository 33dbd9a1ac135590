"""The state of a system, and the effect of one input on it; the rules alone decide, through ``react``."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from lifefold.core.kernel import (
    Aggregate,
    Cause,
    Entity,
    Envelope,
    Machine,
    Reaction,
    Refusal,
    System,
    SystemState,
    possible,
    react,
    replace,
)
from lifefold.effects import Tell

BEGIN_MS: Final = 1_000_000_000_000
"""The time of the opening. It is not 0, because some rules read that as "never"."""


class World(NamedTuple):
    """The state of a system; ``said`` is the number of operator commands so far."""

    aggregates: Mapping[str, Aggregate]
    under_way: Mapping[tuple[str, str], tuple[Tell, ...]]
    now_ms: int = BEGIN_MS
    said: int = 0

    def scene(self) -> SystemState:
        """Return it as properties of a system see it."""
        in_flight = ((*pair, tell.entity, tell.event) for pair, tells in self.under_way.items() for tell in tells)
        return SystemState(self.aggregates, tuple(in_flight))


class Taken(NamedTuple):
    """A step."""

    aggregate: str
    cause: Cause
    envelope: Envelope
    reaction: Reaction


def taken(system: System, world: World, name: str, cause: Cause, envelope: Envelope) -> tuple[World, Taken] | str:
    """Return the world after an input to the aggregate of this name, or why the input is refused."""
    if name not in world.aggregates:
        return f"there is no {name}"
    reaction = react(system.type_of(name), world.aggregates[name], envelope)
    if isinstance(reaction, Refusal):
        return reaction.reason
    under_way = dict(world.under_way)
    if cause is Cause.MESSAGE:
        under_way[envelope.sender, name] = under_way[envelope.sender, name][1:]
    for asked in reaction.effects:
        if isinstance(tell := asked.effect, Tell):
            under_way[name, tell.aggregate] = (*under_way.get((name, tell.aggregate), ()), tell)
    aggregates = {**world.aggregates, name: reaction.aggregate}
    after = World(aggregates, under_way, max(world.now_ms, envelope.at_ms), world.said + (cause is Cause.COMMAND))
    return after, Taken(name, cause, envelope, reaction)


def entities(system: System, world: World) -> Iterator[tuple[str, Machine[Any], Entity[Any]]]:
    """Yield all entities, each with its aggregate's name and its machine."""
    for name, aggregate in world.aggregates.items():
        of = system.type_of(name)
        for ref, entity in aggregate.entities.items():
            machine = of.machine_of(ref)
            if machine is not None:
                yield name, machine, entity


def changes(system: System, world: World, commands: int | None) -> Iterator[tuple[str, Cause, Envelope]]:
    """Yield the possible steps, without messages, that are accepted and change the state."""
    for name, aggregate in world.aggregates.items():
        of = system.type_of(name)
        for each in possible(of, aggregate, world.now_ms):
            if each.cause is Cause.COMMAND and commands is not None and world.said >= commands:
                continue
            reaction = react(of, aggregate, each.envelope)
            if isinstance(reaction, Reaction) and _essence(reaction.aggregate) != _essence(aggregate):
                yield name, each.cause, each.envelope


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
