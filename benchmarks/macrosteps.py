"""How long the pure fleet takes for what happens to it: one event from outside with all rules and messages that follow.

Nothing is performed and nothing is written: every activity that is begun reports at once what it would when nothing
goes wrong, and every message is delivered before the next report. Agents ask for work, get it, work, verify and merge.
Fleets of all sizes take turns, so that what an event costs can be compared with how many tasks there are. Processor
time of the thread, without the opening of the fleet.
"""

from collections import deque
from collections.abc import Iterator
from statistics import median
from time import thread_time
from typing import Final

from benchmarks.report import Report, Table, Target
from benchmarks.sampling import Turn, ratios, spread, take_turns
from lifefold.core import fleet
from lifefold.core.fleet.worker import assignment
from lifefold.core.kernel import Aggregate, Envelope, Event, Reaction, react
from lifefold.core.lifecycles import session
from lifefold.effects import Begin, Tell

ROUNDS: Final = 7
EVENTS: Final = 3_000
AGENTS: Final = 100
SIZES: Final = (10, 100, 1_000, 10_000)
"""How many tasks there are."""

LARGE: Final = (AGENTS, 1_000)
WANTED_PER_S: Final = 20_000
WANTED_RATIO: Final = 1.5
MICROSECONDS: Final = 1e6

SAYS: Final[dict[str, tuple[Event, ...]]] = {
    "PrepareWorktree": (session.WorktreeReady(),),
    "CheckOutWork": (assignment.CheckedOut(),),
    "VerifyWork": (assignment.Verified(),),
    "MergeWork": (assignment.Merged("c0ffee"),),
}
"""What activities report; a session says that it has begun, and succeeds."""


class Pure:
    """A fleet and nothing else: what is begun, what is under way, and what has happened."""

    def __init__(self, agents: int, tasks: int) -> None:
        """Open the fleet."""
        names = [f"a{number}" for number in range(agents)]
        self.aggregates: Final[dict[str, Aggregate]] = {}
        self._letters: Final[deque[tuple[str, Envelope]]] = deque()
        self._reports: Final[deque[tuple[str, Envelope]]] = deque()
        plan = fleet.Plan(
            "pure",
            tuple(fleet.AgentPlan(name) for name in names),
            tuple(fleet.TaskPlan(f"T{number}", "do it") for number in range(tasks)),
        )
        for name, envelope in fleet.opening(plan, 0):
            self._give(name, envelope)

    def run(self, most: int) -> int:
        """Let so many things happen, or all that can, and return how many did."""
        happened = 0
        while self._reports and happened < most:
            self._give(*self._reports.popleft())
            happened += 1
            while self._letters:
                self._give(*self._letters.popleft())
        return happened

    def _give(self, name: str, envelope: Envelope) -> None:
        of = fleet.system.type_of(name)
        reaction = react(of, self.aggregates.get(name) or of.start(name), envelope)
        assert isinstance(reaction, Reaction), reaction
        self.aggregates[name] = reaction.aggregate
        for asked in reaction.effects:
            match asked.effect:
                case Tell(aggregate=to, entity=entity, event=event, ordinal=ordinal):
                    self._letters.append((to, Envelope(entity, event, 0, name, sender=name, ordinal=ordinal)))
                case Begin() as begun:
                    self._reports.extend((name, each) for each in _said(asked.entity, begun))
                case _:
                    pass


def _said(entity: str, begun: Begin) -> Iterator[Envelope]:
    """Yield what an activity reports."""
    started = session.SessionStarted(getattr(begun.activity, "session_seq", 0))
    for event in SAYS.get(begun.slot, (started, session.SessionExited(session.Success()))):
        yield Envelope(entity, event, 0, begun.slot, slot=begun.slot, generation=begun.generation)


def turn(agents: int, tasks: int) -> Turn:
    """Return the turn of a size: what an event costs on the average."""

    def timed() -> tuple[float, object]:
        happened, cost_s = 0, 0.0
        while happened < EVENTS:
            pure = Pure(agents, tasks)
            start_s = thread_time()
            happened += pure.run(EVENTS - happened)
            cost_s += thread_time() - start_s
        return cost_s / happened, "as much as was wanted"

    return timed


def measure() -> Report:
    """Measure all sizes, in turns, and report."""
    fleets = {f"{min(AGENTS, tasks)} agents, {tasks:,} tasks": (min(AGENTS, tasks), tasks) for tasks in SIZES}
    costs = take_turns({name: turn(*size) for name, size in fleets.items()}, ROUNDS)
    large, largest, middle = (
        next(name for name, size in fleets.items() if size == wanted)
        for wanted in (LARGE, (AGENTS, SIZES[-1]), (AGENTS, SIZES[1]))
    )
    rates = [1 / cost_s for cost_s in costs[large]]
    grown = ratios(costs[largest], costs[middle])
    rows = tuple(
        (name, f"{median(each) * MICROSECONDS:.1f}", f"{1 / median(each):,.0f}", spread(ratios(each, costs[middle])))
        for name, each in costs.items()
    )
    targets = (
        Target(
            f"{large}: macrosteps per s",
            f"at least {WANTED_PER_S:,}",
            spread(rates, "{:,.0f}"),
            median(rates) >= WANTED_PER_S,
        ),
        Target(
            f"an event among {SIZES[-1]:,} tasks over one among {SIZES[1]}",
            f"at most {WANTED_RATIO} x",
            spread(grown, "{:.2f} x"),
            median(grown) <= WANTED_RATIO,
        ),
    )
    table = Table("A macrostep", ("", "median us", "per s", f"over {SIZES[1]} tasks"), rows)
    return Report("macrosteps", (table,), targets, (f"{ROUNDS} rounds of {EVENTS:,} events from outside each.",))
