"""The unreduced semantics of a system: every step is one of the kernel's ``World``, without tables and reductions.

A trace is shown only after it was replayed here. The cross-check compares the reductions of a search with this
semantics (see ``cross_check``). A move is the number of a possible input; both have the same order of possible inputs.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from lifefold.core.kernel import Cause, Input, Reaction, Refusal, SystemStep, World, replace, sent_in
from lifefold.interpreters.search.canonical import NOW_MS
from lifefold.interpreters.search.component import Move
from lifefold.interpreters.search.exchange import Refused
from lifefold.interpreters.search.product_system import ProductSystem


class Unreduced:
    """Takes steps by the rules alone, within the bounds of a search."""

    def __init__(self, product_system: ProductSystem) -> None:
        """Take the system, its opening and its bounds from a search."""
        self._product: Final = product_system
        self._names: Final = product_system.names

    def initial(self) -> World:
        """Return the first world: after the opening of every aggregate. Raises ``Refused``."""
        begin = self._product.beginning
        if isinstance(begin, World):
            return replace(begin, system=self._product.system, commands=0)
        world = World(self._product.system, now_ms=NOW_MS)
        for name, envelope in begin:
            world, _ = self._step(world, Input(name, replace(envelope, at_ms=NOW_MS)))
        return world

    def steps(self, world: World) -> Iterator[tuple[World, SystemStep]]:
        """Yield the next world of each move within the bounds, in the order of the search."""
        bounds = self._product.bounds
        for component in self._product.components:
            for given in world.choices_of(component.name):
                if bounds.commands is not None and world.commands >= bounds.commands and given.cause is Cause.COMMAND:
                    continue
                reaction = world.outcome(given)
                if isinstance(reaction, Reaction) and bounds.hold(component.of, reaction.aggregate):
                    yield self._after(world, given, reaction)
        messages = world.next_messages()
        for sender, receiver in self._product.channels:
            message = messages.get((self._names[sender], self._names[receiver]))
            if message is not None:
                yield self._step(world, message)

    def go(self, world: World, move: Move) -> tuple[World, SystemStep]:
        """Make a move. Raises ``IndexError`` if it is not possible, ``Refused``."""
        return self._step(world, self.input(world, move))

    def input(self, world: World, move: Move) -> Input:
        """Return the input of a move. Raises ``IndexError`` if it is not possible."""
        if move.channel < 0:
            return list(world.choices_of(self._names[move.component]))[move.choice]
        sender, receiver = self._product.channels[move.channel]
        message = world.next_messages().get((self._names[sender], self._names[receiver]))
        if message is None:
            raise IndexError(move.channel)
        return message

    def walk(self, moves: Iterable[Move]) -> tuple[World, list[SystemStep]]:
        """Make moves from the opening."""
        world = self.initial()
        steps: list[SystemStep] = []
        for move in moves:
            world, step = self.go(world, move)
            steps.append(step)
        return world, steps

    def _step(self, world: World, given: Input) -> tuple[World, SystemStep]:
        outcome = world.outcome(given)
        if isinstance(outcome, Refusal):
            raise Refused(given.aggregate, outcome)
        return self._after(world, given, outcome)

    def _after(self, world: World, given: Input, reaction: Reaction) -> tuple[World, SystemStep]:
        """Return the next world. Raises ``Unaddressed`` for a message to an aggregate that the opening lacks."""
        for tell in sent_in(reaction):
            self._product.channel(self._names.index(given.aggregate), tell.aggregate)
        return world.after(given, reaction), SystemStep(*given, reaction)
