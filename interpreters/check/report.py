"""What came of a check: a verdict on every promise, the way to what is wrong, and how much was looked at."""

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from lifefold.core.kernel import Cause, Elapsed, Ended, Envelope, Recovered, Temper, Transition
from lifefold.interpreters.check.canonical import NOW_MS
from lifefold.interpreters.check.display import html
from lifefold.interpreters.check.ground import SHIPPED, CrashBounds, Discipline, Stage
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


class Attempt(NamedTuple):
    """What cannot be gone on with: an input to an aggregate, if it is one, or a promise that cannot be judged; why."""

    said: str
    aggregate: str = ""
    cause: Cause = Cause.COMMAND
    envelope: Envelope | None = None
    promise: tuple[str, str] | None = None
    """Whose it is, and its name."""


class Trace(msgspec.Struct, frozen=True):
    """The way to a state, step by step; with a ``cycle``, what then goes on for ever: nothing, if it is empty.

    An ``attempt`` is what comes then, and what the rules cannot answer.
    """

    steps: tuple[Happening, ...]
    cycle: tuple[Happening, ...] | None = None
    attempt: Attempt | None = None

    def lines(self, width: int = WIDTH) -> Iterator[str]:
        """Yield the trace for people: what happens in each step, and what is moved by it."""
        yield from self._lines(width)
        if self.attempt is not None:
            yield from self._attempted(self.attempt, width)

    def _attempted(self, attempt: Attempt, width: int) -> Iterator[str]:
        if attempt.envelope is not None:
            happening = _what(attempt.cause, attempt.envelope)
            place = "" if attempt.envelope.entity in {"", attempt.aggregate} else f"{attempt.envelope.entity}: "
            yield from _wrapped(f"{len(self.steps) + 1:>3}. ", f"{place}{happening}", width, WHAT_LINES)
        yield from _wrapped("     ", attempt.said, width)

    def _lines(self, width: int) -> Iterator[str]:
        happenings = (*self.steps, *(self.cycle or ()))
        alone = all(each.envelope.entity in {"", each.aggregate} for each in happenings)
        now_ms = NOW_MS
        for number, happening in enumerate(happenings, 1):
            if self.cycle and number == len(self.steps) + 1:
                yield "     and from then on, for ever:"
            at_ms = happening.envelope.at_ms
            place = "" if alone else f"{_place(happening.aggregate, happening.envelope.entity)}: "
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
            yield from _wrapped(first, incident.words, width)
        if self.cycle == ():
            yield "     and from then on nothing happens any more"
        if self.attempt is not None:
            yield from _wrapped("     ", self.attempt.said, width)


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
        yield from _wrapped(f"{self.mark} {self.temper:<11} ", self.words(of=of), width)
        yield from (f"  {line}" for line in self.way(width - 2))

    @property
    def mark(self) -> str:
        """One character for what came of it."""
        return "✓" if self.outcome is Outcome.HOLDS else "?" if self.outcome is Outcome.UNDECIDED else "✗"

    def words(self, *, of: str = "") -> str:
        """Return the promise and what came of it, without the way."""
        owner = "" if self.owner == of else f"{self.owner}: "
        note = f" ({self.note})" if self.note else ""
        said = "" if self.outcome is Outcome.HOLDS else f": {self.outcome}"
        return f"{owner}{self.name}{said}{note}"

    def way(self, width: int = WIDTH) -> Iterator[str]:
        """Yield the way to where it is broken; nothing, if it is not, or if there is no such way."""
        if self.outcome is Outcome.BROKEN and self.trace is not None:
            yield from self.trace.lines(width)

    def __repr__(self) -> str:
        """Say it in a few words, as a test runner shows it."""
        return f"<{self.mark} {self.temper}: {self.words()}>"


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
    crashes: "CrashReport | None" = None
    """What came of letting runners die; its verdicts are among these."""

    @property
    def cut_short(self) -> str:
        """Why not everything was looked at; empty if it was."""
        return self.truncated or (self.crashes.truncated if self.crashes is not None else "")

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

    def __repr__(self) -> str:
        """Say in a few words what does not hold, as a test runner shows it; ``print`` shows the rest."""
        wrong = "".join(f", {each.mark} {each.words(of=self.target)}" for each in self.broken())
        return f"<{self.target}: {self.conclusion()}{wrong}>"

    def _repr_mimebundle_(self, **_kinds: object) -> dict[str, str]:
        """Show it in a notebook."""
        return {"text/plain": str(self), "text/html": html(self)}

    def lines(self, width: int = WIDTH) -> Iterator[str]:
        """Yield the report for people: how much was looked at, what holds, what does not and why, and the sum of it."""
        rate = f" ({self.states / self.seconds:,.0f} states/s)" if self.seconds else ""
        met = f"{self.states:,} states, {self.steps:,} steps, {self.depth} deep, in {self.seconds:.1f} s{rate}"
        yield from _wrapped(f"{self.target}: ", met, width)
        for what, said in self.said():
            yield from _wrapped(f"  {what:<13}", said, width)
        left = len(self.missing) - MISSING_SHOWN
        for line in self.missing[:MISSING_SHOWN]:
            yield from _wrapped("    - ", line, width)
        if left > 0:
            yield f"    - and {left} more, which `missing` has"
        yield ""
        for verdict in self.sorted():
            yield from (f"  {line}" for line in verdict.lines(width - 2, of=self.target))
        yield ""
        yield from _wrapped(f"{self.target}: ", self.conclusion(), width)

    def sorted(self) -> list[Verdict]:
        """Return the verdicts, those last that do not hold."""
        return sorted(self.verdicts, key=lambda each: each.outcome is not Outcome.HOLDS)

    def conclusion(self) -> str:
        """Return the sum of it in a few words."""
        outcomes = Counter(verdict.outcome for verdict in self.verdicts)
        held, every = outcomes.pop(Outcome.HOLDS, 0), len(self.verdicts)
        others = "".join(f", {count} {outcome}" for outcome, count in sorted(outcomes.items()))
        cut = f"; the search ended after {self.cut_short}" if self.cut_short else ""
        return f"{f'all {every}' if held == every else f'{held} of {every}'} promises hold{others}{cut}"

    def said(self) -> Iterator[tuple[str, str]]:
        """Yield what was looked at, each with its name."""
        if len(self.parts) > 1:
            yield "aggregates", ", ".join(f"{name} {count:,}" for name, count in self.parts.items()) + " states"
        yield "looked at", self._extent()
        if self.walked[0]:
            names = f", {', '.join(self.renumbered)} renumbered" if self.renumbered else ""
            yield "compared", f"with {self.walked[0]:,} states as they are, {self.walked[1]} deep{names}: equal"
        yield "used", " · ".join(f"{name} {used}/{of}" for name, (used, of) in self.coverage.items())
        if self.crashes is not None:
            yield "crashes", self.crashes.extent()

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


