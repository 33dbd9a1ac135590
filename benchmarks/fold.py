"""Deciding and folding a pure fleet, with a board and its workers, without a disk and a clock.

Times are processor times of the thread. One input is one macrostep of one aggregate: the input's own transition, and
all transitions that follow from it by the aggregate's rules.
"""

from collections.abc import Callable
from statistics import median
from time import thread_time_ns

from benchmarks.pure_world import World, plan
from benchmarks.report import Report, Table
from benchmarks.sampling import Turn, take_turns
from lifefold.core.fleet import system
from lifefold.core.fleet.system import board
from lifefold.core.kernel import Aggregate, Envelope, Reaction, Refusal, react
from lifefold.core.lifecycles import task
from lifefold.interpreters.engine import Decision, Ledger
from lifefold.interpreters.store import Entry

ROUNDS = 5
FLEETS = ((20, 100), (100, 500))
"""Agents and tasks."""


class Run:
    """One run of a fleet, from its opening until all tasks are closed: the log, and the accepted inputs in order."""

    def __init__(self, agents: int, tasks: int) -> None:
        """Run it."""
        self.title = f"{agents} agents, {tasks} tasks"
        self.ledger = Ledger(system)
        self.entries: list[Entry] = []
        self.taken: list[tuple[str, Envelope]] = []
        self.transitions = 0
        world = World(plan(agents, tasks))
        while world.inputs:
            name, envelope = world.inputs.popleft()
            decision = self.ledger.decide(name, envelope)
            if isinstance(decision, Decision):
                self._accept(name, decision, world)
        left = [e.ref for e in self.aggregates[board.NAME].entities.values() if e.ref.startswith("task:")]
        assert all(self.aggregates[board.NAME].record(ref).state is task.State.CLOSED for ref in left)

    @property
    def aggregates(self) -> dict[str, Aggregate]:
        """The final aggregates."""
        return self.ledger.aggregates

    def _accept(self, name: str, decision: Decision, world: World) -> None:
        self.entries.append(decision.entry)
        self.taken.append((name, decision.envelope))
        self.transitions += len(decision.reaction.transitions)
        for requested in decision.reaction.effects:
            world.perform(name, requested)

    def react(self) -> dict[str, Aggregate]:
        """Apply only the pure rules to every input again."""
        aggregates: dict[str, Aggregate] = {}
        for name, envelope in self.taken:
            of = system.type_of(name)
            reaction: Reaction | Refusal = react(of, aggregates.get(name) or of.start(name), envelope)
            assert isinstance(reaction, Reaction)
            aggregates[name] = reaction.aggregate
        return aggregates

    def decide(self) -> dict[str, Aggregate]:
        """Decide on every input again, and make its log entry: encode the input and the outcome."""
        ledger = Ledger(system)
        for name, envelope in self.taken:
            ledger.decide(name, envelope)
        return ledger.aggregates

    def fold(self) -> dict[str, Aggregate]:
        """Fold the log: decode, and make the written reactions again."""
        ledger = Ledger(system)
        for _decision in ledger.fold(self.entries):
            pass
        return ledger.aggregates

    def turn(self, work: Callable[[], dict[str, Aggregate]]) -> Turn:
        """Return the turn of one way to repeat the run; it must end with equal aggregates."""

        def timed() -> tuple[float, object]:
            start = thread_time_ns()
            aggregates = work()
            cost_ns = (thread_time_ns() - start) / len(self.taken)
            return cost_ns, aggregates == self.aggregates

        return timed


def measure() -> Report:
    """Measure and report, without a target."""
    tables = tuple(_table(Run(agents, tasks)) for agents, tasks in FLEETS)
    return Report("fold", tables, notes=(f"{ROUNDS} rounds; every way ended with equal aggregates in every round.",))


def _table(run: Run) -> Table:
    ways = {
        "react: rules alone": run.react,
        "decide: and make the log entry": run.decide,
        "fold: read the log again": run.fold,
    }
    costs = take_turns({name: run.turn(work) for name, work in ways.items()}, ROUNDS)
    each = run.transitions / len(run.taken)
    rows = tuple(
        (
            name,
            f"{median(ns) / 1_000:,.0f}",
            f"{1e9 / median(ns):,.0f}",
            f"{1e9 / min(ns):,.0f}",
            f"{1e9 * each / median(ns):,.0f}",
        )
        for name, ns in costs.items()
    )
    title = f"{run.title}: {len(run.taken):,} inputs, {run.transitions:,} transitions"
    return Table(title, ("", "median us per input", "inputs per s", "most inputs per s", "transitions per s"), rows)
