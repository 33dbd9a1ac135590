"""The timeline as a drawing: where each state of each lane lies, with idle times drawn short."""

from bisect import bisect_right
from typing import Final

import msgspec

from lifefold.interpreters.cli.wording import age, clock_time, cut_in_the_middle
from lifefold.interpreters.web.structs import Lane, TimelinePage

NAMES_PX: Final = 140
"""The room for the names of lanes."""

WIDTH_PX: Final = 1_100
"""The room for the time that is not idle."""

GAP_PX: Final = 24
"""The width of an idle time."""

LANE_PX: Final = 24
"""The height of a lane."""

_NAME_CHARACTERS: Final = 18


class Bar(msgspec.Struct, frozen=True):
    """A state in a lane."""

    x: float
    width: float
    state: str
    title: str
    seq: int


class Gap(msgspec.Struct, frozen=True):
    """An idle time."""

    x: float
    width: float
    title: str


class Drawn(msgspec.Struct, frozen=True):
    """A lane: ``of`` is its whole name, ``name`` what fits."""

    kind: str
    of: str
    name: str
    y: int
    bars: tuple[Bar, ...]


class Drawing(msgspec.Struct, frozen=True):
    """The whole timeline."""

    width: int
    height: int
    lanes: tuple[Drawn, ...]
    gaps: tuple[Gap, ...]


class Scale:
    """Where a time lies: time that is not idle in proportion, idle times in ``GAP_PX`` each."""

    def __init__(self, page: TimelinePage) -> None:
        """Lay out the time of a page."""
        busy_ms = page.to_ms - page.from_ms - sum(end - begin for begin, end in page.idle)
        px_per_ms = WIDTH_PX / max(1, busy_ms)
        self._knots: Final = [(page.from_ms, float(NAMES_PX))]
        for begin, end in (*page.idle, (page.to_ms, page.to_ms)):
            at_ms, x = self._knots[-1]
            self._knots.append((begin, x + (begin - at_ms) * px_per_ms))
            self._knots.append((end, self._knots[-1][1] + (GAP_PX if end > begin else 0)))

    def x(self, at_ms: int) -> float:
        """Return where a time lies."""
        number = min(max(bisect_right(self._knots, at_ms, key=lambda knot: knot[0]), 1), len(self._knots) - 1)
        (from_ms, left), (to_ms, right) = self._knots[number - 1], self._knots[number]
        part = (at_ms - from_ms) / (to_ms - from_ms) if to_ms > from_ms else 1.0
        return left + (right - left) * min(max(part, 0.0), 1.0)

    @property
    def width(self) -> float:
        """The whole width."""
        return self._knots[-1][1]


def drawing(page: TimelinePage) -> Drawing:
    """Return the drawing of a timeline."""
    scale = Scale(page)
    lanes = tuple(_lane(lane, number * LANE_PX + 4, scale) for number, lane in enumerate(page.lanes))
    gaps = tuple(
        Gap(_px(scale.x(begin)), _px(scale.x(end) - scale.x(begin)), f"nothing happens for {age(end - begin)}")
        for begin, end in page.idle
    )
    return Drawing(int(scale.width) + 8, len(lanes) * LANE_PX + 8, lanes, gaps)


def _lane(lane: Lane, y: int, scale: Scale) -> Drawn:
    bars = tuple(
        Bar(
            _px(scale.x(span.from_ms)),
            _px(max(1.0, scale.x(span.to_ms) - scale.x(span.from_ms))),
            span.state,
            f"{lane.name} {span.state} from {clock_time(span.from_ms / 1_000)} for {age(span.to_ms - span.from_ms)}",
            span.seq,
        )
        for span in lane.spans
    )
    return Drawn(lane.kind, lane.name, cut_in_the_middle(lane.name, _NAME_CHARACTERS), y, bars)


def _px(number: float) -> float:
    return round(number, 1)
