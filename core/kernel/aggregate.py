"""Entities that change together: the unit of consistency, and the single writer of one stream of events.

``react`` takes one input from outside and runs everything that follows from it inside the aggregate to completion, in a
fixed order (a *macrostep*, as in SCXML). A transition is shown to every rule of its machine, in the order of the rules,
and all of them see one and the same aggregate: as it is after that transition, before anything that they ask for. Then
their wishes are done one by one, each with all that follows from it before the next (depth first). Rules are pure
functions and never fail: a dispatch that its entity does not take is a refusal, kept for the record, and changes
nothing.

Between aggregates there are only messages (``Tell``). They are numbered per pair: the receiver takes each number once
and in order, whatever the transport repeats or overtakes. A message that its entity refuses is taken all the same, and
stands in the log; so nothing is sent, or taken, that the receiver's log could not be read with.

A *view* is a value folded over the transitions, so that a rule need not search: what it holds could always be computed
again from the entities.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

import msgspec
from pyrsistent import PMap, pmap

from lifefold.core.kernel.entity import (
    Advance,
    Created,
    Elapsed,
    Ended,
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
from lifefold.core.kernel.property import Property, Scene
from lifefold.core.kernel.record import Event, Record, replace
from lifefold.effects import Effect, Tell

T = TypeVar("T")

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
    """What the aggregates of one kind have in common: machines, rules in their order, views.

    ``commands`` are the events that people may send to entities of a machine, by its name; where it has no entry, all
    that are nobody else's. ``properties`` hold of every aggregate of this kind; they are checked by the worlds.
    """

    __slots__ = ("_peers", "_rules", "commands", "kind", "machines", "properties", "rules", "views")

    def __init__(  # noqa: PLR0913 - the parts of a type, each with its name
        self,
        kind: str,
        *,
        machines: Iterable[Machine[Any]],
        rules: Iterable[Rule] = (),
        views: Mapping[str, View] | None = None,
        commands: Mapping[str, tuple[type[Event], ...]] | None = None,
        properties: Iterable[Property[Aggregate]] = (),
        peers: Mapping[str, "AggregateType"] | None = None,
    ) -> None:
        """Put the parts together; ``peers`` are the types of its ``System``.

        Raises ``ValueError`` for a rule on, or commands to, a machine that is not here, and for two of one name.
        """
        self.kind: Final = kind
        self.machines: Final = _by_name(f"{kind}: machine", ((machine.name, machine) for machine in machines))
        self._peers: Final = peers
        self.rules: Final = tuple(rules)
        self.views: Final = dict(views or {})
        self.commands: Final = dict(commands or {})
        self.properties: Final = tuple(properties)
        for each in self.rules:
            if each.on not in self.machines:
                message = f"{kind}: rule {each.name} is on {each.on!r}; the machines are {', '.join(self.machines)}"
                raise ValueError(message)
        for name in self.commands.keys() - self.machines.keys():
            message = f"{kind}: commands to {name!r}; the machines are {', '.join(self.machines)}"
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

    def among(self, peers: Mapping[str, "AggregateType"]) -> "AggregateType":
        """Return this type as one of these, to which alone it can send messages."""
        return AggregateType(
            self.kind,
            machines=self.machines.values(),
            rules=self.rules,
            views=self.views,
            commands=self.commands,
            properties=self.properties,
            peers=peers,
        )

    def reads(self, ref: str, event: Event) -> bool:
        """Tell whether a log of this type can have an event for an entity of this reference, known or not."""
        match event:
            case Recovered():
                return not ref
            case Opened(records=records):
                return not ref and all(self.holds(each, record) for each, record in records.items())
            case Created(record=record):
                return self.holds(ref, record)
            case _:
                machine = self.machine_of(ref)
                return machine is not None and (type(event) in machine.events or isinstance(event, Elapsed | Ended))

    def holds(self, ref: str, record: Record) -> bool:
        """Tell whether an entity of this reference can have this record."""
        machine = self.machine_of(ref)
        return machine is not None and type(record) is machine.record

    def reaches(self, tell: Tell) -> bool:
        """Tell whether a message is for somebody in the system; outside of a system that is not known, and so."""
        if self._peers is None:
            return True
        peer = self._peers.get(tell.aggregate.partition("/")[0])
        return peer is not None and peer.reads(tell.entity, tell.event)


def _by_name(what: str, named: Iterable[tuple[str, T]]) -> dict[str, T]:
    found: dict[str, T] = {}
    for name, each in named:
        if name in found:
            message = f"{what} {name!r} is there twice"
            raise ValueError(message)
        found[name] = each
    return found


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
    """A set of aggregate types whose aggregates tell each other things. ``properties`` hold of its every ``Scene``."""

    __slots__ = ("aggregates", "name", "properties")

    def __init__(self, name: str, *aggregates: AggregateType, properties: Iterable[Property[Scene]] = ()) -> None:
        """Put the types together, each known by its kind. Raises ``ValueError`` for two of one kind."""
        self.name: Final = name
        self.properties: Final = tuple(properties)
        self.aggregates: Final[dict[str, AggregateType]] = {}
        kinds = _by_name(f"{name}: kind", ((each.kind, each) for each in aggregates))
        self.aggregates.update((kind, each.among(self.aggregates)) for kind, each in kinds.items())

    def type_of(self, aggregate: str) -> AggregateType:
        """Return the type of an aggregate's name. Raises ``KeyError`` for an unknown kind."""
        return self.aggregates[aggregate.partition("/")[0]]


