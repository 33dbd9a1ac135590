"""Entities that change together: the unit of consistency, and the single writer of one stream of events.

``react`` takes one input from outside and runs everything that follows from it inside the aggregate to completion, in a
fixed order (a *macrostep*, as in SCXML). Each transition is shown to every rule of its machine, in the order of the
rules; what they ask for is done before anything else that was waiting, so a consequence is settled before the next
cause is looked at. Rules are pure functions and never fail: a dispatch that its entity does not take is a refusal, kept
for the record, and changes nothing.

Between aggregates there are only messages (``Tell``). They are numbered per pair: the receiver takes each number once
and in order, whatever the transport repeats or overtakes.

A *view* is a value folded over the transitions, so that a rule need not search: what it holds could always be computed
again from the entities.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec
from pyrsistent import PMap, pmap

from lifefold.core.kernel.entity import (
    Advance,
    Created,
    Entity,
    Envelope,
    Opened,
    Recovered,
    Refusal,
    Transition,
    advance,
    create,
)
from lifefold.core.kernel.machine import Machine
from lifefold.core.kernel.record import Event, Record, replace
from lifefold.effects import Effect, Tell

MACROSTEP_LIMIT: Final = 100_000
"""How many transitions may follow from one input; more means that the rules of the aggregate run in a circle."""


class Dispatch(msgspec.Struct, frozen=True, gc=False):
    """A rule's wish: let this entity of the same aggregate take this event."""

    entity: str
    event: Event


class Create(msgspec.Struct, frozen=True, gc=False):
    """A rule's wish: a new entity of the same aggregate."""

    entity: str
    record: Record


class Aggregate(msgspec.Struct, frozen=True, gc=False):
    """The state of one aggregate. ``version`` counts accepted inputs, ``sent`` and ``received`` messages per peer."""

    name: str
    version: int = 0
    entities: PMap[str, Entity[Any]] = pmap()
    views: PMap[str, Any] = pmap()
    sent: PMap[str, int] = pmap()
    received: PMap[str, int] = pmap()

    @property
    def kind(self) -> str:
        """The part of the name before the slash: the name of its type."""
        return self.name.partition("/")[0]

    @property
    def key(self) -> str:
        """The part of the name after the slash."""
        return self.name.partition("/")[2]

    def record(self, ref: str) -> Any:
        """Return the record of an entity. Raises ``KeyError`` if there is none of that name."""
        return self.entities[ref].record


Wish = Dispatch | Create | Tell


class Rule(msgspec.Struct, frozen=True, gc=False):
    """What follows, inside the aggregate, from a transition of the machine it is ``on``. Made by ``rule``."""

    name: str
    on: str
    follow: Callable[[Aggregate, Transition], Iterable[Wish]]


def rule(on: Machine[Any]) -> Callable[[Callable[[Aggregate, Transition], Iterable[Wish]]], Rule]:
    """Make a rule of a function ``(aggregate, transition) -> wishes``; it sees the transitions of one machine."""
    return lambda follow: Rule(follow.__name__, on.name, follow)


class View(msgspec.Struct, frozen=True, gc=False):
    """A value folded over the transitions of an aggregate."""

    initial: Any
    fold: Callable[[Any, Transition], Any]


class AggregateType:
    """What the aggregates of one kind have in common: machines, rules in their order, views."""

    __slots__ = ("_rules", "kind", "machines", "rules", "views")

    def __init__(
        self,
        kind: str,
        *,
        machines: Iterable[Machine[Any]],
        rules: Iterable[Rule] = (),
        views: Mapping[str, View] | None = None,
    ) -> None:
        """Put the parts together. Raises ``ValueError`` for a rule on a machine that is not here."""
        self.kind: Final = kind
        self.machines: Final = {machine.name: machine for machine in machines}
        self.rules: Final = tuple(rules)
        self.views: Final = dict(views or {})
        for each in self.rules:
            if each.on not in self.machines:
                message = f"{kind}: rule {each.name} is on {each.on!r}; the machines are {', '.join(self.machines)}"
                raise ValueError(message)
        self._rules: Final = {name: tuple(each for each in self.rules if each.on == name) for name in self.machines}

    def start(self, name: str) -> Aggregate:
        """Return the empty aggregate of this name."""
        return Aggregate(name, views=pmap({key: view.initial for key, view in self.views.items()}))

    def machine_of(self, ref: str) -> Machine[Any] | None:
        """Return the machine of an entity's reference."""
        return self.machines.get(ref.partition(":")[0])

    def rules_on(self, machine: str) -> tuple[Rule, ...]:
        """Return the rules that look at this machine, in order."""
        return self._rules[machine]


