"""A drawing in the languages of other tools: as a Mermaid flowchart, and as a graph of Graphviz with clusters."""

from collections.abc import Callable, Iterator
from html import escape

from lifefold.interpreters.views.formats.dot import HEAD, quoted
from lifefold.interpreters.views.formats.mermaid import safe
from lifefold.interpreters.views.picture.drawing import Arrow, Box, Drawing, Group, Tint


def flowchart(drawing: Drawing) -> str:
    """Return a drawing as a Mermaid flowchart. Marked arrows are thick."""
    names = {box.key: f"n{number}" for number, box in enumerate(drawing.every_box())}

    def box_line(box: Box) -> str:
        return f'{names[box.key]}["{"<br/>".join(map(safe, box.lines))}"]'

    def arrow_line(arrow: Arrow) -> str:
        label = f'|"{"<br/>".join(map(safe, arrow.lines))}"|' if arrow.lines else ""
        return f"{names[arrow.source]} {_line(arrow)}{label} {names[arrow.target]}"

    def head(number: int, group: Group) -> str:
        return f'subgraph g{number}["{"<br/>".join(map(safe, group.lines))}"]'

    lines = [*_boxes(drawing, box_line, head, "end"), *map(arrow_line, drawing.arrows)]
    return "\n".join([f"flowchart {'LR' if drawing.sideways else 'TB'}", *(f"    {line}" for line in lines)]) + "\n"


def digraph(drawing: Drawing) -> str:
    """Return a drawing in Graphviz's language. Marked arrows are thick."""
    names = {box.key: f"n{number}" for number, box in enumerate(drawing.every_box())}

    def box_line(box: Box) -> str:
        lines = [f"<b>{escape(box.lines[0])}</b>", *map(escape, box.lines[1:])] if box.lines else []
        return f"{names[box.key]} [label=<{'<br/>'.join(lines)}>]"

    def arrow_line(arrow: Arrow) -> str:
        width = "" if arrow.tint is Tint.PLAIN else ", penwidth=2"
        return f"{names[arrow.source]} -> {names[arrow.target]} [label={quoted(*arrow.lines)}{width}]"

    def head(number: int, group: Group) -> str:
        return f"subgraph cluster_{number} {{ label={quoted(', '.join(group.lines))}"

    turned = [f"graph [rankdir={'LR' if drawing.sideways else 'TB'}]"]
    lines = [*HEAD, *turned, *_boxes(drawing, box_line, head, "}"), *map(arrow_line, drawing.arrows)]
    return "\n".join([f"digraph {quoted(drawing.title)} {{", *(f"    {line}" for line in lines), "}"]) + "\n"


def _line(arrow: Arrow) -> str:
    return "-->" if arrow.tint is Tint.PLAIN else "==>"


def _boxes(
    drawing: Drawing, box_line: Callable[[Box], str], head: Callable[[int, Group], str], end: str
) -> Iterator[str]:
    """Yield the boxes outside of frames, then each frame with what is inside."""
    numbers = {group.key: number for number, group in enumerate(drawing.every_group())}

    def framed(group: Group) -> Iterator[str]:
        yield head(numbers[group.key], group)
        yield from (f"    {box_line(box)}" for box in group.boxes)
        yield from (f"    {line}" for inner in group.groups for line in framed(inner))
        yield end

    yield from map(box_line, drawing.boxes)
    for group in drawing.groups:
        yield from framed(group)
