"""What came of a check: a verdict on every promise, the way to what is wrong, and how much was looked at."""

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final

import msgspec

from lifefold.core.kernel import Cause, Elapsed, Ended, Recovered, Temper, Transition
from lifefold.interpreters.check.canonical import NOW_MS
from lifefold.interpreters.check.plain import Happening
from lifefold.interpreters.check.question import Bounds

WIDTH: Final = 80
"""How many characters a line has for people, unless somebody says otherwise."""

MISSING_SHOWN: Final = 6
"""How much of what was not used is named to people."""

WHAT_LINES: Final = 2
"""How many lines there are for what happens in a step; what is longer is cut off."""


class Outcome(StrEnum):
    """What can be said of a promise. ``VACUOUS``: nothing ever was due; ``UNDECIDED``: not everything was looked at."""

    HOLDS = "holds"
    BROKEN = "broken"
    NEVER_SEEN = "never seen"
    VACUOUS = "vacuous"
    UNDECIDED = "undecided"


class Trace(msgspec.Struct, frozen=True):
    """The way to a state, step by step; with a ``cycle``, what then goes on for ever: nothing, if it is empty."""

    steps: tuple[Happening, ...]
    cycle: tuple[Happening, ...] | None = None

    def lines(self, width: int = WIDTH) -> Iterator[str]:
        """Yield the trace for people: what happens in each step, and what is moved by it."""
        happenings = (*self.steps, *(self.cycle or ()))
        alone = all(each.envelope.entity in {"", each.aggregate} for each in happenings)
        now_ms = NOW_MS
        for number, happening in enumerate(happenings, 1):
            if self.cycle and number == len(self.steps) + 1:
                yield "     and from then on, for ever:"
            at_ms = happening.envelope.at_ms
            place = "" if alone else f"{_place(happening.aggregate, happening.envelope.entity)}: "
            later = f" ({at_ms - now_ms:,} ms later)" if at_ms > now_ms and happening.cause is not Cause.TIMER else ""
            yield from _lines(number, f"{place}{_what(happening)}{later}", happening, width)
            now_ms = max(now_ms, at_ms)
        if self.cycle == ():
            yield "     and from then on nothing happens any more"


class Verdict(msgspec.Struct, frozen=True):
    """A promise and what came of it. ``trace`` leads to where it is broken, or to where it is seen."""

    owner: str
    name: str
    temper: Temper
    outcome: Outcome
    trace: Trace | None = None
    note: str = ""

    def lines(self, width: int = WIDTH, *, of: str = "") -> Iterator[str]:
        """Yield the verdict for people, with the way to where it is broken; whose it is, if it is not ``of`` them."""
        mark = "✓" if self.outcome is Outcome.HOLDS else "?" if self.outcome is Outcome.UNDECIDED else "✗"
        owner = "" if self.owner == of else f"{self.owner}: "
        note = f" ({self.note})" if self.note else ""
        said = "" if self.outcome is Outcome.HOLDS else f": {self.outcome}"
        yield from _wrapped(f"{mark} {self.temper:<11} ", f"{owner}{self.name}{said}{note}", width)
        if self.outcome is Outcome.BROKEN and self.trace is not None:
            yield from (f"  {line}" for line in self.trace.lines(width - 2))


