"""The report of a check: a verdict on every property, the traces of broken ones, and the size of the search."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from lifefold.core.kernel.shown import shown
from lifefold.interpreters.report.finding import Finding, Message, Outcome, Verdict
from lifefold.interpreters.report.html import html
from lifefold.interpreters.report.report import ReportBase
from lifefold.interpreters.search.configuration import Bounds
from lifefold.interpreters.search.crash_model import SHIPPED, CrashBounds, Discipline

_WIDE: Final = 10_000
"""The width of a line of a trace in JSON: no line is cut."""


_ORDER: Final = {outcome: place for place, outcome in enumerate(Outcome)}


class Alike(NamedTuple):
    """The alike aggregates, the number of states that confirmed it, and the properties that were not checked."""

    groups: tuple[tuple[str, ...], ...]
    compared: int
    unasked: tuple[str, ...]
    """Liveness properties: a representative state does not tell which aggregate makes progress."""


class Report(ReportBase, frozen=True):
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

    def __repr__(self) -> str:
        """Return the broken properties in a few words, as a test runner shows them; ``print`` shows the rest."""
        wrong = "".join(f", {each.mark} {each.words(of=self.target)}" for each in self.broken())
        return shown(f"{self.target}: {self.conclusion()}{wrong}")

    def _repr_mimebundle_(self, **_kinds: object) -> dict[str, str]:
        """Show the report in a notebook."""
        return {"text/plain": str(self), "text/html": html(self)}

    @property
    def title(self) -> str:
        """The name of the target."""
        return self.target

    def met(self) -> str:
        """Return the size of the search in words."""
        rate = f" ({self.states / self.seconds:,.0f} states/s)" if self.seconds else ""
        return f"{self.states:,} states, {self.steps:,} steps, {self.depth} deep, in {self.seconds:.1f} s{rate}"

    def shown_findings(self) -> list[Finding]:
        """Return the verdicts in the order of the report, and before the failing ones the messages in vain."""
        verdicts = self.sorted()
        first_failing = len(verdicts) - len(self.broken())
        return [*verdicts[:first_failing], *self.messages, *verdicts[first_failing:]]

    def unused(self) -> Iterator[tuple[str, Sequence[str]]]:
        """Yield the unused parts of the tables, and the unused rules."""
        yield "missing", self.missing
        yield "unused_rules", self.unused_rules

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

    def facts(self) -> dict[str, Any]:
        """Return everything that the screen shows, as numbers and lines: the search, its bounds, each property."""
        return {
            "ok": self.ok,
            "conclusion": self.conclusion(),
            "truncated": self.truncated,
            "states": self.states,
            "steps": self.steps,
            "depth": self.depth,
            "seconds": round(self.seconds, 3),
            "local_states": dict(self.components),
            "said": dict(self.said()),
            "bounds": _of_bounds(self.bounds),
            "led_out": self.cut,
            "refused": self.refused,
            "compared": {"states": self.walked[0], "depth": self.walked[1], "renumbered": list(self.renumbered)},
            "alike": None if self.alike is None else self.alike._asdict(),
            "coverage": {name: list(each) for name, each in self.coverage.items()},
            "missing": list(self.missing),
            "unused_rules": list(self.unused_rules),
            "crashes": None if self.crashes is None else _of_crashes(self.crashes),
            "properties": [
                {
                    "owner": verdict.owner,
                    "name": verdict.name,
                    "kind": verdict.property_kind,
                    "outcome": verdict.outcome,
                    "note": verdict.note,
                    "trace": None if verdict.trace is None else list(verdict.trace.lines(_WIDE)),
                }
                for verdict in self.verdicts
            ],
            "messages": [
                {
                    "sender": message.sender,
                    "receiver": message.receiver,
                    "event": message.event,
                    "why": message.why,
                    "trace": list(message.way(_WIDE)),
                }
                for message in self.messages
            ],
        }

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
        met = f"; {self.states:,} states of the crash model" if self.begun else ""
        return f"everything{begun} with {within} at most{met}"

    def said(self) -> Iterator[tuple[str, str]]:
        """Yield each part of the extent of the search, with its name."""
        together = "with the next decision" if self.discipline.together else "independently"
        yield "the runner", f"{', '.join(self.discipline.order)}; performed effects are recorded {together}"
        yield "looked at", self.extent()


def _of_bounds(bounds: Bounds) -> dict[str, Any]:
    within = {name: getattr(holds, "__name__", str(holds)) for name, holds in bounds.within.items()}
    return {name: within if name == "within" else getattr(bounds, name) for name in bounds.__struct_fields__}


def _of_crashes(crashes: CrashReport) -> dict[str, Any]:
    limits = crashes.limits
    return {
        "said": crashes.extent(),
        "begun": crashes.begun,
        "inputs": limits.inputs,
        "crashes": limits.crashes,
        "batch": limits.batch,
        "truncated": crashes.truncated,
        "states": crashes.states,
        "steps": crashes.steps,
        "depth": crashes.depth,
        "performed_again": crashes.again,
        "seconds": round(crashes.seconds, 3),
    }


def _counted(count: int, one: str, several: str = "") -> str:
    return f"{count} {one}" if count == 1 else f"{count} {several or f'{one}s'}"


def _called(holds: object) -> str:
    return getattr(holds, "__name__", str(holds)).replace("_", " ")
