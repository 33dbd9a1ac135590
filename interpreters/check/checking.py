"""``check``: all properties of a machine or a system, in every state that it can reach."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

import msgspec
import numpy as np

from lifefold.core.kernel import Envelope, Machine, Property, PropertyKind, System, World, alone
from lifefold.core.kernel.property import properties_of
from lifefold.interpreters.check.clocks import see_to_clocks
from lifefold.interpreters.crash.crash_search import crashed, with_crashes
from lifefold.interpreters.report.finding import Outcome, Verdict
from lifefold.interpreters.report.trace import Trace
from lifefold.interpreters.search.bitset_search import Product, search
from lifefold.interpreters.search.configuration import Bounds, Judge, NamedProperty, Subject
from lifefold.interpreters.search.crash_model import CrashBounds
from lifefold.interpreters.search.cross_check import Comparison, cross_check
from lifefold.interpreters.search.determinism import REPEATABLE
from lifefold.interpreters.search.disagreement import Unsound
from lifefold.interpreters.search.exchange import Carried, Refused
from lifefold.interpreters.search.findings import Findings, Progress
from lifefold.interpreters.search.graph import Graph
from lifefold.interpreters.search.independence import Liveness as LivenessApart
from lifefold.interpreters.search.liveness import Flags, Lasso, Steps, assumptions, never
from lifefold.interpreters.search.opening import Beginning, names_of, opened, unopened
from lifefold.interpreters.search.product_system import ProductSystem, StateRow
from lifefold.interpreters.search.report import Alike, Report
from lifefold.interpreters.search.rule_error import ADDRESSED, ANSWERED, INERT, Place, RuleError, raised
from lifefold.interpreters.search.symmetry import NotAlike
from lifefold.interpreters.search.system_properties import SystemProperties
from lifefold.interpreters.search.witness import Witness

NEVER_STUCK: Final = "what is not settled can go on"
SAME_STEPS: Final = "the reduced search takes the steps of the unreduced rules"
_NOT_GONE_ON: Final = {ADDRESSED, ANSWERED, REPEATABLE, SAME_STEPS}
"""The properties that leave nothing for a crash search if they are broken."""


def check(  # noqa: PLR0913 - what may be chosen, each with its name
    target: Machine[Any] | System,
    *,
    opening: Iterable[tuple[str, Envelope]] = (),
    begin: World | None = None,
    properties: Iterable[Property[Any]] = (),
    bounds: Bounds | None = None,
    crashes: CrashBounds | None = None,
    tell: Callable[[Progress], None] | None = None,
) -> Report:
    """Search every state that the target can reach, and return its properties with their outcomes.

    A system needs its ``opening``: the first input of each of its aggregates. With ``begin`` the search begins in that
    world instead, such as one folded from a log; no crashes are searched then. ``properties`` are additional
    properties: of the entity for a machine, of the ``SystemState`` for a system. With ``crashes``, runners crash in
    the states that it can reach (see ``nearest``), and their properties are part of the report. If so many inputs
    would exceed the bound on states, fewer are used.

    Raises ``TypeError`` if the target or a property is of another type. Raises ``ValueError`` for a wrong opening, for
    an aggregate that refuses it, or if one machine of a system reads the time while another one lets it pass (see
    ``clocks``). Raises ``NotAlike`` for symmetry without alike aggregates.

    >>> from lifefold import check
    >>> from lifefold.core.fleet.board import intake
    >>> report = check(intake.machine)
    >>> report.ok, report.states
    (True, 2)
    """
    if begin is not None and crashes is not None:
        message = "crashes are searched from an opening, and not from another state"
        raise ValueError(message)
    if isinstance(target, Machine):
        unopened(opening)
        machine = target.with_properties(*properties)
        system, openings = alone(machine)
        return _Check(system, begin or tuple(openings.items()), (), bounds or Bounds(), tell).run(crashes)
    begins = begin or opened(target, opening)
    see_to_clocks(target, begins)
    return _Check(target, begins, properties_of(target.name, properties), bounds or Bounds(), tell).run(crashes)


class _Check:
    def __init__(
        self,
        system: System,
        beginning: Beginning,
        properties: tuple[Property[Any], ...],
        bounds: Bounds,
        tell: Callable[[Progress], None] | None,
    ) -> None:
        self._system = system
        self._beginning = beginning
        self._properties = properties
        self._bounds = bounds
        self._tell = tell

    def run(self, crashes: CrashBounds | None) -> Report:
        kept: frozenset[str] = frozenset()
        while True:
            kinds = {name.partition("/")[0] for name in names_of(self._beginning)}
            judge = Judge(self._system, self._properties, kinds)
            product_system = ProductSystem(self._system, self._beginning, judge, self._bounds, kept)
            try:
                graph = self._found(product_system)
            except Carried as carried:
                kept |= carried.names
                continue
            witness = Witness(product_system, graph)
            report = self._judged(product_system, graph, witness)
            if crashes is None or any(each.name in _NOT_GONE_ON for each in report.broken()):
                return report
            return with_crashes(report, crashed(product_system, graph, witness, crashes, self._tell))

    def _found(self, product_system: ProductSystem) -> Graph | Product:
        try:
            return search(product_system, tell=self._tell)
        except RuleError as rule_error:  # no step is possible
            nothing = Graph(product_system)
            nothing.end(rule_error)
            return nothing

    def _judged(self, product_system: ProductSystem, graph: Graph | Product, witness: Witness) -> Report:
        components = {component.name: len(component.states) for component in product_system.components}
        messages = tuple(map(witness.message, product_system.fates.in_vain(is_complete=not graph.truncated)))
        compared, exchanged, exchange_error = self._compared(product_system, graph)
        verdicts = [self._inert(product_system, graph), self._never_stuck(product_system, graph, witness)]
        liveness = graph.liveness() if isinstance(graph, Product) else _Liveness(product_system, graph)
        unasked = _unasked(product_system)
        for number, prop in enumerate(product_system.judge.properties):
            if prop not in unasked:
                trace = compared.properties.get(number)
                verdicts.append(_verdict(number, prop, graph, witness, liveness, trace))
        verdicts = [each for each in verdicts if exchange_error is None or each.name != exchange_error.name]
        verdicts += [] if exchange_error is None else [witness.rule_error(exchange_error)]
        if compared.steps is not None:
            verdicts = self._of_no_proof(verdicts, compared.steps)
        used = product_system.coverage.used
        return Report(
            target=self._system.name,
            verdicts=tuple(verdicts),
            states=graph.count,
            steps=graph.steps,
            depth=graph.depth,
            seconds=graph.seconds,
            truncated=graph.truncated,
            components=components,
            refused=product_system.refused,
            cut=sum(component.cut for component in product_system.components),
            walked=compared[:2],
            bounds=self._bounds,
            renumbered=tuple(sorted(product_system.identifiers)),
            coverage=used.counts(self._system),
            missing=tuple(used.missing(self._system)),
            unused_rules=tuple(used.unused_rules(self._system)),
            messages=messages,
            alike=_alike(graph, exchanged, unasked),
        )

    def _compared(self, product_system: ProductSystem, graph: Findings) -> tuple[Comparison, int, RuleError | None]:
        """Return the cross-check, the number of exchanged states, and a rule error if there is one."""
        nothing = Comparison(0, 0, {}, None)
        if graph.truncated:
            return nothing, 0, graph.rule_error
        try:
            symmetry = graph.symmetry if isinstance(graph, Graph) else None
            exchanged = 0 if symmetry is None else symmetry.hold(self._bounds.compared)
            return cross_check(product_system, graph), exchanged, None
        except (MemoryError, NotAlike, Refused):
            raise
        except Exception as error:  # noqa: BLE001 - whatever the rules raise is what is to be told
            rule_error = raised(error, Place(state=0))
            return (
                nothing,
                0,
                RuleError(rule_error.name, Place(), f"in a state with another representative, {rule_error.said}"),
            )

    def _of_no_proof(self, verdicts: Iterable[Verdict], trace: Trace) -> list[Verdict]:
        """Return the verdicts of a search whose steps differ from those of the rules: no property is known to hold."""
        weaker = [
            msgspec.structs.replace(each, outcome=Outcome.UNDECIDED) if each.outcome is Outcome.HOLDS else each
            for each in verdicts
        ]
        return [*weaker, Verdict(self._system.name, SAME_STEPS, PropertyKind.ALWAYS, Outcome.UNSOUND, trace)]

    def _inert(self, product_system: ProductSystem, graph: Findings) -> Verdict:
        outcome = Outcome.UNDECIDED if graph.truncated else Outcome.HOLDS
        return Verdict(
            self._system.name, INERT, PropertyKind.ALWAYS, outcome, note=f"{product_system.refused:,} refused"
        )

    def _never_stuck(self, product_system: ProductSystem, graph: Findings, witness: Witness) -> Verdict:
        name, property_kind = NEVER_STUCK, PropertyKind.ALWAYS
        for state in graph.stuck:
            try:
                with product_system.flawless(partial(Place, state=state)):
                    world = graph.world(state)
                    is_left = not (product_system.is_at_the_bounds(world) or self._settled(product_system, world))
            except RuleError as rule_error:
                return Verdict(self._system.name, name, property_kind, Outcome.BROKEN, witness.unanswered(rule_error))
            if is_left:
                return Verdict(self._system.name, name, property_kind, *_shown(lambda: witness.trace(graph.way(state))))  # noqa: B023 - called at once
        outcome = Outcome.UNDECIDED if graph.truncated else Outcome.HOLDS
        return Verdict(self._system.name, name, property_kind, outcome)

    def _settled(self, product_system: ProductSystem, world: StateRow) -> bool:
        return all(
            machine.settled(entity.record)
            for component, number in zip(product_system.components, world, strict=False)
            for ref, entity in component.states[number].entities.items()
            if (machine := component.of.machine_of(ref)) is not None
        )


def _unasked(product_system: ProductSystem) -> list[NamedProperty]:
    """Return the properties that symmetry excludes: liveness properties, which need to know the entity that acts."""
    of_what_follows = (
        each for each in product_system.judge.properties if each.property.property_kind is PropertyKind.LEADS_TO
    )
    return list(of_what_follows) if product_system.bounds.symmetry else []


def _alike(graph: Findings, exchanged: int, unasked: list[NamedProperty]) -> Alike | None:
    if not isinstance(graph, Graph) or graph.symmetry is None:
        return None
    names = (prop.property.name for prop in unasked)
    return Alike(graph.symmetry.names, exchanged, tuple(dict.fromkeys(names)))


class _Liveness:
    """Checks liveness properties."""

    def __init__(self, product_system: ProductSystem, graph: Graph) -> None:
        self._product = product_system
        self._graph = graph
        self._steps: Steps | None = None
        self._scenes = SystemProperties(product_system)

    def lasso(self, number: int, declared: Property[Any]) -> tuple[bool, Lasso | None]:
        """Return whether the property was ever due, and a run on which it fails."""
        if self._steps is None:
            self._steps = Steps(self._graph)
        fair = assumptions(self._product, declared.given)
        ever = False
        for due, holds in self._truths(number, declared):
            ever = ever or bool(due.any())
            found = never(self._steps, due, holds, fair, self._left_out)
            if found is not None:
                return True, found
        return ever, None

    def _left_out(self, labels: frozenset[int]) -> Flags:
        """Tell of each state whether a step with one of these labels is possible there, and leaves the bounds."""
        found = np.zeros(self._graph.count, dtype=np.bool_)
        commands = self._product.bounds.commands
        for component in self._product.components:
            cut = [local for local, left in component.left_out.items() if left & labels]
            if cut:
                found |= np.isin(self._graph.seen.column(component.number), cut)
            if commands is not None and (said := component.said_at(labels)):
                spent = self._graph.seen.column(self._product.width - 1) >= commands
                found |= spent & np.isin(self._graph.seen.column(component.number), said)
        return found

    def _truths(self, number: int, declared: Property[Any]) -> Iterable[tuple[Flags, Flags]]:
        subjects = [subject for subject in self._product.judge.truths if subject.prop == number]
        for subject in subjects:
            yield self._of_part(subject, declared)
        if number in self._product.judge.of_system:
            holds = [self._scenes.holds(number, columns, begin) for begin, columns in self._graph.chunks()]
            due = [self._scenes.is_due(number, columns, begin) for begin, columns in self._graph.chunks()]
            yield self._beginning() if declared.when is None else np.concatenate(due), np.concatenate(holds)

    def _of_part(self, subject: Subject, declared: Property[Any]) -> tuple[Flags, Flags]:
        truths = self._product.judge.truths[subject]
        count = len(self._product.components[subject.component].states)
        due, holds = np.zeros(count, dtype=np.bool_), np.zeros(count, dtype=np.bool_)
        for local, (is_due, does_hold) in truths.items():
            due[local], holds[local] = is_due, does_hold
        column = self._graph.seen.column(subject.component)
        return (self._beginning() if declared.when is None else due[column]), holds[column]

    def _beginning(self) -> Flags:
        beginning = np.zeros(self._graph.count, dtype=np.bool_)
        beginning[0] = True
        return beginning


_AnyLiveness = _Liveness | LivenessApart


def _verdict(  # noqa: PLR0913, PLR0917 - the property, and all that is known of it
    number: int, prop: NamedProperty, graph: Findings, witness: Witness, liveness: _AnyLiveness, unsound: Trace | None
) -> Verdict:
    """Return the verdict on a property; ``unsound`` is the trace to a state in which its truth differs."""
    outcome, trace = _outcome(number, prop.property, graph, witness, liveness)
    if unsound is not None:
        outcome, trace = Outcome.UNSOUND, unsound
    return Verdict(prop.owner, prop.property.name, prop.property.property_kind, outcome, trace)


def _outcome(
    number: int, declared: Property[Any], graph: Findings, witness: Witness, liveness: _AnyLiveness
) -> tuple[Outcome, Trace | None]:
    try:
        return _decided(number, declared, graph, witness, liveness)
    except RuleError as rule_error:
        return Outcome.BROKEN, witness.unanswered(rule_error)
    except Unsound as unsound:
        return Outcome.UNSOUND, unsound.trace


def _shown(broken: Callable[[], Trace]) -> tuple[Outcome, Trace]:
    """Return the outcome of a broken property with its trace, or that the unreduced rules disagree."""
    try:
        return Outcome.BROKEN, broken()
    except Unsound as unsound:
        return Outcome.UNSOUND, unsound.trace


def _decided(
    number: int, declared: Property[Any], graph: Findings, witness: Witness, liveness: _AnyLiveness
) -> tuple[Outcome, Trace | None]:
    found, seen = graph.broken.get(number), graph.witnesses.get(number)
    if found is not None:
        return Outcome.BROKEN, witness.finding(found, number)
    if seen is not None:
        return Outcome.HOLDS, witness.seen(seen, number)
    if graph.truncated:
        return Outcome.UNDECIDED, None
    if declared.property_kind is not PropertyKind.LEADS_TO:
        return Outcome.NEVER_SEEN if declared.property_kind is PropertyKind.SOMETIMES else Outcome.HOLDS, None
    ever, lasso = liveness.lasso(number, declared)
    if lasso is not None:
        return Outcome.BROKEN, witness.lasso(lasso)
    return Outcome.HOLDS if ever else Outcome.VACUOUS, None
