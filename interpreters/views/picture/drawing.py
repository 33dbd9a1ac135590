"""A drawing before its layout: boxes, arrows, frames, and their sizes."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import msgspec

TEXT_PT: Final = 12
"""The size of a box's first line; all other lines are ``SMALL_PT``."""
SMALL_PT: Final = 10
LINE_PT: Final = 13
"""The distance of two lines."""
PADDING_PT: Final = 9
GAP_PT: Final = 8
"""The distance of an arrow's line from its label."""
DOT_PT: Final = 11
"""The width of a box without lines, which is drawn as a dot."""


class Tint(StrEnum):
    """The marks of boxes and arrows."""

    PLAIN = "plain"
    START = "start"
    HERE = "here"
    WRONG = "wrong"
    FAINT = "faint"


class Box(msgspec.Struct, frozen=True):
    """A state. Without ``lines`` it is a dot; ``final`` ones have a double border, ``loose`` ones a broken one.

    ``hint`` is the text under the pointer; ``fill`` is a colour other than its tint's.
    """

    key: str
    lines: tuple[str, ...] = ()
    tint: Tint = Tint.PLAIN
    final: bool = False
    loose: bool = False
    hint: str = ""
    fill: str = ""

    def size_pt(self) -> tuple[float, float]:
        """Return its width and height."""
        if not self.lines:
            return DOT_PT, DOT_PT
        first = width_pt(self.lines[0], TEXT_PT, bold=True)
        wide = max([first, *(width_pt(line, SMALL_PT) for line in self.lines[1:])])
        return max(wide + 2 * PADDING_PT, 40.0), len(self.lines) * LINE_PT + 2 * PADDING_PT


class Arrow(msgspec.Struct, frozen=True):
    """An arrow between two boxes, with a line for each row or step. ``hint`` as in a box."""

    source: str
    target: str
    lines: tuple[str, ...] = ()
    tint: Tint = Tint.PLAIN
    hint: str = ""

    def size_pt(self) -> tuple[float, float]:
        """Return the size of its label."""
        return block_pt(self.lines)


class Group(msgspec.Struct, frozen=True):
    """A frame around boxes and other frames, with its label."""

    key: str
    lines: tuple[str, ...]
    boxes: tuple[Box, ...] = ()
    groups: tuple["Group", ...] = ()


class Drawing(msgspec.Struct, frozen=True):
    """A whole drawing. ``sideways``: arrows lead from left to right, not downwards. ``legend``: the colours."""

    title: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    groups: tuple[Group, ...] = ()
    sideways: bool = False
    legend: tuple[tuple[str, str], ...] = ()

    def text(self) -> str:
        """Return the drawing as text: a line for each arrow."""
        names = {box.key: box.lines[0] if box.lines else box.key for box in self.every_box()}
        drawn = [
            f"  {names[arrow.source]} → {names[arrow.target]}   {'; '.join(arrow.lines)}".rstrip()
            for arrow in self.arrows
        ]
        return "\n".join([self.title, *drawn])

    @property
    def is_tight(self) -> bool:
        """Whether it has dots only, which may stand near each other."""
        return not any(box.lines for box in self.every_box())

    def every_box(self) -> tuple[Box, ...]:
        """Return the boxes outside of frames and inside."""
        return (*self.boxes, *_inside(self.groups))

    def every_group(self) -> tuple[Group, ...]:
        """Return all frames, outer ones first."""
        return _frames(self.groups)


def _inside(groups: Iterable[Group]) -> tuple[Box, ...]:
    return tuple(box for group in groups for box in (*group.boxes, *_inside(group.groups)))


def _frames(groups: Iterable[Group]) -> tuple[Group, ...]:
    return tuple(each for group in groups for each in (group, *_frames(group.groups)))


def block_pt(lines: tuple[str, ...]) -> tuple[float, float]:
    """Return the width and height of small lines, one below the other."""
    return max((width_pt(line, SMALL_PT) for line in lines), default=0.0) + GAP_PT, len(lines) * LINE_PT


_NARROW: Final = frozenset("fijlrtI.,:;!'|()[]/ -`")
_WIDE: Final = frozenset("mwMWABCDEGHKNOPQRSUVXYZ@%→…")


def width_pt(text: str, size_pt: float, *, bold: bool = False) -> float:
    """Return the approximate width of a text in a sans-serif font, rather too wide than too narrow.

    A measurement with a font would differ between machines.
    """
    ems = sum(0.36 if c in _NARROW else 0.76 if c in _WIDE else 0.57 for c in text)
    return round(ems * size_pt * (1.07 if bold else 1.0), 1)
