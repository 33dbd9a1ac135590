"""What is to be drawn, before anybody knows where: boxes, arrows between them, frames around them, and their sizes."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import msgspec

TEXT_PT: Final = 12
"""The size of a box's first line; all other lines are ``SMALL_PT``."""
SMALL_PT: Final = 10
LINE_PT: Final = 13
"""From one line to the next."""
PADDING_PT: Final = 9
GAP_PT: Final = 8
"""From an arrow's line to its inscription."""
DOT_PT: Final = 11
"""How wide a box is that has no lines: it is drawn as a dot."""


class Tint(StrEnum):
    """What something is marked as."""

    PLAIN = "plain"
    START = "start"
    HERE = "here"
    WRONG = "wrong"
    FAINT = "faint"


class Box(msgspec.Struct, frozen=True):
    """A state. Without ``lines`` it is a dot; ``final`` ones have a double border, ``loose`` ones a broken one.

    ``hint`` is what is read when the pointer rests on it; ``fill`` is a colour other than its tint's.
    """

    key: str
    lines: tuple[str, ...] = ()
    tint: Tint = Tint.PLAIN
    final: bool = False
    loose: bool = False
    hint: str = ""
    fill: str = ""

    def size_pt(self) -> tuple[float, float]:
        """Return how wide and how high it is."""
        if not self.lines:
            return DOT_PT, DOT_PT
        first = width_pt(self.lines[0], TEXT_PT, bold=True)
        wide = max([first, *(width_pt(line, SMALL_PT) for line in self.lines[1:])])
        return max(wide + 2 * PADDING_PT, 40.0), len(self.lines) * LINE_PT + 2 * PADDING_PT


class Arrow(msgspec.Struct, frozen=True):
    """What leads from one box to another, with a line for each way that it is taken. ``hint`` as in a box."""

    source: str
    target: str
    lines: tuple[str, ...] = ()
    tint: Tint = Tint.PLAIN
    hint: str = ""

    def size_pt(self) -> tuple[float, float]:
        """Return how much room its inscription takes."""
        return block_pt(self.lines)


class Group(msgspec.Struct, frozen=True):
    """A frame around boxes and other frames, with its inscription."""

    key: str
    lines: tuple[str, ...]
    boxes: tuple[Box, ...] = ()
    groups: tuple["Group", ...] = ()


class Drawing(msgspec.Struct, frozen=True):
    """All of it. ``sideways``: arrows lead from left to right, not downwards. ``legend``: what which colour means."""

    title: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    groups: tuple[Group, ...] = ()
    sideways: bool = False
    legend: tuple[tuple[str, str], ...] = ()

    def text(self) -> str:
        """Return it without a picture: a line for each arrow."""
        names = {box.key: box.lines[0] if box.lines else box.key for box in self.every_box()}
        drawn = [
            f"  {names[arrow.source]} → {names[arrow.target]}   {'; '.join(arrow.lines)}".rstrip()
            for arrow in self.arrows
        ]
        return "\n".join([self.title, *drawn])

    @property
    def is_tight(self) -> bool:
        """Whether it is of dots alone, which may stand near each other."""
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
    """Return how wide and how high small lines are, one below the other."""
    return max((width_pt(line, SMALL_PT) for line in lines), default=0.0) + GAP_PT, len(lines) * LINE_PT


_NARROW: Final = frozenset("fijlrtI.,:;!'|()[]/ -`")
_WIDE: Final = frozenset("mwMWABCDEGHKNOPQRSUVXYZ@%→…")


def width_pt(text: str, size_pt: float, *, bold: bool = False) -> float:
    """Return about how wide a text is in a sans-serif font; rather too wide than too narrow.

    Asking a font would make the picture another one on every machine.
    """
    ems = sum(0.36 if c in _NARROW else 0.76 if c in _WIDE else 0.57 for c in text)
    return round(ems * size_pt * (1.07 if bold else 1.0), 1)
