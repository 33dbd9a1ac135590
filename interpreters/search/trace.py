"""A way to a state as people read it: each step on a line, with what it moves, and what comes of it in the end."""

import textwrap
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from lifefold.core.kernel import ActivityEnded, Cause, Envelope, Record, RunnerRecovered, TimerFired, Transition
from lifefold.interpreters.search.canonical import NOW_MS
from lifefold.interpreters.search.crash_model import Stage
from lifefold.interpreters.search.unreduced import Happening

WIDTH: Final = 80
"""How many characters a line has for people, unless somebody says otherwise."""

WHAT_LINES: Final = 2
"""How many lines there are for what happens in a step; what is longer is cut off."""


class Attempt(NamedTuple):
    """What cannot be gone on with: an input to an aggregate, if it is one, or a property that cannot be judged; why."""

    said: str
    aggregate: str = ""
    cause: Cause = Cause.COMMAND
    envelope: Envelope | None = None
    prop: tuple[str, str] | None = None
    """Whose it is, and its name."""


class Trace(msgspec.Struct, frozen=True):
    """The way to a state, step by step; with a ``cycle``, what then goes on for ever: nothing, if it is empty.

    An ``attempt`` is what comes then, and what the rules cannot answer.
    """

    steps: tuple[Happening, ...]
    cycle: tuple[Happening, ...] | None = None
    attempt: Attempt | None = None
    begins: tuple[tuple[str, Record], ...] = ()
    """If there are no steps: all entities in the beginning, each with its record."""

    def lines(self, width: int = WIDTH) -> Iterator[str]:
        """Yield the trace for people: what happens in each step, and what is moved by it."""
        yield from self._beginning(width)
        yield from self._lines(width)
        if self.attempt is not None:
            yield from self._attempted(self.attempt, width)

    def _beginning(self, width: int) -> Iterator[str]:
        if len(self.begins) == 1:
            yield from wrapped("     in the beginning: ", repr(self.begins[0][1]), width, WHAT_LINES)
        elif self.begins:
            yield "     in the beginning:"
            for place, record in self.begins:
                yield from wrapped("       ", f"{place}: {record!r}", width, WHAT_LINES)

    def _attempted(self, attempt: Attempt, width: int) -> Iterator[str]:
        if attempt.envelope is not None:
            happening = _what(attempt.cause, attempt.envelope)
            alone = attempt.envelope.entity in {"", attempt.aggregate}
            place = "" if alone else f"{placed(attempt.aggregate, attempt.envelope.entity)}: "
            yield from wrapped(f"{len(self.steps) + 1:>3}. ", f"{place}{happening}", width, WHAT_LINES)
        yield from wrapped("     ", attempt.said, width)

    def _lines(self, width: int) -> Iterator[str]:
        happenings = (*self.steps, *(self.cycle or ()))
        alone = all(each.envelope.entity in {"", each.aggregate} for each in happenings)
        now_ms = NOW_MS
        for number, happening in enumerate(happenings, 1):
            if self.cycle and number == len(self.steps) + 1:
                yield "     and from then on, for ever:"
            at_ms = happening.envelope.at_ms
            place = "" if alone else f"{placed(happening.aggregate, happening.envelope.entity)}: "
            later = f" ({at_ms - now_ms:,} ms later)" if at_ms > now_ms and happening.cause is not Cause.TIMER else ""
            yield from _lines(number, f"{place}{_what(happening.cause, happening.envelope)}{later}", happening, width)
            now_ms = max(now_ms, at_ms)
        if self.cycle == ():
            yield "     and from then on nothing happens any more"


class Incident(NamedTuple):
    """What a runner did, or what happened to it; ``happening`` is what came of it if it decided."""

    stage: Stage
    words: str
    happening: Happening | None = None


class CrashTrace(Trace, frozen=True):
    """The way to a fault of a runner: the steps to where it begins, and then what it did and what happened to it."""

    incidents: tuple[Incident, ...] = ()

    def lines(self, width: int = WIDTH) -> Iterator[str]:
        """Yield the trace for people: a line for each incident, and what does not fit into it below."""
        if self.steps:
            yield from Trace(self.steps).lines(width)
            yield "     and with all of that on record and done"
        for number, incident in enumerate(self.incidents, len(self.steps) + 1):
            first = f"{number:>3}. {incident.stage:<7} "
            yield from wrapped(first, incident.words, width)
        if self.cycle == ():
            yield "     and from then on nothing happens any more"
        if self.attempt is not None:
            yield from wrapped("     ", self.attempt.said, width)


def wrapped(first: str, text: str, width: int, max_lines: int | None = None) -> list[str]:
    """Return a text behind its first words, with all further lines below its beginning."""
    after = " " * len(first)
    lines = textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=after, max_lines=max_lines, placeholder=" …"
    )
    return lines or [first.rstrip()]


def _lines(number: int, what: str, happening: Happening, width: int) -> Iterator[str]:
    first = f"{number:>3}. "
    moved = "; ".join(_moved(happening.aggregate, step) for step in happening.reaction.transitions)
    if happening.reaction.refused is not None:
        moved = f"refused: {happening.reaction.refused.reason}"
    line = f"{first}{what}   {moved}"
    if len(line) <= width:
        yield line.rstrip()
        return
    yield from wrapped(first, what, width, WHAT_LINES)
    if moved:
        yield from wrapped("       ", moved, width)


def _what(cause: Cause, envelope: Envelope) -> str:
    match envelope.event:
        case TimerFired(slot=slot):
            return f"{slot} elapses"
        case ActivityEnded(slot=slot):
            return f"{slot} has ended"
        case RunnerRecovered():
            return "the runner comes back"
        case event if cause is Cause.REPORT:
            return f"{envelope.slot} says {event!r}"
        case event if cause is Cause.MESSAGE:
            return f"{envelope.sender} tells {event!r}"
        case event:
            return f"somebody says {event!r}"


def placed(aggregate: str, entity: str) -> str:
    """Return how an entity of an aggregate is named."""
    return aggregate if entity in {"", aggregate} else f"{aggregate} {entity}"


def _moved(aggregate: str, step: Transition) -> str:
    effects = [type(effect).__name__ for effect in step.effects]
    asked = f"  [{', '.join(effects)}]" if effects else ""
    entity = "" if step.entity == aggregate else f"{step.entity} "
    before = "" if step.before is None or step.before.state is step.after.state else f"{step.before.state} → "
    return f"{entity}{before}{step.after.state}{asked}"
