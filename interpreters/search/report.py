"""The report of a check: a verdict on every property, the traces of broken ones, and the size of the search."""

from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from lifefold.core.kernel import PropertyKind
from lifefold.core.kernel.shown import shown
from lifefold.interpreters.search.configuration import Bounds
from lifefold.interpreters.search.crash_model import SHIPPED, CrashBounds, Discipline
from lifefold.interpreters.search.display import html
from lifefold.interpreters.search.trace import WIDTH, Trace, unused_lines, wrapped


class Outcome(StrEnum):
    """The outcome of a property, in the order of a report.

    ``UNDECIDED``: the search is not complete. ``VACUOUS``: the property was never due. ``UNSOUND``: the reduced search
    and the unreduced rules disagree about it, so a record declares too much (see ``disagreement``).
    """

    HOLDS = "holds"
    UNDECIDED = "undecided"
    VACUOUS = "vacuous"
    NEVER_SEEN = "never seen"
    UNSOUND = "unsound"
    BROKEN = "broken"


_ORDER: Final = {outcome: place for place, outcome in enumerate(Outcome)}


class Verdict(msgspec.Struct, frozen=True):
    """A property and its outcome. ``trace`` leads to where it is broken, or to where it is reached."""

    owner: str
    name: str
    property_kind: PropertyKind
    outcome: Outcome
    trace: Trace | None = None
    note: str = ""

    def lines(self, width: int = WIDTH, *, of: str = "") -> Iterator[str]:
        """Yield the lines of the verdict, with the trace of a broken property; without the owner if it is ``of``."""
        yield from wrapped(f"{self.mark} {self.property_kind:<11} ", self.words(of=of), width)
        yield from (f"  {line}" for line in self.way(width - 2))

    @property
    def mark(self) -> str:
        """A character for the outcome."""
        return "✓" if self.outcome is Outcome.HOLDS else "?" if self.outcome is Outcome.UNDECIDED else "✗"

    def words(self, *, of: str = "") -> str:
        """Return the property and its outcome, without the trace."""
        owner = "" if self.owner == of else f"{self.owner}: "
        note = f" ({self.note})" if self.note else ""
        said = "" if self.outcome is Outcome.HOLDS else f": {self.outcome}"
        return f"{owner}{self.name}{said}{note}"

    def way(self, width: int = WIDTH) -> Iterator[str]:
        """Yield the trace of a broken or unsound property; nothing if there is none."""
        if self.outcome in {Outcome.BROKEN, Outcome.UNSOUND} and self.trace is not None:
            yield from self.trace.lines(width)

    def __repr__(self) -> str:
        """Return a few words, as a test runner shows them."""
        return f"<{self.mark} {self.property_kind}: {self.words()}>"


class Alike(NamedTuple):
    """The alike aggregates, the number of states that confirmed it, and the properties that were not checked."""

    groups: tuple[tuple[str, ...], ...]
    compared: int
    unasked: tuple[str, ...]
    """Liveness properties: a representative state does not tell which aggregate makes progress."""


class Message(msgspec.Struct, frozen=True):
    """Messages in vain, and the reason; ``trace`` leads to the first."""

    sender: str
    receiver: str
    event: str
    why: str
    trace: Trace | None = None

    def lines(self, width: int = WIDTH, *, of: str = "") -> Iterator[str]:  # noqa: ARG002 - as a verdict's
        """Yield the lines of the message, with its trace."""
        yield from wrapped("! message     ", self.words(), width)
        yield from (f"  {line}" for line in self.way(width - 2))

    def words(self) -> str:
        """Return the message without the trace."""
        return f"{self.sender} tells {self.receiver} {self.event}: {self.why}"

    def way(self, width: int = WIDTH) -> Iterator[str]:
        """Yield the lines of the trace."""
        if self.trace is not None:
            yield from self.trace.lines(width)


