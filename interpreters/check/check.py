"""``check``: everything that a machine or a system promises, held against every state that it can reach."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from lifefold.core.kernel import Cause, Envelope, Machine, Property, System, Temper, alone
from lifefold.interpreters.check.gate import gate
from lifefold.interpreters.check.graph import Finding, Graph, Progress, explore
from lifefold.interpreters.check.liveness import Assumption, Flags, Lasso, Steps, assumptions, never
from lifefold.interpreters.check.parts import Carried, House, Move, World
from lifefold.interpreters.check.plain import Happening, Plain
from lifefold.interpreters.check.question import Bounds, Judge, Promise, Subject
from lifefold.interpreters.check.report import Outcome, Report, Trace, Verdict

INERT: Final = "what is late or comes twice changes nothing"
NEVER_STUCK: Final = "what is not settled can go on"

Opening = Sequence[tuple[str, Envelope]]


def check(
    target: Machine[Any] | System,
    *,
    opening: Opening = (),
    properties: Iterable[Property[Any]] = (),
    bounds: Bounds | None = None,
    tell: Callable[[Progress], None] | None = None,
) -> Report:
    """Look at every state that the target can reach, and say which of its promises hold.

    A system needs its ``opening``: the input that each of its aggregates begins with. ``properties`` are promises
    besides its own: of the entity for a machine, of the ``Scene`` for a system.

    Raises ``ValueError`` if an aggregate refuses its opening, ``Unsound`` if the checker contradicts itself.
    """
    if isinstance(target, Machine):
        machine = target.promising(*properties)
        system, openings = alone(machine)
        return _Check(system, tuple(openings.items()), (), bounds or Bounds(), tell).run()
    return _Check(target, tuple(opening), tuple(properties), bounds or Bounds(), tell).run()


class _Check:
    def __init__(
        self,
        system: System,
        opening: Opening,
        properties: tuple[Property[Any], ...],
        bounds: Bounds,
        tell: Callable[[Progress], None] | None,
    ) -> None:
        self._system = system
        self._opening = opening
        self._properties = properties
        self._bounds = bounds
        self._tell = tell

    def run(self) -> Report:
        kept: frozenset[str] = frozenset()
        while True:
            judge = Judge(self._system, self._properties)
            house = House(self._system, self._opening, judge, self._bounds, kept)
            try:
                return self._judged(house, explore(house, tell=self._tell))
            except Carried as carried:
                kept |= carried.names

    def _judged(self, house: House, graph: Graph) -> Report:
        witness = _Witness(house, graph)
        walked = (0, 0) if graph.truncated else gate(house, graph)
        verdicts = [self._inert(house, graph), self._never_stuck(house, graph, witness)]
        liveness = _Liveness(house, graph)
        for number, promise in enumerate(house.judge.promises):
            verdicts.append(_verdict(number, promise, graph, witness, liveness))
        return Report(
            target=self._system.name,
            verdicts=tuple(verdicts),
            states=graph.count,
            steps=graph.steps,
            depth=graph.depth,
            seconds=graph.seconds,
            truncated=graph.truncated,
            parts={part.name: len(part.states) for part in house.parts},
            refused=house.refused,
            cut=sum(part.cut for part in house.parts),
            walked=walked,
            bounds=self._bounds,
            renumbered=tuple(sorted(house.serials)),
            coverage=house.coverage.counts(),
            missing=tuple(house.coverage.missing()),
        )

    def _inert(self, house: House, graph: Graph) -> Verdict:
        outcome = Outcome.UNDECIDED if graph.truncated else Outcome.HOLDS
        return Verdict(self._system.name, INERT, Temper.ALWAYS, outcome, note=f"{house.refused:,} refused")

    def _never_stuck(self, house: House, graph: Graph, witness: "_Witness") -> Verdict:
        name, temper = NEVER_STUCK, Temper.ALWAYS
        for state in graph.stuck:
            if not (house.is_silenced(graph.world(state)) or self._settled(house, graph.world(state))):
                return Verdict(self._system.name, name, temper, Outcome.BROKEN, witness.trace(graph.way(state)))
        outcome = Outcome.UNDECIDED if graph.truncated else Outcome.HOLDS
        return Verdict(self._system.name, name, temper, outcome)

    def _settled(self, house: House, world: World) -> bool:
        return all(
            machine.settled(entity.record)
            for part, number in zip(house.parts, world, strict=False)
            for ref, entity in part.states[number].entities.items()
            if (machine := part.of.machine_of(ref)) is not None
        )


class _Witness:
    """Walks again, by the rules as they are, what the search has found."""

    def __init__(self, house: House, graph: Graph) -> None:
        self._house = house
        self._graph = graph
        self._plain = Plain(house)

    def trace(self, moves: Sequence[Move], cycle: Sequence[Move] | None = None) -> Trace:
        world, happened = self._plain.walk(moves)
        rounds: list[Happening] = []
        for move in cycle or ():
            world, happening = self._plain.go(world, move)
            rounds.append(happening)
        return Trace(tuple(happened), None if cycle is None else tuple(rounds))

    def finding(self, found: Finding) -> Trace:
        moves = self._graph.way(found.state)
        return self.trace(moves if found.after is None else [*moves, *self._graph.moves((found.state, found.after))])

    def lasso(self, lasso: Lasso) -> Trace:
        moves = [*self._graph.way(lasso.stem[0]), *self._graph.moves(lasso.stem)]
        return self.trace(moves, self._graph.moves((lasso.stem[-1], *lasso.cycle)))


class _Liveness:
    """Answers whether what should follow does follow."""

    def __init__(self, house: House, graph: Graph) -> None:
        self._house = house
        self._graph = graph
        self._steps: Steps | None = None

    def lasso(self, number: int, promised: Property[Any]) -> tuple[bool, Lasso | None]:
        """Return whether anything was ever due, and a run on which it does not follow."""
        if self._steps is None:
            self._steps = Steps(self._graph)
        fair = assumptions(self._house, promised.given)
        judged = self._judged(fair)
        ever = False
        for due, holds in self._truths(number, promised):
            ever = ever or bool(due.any())
            found = never(self._steps, due, holds, fair, judged)
            if found is not None:
                return True, found
        return ever, None

    def _judged(self, fair: Sequence[Assumption]) -> Flags:
        """Tell of each state whether all that happens there is known: no step that matters leads out of the bounds."""
        judged = np.ones(self._graph.count, dtype=np.bool_)
        for part in self._house.parts:
            if part.cut_at:
                cut = np.fromiter(part.cut_at, dtype=np.int64)
                judged &= ~np.isin(self._graph.seen.column(part.number), cut)
        commands, assumed = self._house.bounds.commands, frozenset[int]().union(*(each.labels for each in fair))
        if commands is not None and any(self._house.labels[label].cause is Cause.COMMAND for label in assumed):
            judged &= self._graph.seen.column(self._house.width - 1) < commands
        return judged

    def _truths(self, number: int, promised: Property[Any]) -> Iterable[tuple[Flags, Flags]]:
        subjects = [subject for subject in self._house.judge.truths if subject.promise == number]
        for subject in subjects:
            yield self._of_part(subject, promised)
        if number in self._house.judge.of_system:
            scenes = [self._house.scene(world) for world in self._graph.worlds()]
            promise = self._house.judge.promises[number]
            holds = np.array([promise.holds(scene) for scene in scenes])
            due = np.array([promise.is_due(scene) for scene in scenes])
            if promised.when is None:
                due = self._beginning()
            yield due, holds

    def _of_part(self, subject: Subject, promised: Property[Any]) -> tuple[Flags, Flags]:
        truths = self._house.judge.truths[subject]
        count = len(self._house.parts[subject.part].states)
        due, holds = np.zeros(count, dtype=np.bool_), np.zeros(count, dtype=np.bool_)
        for local, (is_due, does_hold) in truths.items():
            due[local], holds[local] = is_due, does_hold
        column = self._graph.seen.column(subject.part)
        return (self._beginning() if promised.when is None else due[column]), holds[column]

    def _beginning(self) -> Flags:
        beginning = np.zeros(self._graph.count, dtype=np.bool_)
        beginning[0] = True
        return beginning


def _verdict(number: int, promise: Promise, graph: Graph, witness: _Witness, liveness: _Liveness) -> Verdict:
    outcome, trace = _outcome(number, promise.property, graph, witness, liveness)
    return Verdict(promise.owner, promise.property.name, promise.property.temper, outcome, trace)


def _outcome(
    number: int, promised: Property[Any], graph: Graph, witness: _Witness, liveness: _Liveness
) -> tuple[Outcome, Trace | None]:
    found, seen = graph.broken.get(number), graph.witnesses.get(number)
    if found is not None:
        return Outcome.BROKEN, witness.finding(found)
    if seen is not None:
        return Outcome.HOLDS, witness.trace(graph.way(seen))
    if graph.truncated:
        return Outcome.UNDECIDED, None
    if promised.temper is not Temper.LEADS_TO:
        return Outcome.NEVER_SEEN if promised.temper is Temper.SOMETIMES else Outcome.HOLDS, None
    ever, lasso = liveness.lasso(number, promised)
    if lasso is not None:
        return Outcome.BROKEN, witness.lasso(lasso)
    return Outcome.HOLDS if ever else Outcome.VACUOUS, None
