"""A trace as text: a line for each step, with the transitions that follow from it, and the fault at its end."""

import textwrap
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from lifefold.core.kernel import (
    START_MS,
    ActivityEnded,
    Cause,
    Created,
    Envelope,
    Event,
    Opened,
    Phase,
    Record,
    RunnerRecovered,
    SystemStep,
    TimerFired,
    Transition,
)

WIDTH: Final = 80
"""The default width of a line, in characters."""

WHAT_LINES: Final = 2
"""The most lines for the input of a step; a longer text is cut off."""


class Attempt(NamedTuple):
    """An input that the rules cannot answer, or a property that cannot be judged, with the error."""

    said: str
    aggregate: str = ""
    cause: Cause = Cause.COMMAND
    envelope: Envelope | None = None
    prop: tuple[str, str] | None = None
    """The owner of the property, and its name."""


class Trace(msgspec.Struct, frozen=True):
    """The steps to a state. A ``cycle`` repeats for ever after them; if it is empty, nothing happens any more.

    An ``attempt`` is the next input, which the rules cannot answer.
    """

    steps: tuple[SystemStep, ...]
    cycle: tuple[SystemStep, ...] | None = None
    attempt: Attempt | None = None
    begins: tuple[tuple[str, Record], ...] = ()
    """If there are no steps: all entities of the opening, each with its record."""
    begin_ms: int = START_MS
    """The time before the first step, in Unix milliseconds."""

    def lines(self, width: int = WIDTH) -> Iterator[str]:
        """Yield the lines of the trace: the input of each step and its transitions."""
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
            what = _what(attempt.cause, attempt.envelope)
            alone = attempt.envelope.entity in {"", attempt.aggregate}
            place = "" if alone else f"{placed(attempt.aggregate, attempt.envelope.entity)}: "
            yield from wrapped(f"{len(self.steps) + 1:>3}. ", f"{place}{what}", width, WHAT_LINES)
        yield from wrapped("     ", attempt.said, width)

    def _lines(self, width: int) -> Iterator[str]:
        steps = (*self.steps, *(self.cycle or ()))
        alone = all(each.envelope.entity in {"", each.aggregate} for each in steps)
        now_ms = self.begin_ms
        for number, step in enumerate(steps, 1):
            if self.cycle and number == len(self.steps) + 1:
                yield "     and from then on, for ever:"
            at_ms = step.envelope.at_ms
            place = "" if alone else f"{placed(step.aggregate, step.envelope.entity)}: "
            later = f" ({at_ms - now_ms:,} ms later)" if at_ms > now_ms and step.cause is not Cause.TIMER else ""
            yield from _lines(number, f"{place}{_what(step.cause, step.envelope)}{later}", step, width)
            now_ms = max(now_ms, at_ms)
        if self.cycle == ():
            yield from self._unended(width) if alone else ()
            yield "     and from then on nothing happens any more"

    def _unended(self, width: int) -> Iterator[str]:
        """Yield a line with the activities that run on in the last state, and with the assumption that they end."""
        entities = self.steps[-1].reaction.aggregate.entities.values() if self.steps else ()
        parts = (part for entity in entities for part in entity.running)
        slots = sorted({part.slot for part in parts if part.activity is not None and part.phase is Phase.LIVE})
        if slots:
            names, end = " and ".join(slots), "end: given=weakly"
            yield from wrapped("     ", f"{names} need not {end}({', '.join(slots)}) assumes it", width)


class Incident(NamedTuple):
    """One stage of a runner, or its crash; ``decision`` is the step, if it is one."""

    stage: str
    words: str
    decision: SystemStep | None = None


class CrashTrace(Trace, frozen=True):
    """The trace of a crash: the steps before it, then the stages of the runner and its crashes."""

    incidents: tuple[Incident, ...] = ()

    def lines(self, width: int = WIDTH) -> Iterator[str]:
        """Yield the lines of the trace: the steps, then each incident."""
        if self.steps:
            yield from Trace(self.steps).lines(width)
            yield "     and with all of that recorded and performed"
        for number, incident in enumerate(self.incidents, len(self.steps) + 1):
            first = f"{number:>3}. {incident.stage:<7} "
            yield from wrapped(first, incident.words, width)
        if self.cycle == ():
            yield "     and from then on nothing happens any more"
        if self.attempt is not None:
            yield from wrapped("     ", self.attempt.said, width)


def wrapped(first: str, text: str, width: int, max_lines: int | None = None) -> list[str]:
    """Return a text after its first words, with further lines indented to its beginning."""
    after = " " * len(first)
    lines = textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=after, max_lines=max_lines, placeholder=" …"
    )
    return lines or [first.rstrip()]


def _lines(number: int, what: str, step: SystemStep, width: int) -> Iterator[str]:
    first = f"{number:>3}. "
    moved = "; ".join(_moved(step.aggregate, each) for each in step.reaction.transitions)
    if step.reaction.refused is not None:
        moved = f"refused: {step.reaction.refused.reason}"
    line = f"{first}{what}   {moved}"
    if len(line) <= width:
        yield line.rstrip()
        return
    yield from wrapped(first, what, width, WHAT_LINES)
    if moved:
        yield from wrapped("       ", moved, width)


def _what(cause: Cause, envelope: Envelope) -> str:
    return kernel_words(envelope.event) or f"{_source(cause, envelope)} {envelope.event!r}"


def kernel_words(event: Event) -> str:
    """Return an input of the kernel in words; empty for an event of a lifecycle."""
    match event:
        case TimerFired(slot=slot):
            return f"{slot} elapses"
        case ActivityEnded(slot=slot):
            return f"{slot} has ended"
        case RunnerRecovered():
            return "the runner comes back"
        case _:
            return ""


def _source(cause: Cause, envelope: Envelope) -> str:
    if isinstance(envelope.event, Created | Opened):
        return "from outside:"
    said = {Cause.REPORT: f"{envelope.slot} says", Cause.MESSAGE: f"{envelope.sender} tells"}
    return said.get(cause, "operator says")


def placed(aggregate: str, entity: str) -> str:
    """Return the name of an entity of an aggregate in a trace."""
    return aggregate if entity in {"", aggregate} else f"{aggregate} {entity}"


def _moved(aggregate: str, step: Transition) -> str:
    effects = [type(effect).__name__ for effect in step.effects]
    asked = f"  [{', '.join(effects)}]" if effects else ""
    entity = "" if step.entity == aggregate else f"{step.entity} "
    before = "" if step.before is None or step.before.state is step.after.state else f"{step.before.state} → "
    return f"{entity}{before}{step.after.state}{asked}"
