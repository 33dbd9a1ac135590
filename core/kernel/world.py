"""The world: a whole system as one immutable value, and the one step that leads to the next.

A *driver* runs a system without an engine: a test, a replayed trace, a search, a simulation. Every driver has to know
the same three things, and this module is the only place that does.

1. What the state is. A ``World`` has the aggregates, the messages in flight, and the time. Running activities and
   pending timers are parts of the entities, so the world reads them (``running``) and keeps no second list.
2. What can happen. ``choices`` yields the possible next inputs, in a fixed order.
3. What one input does. ``outcome`` asks the rules (``react``), ``after`` makes the next world, ``step`` is both.

The causes of inputs, when each is possible, and what it changes besides the step itself:

- command: an operator may send the event to the entity. It is counted in ``commands``.
- report: the activity is live.
- timer: the timer is pending. The time becomes the deadline, or is later already.
- confirmation: the activity was asked to end.
- recovery: anything runs in the aggregate.
- message: it is the first in flight from its sender to its receiver. It is in flight no more.

Every step replaces one aggregate by that of the reaction, and puts the messages of the reaction in flight. Time never
goes back. A refused input changes nothing. A driver decides which input comes next, when it comes, and whether it comes
twice. So a driver may give any input, not only one of ``choices``, and the rules answer it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from lifefold.core.kernel.aggregate import Aggregate
from lifefold.core.kernel.entity import Created, Entity, Envelope, Opened, Refusal, Running
from lifefold.core.kernel.environment import Cause, cause_of, possible
from lifefold.core.kernel.property import SystemState
from lifefold.core.kernel.reaction import Reaction, react
from lifefold.core.kernel.record import replace
from lifefold.core.kernel.system import System
from lifefold.effects import Tell

START_MS: Final = 1_000_000_000_000
"""The time at which drivers with a virtual time begin. It is not 0, because some rules read that as "never"."""

Channel: TypeAlias = tuple[str, str]
"""A pair of aggregates: the sender of messages, and their receiver."""

MessageId: TypeAlias = tuple[str, str, int]
"""The identity of a message: sender, receiver, ordinal."""


class Input(NamedTuple):
    """An input of one aggregate of a system."""

    aggregate: str
    envelope: Envelope

    @property
    def cause(self) -> Cause:
        """The source of the input."""
        return cause_of(self.envelope)


class SystemStep(NamedTuple):
    """One step of a system: an accepted input of one aggregate, and the reaction to it."""

    aggregate: str
    envelope: Envelope
    reaction: Reaction

    @property
    def given(self) -> Input:
        """The input."""
        return Input(self.aggregate, self.envelope)

    @property
    def cause(self) -> Cause:
        """The source of the input."""
        return cause_of(self.envelope)


class World(msgspec.Struct, frozen=True):
    """A system at one moment. ``World(system)`` is the system before the first input of its aggregates.

    ``aggregates`` are those with an accepted input, in the order of their first ones. ``in_flight`` has the messages in
    the order in which they were sent. ``now_ms`` is the time: that of the latest accepted input, or later.
    ``commands`` counts the operator commands, without the first inputs of the aggregates. Worlds are equal if all of
    these are; the order of messages counts for each channel only.
    """

    system: System
    aggregates: Mapping[str, Aggregate] = {}
    in_flight: Mapping[MessageId, Tell] = {}
    now_ms: int = 0
    commands: int = 0

    def __hash__(self) -> int:
        """Return the same number for equal worlds."""
        parts = frozenset(self.aggregates.values()), frozenset(self.in_flight.items())
        return hash((*parts, self.now_ms, self.commands))

    def aggregate(self, name: str) -> Aggregate:
        """Return an aggregate; the empty one if it has accepted no input yet. Raises ``KeyError`` for no kind."""
        return self.aggregates.get(name) or self.system.type_of(name).start(name)

    def outcome(self, given: Input) -> Reaction | Refusal:
        """Return what the rules decide on an input. Errors of guards, actions and rules are raised."""
        name, envelope = given
        return react(self.system.type_of(name), self.aggregate(name), envelope)

    def after(self, given: Input, reaction: Reaction) -> "World":
        """Return the world after an input with this reaction."""
        name, envelope = given
        in_flight = {**self.in_flight}
        in_flight.update(((name, tell.aggregate, tell.ordinal), tell) for tell in sent_in(reaction))
        if envelope.sender:
            in_flight.pop((envelope.sender, name, envelope.ordinal), None)
        is_command = given.cause is Cause.COMMAND and not isinstance(envelope.event, Created | Opened)
        return World(
            self.system,
            {**self.aggregates, name: reaction.aggregate},
            in_flight,
            max(self.now_ms, envelope.at_ms),
            self.commands + is_command,
        )

    def step(self, given: Input) -> "tuple[World, SystemStep] | Refusal":
        """Give an input: return the next world with the step that leads to it, or the refusal."""
        outcome = self.outcome(given)
        if isinstance(outcome, Refusal):
            return outcome
        return self.after(given, outcome), SystemStep(*given, outcome)

    def later(self, at_ms: int) -> "World":
        """Return the world at this time, if it is later: time passes, and nothing happens."""
        return self if at_ms <= self.now_ms else replace(self, now_ms=at_ms)

    def choices(self, later_ms: int = 0) -> Iterator[Input]:
        """Yield the possible next inputs, now or so much later: those of each aggregate, then the next messages."""
        for name in self.aggregates:
            yield from self.choices_of(name, later_ms)
        yield from self.next_messages().values()

    def choices_of(self, name: str, later_ms: int = 0) -> Iterator[Input]:
        """Yield the possible next inputs of one aggregate, without messages."""
        for each in possible(self.system.type_of(name), self.aggregate(name), self.now_ms + later_ms):
            yield Input(name, each.envelope)

    def next_messages(self) -> dict[Channel, Input]:
        """Return the message that arrives next on each channel with messages in flight, as an input."""
        first: dict[Channel, Input] = {}
        for (sender, receiver, _), tell in self.in_flight.items():
            if (sender, receiver) not in first:
                first[sender, receiver] = delivery(sender, tell, self.now_ms)
        return first

    def running(self) -> Iterator[tuple[str, Entity[Any], Running]]:
        """Yield the running activities and the pending timers, each with its aggregate's name and its entity."""
        for name, aggregate in self.aggregates.items():
            for entity in aggregate.entities.values():
                for part in entity.running:
                    yield name, entity, part

    def system_state(self) -> SystemState:
        """Return the world as properties of the system see it."""
        messages = (
            (sender, receiver, tell.entity, tell.event) for (sender, receiver, _), tell in self.in_flight.items()
        )
        return SystemState(self.aggregates, tuple(messages))


def sent_in(reaction: Reaction) -> Iterator[Tell]:
    """Yield the messages of a reaction, in order."""
    return (asked.effect for asked in reaction.effects if isinstance(asked.effect, Tell))


def delivery(sender: str, tell: Tell, at_ms: int) -> Input:
    """Return a message as its receiver gets it at a time."""
    envelope = Envelope(tell.entity, tell.event, at_ms, sender, sender=sender, ordinal=tell.ordinal)
    return Input(tell.aggregate, envelope)
