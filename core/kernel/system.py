"""What aggregates of one kind have in common, and the set of types that exchange messages.

An ``AggregateType`` declares machines, rules and views. Aggregates exchange messages only (``Tell``), and a message is
sent only if its receiver can read it. A ``System`` is the set of types that exchange messages.

A *view* is a value folded over the transitions, so that a rule need not search. Its content could be computed from
the entities at any time.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from lifefold.core.kernel.aggregate import Aggregate
from lifefold.core.kernel.entity import (
    ENGINE,
    ActivityEnded,
    Created,
    Opened,
    RunnerRecovered,
    TimerFired,
    Transition,
)
from lifefold.core.kernel.failure import EntityQuarantined, EntityReleased, HandlerFailed
from lifefold.core.kernel.machine import Machine
from lifefold.core.kernel.persistent_map import PersistentMap
from lifefold.core.kernel.property import Property, SystemState, properties_of, unprojected
from lifefold.core.kernel.record import Event, Record, State
from lifefold.core.kernel.rule import Rule
from lifefold.core.kernel.shown import counted, listed, shown
from lifefold.effects import Tell

T = TypeVar("T")


class View(msgspec.Struct, frozen=True, gc=False):
    """A value folded over the transitions of an aggregate.

    ``form`` is the type of the value, for snapshots. Aggregates with a view without it have no snapshots.
    """

    initial: Any
    fold: Callable[[Any, Transition], Any]
    form: Any = None


class AggregateType:
    """What the aggregates of one kind have in common: machines, rules in their order, views.

    ``commands`` has by machine the events that operators may send to its entities. A machine without an entry accepts
    all of its events from operators, except those that only activities report. ``properties`` hold of every aggregate
    of this kind; checks and simulations verify them.

    >>> from lifefold import AggregateType
    >>> from lifefold.core.fleet.board import intake
    >>> AggregateType("board", machines=(intake.machine,), commands={"intake": (intake.LastTaskIn,)})
    <AggregateType 'board': intake; 0 rules>
    """

    __slots__ = (
        "_named", "_peers", "_readable", "_rules", "_triggered", "commands", "kind", "machines", "properties", "rules",
        "views",
    )  # fmt: skip

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

        Raises ``ValueError`` for a rule on, or commands to, an unknown machine, and for the kind ``ENGINE``. Raises it
        also for two machines of one name, and for two rules of one name on a machine.
        """
        if kind == ENGINE:
            message = f"{ENGINE!r} is the name of the entries about a log itself; accepted: another kind"
            raise ValueError(message)
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
        # A log names the rules of an outcome.
        self._named: Final = _by_name(f"{kind}: rule", ((f"{each.on}.{each.name}", each) for each in self.rules))
        self._readable: Final = {name: {*each.events, *_OF_ALL_MACHINES} for name, each in self.machines.items()}
        self._triggered: Final[dict[_Trigger, tuple[Rule, ...]]] = {}

    def __repr__(self) -> str:
        """Return its kind, its machines and the number of its rules."""
        return shown(f"AggregateType {self.kind!r}: {listed(self.machines)}; {counted(len(self.rules), 'rule')}")

    def start(self, name: str) -> Aggregate:
        """Return the empty aggregate of this name."""
        return Aggregate(name, views=PersistentMap({key: view.initial for key, view in self.views.items()}))

    def machine_of(self, ref: str) -> Machine[Any] | None:
        """Return the machine of an entity's reference."""
        return self.machines.get(ref.partition(":")[0])

    def rule(self, name: str) -> Rule | None:
        """Return the rule with this name, its machine's name before it; None if there is none."""
        return self._named.get(name)

    def triggered(self, transition: Transition) -> tuple[Rule, ...]:
        """Return the rules that a transition triggers, in order.

        They are looked up in an index, which gets an entry when a combination of event and states first happens.
        """
        before = transition.before
        states = (None if before is None else before.record.state, transition.after.record.state)
        key = (transition.machine, type(transition.event), *states)
        found = self._triggered.get(key)
        if found is None:
            found = tuple(each for each in self._rules[transition.machine] if each.is_triggered(transition))
            self._triggered[key] = found
        return found

    def among(self, peers: Mapping[str, "AggregateType"]) -> "AggregateType":
        """Return this type as one of these types: it can send messages to them only."""
        return self._of(self.machines, self.commands, peers)

    def with_machine(self, machine: Machine[Any]) -> "AggregateType":
        """Return this type with a profile in the place of its machine of the same name.

        Rules make and read the records of the machine. So the type of the record, the first state and the served
        activities must be the same. Operators may send the events that only the profile has, since no rule knows
        them; events of timers and activities are excepted.

        Raises ``ValueError`` if one of them differs, or if there is no machine of this name.
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
        if type(event) in self._readable.get(ref.partition(":")[0], ()):
            return True
        match event:
            case RunnerRecovered():
                return not ref
            case Opened(records=records):
                return not ref and all(self.holds(each, record) for each, record in records.items())
            case Created(record=record):
                return self.holds(ref, record)
            case _:
                return False

    def holds(self, ref: str, record: Record) -> bool:
        """Tell whether an entity of this reference can have this record."""
        machine = self.machine_of(ref)
        return machine is not None and type(record) is machine.record

    def reaches(self, tell: Tell) -> bool:
        """Tell whether a type of the system can read a message. A type outside of a system sends any message."""
        if self._peers is None:
            return True
        peer = self._peers.get(tell.aggregate.partition("/")[0])
        return peer is not None and peer.reads(tell.entity, tell.event)


_Trigger: TypeAlias = tuple[str, type[Event], State | None, State]
"""A machine, the type of an event, and the states before and after; no state is before the first transition."""


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
    """A set of aggregate types that exchange messages. ``properties`` hold of each of its ``SystemState`` values.

    >>> from lifefold import AggregateType, System
    >>> System("fleet", AggregateType("board", machines=()))
    <System 'fleet': board>
    """

    __slots__ = ("aggregates", "name", "properties")

    def __init__(self, name: str, *aggregates: AggregateType, properties: Iterable[Property[SystemState]] = ()) -> None:
        """Put the types together by their kinds. Raises ``ValueError`` for two of one kind."""
        self.name: Final = name
        self.properties: Final = properties_of(name, properties)
        self.aggregates: Final[dict[str, AggregateType]] = {}
        kinds = _by_name(f"{name}: kind", ((each.kind, each) for each in aggregates))
        self.aggregates.update((kind, each.among(self.aggregates)) for kind, each in kinds.items())

    def __repr__(self) -> str:
        """Return its name and its kinds of aggregates."""
        return shown(f"System {self.name!r}: {listed(self.aggregates)}")

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
