"""The timeline as a drawing: an axis of times, and where each state of each lane lies, with idle times drawn short."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Final

from markupsafe import Markup, escape

from lifefold.interpreters.cli.wording import age, cut_in_the_middle, moment
from lifefold.interpreters.explain.words import of_lane
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

AXIS_PX: Final = 22
"""The height of the axis above the lanes."""

TICK_PX: Final = 90
"""The least distance of two times on the axis."""

STEPS_MS: Final = tuple(
    seconds * 1_000 for seconds in (1, 2, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400)
)
"""The distances of times on the axis, in milliseconds: the first one that leaves enough room is taken."""

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
    width, height = int(scale.width) + TICK_PX, len(page.lanes) * LANE_PX + AXIS_PX + 8
    parts = [_HEAD.format(width, height, width, height)]
    parts += [_gap(scale, begin, end, height) for begin, end in page.idle]
    parts += [_TICK.format(x, x, height, x + 3, said) for x, said in ticks(page, scale)]
    for number, lane in enumerate(page.lanes):
        parts += _lane(lane, number * LANE_PX + AXIS_PX + 4, scale, addresses[f"{lane.kind} {lane.name}"])
    return Markup("\n").join([*parts, Markup("</svg>")])


_HEAD: Final = Markup(
    '<svg class="timeline" role="img" aria-label="A lane for each agent and each task" width="{}" height="{}"'
    ' viewBox="0 0 {} {}">'
)
_GAP: Final = Markup('<rect class="idle" x="{}" y="0" width="{}" height="{}"><title>{}</title></rect>')
_TICK: Final = Markup('<line class="tick" x1="{}" x2="{}" y1="0" y2="{}"/><text class="time" x="{}" y="14">{}</text>')
_NAME: Final = Markup('<text x="4" y="{}">{}</text>')
_BAR: Final = (
    '<a href="%s?at=%d"><rect class="bar state-%s" x="%.1f" y="%d" width="%.1f" height="18" rx="3">'
    "<title>%s</title></rect></a>"
)


def ticks(page: TimelinePage, scale: Scale) -> Iterator[tuple[float, str]]:
    """Yield the places of the axis with their local times: round ones, far enough apart, and the begin of the page.

    An idle time has none, because it is drawn short. After it the next round time follows.
    """
    last = _px(scale.x(page.from_ms))
    yield last, moment(page.from_ms)
    busy_ms = page.to_ms - page.from_ms - sum(end - begin for begin, end in page.idle)
    least_ms = busy_ms * TICK_PX / WIDTH_PX
    step_ms = next((each for each in STEPS_MS if each >= least_ms), STEPS_MS[-1] * (1 + int(least_ms / STEPS_MS[-1])))
    for begin_ms, end_ms in _busy(page):
        for at_ms in range(-(-begin_ms // step_ms) * step_ms, end_ms + 1, step_ms):
            if (x := _px(scale.x(at_ms))) - last >= TICK_PX:
                last = x
                yield x, moment(at_ms)


def _busy(page: TimelinePage) -> Iterator[tuple[int, int]]:
    """Yield the times between the idle ones."""
    begin_ms = page.from_ms
    for idle_from, idle_to in page.idle:
        yield begin_ms, idle_from
        begin_ms = idle_to
    yield begin_ms, page.to_ms


def states(page: TimelinePage) -> list[tuple[str, str]]:
    """Return the states on a page, each with its words, in the order in which they come first."""
    found = dict.fromkeys(span.state for lane in page.lanes for span in lane.spans)
    return [(each, of_lane(each)) for each in found]


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
        title = f"{name} {escape(of_lane(span.state))} ({state}) from {moment(span.from_ms)} for {lasts}"
        bar = _BAR % (at, span.seq, state, left, y, drawn_to - left, title)
        yield Markup(bar)  # noqa: S704 - its texts are escaped above, once a lane


def last_spans(page: TimelinePage) -> list[tuple[Lane, Span]]:
    """Return the latest states of all lanes, the latest first."""
    every = [(lane, span) for lane in page.lanes for span in lane.spans]
    return sorted(every, key=lambda each: -each[1].from_ms)[:MOST_ROWS]


def _px(number: float) -> float:
    return round(number, 1)
