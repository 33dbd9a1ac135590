"""What came of a check: a verdict on every property, the way to what is wrong, and how much was looked at."""

from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from lifefold.core.kernel import PropertyKind
from lifefold.interpreters.search.configuration import Bounds
from lifefold.interpreters.search.crash_model import SHIPPED, CrashBounds, Discipline
from lifefold.interpreters.search.display import html
from lifefold.interpreters.search.trace import WIDTH, Trace, wrapped

MISSING_SHOWN: Final = 6
"""How much of what was not used is named to people."""


class Outcome(StrEnum):
    """What a check says of a property, in the order in which a report lists it.

    ``UNDECIDED``: not everything was looked at. ``VACUOUS``: nothing ever was due. ``UNSOUND``: the reduced search and
    the unreduced rules disagree about it, so a record declares too much (see ``disagreement``).
    """

    HOLDS = "holds"
    UNDECIDED = "undecided"
    VACUOUS = "vacuous"
    NEVER_SEEN = "never seen"
    UNSOUND = "unsound"
    BROKEN = "broken"


_ORDER: Final = {outcome: place for place, outcome in enumerate(Outcome)}


class Verdict(msgspec.Struct, frozen=True):
    """A property and what came of it. ``trace`` leads to where it is broken, or to where it is seen."""

    owner: str
    name: str
    property_kind: PropertyKind
    outcome: Outcome
    trace: Trace | None = None
    note: str = ""

    def lines(self, width: int = WIDTH, *, of: str = "") -> Iterator[str]:
        """Yield the verdict for people, with the way to where it is broken; whose it is, if it is not ``of`` them."""
        yield from wrapped(f"{self.mark} {self.property_kind:<11} ", self.words(of=of), width)
        yield from (f"  {line}" for line in self.way(width - 2))

    @property
    def mark(self) -> str:
        """One character for what came of it."""
        return "✓" if self.outcome is Outcome.HOLDS else "?" if self.outcome is Outcome.UNDECIDED else "✗"

    def words(self, *, of: str = "") -> str:
        """Return the property and what came of it, without the way."""
        owner = "" if self.owner == of else f"{self.owner}: "
        note = f" ({self.note})" if self.note else ""
        said = "" if self.outcome is Outcome.HOLDS else f": {self.outcome}"
        return f"{owner}{self.name}{said}{note}"

    def way(self, width: int = WIDTH) -> Iterator[str]:
        """Yield the way to where it is broken or unsound; nothing, if it is neither, or if there is no such way."""
        if self.outcome in {Outcome.BROKEN, Outcome.UNSOUND} and self.trace is not None:
            yield from self.trace.lines(width)

    def __repr__(self) -> str:
        """Say it in a few words, as a test runner shows it."""
        return f"<{self.mark} {self.property_kind}: {self.words()}>"


class Alike(NamedTuple):
    """Which aggregates were taken for each other, in how many states the rules were seen to do so, what is unasked."""

    groups: tuple[tuple[str, ...], ...]
    compared: int
    unasked: tuple[str, ...]
    """What is promised to follow: who has to go on cannot be told where one stands for all."""


class Message(msgspec.Struct, frozen=True):
    """Messages that are in vain, and why; ``trace`` leads to where that is seen first."""

    sender: str
    receiver: str
    event: str
    why: str
    trace: Trace | None = None

    def lines(self, width: int = WIDTH, *, of: str = "") -> Iterator[str]:  # noqa: ARG002 - as a verdict's
        """Yield it for people, with the way to it."""
        yield from wrapped("! message     ", self.words(), width)
        yield from (f"  {line}" for line in self.way(width - 2))

    def words(self) -> str:
        """Return it without the way."""
        return f"{self.sender} tells {self.receiver} {self.event}: {self.why}"

    def way(self, width: int = WIDTH) -> Iterator[str]:
        """Yield the way to it."""
        if self.trace is not None:
            yield from self.trace.lines(width)