def react(of: AggregateType, aggregate: Aggregate, envelope: Envelope) -> Reaction | Refusal:
    """Take one input and everything that follows from it.

    A refusal changes nothing. What its entity refuses of a message comes back in a reaction: the number is used up.
    """
    if not envelope.sender:
        return _macrostep(of, aggregate, envelope)
    expected = aggregate.received.get(envelope.sender, 0) + 1
    if envelope.ordinal != expected:
        kind = "duplicate" if envelope.ordinal < expected else "overtaking"
        return Refusal(envelope, kind, f"message {envelope.ordinal} of {envelope.sender}, expected {expected}")
    if not of.reads(envelope.entity, envelope.event):
        name = type(envelope.event).__name__
        return Refusal(envelope, "unknown", f"{aggregate.name} knows no {name} for {envelope.entity!r}")
    heard = replace(aggregate, received=aggregate.received.set(envelope.sender, envelope.ordinal))
    reaction = _macrostep(of, heard, envelope)
    if isinstance(reaction, Refusal):
        return Reaction(replace(heard, version=heard.version + 1), refusals=(reaction,))
    return reaction


def _macrostep(of: AggregateType, aggregate: Aggregate, envelope: Envelope) -> Reaction | Refusal:
    first = _first(of, aggregate, envelope)
    if isinstance(first, Refusal):
        return first
    run = _Run(of, aggregate)
    run.accept(*first)
    while run.queue:
        if len(run.transitions) > MACROSTEP_LIMIT:
            reason = f"{aggregate.name}: the rules run in a circle: {MACROSTEP_LIMIT} steps after {envelope.event!r}"
            return Refusal(envelope, "circle", reason)
        run.follow(run.queue.pop(), envelope)
    return run.reaction()


def _first(of: AggregateType, aggregate: Aggregate, envelope: Envelope) -> Refusal | list[Advance]:
    event = envelope.event
    if isinstance(event, _OF_ALL):
        if envelope.entity:
            reason = f"{type(event).__name__} is for all of {aggregate.name}, not for {envelope.entity!r}"
            return Refusal(envelope, "unknown", reason)
        return _open(of, aggregate, envelope, event) if isinstance(event, Opened) else _recover(of, aggregate, envelope)
    machine = of.machine_of(envelope.entity)
    if machine is not None and type(event) in machine.reports and not envelope.slot:
        reason = f"{type(event).__name__} comes from an activity, not from {envelope.actor}"
        return Refusal(envelope, "unsolicited", reason)
    done = _deliver(of, aggregate, envelope)
    return done if isinstance(done, Refusal) else [done]


_OF_ALL = (Opened, Recovered)


def _deliver(of: AggregateType, aggregate: Aggregate, envelope: Envelope) -> Advance | Refusal:
    """Let an entity take an event, or begin its life."""
    ref, event = envelope.entity, envelope.event
    machine, entity = of.machine_of(ref), aggregate.entities.get(ref)
    if machine is not None and entity is not None:
        if isinstance(event, Created):
            return Refusal(envelope, "duplicate", f"{aggregate.name}: {ref!r} exists already")
        return advance(machine, entity, envelope)
    if machine is not None and isinstance(event, Created):
        return _begin(machine, ref, event.record, envelope)
    return Refusal(envelope, "unknown", f"{aggregate.name}: {ref!r} does not exist")


def _begin(machine: Machine[Any], ref: str, record: Record, envelope: Envelope) -> Advance | Refusal:
    if type(record) is machine.record:
        return create(machine, ref, record, envelope.at_ms, envelope.actor)
    reason = f"{ref!r} begins with a {machine.record.__name__}, not with a {type(record).__name__}"
    return Refusal(envelope, "illegal", reason)


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
        first = _begin(machine, ref, record, envelope)
        if isinstance(first, Refusal):
            return first
        born.append(first)
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
        event = Created(wish.record) if isinstance(wish, Create) else wish.event
        envelope = Envelope(wish.entity, event, cause.at_ms, f"rule:{name}")
        if isinstance(wish, Tell):
            self.send(wish, envelope)
            return
        done = _deliver(self.of, self.aggregate, envelope)
        if isinstance(done, Refusal):
            self.refusals.append(done)
        else:
            self.accept(done)

    def send(self, tell: Tell, envelope: Envelope) -> None:
        """Give a message its number, if it is for somebody who can read it."""
        if not self.of.reaches(tell):
            reason = f"{self.of.kind}: no {tell.aggregate!r} knows {type(tell.event).__name__} for {tell.entity!r}"
            self.refusals.append(Refusal(envelope, "unknown", reason))
            return
        ordinal = self.aggregate.sent.get(tell.aggregate, 0) + 1
        self.aggregate = replace(self.aggregate, sent=self.aggregate.sent.set(tell.aggregate, ordinal))
        self.effects.append(Asked("", replace(tell, ordinal=ordinal)))

    def reaction(self) -> Reaction:
        """Return what it all came to."""
        now = replace(self.aggregate, version=self.aggregate.version + 1)
        return Reaction(now, tuple(self.effects), tuple(self.transitions), tuple(self.refusals), tuple(self.changed))
