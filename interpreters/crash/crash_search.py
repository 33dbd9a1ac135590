"""``check_crashes``: whatever prefix of its work a runner completes before a crash, no effect is lost or repeated."""

import itertools
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, cast

import msgspec

from lifefold.core.kernel import Envelope, Machine, PropertyKind, Reaction, System, SystemStep, World, alone
from lifefold.effects import Effect, Tell
from lifefold.interpreters.crash.configurations import nearest
from lifefold.interpreters.crash.runner_model import Runner
from lifefold.interpreters.report.finding import Outcome, Verdict
from lifefold.interpreters.report.trace import Attempt, CrashTrace, Incident, Trace
from lifefold.interpreters.search.configuration import Bounds
from lifefold.interpreters.search.crash_model import SHIPPED, CrashBounds, CrashModel, Discipline, Fault, Stage, Step
from lifefold.interpreters.search.exchange import Refused, Unaddressed
from lifefold.interpreters.search.findings import Findings, Progress
from lifefold.interpreters.search.product_system import ProductSystem
from lifefold.interpreters.search.report import CrashReport, Report
from lifefold.interpreters.search.rule_error import UNANSWERED, Place, RuleError, raised
from lifefold.interpreters.search.witness import Witness

NOTICE_STATES: Final = 2_000
"""The number of states between two looks at the clock and reports of progress."""

OWNER: Final = "crashes"
"""The owner of the properties of a runner, in a report."""

Opening = Sequence[tuple[str, Envelope]]


class Beginning(NamedTuple):
    """A beginning of runs: a crash model, and the trace to it."""

    model: CrashModel
    way: tuple[SystemStep, ...] = ()


def check_crashes(  # noqa: PLR0913 - what may be chosen, each with its name
    target: Machine[Any] | System,
    *,
    opening: Opening = (),
    discipline: Discipline = SHIPPED,
    recognised: tuple[type[Effect], ...] = (),
    bounds: CrashBounds | None = None,
    tell: Callable[[Progress], None] | None = None,
) -> CrashReport:
    """Let runners of a discipline crash after every prefix of their work, and check their properties.

    A system needs its ``opening``: the first input of each of its aggregates. ``recognised`` are effects whose
    performer remembers the identities of performed effects, besides those that declare it (see ``Effect``).

    Raises ``ValueError`` if an aggregate refuses its opening, or sends a message to an aggregate that does not exist.
    """
    if isinstance(target, Machine):
        system, openings = alone(target)
        opening = tuple(openings.items())
    else:
        system = target
    runner = Runner(system, opening, discipline, bounds or CrashBounds(), recognised)
    return searched(system.name, runner, (), tell)


def searched(
    name: str, runner: Runner, beginnings: Iterable[Beginning], tell: Callable[[Progress], None] | None
) -> CrashReport:
    """Let runners crash in runs from before the opening, and in runs from each of the beginnings."""
    return _Search(name, runner, (Beginning(runner.initial()), *beginnings), tell).report()


def crashed(
    product_system: ProductSystem,
    found: Findings,
    witness: Witness,
    limits: CrashBounds,
    tell: Callable[[Progress], None] | None,
) -> CrashReport:
    """Let runners crash in states that a search has found, which show all its configurations."""
    beginnings = [witness.unreduced.walk(found.way(state)) for state in nearest(found)]
    runner = Runner(product_system.system, product_system.opening, SHIPPED, limits)
    begun = [
        Beginning(runner.standing([*world.aggregates.values()], _tells(product_system, world)), tuple(steps))
        for world, steps in beginnings
    ]
    report = searched(product_system.system.name, runner, begun, tell)
    if limits.inputs > 1 and report.truncated.endswith("states"):
        fewer = msgspec.structs.replace(limits, inputs=limits.inputs - 1)
        return crashed(product_system, found, witness, fewer, tell)
    return report


def _tells(product_system: ProductSystem, world: World) -> list[tuple[int, Tell]]:
    """Return the messages in flight, channel by channel, each with the number of its sender."""
    numbers = {component.name: component.number for component in product_system.components}
    in_flight = sorted((numbers[a], numbers[b], ordinal, tell) for (a, b, ordinal), tell in world.in_flight.items())
    return [(sender, tell) for sender, _, _, tell in in_flight]


