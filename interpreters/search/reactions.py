"""What the aggregates of one type make of their inputs: what ``react`` says, with less of it computed again.

Two things are made use of. Where there are neither rules nor views, nothing follows from what one entity does, unless
it tells somebody something. And what an entity refuses, its aggregate refuses, whatever else is in it. The entities are
those that a search keeps (see ``numbered``): they are known by where they are.
"""

from typing import Any, Final

from lifefold.core.kernel import (
    Aggregate,
    AggregateType,
    Cause,
    Created,
    Entity,
    EntityStep,
    Envelope,
    Machine,
    Opened,
    Reaction,
    Refusal,
    RequestedEffect,
    RunnerRecovered,
    advance,
    late,
    react,
)
from lifefold.effects import Tell
from lifefold.interpreters.search.canonical import NOW_MS
from lifefold.interpreters.search.rule_error import INERT, Place, RuleError


class Reactions:
    """Computes the reactions of one type to inputs that are no messages."""

    def __init__(self, of: AggregateType) -> None:
        """Begin with nothing computed."""
        self._of: Final = of
        self._is_loose: Final = not of.rules and not of.views
        self._refusals: Final[dict[tuple[int, Envelope], Refusal | None]] = {}
        """By an entity and an input for it: its refusal; None if it takes it."""
        self._inert: Final[dict[int, int]] = {}
        """By an entity: how much that is late it was seen to refuse."""

    def __call__(self, aggregate: Aggregate, envelope: Envelope) -> Reaction | Refusal:
        """Return what comes of an input."""
        machine, entity = self._of.machine_of(envelope.entity), aggregate.entities.get(envelope.entity)
        if machine is None or entity is None or _is_of_the_kernel(machine, envelope):
            return react(self._of, aggregate, envelope)
        if self._is_loose:
            done = advance(machine, entity, envelope)
            told = isinstance(done, EntityStep) and any(isinstance(effect, Tell) for effect in done.effects)
            return react(self._of, aggregate, envelope) if told else _reaction(aggregate, entity, done)
        key = (id(entity), envelope)
        if key not in self._refusals:
            done = advance(machine, entity, envelope)
            self._refusals[key] = done if isinstance(done, Refusal) else None
        return self._refusals[key] or react(self._of, aggregate, envelope)

    def inert(self, aggregate: Aggregate, place: Place) -> int:
        """See to it that whatever is late changes nothing; return how much was refused. Raises ``RuleError``."""
        refused = 0
        for ref, entity in aggregate.entities.items():
            known = self._inert.get(id(entity))
            if known is None:
                machine = self._of.machine_of(ref)
                known = self._inert[id(entity)] = 0 if machine is None else _refused(machine, entity, place)
            refused += known
        return refused


def _is_of_the_kernel(machine: Machine[Any], envelope: Envelope) -> bool:
    """Tell whether more decides about an input than the entity that it is for."""
    if isinstance(envelope.event, Created | Opened | RunnerRecovered):
        return True
    return type(envelope.event) in machine.reports and not envelope.slot


def _reaction(aggregate: Aggregate, entity: Entity[Any], done: EntityStep | Refusal) -> Reaction | Refusal:
    """Return what comes of an input of which nothing follows for the other entities, and for nobody else."""
    if isinstance(done, Refusal):
        return done
    ref, entities = entity.ref, aggregate.entities.set(entity.ref, done.entity)
    now = Aggregate(
        aggregate.name, aggregate.version + 1, entities, aggregate.views, aggregate.sent, aggregate.received
    )
    effects = tuple(RequestedEffect(ref, effect) for effect in done.effects)
    return Reaction(now, effects, done.transitions, done.refusals, (ref,))


def _refused(machine: Machine[Any], entity: Entity[Any], place: Place) -> int:
    refused = 0
    for envelope in late(machine, entity, NOW_MS):
        if not isinstance(advance(machine, entity, envelope), Refusal):
            raise RuleError(INERT, place, "is taken, although it is late", (Cause.REPORT, envelope))
        refused += 1
    return refused
