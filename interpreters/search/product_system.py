"""The product system: the components of a system, and the messages, channels and labels that they share.

A state of the system is a tuple of numbers. It has one for each aggregate (see ``component``), and one for the messages
in flight on each channel. If the number of operator commands is bounded, one number counts them.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from lifefold.core.kernel import (
    Refusal,
    System,
    SystemState,
    World,
    react,
    replace,
)
from lifefold.interpreters.search.canonical import NOW_MS
from lifefold.interpreters.search.component import Component, LocalStep, Move
from lifefold.interpreters.search.configuration import Bounds, Judge
from lifefold.interpreters.search.exchange import Exchange, Refused, message_of
from lifefold.interpreters.search.opening import Beginning, Opening, names_of
from lifefold.interpreters.search.rule_error import Place

StateRow = tuple[int, ...]


class ProductSystem(Exchange):
    """All components of a system, with the queues of their channels."""

    def __init__(
        self,
        system: System,
        beginning: Beginning,
        judge: Judge,
        bounds: Bounds,
        kept: frozenset[str] = frozenset(),
    ) -> None:
        """Take the aggregates: each with its opening input, or all as they are in a world."""
        super().__init__(system, names_of(beginning), judge, bounds, kept)
        self.beginning: Final = beginning
        self._initial: StateRow | None = None
        self.wrong_at_birth: tuple[int, ...] = ()
        """The transition properties that the opening breaks."""
        self.queues: Final[list[tuple[int, ...]]] = [()]
        self._queue_numbers: Final[dict[tuple[int, ...], int]] = {(): 0}
        self.components: Final = tuple(
            Component(number, system.type_of(name), name, self) for number, name in enumerate(self.names)
        )

    def initial(self) -> StateRow:
        """Return the first state: after the opening of every aggregate. Raises ``Refused``, ``RuleError``."""
        if self._initial is None:
            begin = self.beginning
            self._initial = self._resumed(begin) if isinstance(begin, World) else self._opened(begin)
        return self._initial

    @property
    def opening(self) -> Opening:
        """The opening; empty if the search begins in another state."""
        return () if isinstance(self.beginning, World) else self.beginning

    def _resumed(self, begin: World) -> StateRow:
        """Return the state that a world is. Operator commands before it do not count."""
        world = [0] * self.width
        for component, aggregate in zip(self.components, begin.aggregates.values(), strict=True):
            with self.flawless(lambda: Place(component.number)):  # noqa: B023 - called before the next one
                world[component.number] = component.number_of(aggregate)
        for (sender, _, _), tell in begin.in_flight.items():
            with self.flawless(lambda: Place(self.names.index(sender))):  # noqa: B023 - as above
                self._send(world, (self.post(self.names.index(sender), tell),))
        return tuple(world)

    def _opened(self, opening: Opening) -> StateRow:
        world = [0] * self.width
        for component, (name, envelope) in zip(self.components, opening, strict=True):
            with self.flawless(lambda: Place(component.number)):  # noqa: B023 - called before the next one
                reaction = react(component.of, component.of.start(name), replace(envelope, at_ms=NOW_MS))
                if isinstance(reaction, Refusal):
                    raise Refused(name, reaction)
                self.coverage.react(component.of, component.of.start(name), envelope, reaction)
                world[component.number] = component.number_of(reaction.aggregate)
                self.wrong_at_birth += self.judge.step(component.of, reaction)
                self.fates.send(name, reaction.refusals, Place(component.number))
                self._send(world, self.sent(component.number, reaction))
        return tuple(world)

    @property
    def width(self) -> int:
        """The number of columns of a state."""
        return len(self.components) + len(self.channels) + (self.bounds.commands is not None)

    def largest(self) -> list[int]:
        """Return the largest number so far in each column."""
        said = [] if self.bounds.commands is None else [self.bounds.commands]
        return [
            *(len(component.states) for component in self.components),
            *(len(self.queues) for _ in self.channels),
            *said,
        ]

    def queue(self, messages: tuple[int, ...]) -> int:
        """Return the number of the queue of a channel."""
        number = self._queue_numbers.setdefault(messages, len(self.queues))
        if number == len(self.queues):
            self.queues.append(messages)
        return number

    def successors(self, world: StateRow) -> Iterator[tuple[Move, StateRow, LocalStep]]:
        """Yield every step in a fixed order."""
        components = len(self.components)
        spent = self.bounds.commands is not None and world[-1] >= self.bounds.commands
        for number, component in enumerate(self.components):
            for step in component.steps(world[number]):
                if step.said and spent:
                    continue
                if step.sent or (step.said and self.bounds.commands is not None):
                    after = list(world)
                    after[number] = step.to
                    self._send(after, step.sent)
                    if step.said and self.bounds.commands is not None:
                        after[-1] += 1
                    yield Move(number, step.choice), tuple(after), step
                else:
                    yield Move(number, step.choice), (*world[:number], step.to, *world[number + 1 :]), step
        for channel, (_, receiver) in enumerate(self.channels):
            under_way = world[components + channel]
            if under_way:
                messages = self.queues[under_way]
                step = self.components[receiver].reception(world[receiver], channel, messages[0])
                after = list(world)
                after[receiver] = step.to
                after[components + channel] = self.queue(messages[1:])
                self._send(after, step.sent)
                yield Move(receiver, 0, channel), tuple(after), step

    def _send(self, world: list[int], sent: tuple[tuple[int, int], ...]) -> None:
        for channel, message in sent:
            place = len(self.components) + channel
            world[place] = self.queue((*self.queues[world[place]], message))

    def form(self, unreduced: World) -> StateRow:
        """Return the canonical form of an unreduced state; parts that were never reached are -1."""
        locals_ = [
            component.known(aggregate)
            for component, aggregate in zip(self.components, unreduced.aggregates.values(), strict=True)
        ]
        in_flight: dict[tuple[str, str], tuple[int, ...]] = {}
        for (sender, receiver, _), tell in unreduced.in_flight.items():
            known = self._message_numbers.get(message_of(tell), -1)
            in_flight[sender, receiver] = (*in_flight.get((sender, receiver), ()), known)
        queues = [
            self._queue_numbers.get(in_flight.get((self.sender(channel), self.components[receiver].name), ()), -1)
            for channel, (_, receiver) in enumerate(self.channels)
        ]
        return (*locals_, *queues, *(() if self.bounds.commands is None else (unreduced.commands,)))

    def is_at_the_bounds(self, world: StateRow) -> bool:
        """Tell whether a step out of the bounds is possible here, or a command beyond their number."""
        if any(number in component.left_out for component, number in zip(self.components, world, strict=False)):
            return True
        if self.bounds.commands is None or world[-1] < self.bounds.commands:
            return False
        return any(
            step.said
            for component, number in zip(self.components, world, strict=False)
            for step in component.steps(number)
        )

    def system_state(self, world: StateRow) -> SystemState:
        """Return a state as properties of the system see it."""
        aggregates: Mapping[str, Any] = {
            component.name: component.states[number] for component, number in zip(self.components, world, strict=False)
        }
        in_flight = tuple(
            (self.components[sender].name, self.components[receiver].name, sent_message.entity, sent_message.event)
            for channel, (sender, receiver) in enumerate(self.channels)
            for sent_message in (
                self.messages[message] for message in self.queues[world[len(self.components) + channel]]
            )
        )
        return SystemState(aggregates, in_flight)