class Report(msgspec.Struct, frozen=True):
    """The result of a check. ``components`` counts the states of each aggregate, ``cut`` the steps out of the bounds.

    ``walked`` is the number of states in the cross-check, and their depth; ``renumbered`` are the renumbered fields.
    ``refused`` counts the late and repeated inputs, which were all refused.
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
    unused_rules: tuple[str, ...] = ()
    """The rules that never asked for anything, in words."""
    alike: Alike | None = None
    """The aggregates that were treated as alike, if there are any."""
    crashes: "CrashReport | None" = None
    """The report of the crash model; its verdicts are among these."""
    messages: tuple[Message, ...] = ()
    """Messages without a recipient, and messages that are always refused."""

    @property
    def cut_short(self) -> str:
        """Why the search is not complete; empty if it is."""
        return self.truncated or (self.crashes.truncated if self.crashes is not None else "")

    @property
    def ok(self) -> bool:
        """Whether every property holds."""
        return all(verdict.outcome is Outcome.HOLDS for verdict in self.verdicts)

    def broken(self) -> tuple[Verdict, ...]:
        """Return the properties that do not hold, without undecided ones."""
        return tuple(v for v in self.verdicts if v.outcome not in {Outcome.HOLDS, Outcome.UNDECIDED})

    def __str__(self) -> str:
        """Return the report as text."""
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        """Return the broken properties in a few words, as a test runner shows them; ``print`` shows the rest."""
        wrong = "".join(f", {each.mark} {each.words(of=self.target)}" for each in self.broken())
        return shown(f"{self.target}: {self.conclusion()}{wrong}")

    def _repr_mimebundle_(self, **_kinds: object) -> dict[str, str]:
        """Show the report in a notebook."""
        return {"text/plain": str(self), "text/html": html(self)}

    def lines(self, width: int = WIDTH, *, shows_unused: bool = False) -> Iterator[str]:
        """Yield the lines of the report: the size of the search, every property, and the conclusion.

        Of the unused rows and rules it shows the first few, or all if ``shows_unused``.
        """
        rate = f" ({self.states / self.seconds:,.0f} states/s)" if self.seconds else ""
        met = f"{self.states:,} states, {self.steps:,} steps, {self.depth} deep, in {self.seconds:.1f} s{rate}"
        yield from wrapped(f"{self.target}: ", met, width)
        for what, said in self.said():
            yield from wrapped(f"  {what:<13}", said, width)
            if what == "used":
                yield from unused_lines(self.missing, width, "missing", shows_all=shows_unused)
                yield from unused_lines(self.unused_rules, width, "unused_rules", shows_all=shows_unused)
        yield ""
        verdicts = self.sorted()
        first_failing = len(verdicts) - len(self.broken())
        told: list[Verdict | Message] = [*verdicts[:first_failing], *self.messages, *verdicts[first_failing:]]
        for each in told:
            yield from (f"  {line}" for line in each.lines(width - 2, of=self.target))
        yield ""
        yield from wrapped(f"{self.target}: ", self.conclusion(), width)

    def sorted(self) -> list[Verdict]:
        """Return the verdicts: held properties first, then undecided, then broken ones."""
        return sorted(self.verdicts, key=lambda each: _ORDER[each.outcome])

    def conclusion(self) -> str:
        """Return the conclusion in a few words."""
        outcomes = Counter(verdict.outcome for verdict in self.verdicts)
        held, every = outcomes.pop(Outcome.HOLDS, 0), len(self.verdicts)
        others = "".join(f", {count} {outcome}" for outcome, count in sorted(outcomes.items()))
        cut = f"; the search ended after {self.cut_short}" if self.cut_short else ""
        unasked = f"; {len(self.alike.unasked)} not checked" if self.alike and self.alike.unasked else ""
        vain = f"; {_counted(len(self.messages), 'message')} in vain" if self.messages else ""
        return (
            f"{f'all {every}' if held == every else f'{held} of {every}'} properties hold{others}{unasked}{cut}{vain}"
        )

    def said(self) -> Iterator[tuple[str, str]]:
        """Yield each part of the extent of the search, with its name."""
        if len(self.components) > 1:
            yield "aggregates", ", ".join(f"{name} {count:,}" for name, count in self.components.items()) + " states"
        yield "looked at", self._extent()
        if self.walked[0]:
            names = f", {', '.join(self.renumbered)} renumbered" if self.renumbered else ""
            extent = f"with {self.walked[0]:,} unreduced states, {self.walked[1]} deep{names}"
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
            limits.append(f"{self.bounds.commands} operator commands at most")
        cut = f"; {self.cut:,} steps would have left the bounds" if self.cut else ""
        bounded = f" with {', '.join(limits)}" if limits else ""
        return f"everything{bounded}{cut}"


def _of_alike(alike: Alike) -> str:
    groups = "; ".join(", ".join(group) for group in alike.groups)
    exchanged = f"one state represents all orders of alike aggregates ({alike.compared:,} exchanged: equal)"
    unasked = f"; not checked: liveness ({len(alike.unasked)} properties)" if alike.unasked else ""
    return f"{groups}: {exchanged}{unasked}"


class CrashReport(Report, frozen=True):
    """The report of the crash model: of which ``discipline``, within which ``limits``.

    ``again`` counts the effects that are performed again in some run. ``begun`` is the number of states of the system
    in which runs begin, besides the opening. It has no coverage and counts no refused or cut inputs.
    """

    discipline: Discipline = SHIPPED
    limits: CrashBounds = CrashBounds()
    again: int = 0
    begun: int = 0

    def extent(self) -> str:
        """Return the size of the search in words."""
        limits = self.limits
        counted = f"{_counted(limits.inputs, 'input')}, {_counted(limits.crashes, 'crash', 'crashes')}"
        begun = f" from each of {self.begun:,} states" if self.begun else ""
        within = f"{counted}, {_counted(limits.batch, 'decision')} in a transaction"
        if self.truncated:
            return f"not everything: {self.truncated}"
        met = f"; {self.states:,} moments" if self.begun else ""
        return f"everything{begun} with {within} at most{met}"

    def said(self) -> Iterator[tuple[str, str]]:
        """Yield each part of the extent of the search, with its name."""
        together = "with the next decision" if self.discipline.together else "independently"
        yield "the runner", f"{', '.join(self.discipline.order)}; performed effects are recorded {together}"
        yield "looked at", self.extent()


def _counted(count: int, one: str, several: str = "") -> str:
    return f"{count} {one}" if count == 1 else f"{count} {several or f'{one}s'}"


def _called(holds: object) -> str:
    return getattr(holds, "__name__", str(holds)).replace("_", " ")
