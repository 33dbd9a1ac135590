"""``check_crashes``: whatever prefix of its work a runner gets through before it dies, nothing is lost or doubled."""

import itertools
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple, cast

from lifefold.core.kernel import Envelope, Machine, Reaction, System, Temper, alone
from lifefold.effects import Effect
from lifefold.interpreters.check.graph import Progress
from lifefold.interpreters.check.ground import SHIPPED, CrashBounds, Discipline, Fault, Ground, Stage, Step
from lifefold.interpreters.check.plain import Happening
from lifefold.interpreters.check.question import Bounds
from lifefold.interpreters.check.report import WIDTH, Outcome, Report, Trace, Verdict
from lifefold.interpreters.check.runner import Runner

NOTICE_STATES: Final = 2_000
"""After how many states the time is looked at, and progress is told."""


class Incident(NamedTuple):
    """What a runner did, or what happened to it; ``happening`` is what came of it if it decided."""

    stage: Stage
    words: str
    happening: Happening | None = None


class CrashTrace(Trace, frozen=True):
    """The way to a fault of a runner; ``steps`` are its decisions only."""

    incidents: tuple[Incident, ...] = ()

    def lines(self, width: int = WIDTH) -> Iterator[str]:
        """Yield the trace for people: a line for each incident, and what does not fit into it below."""
        for number, incident in enumerate(self.incidents, 1):
            first = f"{number:>3}. {incident.stage:<7} "
            indent = " " * len(first)
            yield from textwrap.wrap(incident.words, width, initial_indent=first, subsequent_indent=indent)
        if self.cycle == ():
            yield "     and from then on nothing happens any more"


class CrashReport(Report, frozen=True):
    """A check of a runner: of which ``discipline``, within which ``limits``.

    ``again`` counts the effects that are performed again on some run. Coverage, and what is refused or cut, is not
    looked at.
    """

    discipline: Discipline = SHIPPED
    limits: CrashBounds = CrashBounds()
    again: int = 0

    def _said(self) -> Iterator[tuple[str, str]]:
        """Yield what was looked at, each with its name."""
        limits, together = self.limits, "with the next decision" if self.discipline.together else "independently"
        yield "the runner", f"{', '.join(self.discipline.order)}; what was performed is recorded {together}"
        counted = f"{limits.inputs} inputs, {limits.crashes} crashes, {limits.batch} decisions in a transaction"
        yield (
            "looked at",
            f"not everything: {self.truncated}" if self.truncated else f"everything with {counted} at most",
        )


Opening = Sequence[tuple[str, Envelope]]


def check_crashes(  # noqa: PLR0913 - what may be chosen, each with its name
    target: Machine[Any] | System,
    *,
    opening: Opening = (),
    discipline: Discipline = SHIPPED,
    recognised: tuple[type[Effect], ...] = (),
    bounds: CrashBounds | None = None,
    tell: Callable[[Progress], None] | None = None,
) -> CrashReport:
    """Let runners of a discipline die after every prefix of their work, and say whether they keep what they promise.

    A system needs its ``opening``: the input that each of its aggregates begins with. ``recognised`` are effects whose
    performer keeps the identities of what it has performed, so that a second time is harmless although they are not
    idempotent.

    Raises ``ValueError`` if an aggregate refuses its opening, or tells somebody something who is not there.
    """
    if isinstance(target, Machine):
        system, openings = alone(target)
        opening = tuple(openings.items())
    else:
        system = target
    bounds = bounds or CrashBounds()
    runner = Runner(system, opening, discipline, bounds, recognised)
    return _Search(system.name, runner, tell).report(recognised)