class CrashReport(Report, frozen=True):
    """A check of a runner: of which ``discipline``, within which ``limits``.

    ``again`` counts the effects that are performed again on some run, ``begun`` in how many states of the system it
    begins, besides before the opening. Coverage, and what is refused or cut, is not looked at.
    """

    discipline: Discipline = SHIPPED
    limits: CrashBounds = CrashBounds()
    again: int = 0
    begun: int = 0

    def extent(self) -> str:
        """Return in words how much was looked at."""
        limits = self.limits
        counted = f"{_counted(limits.inputs, 'input')}, {_counted(limits.crashes, 'crash', 'crashes')}"
        begun = f" from each of {self.begun:,} states" if self.begun else ""
        within = f"{counted}, {_counted(limits.batch, 'decision')} in a transaction"
        if self.truncated:
            return f"not everything: {self.truncated}"
        met = f"; {self.states:,} moments" if self.begun else ""
        return f"everything{begun} with {within} at most{met}"

    def said(self) -> Iterator[tuple[str, str]]:
        """Yield what was looked at, each with its name."""
        together = "with the next decision" if self.discipline.together else "independently"
        yield "the runner", f"{', '.join(self.discipline.order)}; what was performed is recorded {together}"
        yield "looked at", self.extent()


def _counted(count: int, one: str, several: str = "") -> str:
    return f"{count} {one}" if count == 1 else f"{count} {several or f'{one}s'}"


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


def _what(cause: Cause, envelope: Envelope) -> str:
    match envelope.event:
        case Elapsed(slot=slot):
            return f"{slot} elapses"
        case Ended(slot=slot):
            return f"{slot} has ended"
        case Recovered():
            return "the runner comes back"
        case event if cause is Cause.REPORT:
            return f"{envelope.slot} says {event!r}"
        case event if cause is Cause.MESSAGE:
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
