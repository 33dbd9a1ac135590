"""The timeline: a lane for each agent and each task, made of their changes of state; idle time is marked."""

from collections.abc import Iterable, Iterator
from typing import Final

from lifefold.interpreters.web.journal import IDLE_MS, Choice, Line
from lifefold.interpreters.web.moments import View
from lifefold.interpreters.web.structs import Lane, Span, TimelinePage

MOST_LANES: Final = 60
"""The most lanes on a page: those with the latest changes."""

_KINDS: Final = {"session": "agent", "invocation": "agent", "task": "task"}
"""The machines that have a lane, and what the lane is about."""

_OVER: Final = frozenset({"CLOSED", "CANCELLED", "Stopped"})
"""States that end a lane: nothing is drawn after them."""


def timeline_page(view: View, from_ms: int = 0, to_ms: int = 0) -> TimelinePage:
    """Return the lanes between two times; 0 is the begin of the log, or the moment of the view."""
    journal, until = view.log.journal, view.moment.seq
    begin = from_ms or (journal.lines[0].at_ms if until else 0)
    end = min(to_ms or view.now_ms, view.now_ms)
    drawn: list[Lane] = []
    for machine, name in list(journal.lanes):
        if spans := tuple(_spans(journal.lane(machine, name, until), begin, end)):
            drawn.append(Lane(_KINDS[machine], name, spans))
    drawn.sort(key=lambda lane: -lane.spans[-1].from_ms)
    shown = sorted(drawn[:MOST_LANES], key=lambda lane: (lane.kind, lane.spans[0].from_ms, lane.name))
    return TimelinePage(view.at(), begin, end, tuple(shown), len(drawn) - len(shown), tuple(_idle(view, begin, end)))


def _spans(moves: Iterable[Line], begin: int, end: int) -> Iterator[Span]:
    """Yield the states of one lane that lie between two times, cut to them."""
    before: Line | None = None
    for line in moves:
        if line.before and not line.is_move:
            continue
        if before is not None and (span := _span(before, line.at_ms, begin, end)) is not None:
            yield span
        before = line
    if before is not None and before.after not in _OVER and (span := _span(before, end, begin, end)) is not None:
        yield span


def _span(line: Line, to_ms: int, begin: int, end: int) -> Span | None:
    lasts_from, lasts_to = max(line.at_ms, begin), min(to_ms, end)
    if lasts_from > end or lasts_to < begin:
        return None
    return Span(lasts_from, max(lasts_from, lasts_to), line.after, line.cause, line.seq)


def _idle(view: View, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the idle times that lie between two times, cut to them; the last one lasts until the moment of the view."""
    last = next(iter(view.log.journal.chosen(Choice(), before=view.moment.seq + 1, most=1)), None)
    tail = () if last is None else ((last.at_ms, end),)
    for from_ms, to_ms in (*view.log.journal.idle, *tail):
        first, then = max(from_ms, begin), min(to_ms, end)
        if then - first >= IDLE_MS and (last is None or from_ms <= last.at_ms):
            yield first, then
