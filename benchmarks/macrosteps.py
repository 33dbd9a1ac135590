"""The cost of an event from outside in the pure fleet, with all rules and messages that follow from it.

Nothing is performed and nothing is written. Every activity reports its success at once, and every message is delivered
before the next report. Agents ask for work, get it, work, verify and merge. Fleets of all sizes are measured in turns,
so that the cost can be compared with the number of tasks. Times are processor times of the thread, without the opening
of the fleet.
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
"""The numbers of tasks."""

LARGE: Final = (AGENTS, 1_000)
WANTED_PER_S: Final = 20_000
WANTED_RATIO: Final = 1.5
MICROSECONDS: Final = 1e6

REPORTS: Final[dict[str, tuple[Event, ...]]] = {
    "PrepareWorktree": (session.WorktreeReady(),),
    "CheckOutWork": (assignment.CheckedOut(),),
    "VerifyWork": (assignment.Verified(),),
    "MergeWork": (assignment.Merged("c0ffee"),),
}
"""The reports of activities; a session reports its start, and its success."""


class Pure:
    """A pure fleet: its aggregates, messages in flight, and pending reports of activities."""

    def __init__(self, agents: int, tasks: int) -> None:
        """Open the fleet."""
        names = [f"a{number}" for number in range(agents)]
        self.aggregates: Final[dict[str, Aggregate]] = {}
        self._messages: Final[deque[tuple[str, Envelope]]] = deque()
        self._reports: Final[deque[tuple[str, Envelope]]] = deque()
        plan = fleet.Plan(
            "pure",
            tuple(fleet.AgentPlan(name) for name in names),
            tuple(fleet.TaskPlan(f"T{number}", "do it") for number in range(tasks)),
        )
        for name, envelope in fleet.opening(plan, 0):
            self._give(name, envelope)

    def run(self, most: int) -> int:
        """Deliver up to ``most`` reports with the messages that follow; return the number of reports."""
        happened = 0
        while self._reports and happened < most:
            self._give(*self._reports.popleft())
            happened += 1
            while self._messages:
                self._give(*self._messages.popleft())
        return happened

    def _give(self, name: str, envelope: Envelope) -> None:
        of = fleet.system.type_of(name)
        reaction = react(of, self.aggregates.get(name) or of.start(name), envelope)
        assert isinstance(reaction, Reaction), reaction
        self.aggregates[name] = reaction.aggregate
        for requested in reaction.effects:
            match requested.effect:
                case Tell(aggregate=to, entity=entity, event=event, ordinal=ordinal):
                    self._messages.append((to, Envelope(entity, event, 0, name, sender=name, ordinal=ordinal)))
                case Begin() as begun:
                    self._reports.extend((name, each) for each in _reported(requested.entity, begun))
                case _:
                    pass


def _reported(entity: str, begun: Begin) -> Iterator[Envelope]:
    """Yield the reports of an activity."""
    started = session.SessionStarted(getattr(begun.activity, "session_seq", 0))
    for event in REPORTS.get(begun.slot, (started, session.SessionExited(session.Success()))):
        yield Envelope(entity, event, 0, begun.slot, slot=begun.slot, generation=begun.generation)


def turn(agents: int, tasks: int) -> Turn:
    """Return the turn of a size: the mean cost of an event."""

    def timed() -> tuple[float, object]:
        happened, cost_s = 0, 0.0
        while happened < EVENTS:
            pure = Pure(agents, tasks)
            start_s = thread_time()
            happened += pure.run(EVENTS - happened)
            cost_s += thread_time() - start_s
        return cost_s / happened, "all events"

    return timed


def measure() -> Report:
    """Measure all sizes in turns, and report."""
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