def with_crashes(report: Report, crashes: CrashReport) -> Report:
    """Return a report with that of the crash model. A search with a limit proves nothing about crashes."""
    verdicts = [
        msgspec.structs.replace(each, outcome=Outcome.UNDECIDED)
        if report.truncated and each.outcome is Outcome.HOLDS
        else each
        for each in crashes.verdicts
    ]
    return msgspec.structs.replace(report, verdicts=(*report.verdicts, *verdicts), crashes=crashes)


class _Search:
    """All reachable crash models, nearest first."""

    def __init__(
        self, name: str, runner: Runner, beginnings: tuple[Beginning, ...], tell: Callable[[Progress], None] | None
    ) -> None:
        self._name = name
        self._runner = runner
        self._beginnings = beginnings
        self._tell = tell
        self._models: list[CrashModel] = []
        self._index: dict[CrashModel, int] = {}
        self._parents: list[int] = []
        self._broken: dict[Fault, tuple[int, Step | None]] = {}
        self._again: set[int] = set()
        self._persisted = False
        self._steps = 0
        self._depth = 0
        self._truncated = ""
        self._flaw: tuple[int, RuleError] | None = None
        self._began = time.perf_counter()

    def report(self) -> CrashReport:
        try:
            self._explore()
        except KeyboardInterrupt:
            self._truncated = "it was interrupted"
        runner = self._runner
        return CrashReport(
            target=self._name,
            verdicts=(*(self._verdict(fault) for fault in Fault), *self._unanswered()),
            states=len(self._models),
            steps=self._steps,
            depth=self._depth,
            seconds=time.perf_counter() - self._began,
            truncated=self._truncated,
            components={name: len(states) for name, states in zip(runner.names, runner.states, strict=True)},
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
            begun=len(self._beginnings) - 1,
        )

    def _explore(self) -> None:
        for each in self._beginnings:
            if each.model not in self._index:
                self._meet(each.model, -1)
        state, level_ends = 0, len(self._models)
        while state < len(self._models):
            if state == level_ends:
                level_ends = len(self._models)
                self._depth += 1
            if state % NOTICE_STATES == 0:
                self._notice(state)
            if len(self._models) > self._runner.bounds.states:
                self._truncated = f"more than {self._runner.bounds.states:,} states"
            if self._truncated:
                return
            try:
                self._look(state)
            except (MemoryError, Refused, Unaddressed):
                raise
            except Exception as error:  # noqa: BLE001 - whatever the rules raise is what is to be told
                self._flaw = state, raised(error, Place(state=state))
                self._truncated = UNANSWERED
            state += 1

    def _look(self, state: int) -> None:
        model, quiet = self._models[state], True
        for step, after, faults in self._runner.successors(model):
            self._steps += 1
            quiet = quiet and step.stage is Stage.CRASH
            self._persisted = self._persisted or step.stage is Stage.PERSIST
            if step.stage is Stage.PERFORM and step.deed in model.outside.performed:
                self._again.add(step.deed)
            for fault in faults:
                self._broken.setdefault(fault, (state, step))
            if after not in self._index:
                self._meet(after, state)
                if self._runner.strands(after):
                    self._broken.setdefault(Fault.STRANDED, (state, step))
        if quiet and self._runner.loses(model):
            self._broken.setdefault(Fault.LOST, (state, None))

    def _meet(self, model: CrashModel, parent: int) -> None:
        self._index[model] = len(self._models)
        self._models.append(model)
        self._parents.append(parent)

    def _notice(self, state: int) -> None:
        seconds, limit = time.perf_counter() - self._began, self._runner.bounds.seconds
        if limit is not None and seconds > limit:
            self._truncated = f"more than {limit:g} seconds"
        if self._tell is not None and state:
            waiting = len(self._models) - state
            self._tell(Progress(len(self._models), waiting, self._steps, self._depth, seconds))

    def _verdict(self, fault: Fault) -> Verdict:
        property_kind = PropertyKind.LEADS_TO if fault is Fault.LOST else PropertyKind.ALWAYS
        note = ""
        if fault is Fault.TWICE and self._again:
            note = f"{len(self._again):,} performed again{self._recognised()}"
        found = self._broken.get(fault)
        if found is not None:
            return Verdict(
                OWNER, fault, property_kind, Outcome.BROKEN, self._trace(*found), note + self._remedy(fault, found[1])
            )
        outcome = Outcome.UNDECIDED if self._truncated else Outcome.HOLDS if self._persisted else Outcome.VACUOUS
        return Verdict(OWNER, fault, property_kind, outcome, None, note)

    def _remedy(self, fault: Fault, step: Step | None) -> str:
        """Return a possible remedy in words."""
        if fault is not Fault.TWICE or step is None or step.handler is not None:
            return ""
        name = type(self._runner.effects[step.deed][3]).__name__
        return f"; say of {name} that it is idempotent, or recognised"

    def _unanswered(self) -> Iterator[Verdict]:
        if self._flaw is not None:
            state, rule_error = self._flaw
            trace = msgspec.structs.replace(self._trace(state, None), cycle=None, attempt=Attempt(rule_error.said))
            yield Verdict(OWNER, rule_error.name, PropertyKind.ALWAYS, Outcome.BROKEN, trace)

    def _recognised(self) -> str:
        """Return the effects whose performer must recognise a repetition."""
        met = {type(effect) for *_, effect in self._runner.effects if self._runner.relies_on(effect)}
        names = ", ".join(sorted(each.__name__ for each in met))
        return f"; {names} recognised by identity" if names else ""

    def _trace(self, state: int, last: Step | None) -> CrashTrace:
        way = [state]
        while (parent := self._parents[way[-1]]) >= 0:
            way.append(parent)
        way.reverse()
        incidents: list[Incident] = []
        for before, to in itertools.pairwise(way):
            model = self._models[before]
            steps = self._runner.successors(model)
            incidents.append(self._incident(model, next(s for s, after, _ in steps if self._index[after] == to)))
        if last is not None:
            incidents.append(self._incident(self._models[state], last))
        begun = next(each.way for each in self._beginnings if each.model == self._models[way[0]])
        return CrashTrace(begun, None if last is not None else (), incidents=tuple(incidents))

    def _incident(self, model: CrashModel, step: Step) -> Incident:
        match step.stage:
            case Stage.DECIDE:
                return self._decision(model, step)
            case Stage.PERFORM if step.handler is not None:
                name = f"{self._runner.names[step.component]}, {step.handler.of.slot}"
                return Incident(step.stage, f"{name}: {'begins' if step.handler.kind == 'begin' else 'is resumed'}")
            case Stage.PERFORM:
                component, version, index, effect = self._runner.effects[step.deed]
                again = ", again" if step.deed in model.outside.performed else ""
                return Incident(step.stage, f"{self._runner.names[component]} {version}.{index}: {effect!r}{again}")
            case Stage.CRASH:
                return Incident(step.stage, "the runner dies; another one reads the log")
            case _:
                return Incident(step.stage, self._written(model, step))

    def _decision(self, model: CrashModel, step: Step) -> Incident:
        runner, number = self._runner, model.volatile.now[step.component]
        envelope = runner.envelope(model, step)
        name, entity = runner.names[step.component], envelope.entity
        reaction = cast("Reaction", runner.decisions.react(step.component, number, envelope))
        happening = SystemStep(name, envelope, reaction)
        if not runner.states[step.component][number].version:
            return Incident(step.stage, f"{name} 1: begins", happening)
        line = " ".join(Trace((happening,)).lines(sys.maxsize)).partition(". ")[2].removeprefix(f"{name} {entity}: ")
        place = f"{name} {reaction.aggregate.version}" + ("" if entity in {"", name} else f", {entity}")
        return Incident(step.stage, f"{place}: {line}", happening)

    def _written(self, model: CrashModel, step: Step) -> str:
        runner = self._runner
        after = next(after for each, after, _ in runner.successors(model) if each == step)
        entries = [
            f"{name} {runner.states[component][after.durable.log[component]].version}"
            for component, name in enumerate(runner.names)
            if model.durable.log[component] != after.durable.log[component]
        ]
        recorded = [
            f"{name} {after.durable.recorded[component]} as performed"
            for component, name in enumerate(runner.names)
            if model.durable.recorded[component] != after.durable.recorded[component]
        ]
        return ", ".join(entries + recorded)
