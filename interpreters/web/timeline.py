"""The timeline: a lane for each agent and each task, made of their changes of state; idle time is marked."""

from collections.abc import Iterable, Iterator
from typing import Final

from lifefold.interpreters.web.journal import Line
from lifefold.interpreters.web.moments import View
from lifefold.interpreters.web.structs import Lane, Span, TimelinePage

MOST_LANES: Final = 60
"""The most lanes on a page: those with the latest changes."""

IDLE_MS: Final = 60_000
"""A time without any transition that is at least so long is drawn short."""

_KINDS: Final = {"session": "agent", "invocation": "agent", "task": "task"}
"""The machines that have a lane, and what the lane is about."""

_OVER: Final = frozenset({"CLOSED", "CANCELLED", "Stopped"})
"""States that end a lane: nothing is drawn after them."""


def timeline_page(view: View, from_ms: int = 0, to_ms: int = 0) -> TimelinePage:
    """Return the lanes between two times; 0 is the begin of the log, or the moment of the view."""
    lines = list(view.log.journal.between(0, view.moment.seq))
    begin = from_ms or (lines[0].at_ms if lines else 0)
    end = min(to_ms or view.now_ms, view.now_ms)
    moves: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        if line.machine in _KINDS and (line.is_move or not line.before):
            moves.setdefault((_KINDS[line.machine], line.name), []).append(line)
    lanes = [Lane(kind, name, tuple(_spans(of, begin, end))) for (kind, name), of in moves.items()]
    drawn = sorted((each for each in lanes if each.spans), key=lambda lane: -lane.spans[-1].from_ms)
    shown = sorted(drawn[:MOST_LANES], key=lambda lane: (lane.kind, lane.spans[0].from_ms, lane.name))
    idle = tuple(_idle((line.at_ms for line in lines), begin, end))
    return TimelinePage(view.at(), begin, end, tuple(shown), len(drawn) - len(shown), idle)


def _spans(moves: Iterable[Line], begin: int, end: int) -> Iterator[Span]:
    """Yield the states of one lane that lie between two times, cut to them."""
    before: Line | None = None
    for line in moves:
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


def _idle(times: Iterable[int], begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the gaps between transitions that are long, within two times."""
    before = begin
    for at_ms in (*times, end):
        if begin <= at_ms <= end:
            if at_ms - before >= IDLE_MS:
                yield before, at_ms
            before = max(before, at_ms)
