"""Entities that change together: the unit of consistency, and the single writer of one stream of events.

What they have in common is said once, by an ``AggregateType``: machines, and *rules*, pure functions that say what
follows for the others from a transition of one (``reaction`` does it). Between aggregates there are only messages
(``Tell``), and nothing is sent that its receiver's log could not be read with; a ``System`` is the set of types that
tell each other things.

A *view* is a value folded over the transitions, so that a rule need not search: what it holds could always be computed
again from the entities.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

import msgspec
from pyrsistent import PMap, pmap

from lifefold.core.kernel.entity import ActivityEnded, Created, Entity, Opened, RunnerRecovered, TimerFired, Transition
from lifefold.core.kernel.failure import EntityQuarantined, EntityReleased, HandlerFailed
from lifefold.core.kernel.machine import Machine
from lifefold.core.kernel.property import Property, SystemState, properties_of, unprojected
from lifefold.core.kernel.record import Event, Record
from lifefold.effects import Tell

T = TypeVar("T")


class Dispatch(msgspec.Struct, frozen=True, gc=False):
    """A rule's wish: let this entity of the same aggregate take this event."""

    entity: str
    event: Event


class Create(msgspec.Struct, frozen=True, gc=False):
    """A rule's wish: a new entity of the same aggregate."""

    entity: str
    record: Record


class Aggregate(msgspec.Struct, frozen=True, gc=False):
    """The state of one aggregate. ``version`` counts accepted inputs, ``sent`` and ``received`` messages per peer.

    ``quarantined`` are entities that take nothing more, each with the reason.
    """

    name: str
    version: int = 0
    entities: PMap[str, Entity[Any]] = pmap()
    views: PMap[str, Any] = pmap()
    sent: PMap[str, int] = pmap()
    received: PMap[str, int] = pmap()
    quarantined: PMap[str, str] = pmap()

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


RuleAction = Dispatch | Create | Tell


class Rule(msgspec.Struct, frozen=True, gc=False):
    """What follows, inside the aggregate, from a transition of the machine it is ``on``. Made by ``rule``."""

    name: str
    on: str
    follow: Callable[[Aggregate, Transition], Iterable[RuleAction]]


def rule(on: Machine[Any]) -> Callable[[Callable[[Aggregate, Transition], Iterable[RuleAction]]], Rule]:
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
        self.properties: Final = unprojected(kind, properties)
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
        return self._of(self.machines, self.commands, peers)

    def with_machine(self, machine: Machine[Any]) -> "AggregateType":
        """Return this type with a profile of one of its machines, known by its name, in that one's place.

        Its records are made and read by rules, so its record, its first state and what rules serve are as before.
        Operators may say what is new in it, besides what they could say before: the rules do not know it, so it is
        theirs. What a timer or an activity stands for is not among it.

        Raises ``ValueError`` if they are not as before, or if there is no machine of this name.
        """
        old = self.machines.get(machine.name)
        if old is None:
            message = f"{self.kind}: no machine {machine.name!r}; accepted: {', '.join(self.machines)}"
            raise ValueError(message)
        parts = (
            ("record", old.record, machine.record),
            ("first state", old.initial.state, machine.initial.state),
            ("served activities", sorted(old.served), sorted(machine.served)),
        )
        for part, was, now in parts:
            if was != now:
                message = f"{self.kind}: the {part} of machine {machine.name!r}: {now}; accepted: {was}"
                raise ValueError(message)
        commands = {**self.commands}
        if machine.name in commands:
            kept = [event for event in commands[machine.name] if event in machine.events or event not in old.events]
            new = [event for event in machine.commands if event not in {*old.events, *kept, *machine.yielded}]
            commands[machine.name] = (*kept, *new)
        return self._of({**self.machines, machine.name: machine}, commands, None)

    def _of(
        self,
        machines: Mapping[str, Machine[Any]],
        commands: Mapping[str, tuple[type[Event], ...]],
        peers: "Mapping[str, AggregateType] | None",
    ) -> "AggregateType":
        return AggregateType(
            self.kind,
            machines=machines.values(),
            rules=self.rules,
            views=self.views,
            commands=commands,
            properties=self.properties,
            peers=peers,
        )

    def reads(self, ref: str, event: Event) -> bool:
        """Tell whether a log of this type can have an event for an entity of this reference, known or not."""
        match event:
            case RunnerRecovered():
                return not ref
            case Opened(records=records):
                return not ref and all(self.holds(each, record) for each, record in records.items())
            case Created(record=record):
                return self.holds(ref, record)
            case _:
                machine = self.machine_of(ref)
                return machine is not None and (type(event) in machine.events or isinstance(event, _OF_ALL_MACHINES))

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


_OF_ALL_MACHINES: Final = (TimerFired, ActivityEnded, HandlerFailed, EntityQuarantined, EntityReleased)


def _by_name(what: str, named: Iterable[tuple[str, T]]) -> dict[str, T]:
    found: dict[str, T] = {}
    for name, each in named:
        if name in found:
            message = f"{what} {name!r} is there twice"
            raise ValueError(message)
        found[name] = each
    return found


class System:
    """A set of aggregate types whose aggregates tell each other things. ``properties`` hold of its every ``SystemState``."""

    __slots__ = ("aggregates", "name", "properties")

    def __init__(self, name: str, *aggregates: AggregateType, properties: Iterable[Property[SystemState]] = ()) -> None:
        """Put the types together, each known by its kind. Raises ``ValueError`` for two of one kind."""
        self.name: Final = name
        self.properties: Final = properties_of(name, properties)
        self.aggregates: Final[dict[str, AggregateType]] = {}
        kinds = _by_name(f"{name}: kind", ((each.kind, each) for each in aggregates))
        self.aggregates.update((kind, each.among(self.aggregates)) for kind, each in kinds.items())

    def with_properties(self, *properties: Property[SystemState]) -> "System":
        """Return this system with these properties, too."""
        return System(self.name, *self.aggregates.values(), properties=(*self.properties, *properties))

    def with_machine(self, kind: str, machine: Machine[Any]) -> "System":
        """Return this system with a profile of one machine of an aggregate type in its place.

        Raises ``ValueError`` for an unknown kind, and as ``AggregateType.with_machine`` does.
        """
        if kind not in self.aggregates:
            message = f"{self.name}: no kind {kind!r}; accepted: {', '.join(self.aggregates)}"
            raise ValueError(message)
        changed = {**self.aggregates, kind: self.aggregates[kind].with_machine(machine)}
        return System(self.name, *changed.values(), properties=self.properties)

    def type_of(self, aggregate: str) -> AggregateType:
        """Return the type of an aggregate's name. Raises ``KeyError`` for an unknown kind."""
        return self.aggregates[aggregate.partition("/")[0]]
