"""A drawing as SVG that stands alone, without scripts, style sheets, fonts and network."""

from collections.abc import Iterator
from html import escape
from math import hypot
from types import MappingProxyType
from typing import Final, NamedTuple

from lifefold.interpreters.views.picture.drawing import (
    GAP_PT,
    LINE_PT,
    SMALL_PT,
    TEXT_PT,
    Arrow,
    Box,
    Drawing,
    Group,
    Tint,
)
from lifefold.interpreters.views.picture.layout import Curve, Frame, Layout, Point, layout

MARGIN_PT: Final = 8
_HEAD_PT: Final = 8.0
_LEGEND_PT: Final = 200.0
_FONTS: Final = "Helvetica, Arial, sans-serif"
_INK: Final = "#24324a"


class _Colours(NamedTuple):
    fill: str
    line: str
    width: float


COLOURS: Final = MappingProxyType(
    {
        Tint.PLAIN: _Colours("#f4f6fb", "#44546a", 1.0),
        Tint.START: _Colours("#44546a", "#44546a", 1.0),
        Tint.HERE: _Colours("#fff3c4", "#b7791f", 2.0),
        Tint.WRONG: _Colours("#ffe3e3", "#cf222e", 2.0),
        Tint.FAINT: _Colours("#fafafa", "#b8c0cc", 1.0),
    }
)
"""The look of each mark."""


def svg(drawing: Drawing) -> str:
    """Return the picture, always the same for the same drawing. Raises ``LayoutMissingError``."""
    placed = layout(drawing)
    drawn = tuple(zip(drawing.arrows, placed.arrows, strict=True))
    wide, below = placed.size[0] + 2 * MARGIN_PT, placed.size[1] + 2 * MARGIN_PT
    wide, high = max(wide, _LEGEND_PT if drawing.legend else 0.0), below + len(drawing.legend) * LINE_PT
    size = f'width="{wide:.0f}" height="{high:.0f}" viewBox="0 0 {wide:.0f} {high:.0f}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{_FONTS}" fill="{_INK}">',
        f"<title>{escape(drawing.title)}</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        *(_frame(group, placed.groups[group.key], placed) for group in drawing.every_group()),
        *(line for pair in drawn for line in _arrow(*pair, placed)),
        *(line for box in drawing.every_box() for line in _box(box, placed)),
        *(line for pair in drawn for line in _inscribed(*pair, placed)),
        *(line for number, each in enumerate(drawing.legend) for line in _meaning(*each, below + number * LINE_PT)),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _meaning(text: str, fill: str, y: float) -> Iterator[str]:
    yield f'<circle cx="{MARGIN_PT + 5}" cy="{y:.1f}" r="4" fill="{fill}"/>'
    yield f'<text x="{MARGIN_PT + 14}" y="{y + 3.5:.1f}" font-size="{SMALL_PT}">{escape(text)}</text>'


def _at(point: Point, placed: Layout) -> Point:
    """Return a place from the upper left, where Graphviz counts from the lower left."""
    return point[0] + MARGIN_PT, placed.size[1] - point[1] + MARGIN_PT


def _frame(group: Group, frame: Frame, placed: Layout) -> str:
    (left, low), (right, high) = _at(frame.low, placed), _at(frame.high, placed)
    rect = (
        f'<rect x="{left:.1f}" y="{high:.1f}" width="{right - left:.1f}" height="{low - high:.1f}" rx="8" '
        'fill="none" stroke="#777777" stroke-dasharray="5,3"/>'
    )
    return rect + "".join(_block(group.lines, _at(frame.label, placed)))


def _block(lines: tuple[str, ...], middle: Point) -> Iterator[str]:
    top = middle[1] - len(lines) * LINE_PT / 2
    for number, line in enumerate(lines):
        yield _text(line, middle[0], top + number * LINE_PT + 10, SMALL_PT)


