"""The state space of a machine, as the checker explores it, and its picture."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from lifefold.core.kernel import Entity, Machine, alone
from lifefold.interpreters.search.configuration import Bounds, Judge
from lifefold.interpreters.search.product_system import ProductSystem
from lifefold.interpreters.views.picture import Arrow, Box, Drawing, Tint

FILLS: Final = (
    "#4e79a7", "#f28e2b", "#59a14f", "#edc948", "#b07aa1", "#76b7b2", "#ff9da7", "#9c755f", "#bab0ac", "#e15759",
    "#a0cbe8", "#8cd17d",
)  # fmt: skip
"""The colours of a lifecycle's states, in their order."""


class TooManyError(ValueError):
    """There are more states than a picture can show."""


class Space(msgspec.Struct, frozen=True):
    """The states in the order in which they are reached, the opening first, and the steps between them."""

    machine: Machine[Any]
    states: tuple[Entity[Any], ...]
    steps: tuple[tuple[int, int], ...]

    def text(self) -> str:
        """Return the numbers of states and steps, and of states of each kind."""
        counts = Counter(str(entity.state) for entity in self.states)
        each = "\n".join(f"  {count:>4} {name}" for name, count in counts.items())
        return f"{self.machine.name}: {len(self.states)} states, {len(self.steps)} steps between them\n{each}"

    def drawing(
        self, *, words: Callable[[Entity[Any]], Iterable[str]] | None = None, wrong: Callable[[Any], bool] | None = None
    ) -> Drawing:
        """Return the picture: dots, or boxes with ``words``; ``wrong`` selects the marked states.

        A dot has the colour of its lifecycle's state.
        """
        boxes = tuple(self._box(number, words, wrong) for number in range(len(self.states)))
        arrows = tuple(Arrow(str(source), str(target), tint=Tint.FAINT) for source, target in self.steps)
        names = dict.fromkeys(str(entity.state) for entity in self.states)
        legend = () if words else tuple((name, self._fill(name)) for name in names)
        return Drawing(f"{self.machine.name}: {len(self.states)} states", boxes, arrows, legend=legend)

    def _fill(self, state: str) -> str:
        return FILLS[[str(each) for each in self.machine.states].index(state) % len(FILLS)]

    def _box(
        self, number: int, words: Callable[[Entity[Any]], Iterable[str]] | None, wrong: Callable[[Any], bool] | None
    ) -> Box:
        entity = self.states[number]
        tint = Tint.PLAIN if number else Tint.HERE
        marked = wrong is not None and wrong(entity)
        lines = () if words is None else tuple(words(entity))
        final = entity.state in self.machine.final
        fill = "" if words or marked else self._fill(str(entity.state))
        return Box(str(number), lines, Tint.WRONG if marked else tint, final=final, hint=repr(entity.record), fill=fill)


def state_space(machine: Machine[Any], *, bounds: Bounds | None = None, most: int = 400) -> Space:
    """Return the states that a machine can reach by itself. Raises ``TooManyError`` if they are more than ``most``."""
    system, openings = alone(machine)
    product_system = ProductSystem(system, tuple(openings.items()), Judge(system), bounds or Bounds())
    component = product_system.components[0]
    begin = product_system.initial()
    numbers = {begin: 0}
    waiting = [begin]
    steps: dict[tuple[int, int], None] = {}
    for world in waiting:
        for _, after, _ in product_system.successors(world):
            if after not in numbers:
                if len(numbers) == most:
                    raise TooManyError(f"{machine.name} can reach more than {most} states: too many for a picture")
                numbers[after] = len(numbers)
                waiting.append(after)
            if after != world:
                steps[numbers[world], numbers[after]] = None
    return Space(machine, tuple(_entities(component.states[world[0]] for world in waiting)), tuple(steps))


def _entities(aggregates: Iterable[Any]) -> Iterator[Entity[Any]]:
    return (entity for aggregate in aggregates for entity in aggregate.entities.values())
