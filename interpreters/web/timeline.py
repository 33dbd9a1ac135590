"""The timeline: a lane for each agent and each task, made of their changes of state; idle time is marked."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from msgspec.structs import replace

from lifefold.core.fleet.worker import assignment
from lifefold.core.lifecycles import session
from lifefold.interpreters.explain.words import IDLE
from lifefold.interpreters.web.journal import IDLE_MS, Choice, Line
from lifefold.interpreters.web.moments import View
from lifefold.interpreters.web.structs import Lane, Span, TimelinePage

MOST_LANES: Final = 60
"""The most lanes on a page: those with the latest changes."""

_KINDS: Final = {"session": "agent", "invocation": "agent", "task": "task"}
"""The machines that have a lane, and what the lane is about."""

_FREE: Final = frozenset(map(str, (assignment.State.IDLE, assignment.State.WANTING)))
"""The states of the assignment of an agent without a task."""

_PREPARED: Final = frozenset(map(str, (session.State.INITIALIZING, session.State.BUILDING_PROMPT)))
"""The states of a session in which an agent without a task waits for one."""

_OVER: Final = frozenset({"CLOSED", "CANCELLED", "Stopped"})
"""States that end a lane: nothing is drawn after them."""


def timeline_page(view: View, from_ms: int = 0, to_ms: int = 0) -> TimelinePage:
    """Return the lanes between two times; 0 is the begin of the log, or the moment of the view."""
    journal, until = view.log.journal, view.moment.seq
    begin = from_ms or (journal.lines[0].at_ms if until else 0)
    end = min(to_ms or view.now_ms, view.now_ms)
    drawn: list[Lane] = []
    for machine, name in [lane for lane in journal.lanes if lane[0] in _KINDS]:
        spans = tuple(_spans(journal.lane(machine, name, until), begin, end))
        if machine == session.machine.name:
            spans = tuple(_with_idle(spans, journal.lane(assignment.machine.name, name, until), end))
        if spans:
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


def _with_idle(spans: Iterable[Span], assigned: Sequence[Line], end: int) -> Iterator[Span]:
    """Yield the states of an agent; where it is prepared and has no task, it is idle."""
    times = [(line.at_ms, after.at_ms, line, after.seq) for line, after in pairwise(assigned)]
    times += [(assigned[-1].at_ms, end, assigned[-1], 0)] if assigned else []
    free = [(begin, until, line.seq, then) for begin, until, line, then in times if line.after in _FREE]
    for span in spans:
        if span.state not in _PREPARED:
            yield span
            continue
        at_ms, seq = span.from_ms, span.seq
        for begin, until, since, then in free:
            if begin < span.to_ms and until > at_ms:
                if begin > at_ms:
                    yield replace(span, from_ms=at_ms, to_ms=begin, seq=seq)
                yield Span(max(begin, at_ms), min(until, span.to_ms), IDLE, "", max(since, span.seq))
                at_ms, seq = min(until, span.to_ms), max(then, span.seq)
        if at_ms < span.to_ms or at_ms == span.from_ms:
            yield replace(span, from_ms=at_ms, seq=seq)


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