def _text(text: str, x: float, y: float, size_pt: int, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" font-size="{size_pt}"{more}>{escape(text)}</text>'


def _box(box: Box, placed: Layout) -> Iterator[str]:
    x, y = _at(placed.boxes[box.key], placed)
    wide, high = box.size_pt()
    colours = COLOURS[box.tint]
    ink = f'fill="{box.fill or colours.fill}" stroke="{colours.line}" stroke-width="{colours.width}"'
    yield f'<g class="box" data-key="{escape(box.key)}">'
    if box.hint:
        yield f"<title>{escape(box.hint)}</title>"
    if not box.lines:
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{wide / 2:.1f}" {ink}/>'
    else:
        broken = ' stroke-dasharray="4,3"' if box.loose else ""
        yield _rect(x, y, wide, high, f"{ink}{broken}")
        if box.final:
            yield _rect(x, y, wide - 6, high - 6, f'fill="none" stroke="{colours.line}"')
        yield from _words(box, x, y)
    yield "</g>"


def _rect(x: float, y: float, wide: float, high: float, ink: str) -> str:
    corner = f'x="{x - wide / 2:.1f}" y="{y - high / 2:.1f}"'
    return f'<rect {corner} width="{wide:.1f}" height="{high:.1f}" rx="7" {ink}/>'


def _words(box: Box, x: float, y: float) -> Iterator[str]:
    top = y - len(box.lines) * LINE_PT / 2
    yield _text(box.lines[0], x, top + 10.5, TEXT_PT, ' font-weight="bold"')
    for number, line in enumerate(box.lines[1:], 1):
        yield _text(line, x, top + number * LINE_PT + 10, SMALL_PT)


def _arrow(arrow: Arrow, curve: Curve, placed: Layout) -> Iterator[str]:
    points = [_at(point, placed) for point in curve.points]
    colours = COLOURS[arrow.tint]
    steps = " ".join(f"{x:.1f},{y:.1f}" for x, y in points[1:])
    yield f'<g class="arrow" data-from="{escape(arrow.source)}" data-to="{escape(arrow.target)}">'
    if arrow.hint:
        yield f"<title>{escape(arrow.hint)}</title>"
    to_x, to_y = _at(curve.tip, placed)
    path = f"M{points[0][0]:.1f},{points[0][1]:.1f} C{steps} L{to_x:.1f},{to_y:.1f}"
    yield f'<path d="{path}" fill="none" stroke="{colours.line}" stroke-width="{colours.width}"/>'
    yield _head(points[-1], (to_x, to_y), colours.line)
    yield "</g>"


def _head(foot: Point, tip: Point, colour: str) -> str:
    (x, y), (to_x, to_y) = foot, tip
    far = hypot(to_x - x, to_y - y) or 1.0
    ahead, aside = (to_x - x) / far, (to_y - y) / far
    back = (to_x - _HEAD_PT * ahead, to_y - _HEAD_PT * aside)
    left = (back[0] - 3 * aside, back[1] + 3 * ahead)
    right = (back[0] + 3 * aside, back[1] - 3 * ahead)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in (tip, left, right))
    return f'<polygon points="{points}" fill="{colour}"/>'


def _inscribed(arrow: Arrow, curve: Curve, placed: Layout) -> Iterator[str]:
    """Yield the label above everything else, on a translucent ground."""
    if not arrow.lines:
        return
    x, y = _at(curve.label, placed)
    room, high = arrow.size_pt()
    wide = room - GAP_PT
    colour = COLOURS[arrow.tint].line if arrow.tint is Tint.WRONG else _INK
    yield f'<g fill="{colour}">'
    corner = f'x="{x - wide / 2:.1f}" y="{y - high / 2:.1f}"'
    yield f'<rect {corner} width="{wide:.1f}" height="{high:.1f}" fill="#ffffff" fill-opacity="0.8"/>'
    yield from _block(arrow.lines, (x, y))
    yield "</g>"