class _Search:
    """All moments that can be reached, nearest first."""

    def __init__(self, name: str, runner: Runner, tell: Callable[[Progress], None] | None) -> None:
        self._name = name
        self._runner = runner
        self._tell = tell
        self._grounds: list[Ground] = []
        self._index: dict[Ground, int] = {}
        self._parents: list[int] = []
        self._broken: dict[Fault, tuple[int, Step | None]] = {}
        self._again: set[int] = set()
        self._persisted = False
        self._steps = 0
        self._depth = 0
        self._truncated = ""
        self._began = time.perf_counter()

    def report(self, recognised: tuple[type[Effect], ...]) -> CrashReport:
        self._explore()
        runner = self._runner
        return CrashReport(
            target=self._name,
            verdicts=tuple(self._verdict(fault, recognised) for fault in Fault),
            states=len(self._grounds),
            steps=self._steps,
            depth=self._depth,
            seconds=time.perf_counter() - self._began,
            truncated=self._truncated,
            parts={name: len(states) for name, states in zip(runner.names, runner.states, strict=True)},
            refused=0,
            cut=0,
            walked=(0, 0),
            bounds=Bounds(states=runner.bounds.states, seconds=runner.bounds.seconds),
            renumbered=(),
            coverage={},
            missing=(),
            discipline=runner.discipline,
            limits=runner.bounds,
            again=len(self._again),
        )

    def _explore(self) -> None:
        self._meet(self._runner.initial(), -1)
        state, level_ends = 0, 1
        while state < len(self._grounds):
            if state == level_ends:
                level_ends = len(self._grounds)
                self._depth += 1
            if state % NOTICE_STATES == 0:
                self._notice(state)
            if len(self._grounds) > self._runner.bounds.states:
                self._truncated = f"more than {self._runner.bounds.states:,} states"
            if self._truncated:
                return
            self._look(state)
            state += 1

    def _look(self, state: int) -> None:
        ground, quiet = self._grounds[state], True
        for step, after, faults in self._runner.successors(ground):
            self._steps += 1
            quiet = quiet and step.stage is Stage.CRASH
            self._persisted = self._persisted or step.stage is Stage.PERSIST
            if step.stage is Stage.PERFORM and step.deed in ground.outside.performed:
                self._again.add(step.deed)
            for fault in faults:
                self._broken.setdefault(fault, (state, step))
            if after not in self._index:
                self._meet(after, state)
        if quiet and self._runner.loses(ground):
            self._broken.setdefault(Fault.LOST, (state, None))

    def _meet(self, ground: Ground, parent: int) -> None:
        self._index[ground] = len(self._grounds)
        self._grounds.append(ground)
        self._parents.append(parent)

    def _notice(self, state: int) -> None:
        seconds, limit = time.perf_counter() - self._began, self._runner.bounds.seconds
        if limit is not None and seconds > limit:
            self._truncated = f"more than {limit:g} seconds"
        if self._tell is not None and state:
            waiting = len(self._grounds) - state
            self._tell(Progress(len(self._grounds), waiting, self._steps, self._depth, seconds))

    def _verdict(self, fault: Fault, recognised: tuple[type[Effect], ...]) -> Verdict:
        temper = Temper.LEADS_TO if fault is Fault.LOST else Temper.ALWAYS
        note = ""
        if fault is Fault.LOST:
            note = f"{len(self._runner.effects):,} effects"
        elif fault is Fault.TWICE:
            given = ", ".join(each.__name__ for each in recognised)
            note = f"{len(self._again):,} performed again{f'; {given} recognised by identity' if given else ''}"
        found = self._broken.get(fault)
        if found is not None:
            return Verdict(self._name, fault, temper, Outcome.BROKEN, self._trace(*found), note)
        outcome = Outcome.UNDECIDED if self._truncated else Outcome.HOLDS if self._persisted else Outcome.VACUOUS
        return Verdict(self._name, fault, temper, outcome, None, note)

    def _trace(self, state: int, last: Step | None) -> CrashTrace:
        way = [state]
        while (parent := self._parents[way[-1]]) >= 0:
            way.append(parent)
        way.reverse()
        incidents: list[Incident] = []
        for before, to in itertools.pairwise(way):
            ground = self._grounds[before]
            steps = self._runner.successors(ground)
            incidents.append(self._incident(ground, next(s for s, after, _ in steps if self._index[after] == to)))
        if last is not None:
            incidents.append(self._incident(self._grounds[state], last))
        decided = tuple(each.happening for each in incidents if each.happening is not None)
        return CrashTrace(decided, None if last is not None else (), tuple(incidents))

    def _incident(self, ground: Ground, step: Step) -> Incident:
        match step.stage:
            case Stage.DECIDE:
                return self._decision(ground, step)
            case Stage.PERFORM if step.handler is not None:
                name = f"{self._runner.names[step.part]}, {step.handler.of.slot}"
                return Incident(step.stage, f"{name}: {'begins' if step.handler.kind == 'begin' else 'is resumed'}")
            case Stage.PERFORM:
                part, version, index, effect = self._runner.effects[step.deed]
                again = ", again" if step.deed in ground.outside.performed else ""
                return Incident(step.stage, f"{self._runner.names[part]} {version}.{index}: {effect!r}{again}")
            case Stage.CRASH:
                return Incident(step.stage, "the runner dies; another one reads the log")
            case _:
                return Incident(step.stage, self._written(ground, step))

    def _decision(self, ground: Ground, step: Step) -> Incident:
        runner, number = self._runner, ground.volatile.now[step.part]
        cause, envelope = runner.envelope(ground, step)
        name, entity = runner.names[step.part], envelope.entity
        reaction = cast("Reaction", runner.react(step.part, number, envelope))
        happening = Happening(name, cause, envelope, reaction)
        if not runner.states[step.part][number].version:
            return Incident(step.stage, f"{name} 1: begins", happening)
        line = " ".join(Trace((happening,)).lines(sys.maxsize)).partition(". ")[2].removeprefix(f"{name} {entity}: ")
        place = f"{name} {reaction.aggregate.version}" + ("" if entity in {"", name} else f", {entity}")
        return Incident(step.stage, f"{place}: {line}", happening)

    def _written(self, ground: Ground, step: Step) -> str:
        runner = self._runner
        after = next(after for each, after, _ in runner.successors(ground) if each == step)
        entries = [
            f"{name} {runner.states[part][after.durable.log[part]].version}"
            for part, name in enumerate(runner.names)
            if ground.durable.log[part] != after.durable.log[part]
        ]
        recorded = [
            f"{name} {after.durable.recorded[part]} as performed"
            for part, name in enumerate(runner.names)
            if ground.durable.recorded[part] != after.durable.recorded[part]
        ]
        return ", ".join(entries + recorded)