class Report(msgspec.Struct, frozen=True):
    """A check. ``parts`` counts the states of each aggregate, ``cut`` the steps that would have led out of the bounds.

    ``walked`` is how many states, and how deep, were compared with what is met if nothing is renumbered; ``renumbered``
    are the numbers that were. ``refused`` counts what was late or came twice, and was refused as it should be.
    """

    target: str
    verdicts: tuple[Verdict, ...]
    states: int
    steps: int
    depth: int
    seconds: float
    truncated: str
    parts: Mapping[str, int]
    refused: int
    cut: int
    walked: tuple[int, int]
    bounds: Bounds
    renumbered: tuple[str, ...]
    coverage: Mapping[str, tuple[int, int]]
    missing: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether every promise holds."""
        return all(verdict.outcome is Outcome.HOLDS for verdict in self.verdicts)

    def broken(self) -> tuple[Verdict, ...]:
        """Return the promises that do not hold, undecided ones not among them."""
        return tuple(v for v in self.verdicts if v.outcome not in {Outcome.HOLDS, Outcome.UNDECIDED})

    def __str__(self) -> str:
        """Print it on a screen."""
        return "\n".join(self.lines())

    def lines(self, width: int = WIDTH) -> Iterator[str]:
        """Yield the report for people: how much was looked at, what holds, what does not and why, and the sum of it."""
        rate = f" ({self.states / self.seconds:,.0f} states/s)" if self.seconds else ""
        met = f"{self.states:,} states, {self.steps:,} steps, {self.depth} deep, in {self.seconds:.1f} s{rate}"
        yield from _wrapped(f"{self.target}: ", met, width)
        for what, said in self._said():
            yield from _wrapped(f"  {what:<13}", said, width)
        left = len(self.missing) - MISSING_SHOWN
        for line in self.missing[:MISSING_SHOWN]:
            yield from _wrapped("    - ", line, width)
        if left > 0:
            yield f"    - and {left} more, which `missing` has"
        yield ""
        for verdict in sorted(self.verdicts, key=lambda each: each.outcome is not Outcome.HOLDS):
            yield from (f"  {line}" for line in verdict.lines(width - 2, of=self.target))
        yield ""
        yield from _wrapped(f"{self.target}: ", self.conclusion(), width)

    def conclusion(self) -> str:
        """Return the sum of it in a few words."""
        outcomes = Counter(verdict.outcome for verdict in self.verdicts)
        held, every = outcomes.pop(Outcome.HOLDS, 0), len(self.verdicts)
        others = "".join(f", {count} {outcome}" for outcome, count in sorted(outcomes.items()))
        cut = f"; the search ended after {self.truncated}" if self.truncated else ""
        return f"{f'all {every}' if held == every else f'{held} of {every}'} promises hold{others}{cut}"

    def _said(self) -> Iterator[tuple[str, str]]:
        if len(self.parts) > 1:
            yield "aggregates", ", ".join(f"{name} {count:,}" for name, count in self.parts.items()) + " states"
        yield "looked at", self._extent()
        if self.walked[0]:
            names = f", {', '.join(self.renumbered)} renumbered" if self.renumbered else ""
            yield "compared", f"with {self.walked[0]:,} states as they are, {self.walked[1]} deep{names}: equal"
        yield "used", " · ".join(f"{name} {used}/{of}" for name, (used, of) in self.coverage.items())

    def _extent(self) -> str:
        if self.truncated:
            return f"not everything: {self.truncated}"
        limits = [f"{self.bounds.postponed} events postponed at most"]
        limits += [f"{name} within {_called(holds)}" for name, holds in self.bounds.within.items()]
        if self.bounds.commands is not None:
            limits.append(f"people say something {self.bounds.commands} times at most")
        cut = f"; {self.cut:,} steps would have led out of it" if self.cut else ""
        bounded = f" with {', '.join(limits)}" if limits else ""
        return f"everything{bounded}{cut}"


def _called(holds: object) -> str:
    return getattr(holds, "__name__", str(holds)).replace("_", " ")


def _wrapped(first: str, text: str, width: int, max_lines: int | None = None) -> list[str]:
    """Return a text behind its first words, with all further lines below its beginning."""
    after = " " * len(first)
    lines = textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=after, max_lines=max_lines, placeholder=" …"
    )
    return lines or [first.rstrip()]


def _lines(number: int, what: str, happening: Happening, width: int) -> Iterator[str]:
    first = f"{number:>3}. "
    moved = "; ".join(_moved(happening.aggregate, step) for step in happening.reaction.transitions)
    line = f"{first}{what}   {moved}"
    if len(line) <= width:
        yield line.rstrip()
        return
    yield from _wrapped(first, what, width, WHAT_LINES)
    if moved:
        yield from _wrapped("       ", moved, width)


def _what(happening: Happening) -> str:
    envelope = happening.envelope
    match envelope.event:
        case Elapsed(slot=slot):
            return f"{slot} elapses"
        case Ended(slot=slot):
            return f"{slot} has ended"
        case Recovered():
            return "the runner comes back"
        case event if happening.cause is Cause.REPORT:
            return f"{envelope.slot} says {event!r}"
        case event if happening.cause is Cause.MESSAGE:
            return f"{envelope.sender} tells {event!r}"
        case event:
            return f"somebody says {event!r}"


def _place(aggregate: str, entity: str) -> str:
    return aggregate if entity in {"", aggregate} else f"{aggregate} {entity}"


def _moved(aggregate: str, step: Transition) -> str:
    effects = [type(effect).__name__ for effect in step.effects]
    asked = f"  [{', '.join(effects)}]" if effects else ""
    entity = "" if step.entity == aggregate else f"{step.entity} "
    before = "" if step.before is None or step.before.state is step.after.state else f"{step.before.state} → "
    return f"{entity}{before}{step.after.state}{asked}"
