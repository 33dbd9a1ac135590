"""Writes docs/architecture.svg: five worlds around one reducer, and the way of an input through the engine.

It needs nothing but Python and measures no text, so the picture is the same on every machine.
"""

from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple
from xml.sax.saxutils import escape

WIDTH: Final = 860
HEIGHT: Final = 480
LINE: Final = 17
"""The distance of two lines of text, in pixels."""

HIGH: Final = 54
"""The height of a box of two lines, in pixels."""

FILLS: Final = {"core": "#e8f0fe", "world": "#f1f3f4", "step": "#e6f4ea", "outside": "#fef7e0"}
GREY: Final = "#5f6368"

Texts = tuple[tuple[str, ...], ...]
CORE: Final = (
    "core: tables of rows, rules, properties",
    "(state, event) -> (state, effects)",
    "immutable records; no clock, no random number, no input or output",
)
WORLDS: Final[Texts] = (
    ("notebook", "played"),
    ("check", "all states, crashes"),
    ("simulate", "virtual time, faults"),
    ("engine", "real time, durable log"),
    ("replay, why", "read from the log"),
)
STEPS: Final[Texts] = (
    ("1 decide", "pure, in batches"),
    ("2 persist", "one transaction"),
    ("3 perform", "effects leave"),
    ("4 record", "what is performed"),
)
OUTSIDE: Final[Texts] = (
    ("shims", "agent processes"),
    ("worktrees", "git, verification"),
    ("timers", "deadlines"),
    ("log", "one SQLite file"),
)


class Box(NamedTuple):
    """A box: its place and size in pixels, its kind, and its lines, the first of which is its heading."""

    left: int
    top: int
    width: int
    height: int
    kind: str
    lines: tuple[str, ...]

    @property
    def middle(self) -> int:
        """The middle, from the left."""
        return self.left + self.width // 2

    @property
    def bottom(self) -> int:
        """The lower edge."""
        return self.top + self.height

    def drawn(self) -> str:
        """Return the box as SVG."""
        first = self.top + (self.height - LINE * (len(self.lines) - 1)) // 2 + 4
        weights = ("bold", *("normal" for _ in self.lines[1:]))
        texts = "".join(
            f'<text x="{self.middle}" y="{first + LINE * at}" font-weight="{weight}">{escape(line)}</text>'
            for at, (weight, line) in enumerate(zip(weights, self.lines, strict=True))
        )
        place = f'x="{self.left}" y="{self.top}" width="{self.width}" height="{self.height}"'
        return f'<rect {place} rx="6" fill="{FILLS[self.kind]}" stroke="#9aa0a6"/>{texts}'


def boxes() -> list[Box]:
    """Return the boxes: the core, five worlds, four steps of the engine, and four things outside."""
    worlds = [Box(20 + 166 * at, 140, 156, HIGH, "world", lines) for at, lines in enumerate(WORLDS)]
    steps = [Box(120 + 185 * at, 252, 150, HIGH, "step", lines) for at, lines in enumerate(STEPS)]
    outside = [Box(120 + 185 * at, 372, 150, HIGH, "outside", lines) for at, lines in enumerate(OUTSIDE)]
    return [Box(170, 20, WIDTH - 340, 76, "core", CORE), *worlds, *steps, *outside]


def bars(of: list[Box]) -> list[str]:
    """Return the lines without a tip: several arrows begin at each, or come together in it."""
    core, worlds, perform, performers = of[0], of[1:6], of[8], of[10:13]
    return [
        f"M{core.middle} {core.bottom}V118M{worlds[0].middle} 118H{worlds[-1].middle}",
        f"M{perform.middle} {perform.bottom}V348M{performers[0].middle} 348H{performers[-1].middle}",
        *(f"M{each.middle} {each.bottom}V444" for each in performers),
    ]


def arrows(of: list[Box]) -> list[str]:
    """Return the arrows: to each world, from the engine through its steps, outside, and back."""
    worlds, steps, (*performers, log) = of[1:6], of[6:10], of[10:]
    engine, (decide, persist, _, _) = worlds[3], steps
    return [
        *(f"M{each.middle} 118V{each.top - 1}" for each in worlds),
        f"M{engine.middle} {engine.bottom}V223H{decide.middle}V{decide.top - 1}",
        *(f"M{one.left + one.width} {one.top + 27}H{after.left - 1}" for one, after in pairwise(steps)),
        *(f"M{each.middle} 348V{each.top - 1}" for each in performers),
        f"M{persist.middle} {persist.bottom}V328H{log.middle}V{log.top - 1}",
        f"M{performers[-1].middle} 444H60V{decide.top + 27}H{decide.left - 1}",
    ]


def picture() -> str:
    """Return the picture as SVG."""
    drawn = boxes()
    tipped = [f'<path d="{each}" marker-end="url(#tip)"/>' for each in arrows(drawn)]
    paths = "\n".join([*(f'<path d="{each}"/>' for each in bars(drawn)), *tipped])
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"
font-family="Helvetica, Arial, sans-serif" font-size="13" text-anchor="middle" fill="#202124">
<title>One pure reducer, used by five worlds; the engine decides, persists, performs and records</title>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">
<path d="M0 0L8 4L0 8z" fill="{GREY}"/></marker></defs>
<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>
<g fill="none" stroke="{GREY}" stroke-width="1.2">
{paths}
</g>
{"".join(f"{each.drawn()}{chr(10)}" for each in drawn)}<text x="380" y="464" fill="{GREY}">reports, \
deadlines and operator commands come back as inputs</text>
</svg>
"""


if __name__ == "__main__":
    Path(__file__).with_name("architecture.svg").write_text(picture())
