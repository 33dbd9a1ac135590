"""The reactions of the aggregates of one type: the results of ``react``, with fewer repeated computations.

Two facts save time. Without rules and views, the transition of one entity has no consequence in its aggregate, unless
it sends a message. And the refusal of an entity does not depend on the other entities. A search keeps one copy of each
entity (see ``state_numbers``), so entities are compared by identity.
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
    """Computes the reactions of one type to inputs other than messages."""

    def __init__(self, of: AggregateType) -> None:
        """Begin without results."""
        self._of: Final = of
        self._is_loose: Final = not of.rules and not of.views
        self._refusals: Final[dict[tuple[int, Envelope], Refusal | None]] = {}
        """By an entity and its input: the refusal; None if it accepts the input."""
        self._inert: Final[dict[int, int]] = {}
        """By an entity: the number of late inputs that it refuses."""

    def __call__(self, aggregate: Aggregate, envelope: Envelope) -> Reaction | Refusal:
        """Return the reaction to an input."""
        machine, entity = self._of.machine_of(envelope.entity), aggregate.entities.get(envelope.entity)
        if machine is None or entity is None or _is_of_the_kernel(machine, envelope):
            return react(self._of, aggregate, envelope)
        if self._is_loose:
            done = advance(machine, entity, envelope)
            sends = isinstance(done, EntityStep) and any(isinstance(effect, Tell) for effect in done.effects)
            return react(self._of, aggregate, envelope) if sends else _reaction(aggregate, entity, done)
        key = (id(entity), envelope)
        if key not in self._refusals:
            done = advance(machine, entity, envelope)
            self._refusals[key] = done if isinstance(done, Refusal) else None
        return self._refusals[key] or react(self._of, aggregate, envelope)

    def inert(self, aggregate: Aggregate, place: Place) -> int:
        """Check that late inputs change nothing; return the number of refused ones. Raises ``RuleError``."""
        refused = 0
        for ref, entity in aggregate.entities.items():
            known = self._inert.get(id(entity))
            if known is None:
                machine = self._of.machine_of(ref)
                known = self._inert[id(entity)] = 0 if machine is None else _refused(machine, entity, place)
            refused += known
        return refused


def _is_of_the_kernel(machine: Machine[Any], envelope: Envelope) -> bool:
    """Tell whether the kernel decides about an input, and not only the entity."""
    if isinstance(envelope.event, Created | Opened | RunnerRecovered):
        return True
    return type(envelope.event) in machine.reports and not envelope.slot


def _reaction(aggregate: Aggregate, entity: Entity[Any], done: EntityStep | Refusal) -> Reaction | Refusal:
    """Return the reaction to an input without consequences for other entities and aggregates."""
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
            raise RuleError(INERT, place, "is accepted, although it is late", (Cause.REPORT, envelope))
        refused += 1
    return refused
