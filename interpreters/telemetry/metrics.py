"""What a log counts, as metrics: a fold beside the one of the spans.

- Of any system: the entities by machine and state, and the number of entries.
- Of a fleet besides: the costs and the tokens of its agents, and how long tasks were open before they were claimed.

A cost is known when its session has ended, and only if its program reports one.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final, TypeAlias

import msgspec

from lifefold.core.fleet.system import board, worker
from lifefold.core.kernel import Transition
from lifefold.core.lifecycles import task
from lifefold.interpreters.engine import Decision
from lifefold.interpreters.explain.spending import Spending, spend
from lifefold.interpreters.telemetry import genai
from lifefold.interpreters.telemetry.spans import Value

Attributes: TypeAlias = tuple[tuple[str, Value], ...]

WAIT_BOUNDS_S: Final = (0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3_600, 14_400, 86_400)
"""The bounds of the buckets of waits, in seconds."""


class Kind(StrEnum):
    """A sum that only grows, the present value of something, or a distribution."""

    SUM = "sum"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Point(msgspec.Struct, frozen=True):
    """A value with its attributes."""

    attributes: Attributes
    value: int | float


class Distribution(msgspec.Struct, frozen=True):
    """Observed values with their attributes: how many are in each bucket, their sum, and their extremes.

    ``counts`` has one more than ``bounds``: the values above the last one.
    """

    attributes: Attributes
    bounds: Sequence[float]
    counts: Sequence[int]
    total: float
    least: float
    most: float


class Metric(msgspec.Struct, frozen=True):
    """A metric with its points."""

    name: str
    unit: str
    about: str
    kind: Kind
    points: tuple[Point | Distribution, ...]


class _Observed:
    """The values of a distribution up to now."""

    __slots__ = ("_bounds", "_counts", "_least", "_most", "_total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds: Final = bounds
        self._counts: Final = [0] * (len(bounds) + 1)
        self._total, self._least, self._most = 0.0, float("inf"), float("-inf")

    def add(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._total += value
        self._least, self._most = min(self._least, value), max(self._most, value)

    def point(self, attributes: Attributes) -> Distribution:
        return Distribution(attributes, self._bounds, tuple(self._counts), self._total, self._least, self._most)


class Metrics:
    """Counts the decisions of a log. ``first_ms`` and ``last_ms`` are the times of its first and last entry."""

    def __init__(self, *, is_fleet: bool) -> None:
        """Begin before the first entry."""
        self._is_fleet: Final = is_fleet
        self._entries = 0
        self._states: Final[Counter[tuple[str, str]]] = Counter()
        self._open: Final[dict[str, int]] = {}
        """Since when each task is open, in Unix milliseconds."""
        self._waits: Final = _Observed(WAIT_BOUNDS_S)
        self._has_waited = False
        self._tokens: Final[dict[Attributes, _Observed]] = {}
        self._spending = Spending()
        self.first_ms = 0
        self.last_ms = 0

    def take(self, decision: Decision) -> None:
        """Count the next entry."""
        at_ms, stream = decision.entry.at_ms, decision.entry.stream
        self.first_ms = self.first_ms or at_ms
        self.last_ms = max(self.last_ms, at_ms)
        self._entries += 1
        for step in decision.reaction.transitions:
            if step.before is not None:
                self._states[step.machine, str(step.before.state)] -= 1
            self._states[step.machine, str(step.after.state)] += 1
            if self._is_fleet and stream == board.NAME and step.machine == task.machine.name:
                self._wait(step)
            elif self._is_fleet:
                self._charge(stream, step)

    def _wait(self, step: Transition) -> None:
        name: str = step.after.record.id
        if step.entered is task.State.OPEN:
            self._open[name] = step.at_ms
        elif step.entered is task.State.CLAIMED and name in self._open:
            self._waits.add((step.at_ms - self._open.pop(name)) / 1_000)
            self._has_waited = True

    def _charge(self, stream: str, step: Transition) -> None:
        kind, _, agent = stream.partition("/")
        if kind != worker.KIND:
            return
        before = self._spending.of_agent(agent)
        self._spending = spend(self._spending, stream, step)
        now = self._spending.of_agent(agent)
        for of, tokens in (
            (genai.INPUT, now.input_tokens - before.input_tokens),
            (genai.OUTPUT, now.output_tokens - before.output_tokens),
        ):
            if tokens:
                key = ((genai.OPERATION, genai.INVOKE_AGENT), (genai.AGENT, agent), (genai.TOKEN_TYPE, of))
                self._tokens.setdefault(key, _Observed(genai.TOKEN_BOUNDS)).add(tokens)

    def metrics(self) -> Iterator[Metric]:
        """Yield the metrics as they are after the last entry; one without a value is left out."""
        yield Metric("lifefold.entries", "{entry}", "Entries of the log", Kind.SUM, (Point((), self._entries),))
        states = {of: count for of, count in sorted(self._states.items()) if count > 0}
        if self._is_fleet:
            of_tasks = {state: count for (machine, state), count in states.items() if machine == task.machine.name}
            points = tuple(Point((("lifefold.state", state),), count) for state, count in of_tasks.items())
            yield Metric("lifefold.tasks", "{task}", "Tasks by state", Kind.GAUGE, points)
            yield from self._of_fleet()
        else:
            points = tuple(
                Point((("lifefold.machine", machine), ("lifefold.state", state)), count)
                for (machine, state), count in states.items()
            )
            yield Metric("lifefold.entities", "{entity}", "Entities by machine and state", Kind.GAUGE, points)

    def _of_fleet(self) -> Iterator[Metric]:
        if self._has_waited:
            about = "How long tasks were open before they were claimed"
            yield Metric("lifefold.task.wait", "s", about, Kind.HISTOGRAM, (self._waits.point(()),))
        costs: Mapping[str, float] = {
            agent: usage.cost_microusd / 1_000_000 for agent, usage in sorted(self._spending.agents.items())
        }
        if any(costs.values()):
            points = tuple(Point(((genai.AGENT, agent),), cost) for agent, cost in costs.items())
            yield Metric("lifefold.cost", "USD", "Reported costs of sessions", Kind.SUM, points)
        if self._tokens:
            observed = tuple(each.point(key) for key, each in sorted(self._tokens.items(), key=lambda of: repr(of[0])))
            yield Metric(genai.TOKEN_USAGE, "{token}", "Reported tokens of sessions", Kind.HISTOGRAM, observed)
