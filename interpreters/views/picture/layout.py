"""The layout of a drawing: Graphviz's ``dot`` gets sizes and returns places."""

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final, NamedTuple

from lifefold.interpreters.views.picture.drawing import Arrow, Box, Drawing, Group, block_pt

Point = tuple[float, float]

POINTS_PER_INCH: Final = 72


class LayoutMissingError(ImportError):
    """The library for layouts is not installed."""

    def __init__(self) -> None:
        """Name the package to install."""
        super().__init__("pictures need pygraphviz: pip install 'lifefold[notebook]'")


class Curve(NamedTuple):
    """An arrow's line as the points of cubic curves, the end of its head, and the middle of its label."""

    points: tuple[Point, ...]
    tip: Point
    label: Point


class Frame(NamedTuple):
    """A rectangle, lower left and upper right, and the middle of its label."""

    low: Point
    high: Point
    label: Point


class Layout(NamedTuple):
    """The size of the whole, the middle of each box, the curve of each arrow, and the frames."""

    size: Point
    boxes: dict[str, Point]
    arrows: tuple[Curve, ...]
    groups: dict[str, Frame]


def layout(drawing: Drawing) -> Layout:
    """Return the layout, in points from the lower left. Raises ``LayoutMissingError``."""
    try:
        graphviz: Any = import_module("pygraphviz")
    except ImportError as error:
        raise LayoutMissingError from error
    names = {box.key: f"n{number}" for number, box in enumerate(drawing.every_box())}
    graph = graphviz.AGraph(string="\n".join(_source(drawing, names)))
    graph.layout(prog="dot")
    arrows = tuple(
        _curve(graph.get_edge(names[arrow.source], names[arrow.target], f"e{number}"))
        for number, arrow in enumerate(drawing.arrows)
    )
    _, _, wide, high = _numbers(graph.graph_attr["bb"])
    boxes = {key: _point(graph.get_node(name).attr["pos"]) for key, name in names.items()}
    frames = {str(each.get_name()): each for each in _every_subgraph(graph)}
    groups = {
        group.key: _frame(frames[f"cluster_{number}"].graph_attr) for number, group in enumerate(drawing.every_group())
    }
    return Layout((wide, high), boxes, arrows, groups)


def _source(drawing: Drawing, names: dict[str, str]) -> Iterator[str]:
    """Yield the drawing in Graphviz's language, with room instead of texts."""
    # Without newrank, a cluster is ranked first and by itself, and the initial state ends up below it.
    yield "digraph {"
    apart = "nodesep=0.08, ranksep=0.3" if drawing.is_tight else "nodesep=0.45, ranksep=0.5"
    yield f"graph [rankdir={'LR' if drawing.sideways else 'TB'}, newrank=true, {apart}]"
    yield 'node [shape=box, fixedsize=true, label=""]'
    numbers = {group.key: number for number, group in enumerate(drawing.every_group())}
    yield from (_node(box, names) for box in drawing.boxes)
    for group in drawing.groups:
        yield from _cluster(group, names, numbers)
    yield from (_edge(arrow, names, number) for number, arrow in enumerate(drawing.arrows))
    yield "}"


def _node(box: Box, names: dict[str, str]) -> str:
    wide, high = box.size_pt()
    shape = "box" if box.lines else "circle"
    return f"{names[box.key]} [shape={shape}, width={wide / POINTS_PER_INCH:.3f}, height={high / POINTS_PER_INCH:.3f}]"


def _edge(arrow: Arrow, names: dict[str, str], number: int) -> str:
    room = f", label={_room(arrow.size_pt())}" if arrow.lines else ""
    return f"{names[arrow.source]} -> {names[arrow.target]} [key=e{number}{room}]"


def _cluster(group: Group, names: dict[str, str], numbers: dict[str, int]) -> Iterator[str]:
    yield f"subgraph cluster_{numbers[group.key]} {{"
    yield f"label={_room(block_pt(group.lines))}"
    yield from (_node(box, names) for box in group.boxes)
    for inner in group.groups:
        yield from _cluster(inner, names, numbers)
    yield "}"


def _room(size: tuple[float, float]) -> str:
    wide, high = size
    cell = f'<td fixedsize="true" width="{wide:.0f}" height="{high:.0f}"></td>'
    return f'<<table border="0" cellborder="0" cellspacing="0" cellpadding="0"><tr>{cell}</tr></table>>'


def _every_subgraph(graph: Any) -> Iterator[Any]:
    for each in graph.subgraphs():
        yield each
        yield from _every_subgraph(each)


def _curve(edge: Any) -> Curve:
    """Read an edge: ``e,`` is the end of its head, the rest are the points of the curve."""
    found = re.fullmatch(r"e,(\S+)((?: \S+)+)", edge.attr["pos"].replace("\\\n", "").replace("\n", " ").strip())
    if found is None:
        raise ValueError(f"not an edge of Graphviz: {edge.attr['pos']}")
    points = tuple(_point(each) for each in found[2].split())
    return Curve(points, _point(found[1]), _point(edge.attr["lp"]) if edge.attr["lp"] else (0.0, 0.0))


def _frame(attributes: Any) -> Frame:
    left, low, right, high = _numbers(attributes["bb"])
    return Frame((left, low), (right, high), _point(attributes["lp"]))


def _point(text: str) -> Point:
    x, y = _numbers(text)
    return x, y


def _numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]