class Report(msgspec.Struct, frozen=True):
    """A check. ``components`` counts the states of each aggregate, ``cut`` the steps that would have led out of the bounds.

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
    components: Mapping[str, int]
    refused: int
    cut: int
    walked: tuple[int, int]
    bounds: Bounds
    renumbered: tuple[str, ...]
    coverage: Mapping[str, tuple[int, int]]
    missing: tuple[str, ...]
    alike: Alike | None = None
    """Who was taken for each other, if anybody was."""
    crashes: "CrashReport | None" = None
    """What came of letting runners die; its verdicts are among these."""
    messages: tuple[Message, ...] = ()
    """Those that nobody can read, and those that are refused whenever they come."""

    @property
    def cut_short(self) -> str:
        """Why not everything was looked at; empty if it was."""
        return self.truncated or (self.crashes.truncated if self.crashes is not None else "")

    @property
    def ok(self) -> bool:
        """Whether every property holds."""
        return all(verdict.outcome is Outcome.HOLDS for verdict in self.verdicts)

    def broken(self) -> tuple[Verdict, ...]:
        """Return the properties that do not hold, undecided ones not among them."""
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
        yield from wrapped(f"{self.target}: ", met, width)
        for what, said in self.said():
            yield from wrapped(f"  {what:<13}", said, width)
            if what == "used":
                yield from self._unused(width)
        yield ""
        verdicts = self.sorted()
        first_failing = len(verdicts) - len(self.broken())
        told: list[Verdict | Message] = [*verdicts[:first_failing], *self.messages, *verdicts[first_failing:]]
        for each in told:
            yield from (f"  {line}" for line in each.lines(width - 2, of=self.target))
        yield ""
        yield from wrapped(f"{self.target}: ", self.conclusion(), width)

    def _unused(self, width: int) -> Iterator[str]:
        left = len(self.missing) - MISSING_SHOWN
        for line in self.missing[:MISSING_SHOWN]:
            yield from wrapped("    - ", line, width)
        if left > 0:
            yield f"    - and {left} more, which `missing` has"

    def sorted(self) -> list[Verdict]:
        """Return the verdicts: what holds first, then what is undecided, and what is broken last."""
        return sorted(self.verdicts, key=lambda each: _ORDER[each.outcome])

    def conclusion(self) -> str:
        """Return the sum of it in a few words."""
        outcomes = Counter(verdict.outcome for verdict in self.verdicts)
        held, every = outcomes.pop(Outcome.HOLDS, 0), len(self.verdicts)
        others = "".join(f", {count} {outcome}" for outcome, count in sorted(outcomes.items()))
        cut = f"; the search ended after {self.cut_short}" if self.cut_short else ""
        unasked = f"; {len(self.alike.unasked)} not asked" if self.alike and self.alike.unasked else ""
        vain = f"; {_counted(len(self.messages), 'message')} in vain" if self.messages else ""
        return (
            f"{f'all {every}' if held == every else f'{held} of {every}'} properties hold{others}{unasked}{cut}{vain}"
        )

    def said(self) -> Iterator[tuple[str, str]]:
        """Yield what was looked at, each with its name."""
        if len(self.components) > 1:
            yield "aggregates", ", ".join(f"{name} {count:,}" for name, count in self.components.items()) + " states"
        yield "looked at", self._extent()
        if self.walked[0]:
            names = f", {', '.join(self.renumbered)} renumbered" if self.renumbered else ""
            extent = f"with {self.walked[0]:,} states as they are, {self.walked[1]} deep{names}"
            yield "compared", f"{extent}: {self._agreement()}"
        if self.alike is not None:
            yield "alike", _of_alike(self.alike)
        yield "used", " · ".join(f"{name} {used}/{of}" for name, (used, of) in self.coverage.items())
        if self.crashes is not None:
            yield "crashes", self.crashes.extent()

    def _agreement(self) -> str:
        return "they differ" if any(each.outcome is Outcome.UNSOUND for each in self.verdicts) else "equal"

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


def _of_alike(alike: Alike) -> str:
    groups = "; ".join(", ".join(group) for group in alike.groups)
    exchanged = f"of states that differ only in who is who, one was looked at ({alike.compared:,} exchanged: equal)"
    unasked = f"; not asked: what follows ({len(alike.unasked)} properties)" if alike.unasked else ""
    return f"{groups}: {exchanged}{unasked}"


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
