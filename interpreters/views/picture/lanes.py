"""A sequence diagram as SVG. Its layout needs no Graphviz: lanes beside each other, inputs below each other."""

from collections.abc import Iterator
from html import escape
from typing import Final

from lifefold.interpreters.views.sequence import Sequence, Signal

_LANE_PT: Final = 210
_HEAD_PT: Final = 24
_LINE_PT: Final = 13
_MARGIN_PT: Final = 8
_WORDS: Final = 38
"""The most characters of a label; the whole text is under the pointer."""
_INK: Final = "#24324a"
_LINE: Final = "#44546a"
_SOFT: Final = ' fill="#57606a"'
_MIDDLE: Final = ' text-anchor="middle"'


def sequence_svg(drawn: Sequence) -> str:
    """Return the picture, always the same for the same diagram."""
    places = {lane: _MARGIN_PT + _LANE_PT * number + _LANE_PT // 2 for number, lane in enumerate(drawn.lanes)}
    parts: list[str] = []
    y = _MARGIN_PT + _HEAD_PT + _LINE_PT
    for each in drawn.signals:
        parts += _signal(each, places, y)
        y += _LINE_PT * (2 + len(each.moves)) + 4
    parts += (_text(line, _MARGIN_PT, y + _LINE_PT, _SOFT) for line in drawn.rest())
    wide, high = 2 * _MARGIN_PT + _LANE_PT * max(1, len(places)) + _LANE_PT // 2, y + 2 * _LINE_PT
    size = f'width="{wide}" height="{high}" viewBox="0 0 {wide} {high}"'
    fonts = 'font-family="Helvetica, Arial, sans-serif" font-size="10"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} {fonts} fill="{_INK}">',
            f"<title>{escape(drawn.title)}</title>",
            '<rect width="100%" height="100%" fill="#ffffff"/>',
            *(line for lane, x in places.items() for line in _lane(lane, x, y)),
            *parts,
            "</svg>\n",
        ]
    )


def _lane(name: str, x: int, to_y: int) -> Iterator[str]:
    top, wide = _MARGIN_PT, _LANE_PT - 20
    yield f'<line x1="{x}" y1="{top + _HEAD_PT}" x2="{x}" y2="{to_y}" stroke="#b8c0cc" stroke-dasharray="4,3"/>'
    corner = f'x="{x - wide // 2}" y="{top}" width="{wide}" height="{_HEAD_PT}"'
    yield f'<rect {corner} rx="7" fill="#f4f6fb" stroke="{_LINE}"/>'
    yield _text(name, x, top + 16, f'{_MIDDLE} font-weight="bold"')


def _signal(each: Signal, places: dict[str, int], y: int) -> Iterator[str]:
    """Yield the arrow with its label above, and its transitions below, at the receiver's lane."""
    x, to_x = places[each.sender], places[each.receiver]
    label = f"{each.number}. {each.words}"
    yield f'<g class="signal" data-from="{escape(each.sender)}" data-to="{escape(each.receiver)}">'
    yield f"<title>{escape(each.line().strip())}</title>"
    if x == to_x:
        yield f'<circle cx="{x}" cy="{y + _LINE_PT - 4}" r="3" fill="{_LINE}"/>'
        yield _text(label, x + 8, y + _LINE_PT)
    else:
        toward = 1 if to_x > x else -1
        # The label is near the receiver, where the lanes that a long arrow crosses do not hide it.
        yield _text(label, to_x - toward * _LANE_PT // 2, y + _LINE_PT - 3, _MIDDLE)
        line = y + _LINE_PT
        yield f'<line x1="{x}" y1="{line}" x2="{to_x - 6 * toward}" y2="{line}" stroke="{_LINE}"/>'
        tip = f"{to_x},{line} {to_x - 8 * toward},{line - 3} {to_x - 8 * toward},{line + 3}"
        yield f'<polygon points="{tip}" fill="{_LINE}"/>'
    for number, move in enumerate(each.moves, 2):
        yield _text(move, to_x + 8, y + _LINE_PT * number, _SOFT)
    yield "</g>"


def _text(words: str, x: float, y: float, look: str = "") -> str:
    shown = words if len(words) <= _WORDS else f"{words[: _WORDS - 1]}…"
    return f'<text x="{x}" y="{y}"{look}>{escape(shown)}</text>'