class Asked(msgspec.Struct, frozen=True, gc=False):
    """An effect and the entity that asks for it. What identifies it is (aggregate, version, place in the reaction)."""

    entity: str
    effect: Effect


class Reaction(msgspec.Struct, frozen=True, gc=False):
    """What one accepted input came to. ``changed`` names the entities that are not as they were, in order."""

    aggregate: Aggregate
    effects: tuple[Asked, ...] = ()
    transitions: tuple[Transition, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    changed: tuple[str, ...] = ()


class System:
    """A set of aggregate types whose aggregates tell each other things."""

    __slots__ = ("aggregates", "name")

    def __init__(self, name: str, *aggregates: AggregateType) -> None:
        """Put the types together, each known by its kind."""
        self.name: Final = name
        self.aggregates: Final = {each.kind: each for each in aggregates}

    def type_of(self, aggregate: str) -> AggregateType:
        """Return the type of an aggregate's name. Raises ``KeyError`` for an unknown kind."""
        return self.aggregates[aggregate.partition("/")[0]]


def react(of: AggregateType, aggregate: Aggregate, envelope: Envelope) -> Reaction | Refusal:
    """Take one input and everything that follows from it. A refusal changes nothing; a message's number is used up."""
    if envelope.sender:
        expected = aggregate.received.get(envelope.sender, 0) + 1
        if envelope.ordinal != expected:
            kind = "duplicate" if envelope.ordinal < expected else "overtaking"
            return Refusal(envelope, kind, f"message {envelope.ordinal} of {envelope.sender}, expected {expected}")
        heard = replace(aggregate, received=aggregate.received.set(envelope.sender, envelope.ordinal))
        reaction = _macrostep(of, heard, envelope)
        if isinstance(reaction, Refusal):
            return Reaction(replace(heard, version=heard.version + 1), refusals=(reaction,))
        return reaction
    return _macrostep(of, aggregate, envelope)


def _macrostep(of: AggregateType, aggregate: Aggregate, envelope: Envelope) -> Reaction | Refusal:
    first = _first(of, aggregate, envelope)
    if isinstance(first, Refusal):
        return first
    run = _Run(of, aggregate)
    run.accept(*first)
    while run.queue:
        if len(run.transitions) > MACROSTEP_LIMIT:
            message = f"{aggregate.name}: the rules run in a circle: {MACROSTEP_LIMIT} steps after {envelope.event!r}"
            raise RuntimeError(message)
        run.follow(run.queue.pop(), envelope)
    return run.reaction()


def _first(of: AggregateType, aggregate: Aggregate, envelope: Envelope) -> Refusal | list[Advance]:
    event = envelope.event
    if isinstance(event, Opened):
        return _open(of, aggregate, envelope, event)
    if isinstance(event, Recovered):
        return _recover(of, aggregate, envelope)
    machine, entity = of.machine_of(envelope.entity), aggregate.entities.get(envelope.entity)
    done: Advance | Refusal
    if machine is None or (entity is None) != isinstance(event, Created):
        reason = f"{aggregate.name}: {envelope.entity!r} {'does not exist' if entity is None else 'exists already'}"
        done = Refusal(envelope, "unknown" if entity is None else "duplicate", reason)
    elif isinstance(event, Created):
        done = create(machine, envelope.entity, event.record, envelope.at_ms, envelope.actor)
    elif type(event) in machine.reports and not envelope.slot:
        reason = f"{type(event).__name__} comes from an activity, not from {envelope.actor}"
        done = Refusal(envelope, "unsolicited", reason)
    else:
        assert entity is not None  # noqa: S101 - as the first condition has it
        done = advance(machine, entity, envelope)
    return done if isinstance(done, Refusal) else [done]


def _recover(of: AggregateType, aggregate: Aggregate, envelope: Envelope) -> list[Advance]:
    done: list[Advance] = []
    for ref, entity in sorted(aggregate.entities.items()):
        machine = of.machine_of(ref)
        if machine is not None and entity.running:
            taken = advance(machine, entity, envelope)
            done += [taken] if isinstance(taken, Advance) else []
    return done


def _open(of: AggregateType, aggregate: Aggregate, envelope: Envelope, event: Opened) -> Refusal | list[Advance]:
    if aggregate.entities:
        return Refusal(envelope, "duplicate", f"{aggregate.name} is open already")
    born: list[Advance] = []
    for ref, record in event.records.items():
        machine = of.machine_of(ref)
        if machine is None:
            return Refusal(envelope, "unknown", f"{aggregate.name} has no machine for {ref!r}")
        born.append(create(machine, ref, record, envelope.at_ms, envelope.actor))
    return born


class _Run:
    """The inside of one macrostep: local to one call of ``react`` and gone with it."""

    __slots__ = ("aggregate", "changed", "effects", "of", "queue", "refusals", "transitions")

    def __init__(self, of: AggregateType, aggregate: Aggregate) -> None:
        self.of = of
        self.aggregate = aggregate
        self.changed: dict[str, None] = {}
        self.effects: list[Asked] = []
        self.transitions: list[Transition] = []
        self.refusals: list[Refusal] = []
        self.queue: list[tuple[str, Wish]] = []

    def accept(self, *advances: Advance) -> None:
        """Make advances part of the aggregate, then queue what their transitions entail, first things on top."""
        entities, views = self.aggregate.entities, self.aggregate.views
        for done in advances:
            entities = entities.set(done.entity.ref, done.entity)
            self.changed[done.entity.ref] = None
            for name, view in self.of.views.items():
                for transition in done.transitions:
                    views = views.set(name, view.fold(views[name], transition))
            self.effects += [Asked(done.entity.ref, effect) for effect in done.effects]
            self.transitions += done.transitions
            self.refusals += done.refusals
        self.aggregate = replace(self.aggregate, entities=entities, views=views)
        wishes = [
            (each.name, wish)
            for done in advances
            for transition in done.transitions
            for each in self.of.rules_on(transition.machine)
            for wish in each.follow(self.aggregate, transition)
        ]
        self.queue += reversed(wishes)

    def follow(self, wished: tuple[str, Wish], cause: Envelope) -> None:
        """Do what one rule asked for."""
        name, wish = wished
        if isinstance(wish, Tell):
            ordinal = self.aggregate.sent.get(wish.aggregate, 0) + 1
            self.aggregate = replace(self.aggregate, sent=self.aggregate.sent.set(wish.aggregate, ordinal))
            self.effects.append(Asked("", replace(wish, ordinal=ordinal)))
            return
        machine, entity = self.of.machine_of(wish.entity), self.aggregate.entities.get(wish.entity)
        event = Created(wish.record) if isinstance(wish, Create) else wish.event
        envelope = Envelope(wish.entity, event, cause.at_ms, f"rule:{name}")
        if machine is None or (entity is None) != isinstance(wish, Create):
            reason = f"rule {name}: {wish.entity!r} {'does not exist' if entity is None else 'exists already'}"
            self.refusals.append(Refusal(envelope, "unknown", reason))
        elif isinstance(wish, Create):
            self.accept(create(machine, wish.entity, wish.record, cause.at_ms, envelope.actor))
        else:
            assert entity is not None  # noqa: S101 - as the first condition has it
            done = advance(machine, entity, envelope)
            if isinstance(done, Refusal):
                self.refusals.append(done)
            else:
                self.accept(done)

    def reaction(self) -> Reaction:
        """Return what it all came to."""
        now = replace(self.aggregate, version=self.aggregate.version + 1)
        return Reaction(now, tuple(self.effects), tuple(self.transitions), tuple(self.refusals), tuple(self.changed))
