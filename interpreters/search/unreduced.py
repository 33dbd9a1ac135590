"""The unreduced semantics of a system: every step is computed by the rules, without tables and reductions.

A trace is shown only after it was replayed here. The cross-check compares the reductions of a search with this
semantics (see ``cross_check``). A move is the number of a possible input; both have the same order of possible inputs.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from lifefold.core.kernel import (
    Aggregate,
    Cause,
    Envelope,
    Reaction,
    Refusal,
    SystemState,
    possible,
    react,
    replace,
)
from lifefold.effects import Tell
from lifefold.interpreters.search.canonical import NOW_MS
from lifefold.interpreters.search.component import Move
from lifefold.interpreters.search.product_system import ProductSystem, Refused


class Happening(NamedTuple):
    """One step: its aggregate, its cause, its input and its reaction."""

    aggregate: str
    cause: Cause
    envelope: Envelope
    reaction: Reaction


class PlainWorld(NamedTuple):
    """A state of a system: its aggregates, the messages in flight, the number of operator commands, the time."""

    aggregates: tuple[Aggregate, ...]
    under_way: tuple[tuple[Tell, ...], ...]
    said: int
    now_ms: int


class Unreduced:
    """Takes steps by the rules alone."""

    def __init__(self, product_system: ProductSystem) -> None:
        """Take the system, its opening and its bounds from a search."""
        self._product: Final = product_system

    def initial(self) -> PlainWorld:
        """Return the state after the opening of every aggregate."""
        world = PlainWorld((), tuple(() for _ in self._product.channels), 0, NOW_MS)
        for component, (name, envelope) in zip(self._product.components, self._product.opening, strict=True):
            world = world._replace(aggregates=(*world.aggregates, component.of.start(name)))
            world, _ = self._take(world, component.number, Cause.COMMAND, replace(envelope, at_ms=NOW_MS))
        return world._replace(said=0)

    def steps(self, world: PlainWorld) -> Iterator[tuple[PlainWorld, Happening]]:
        """Yield the next state of each move within the bounds, in the order of the search."""
        commands = self._product.bounds.commands
        for component in self._product.components:
            aggregate = world.aggregates[component.number]
            for each in possible(component.of, aggregate, world.now_ms):
                cause, envelope = each.cause, each.envelope
                if cause is Cause.COMMAND and commands is not None and world.said >= commands:
                    continue
                reaction = react(component.of, aggregate, envelope)
                if isinstance(reaction, Reaction) and self._product.bounds.hold(component.of, reaction.aggregate):
                    yield self._after(world, component.number, cause, envelope, reaction)
        for channel, (_, receiver) in enumerate(self._product.channels):
            if world.under_way[channel]:
                yield self.go(world, Move(receiver, 0, channel))

    def go(self, world: PlainWorld, move: Move) -> tuple[PlainWorld, Happening]:
        """Make a move. Raises ``IndexError`` if it is not possible, ``Refused``."""
        cause, envelope = self.input(world, move)
        if move.channel >= 0:
            rest = world.under_way[move.channel][1:]
            world = world._replace(under_way=_with(world.under_way, move.channel, rest))
        return self._take(world, move.component, cause, envelope)

    def input(self, world: PlainWorld, move: Move) -> tuple[Cause, Envelope]:
        """Return the input of a move. Raises ``IndexError`` if it is not possible."""
        if move.channel < 0:
            aggregate = world.aggregates[move.component]
            every = possible(self._product.components[move.component].of, aggregate, world.now_ms)
            chosen = list(every)[move.choice]
            return chosen.cause, chosen.envelope
        first, sender = world.under_way[move.channel][0], self._product.sender(move.channel)
        sent_message = Envelope(first.entity, first.event, world.now_ms, sender, "", "", 0, sender, first.ordinal)
        return Cause.MESSAGE, sent_message

    def walk(self, moves: Iterable[Move]) -> tuple[PlainWorld, list[Happening]]:
        """Make moves from the opening."""
        world = self.initial()
        happened: list[Happening] = []
        for move in moves:
            world, happening = self.go(world, move)
            happened.append(happening)
        return world, happened

    def _take(
        self, world: PlainWorld, component: int, cause: Cause, envelope: Envelope
    ) -> tuple[PlainWorld, Happening]:
        aggregate = world.aggregates[component]
        reaction = react(self._product.components[component].of, aggregate, envelope)
        if isinstance(reaction, Refusal):
            raise Refused(aggregate.name, reaction)
        return self._after(world, component, cause, envelope, reaction)

    def _after(
        self, world: PlainWorld, component: int, cause: Cause, envelope: Envelope, reaction: Reaction
    ) -> tuple[PlainWorld, Happening]:
        under_way = world.under_way
        for asked in reaction.effects:
            if isinstance(tell := asked.effect, Tell):
                channel = self._product.channel(component, tell.aggregate)
                under_way = _with(under_way, channel, (*under_way[channel], tell))
        aggregates = _with(world.aggregates, component, reaction.aggregate)
        said, now_ms = world.said + (cause is Cause.COMMAND), max(world.now_ms, envelope.at_ms)
        return PlainWorld(aggregates, under_way, said, now_ms), Happening(
            reaction.aggregate.name, cause, envelope, reaction
        )

    def scene(self, world: PlainWorld) -> SystemState:
        """Return a state as properties of the system see it."""
        names = [component.name for component in self._product.components]
        in_flight = tuple(
            (names[sender], names[receiver], tell.entity, tell.event)
            for channel, (sender, receiver) in enumerate(self._product.channels)
            for tell in world.under_way[channel]
        )
        return SystemState(dict(zip(names, world.aggregates, strict=True)), in_flight)

    def subject(self, world: PlainWorld, component: int, entity: str) -> Any:
        """Return the subject of a property: the system, an aggregate, an entity (None if there is none yet)."""
        if component < 0:
            return self.scene(world)
        return world.aggregates[component].entities.get(entity) if entity else world.aggregates[component]


def _with(components: tuple[Any, ...], place: int, new: Any) -> tuple[Any, ...]:
    return (*components[:place], new, *components[place + 1 :])
