"""A simulated fleet beside the event loop of SimPy: events per second, and virtual time over real time.

An event is one that an entity of the fleet accepts: an input, or a consequence of one by the rules. The fleet decides
by its rules, all its properties are evaluated (see ``docs/simulate.md``), and it can have faults. SimPy gets as many
timeouts as there are events, in as many processes as there are agents, and decides nothing. Times are processor times
of the thread.
"""

from collections.abc import Generator
from dataclasses import dataclass
from statistics import median
from time import thread_time

import simpy

from benchmarks.report import Report, Table, Target
from benchmarks.sampling import Turn, ratios, spread, take_turns
from lifefold.interpreters.simulate import Faults, Run, simulate
from lifefold.interpreters.simulate.faults import NONE
from lifefold.interpreters.targets.simulation_targets import fleet_of

ROUNDS = 7
AGENTS, TASKS = 20, 200
SEED = 3
WANTED_PER_S = 50_000
WANTED_RATIO = 20
MS_PER_S = 1_000


@dataclass(frozen=True)
class Case:
    """A virtual day of the fleet, with or without faults."""

    title: str
    faults: Faults

    def run(self) -> Run:
        """Simulate it."""
        target = fleet_of(AGENTS, TASKS)
        run = simulate(
            target.subject, opening=target.opening, environment=target.environment, seed=SEED, faults=self.faults
        )
        assert run.ok
        return run

    def turn(self) -> tuple[float, object]:
        """Simulate it once; return the time, and the number of events."""
        start_s = thread_time()
        run = self.run()
        return thread_time() - start_s, run.counts.transitions


CASES = (Case("nothing goes wrong", NONE), Case("under faults", Faults()))


def bare(events: int) -> Turn:
    """Return the turn of SimPy: ``events`` timeouts, and nothing else."""

    def process(environment: simpy.Environment, timeouts: int) -> Generator[simpy.Timeout, None, None]:
        for number in range(timeouts):
            yield environment.timeout(1 + number % 7)

    def timed() -> tuple[float, object]:
        environment = simpy.Environment()
        shares = [events // AGENTS + (number < events % AGENTS) for number in range(AGENTS)]
        for share in shares:
            environment.process(process(environment, share))
        start_s = thread_time()
        environment.run()
        return thread_time() - start_s, sum(shares)

    return timed


def measure() -> Report:
    """Measure both in turns, and report."""
    rows: list[tuple[str, ...]] = []
    targets: list[Target] = []
    for case in CASES:
        run = case.run()
        events, inputs = run.counts.transitions, run.counts.inputs
        costs = take_turns({"lifefold": case.turn, "SimPy": bare(events)}, ROUNDS)
        rates = [events / cost_s for cost_s in costs["lifefold"]]
        times = ratios(costs["lifefold"], costs["SimPy"])
        lasts = [run.until_ms / MS_PER_S / cost_s for cost_s in costs["lifefold"]]
        rows.append(
            (
                case.title,
                f"{events:,}",
                f"{inputs:,}",
                spread(rates, "{:,.0f}"),
                f"{inputs / median(costs['lifefold']):,.0f}",
                f"{events / median(costs['SimPy']):,.0f}",
                spread(lasts, "{:,.0f}"),
            )
        )
        per_s = f"at least {WANTED_PER_S:,}"
        targets += [
            Target(f"{case.title}: events per s", per_s, spread(rates, "{:,.0f}"), median(rates) >= WANTED_PER_S),
            Target(
                f"{case.title}: time per event over SimPy {simpy.__version__}",
                f"at most {WANTED_RATIO} x",
                spread(times, "{:,.0f} x"),
                median(times) <= WANTED_RATIO,
            ),
        ]
    table = Table(
        f"A virtual day of {AGENTS} agents with {TASKS} tasks",
        ("", "events", "inputs", "events per s", "inputs per s", "SimPy, events per s", "virtual over real time"),
        tuple(rows),
    )
    return Report("simulating", (table,), tuple(targets), (f"{ROUNDS} rounds; every run of a case is the same run.",))
