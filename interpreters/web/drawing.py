"""The timeline as a drawing: where each state of each lane lies, with idle times drawn short."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Final

from markupsafe import Markup, escape

from lifefold.interpreters.cli.wording import age, cut_in_the_middle, moment
from lifefold.interpreters.web.structs import Lane, Span, TimelinePage

NAMES_PX: Final = 140
"""The room for the names of lanes."""

LEAST_PX: Final = 1.0
"""The least width of a state."""

WIDTH_PX: Final = 900
"""The room for the time that is not idle."""

GAP_PX: Final = 24
"""The width of an idle time."""

LANE_PX: Final = 24
"""The height of a lane."""

MOST_ROWS: Final = 100
"""The most states in the table below the drawing."""

_NAME_CHARACTERS: Final = 18


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


def drawing(page: TimelinePage, addresses: Mapping[str, str]) -> Markup:
    """Return the drawing of a timeline as SVG; ``addresses`` has that of each lane, by kind and name.

    It is written here and not by a template, because it can have thousands of parts.
    """
    scale = Scale(page)
    width, height = int(scale.width) + 8, len(page.lanes) * LANE_PX + 8
    parts = [_HEAD.format(width, height, width, height)]
    parts += [_gap(scale, begin, end, height) for begin, end in page.idle]
    for number, lane in enumerate(page.lanes):
        parts += _lane(lane, number * LANE_PX + 4, scale, addresses[f"{lane.kind} {lane.name}"])
    return Markup("\n").join([*parts, Markup("</svg>")])


_HEAD: Final = Markup(
    '<svg class="timeline" role="img" aria-label="A lane for each agent and each task" width="{}" height="{}"'
    ' viewBox="0 0 {} {}">'
)
_GAP: Final = Markup('<rect class="idle" x="{}" y="0" width="{}" height="{}"><title>{}</title></rect>')
_NAME: Final = Markup('<text x="4" y="{}">{}</text>')
_BAR: Final = (
    '<a href="%s?at=%d"><rect class="bar state-%s" x="%.1f" y="%d" width="%.1f" height="18" rx="3">'
    "<title>%s</title></rect></a>"
)


def _gap(scale: Scale, begin: int, end: int, height: int) -> Markup:
    left, right = scale.x(begin), scale.x(end)
    return _GAP.format(_px(left), _px(right - left), height, f"nothing happens for {age(end - begin)}")


def _lane(lane: Lane, y: int, scale: Scale, address: str) -> Iterator[Markup]:
    """Yield the name and the states of a lane; one that would be less than a pixel beside another is left out."""
    yield _NAME.format(y + 14, cut_in_the_middle(lane.name, _NAME_CHARACTERS))
    drawn_to, name, at = 0.0, escape(lane.name), escape(address)
    for span in lane.spans:
        left, right = scale.x(span.from_ms), scale.x(span.to_ms)
        if right < drawn_to:
            continue
        drawn_to = max(right, left + LEAST_PX)
        state, lasts = escape(span.state), age(span.to_ms - span.from_ms)
        title = f"{name} {state} from {moment(span.from_ms)} for {lasts}"
        bar = _BAR % (at, span.seq, state, left, y, drawn_to - left, title)
        yield Markup(bar)  # noqa: S704 - its texts are escaped above, once a lane


def last_spans(page: TimelinePage) -> list[tuple[Lane, Span]]:
    """Return the latest states of all lanes, the latest first."""
    every = [(lane, span) for lane in page.lanes for span in lane.spans]
    return sorted(every, key=lambda each: -each[1].from_ms)[:MOST_ROWS]


def _px(number: float) -> float:
    return round(number, 1)
