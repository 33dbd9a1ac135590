"""A machine as a drawing: an arrow between two states, a line for each row, a frame for each shared activity."""

from collections.abc import Iterable
from typing import Any

from lifefold.core.kernel import Machine, State
from lifefold.interpreters.views.outline import ANY_STATE, Region, arrows, goings_on, regions
from lifefold.interpreters.views.picture.drawing import Arrow, Box, Drawing, Group, Tint

START = "(start)"
ANYWHERE = "(any)"
"""The keys of boxes that are no states: the beginning, and the source of rows from any state."""

Crossed = tuple[State | None, State | None]


def statechart(
    machine: Machine[Any], *, at: State | None = None, crossed: Iterable[Crossed] = (), tint: Tint = Tint.HERE
) -> Drawing:
    """Return the machine with the state ``at`` marked, and the arrows that were ``crossed``."""
    marked = frozenset(crossed)
    parts = regions(machine)
    drawn = arrows(machine)
    boxes = [Box(START, tint=Tint.START), *(_box(machine, part, at, tint) for part in parts if not part.parts)]
    if any(source is None for source, _ in drawn):
        boxes.append(Box(ANYWHERE, (ANY_STATE,), loose=True))
    found = [Arrow(START, machine.initial.state)]
    anyhow = {(None, after) for before, after in marked if (before, after) not in drawn}
    for (source, target), lines in drawn.items():
        hit = (source, target) in marked | anyhow
        found.append(Arrow(_key(source), _key(target), lines, tint if hit else Tint.PLAIN))
    groups = tuple(_group(machine, part, at, tint) for part in parts if part.parts)
    return Drawing(machine.name, tuple(boxes), tuple(found), groups)


def _key(state: State | None) -> str:
    return ANYWHERE if state is None else str(state)


def _box(machine: Machine[Any], region: Region, at: State | None, tint: Tint) -> Box:
    state = region.states[0]
    lines = (str(state), *goings_on(machine, region))
    return Box(str(state), lines, tint if state is at else Tint.PLAIN, final=state in machine.final)


def _group(machine: Machine[Any], region: Region, at: State | None, tint: Tint) -> Group:
    boxes = tuple(_box(machine, part, at, tint) for part in region.parts if not part.parts)
    groups = tuple(_group(machine, part, at, tint) for part in region.parts if part.parts)
    return Group(", ".join(region.states), goings_on(machine, region), boxes, groups)
