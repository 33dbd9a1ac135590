"""What a search finds, in whatever way it keeps the states, and what ends a search before it has met everything."""

import resource
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise, repeat
from typing import Final

import msgspec

from lifefold.interpreters.search.component import Move
from lifefold.interpreters.search.product_system import ProductSystem, World
from lifefold.interpreters.search.rule_error import UNANSWERED, RuleError


class Progress(msgspec.Struct, frozen=True):
    """How far a search is: states met, of those not looked at yet (``frontier``), steps, depth, seconds."""

    states: int
    frontier: int
    steps: int
    depth: int
    seconds: float


class Finding(msgspec.Struct, frozen=True):
    """A property that is broken: in a state, or by the step from it to ``after``. States by their numbers."""

    state: int
    after: int | None = None


class Findings(ABC):
    """What a search has found. States have numbers; the search begins with number 0."""

    def __init__(self, product_system: ProductSystem) -> None:
        """Begin with nothing."""
        self.product_system: Final = product_system
        self.levels: Final[list[int]] = [0]
        """How many states there are before each level."""
        self.steps = 0
        """How many steps there are, those that change nothing included."""
        self.stuck: Final[list[int]] = []
        """The states that no step leaves."""
        self.broken: Final[dict[int, Finding]] = {}
        self.witnesses: Final[dict[int, int]] = {}
        """By promise that something is possible: a state in which it is."""
        self.seconds = 0.0
        self.truncated = ""
        """Why the search ended before everything was met; empty if it did not."""
        self.rule_error: RuleError | None = None
        """What of the rules has ended it, if that was it."""

    def end(self, why: RuleError | KeyboardInterrupt) -> None:
        """End the search before everything was met."""
        self.rule_error = why if isinstance(why, RuleError) else None
        self.truncated = "it was interrupted" if self.rule_error is None else UNANSWERED

    @property
    @abstractmethod
    def count(self) -> int:
        """How many states were met."""

    @property
    def depth(self) -> int:
        """How many steps the farthest states are from the beginning."""
        return len(self.levels) - 1

    @abstractmethod
    def world(self, state: int) -> World:
        """Return a state by its number."""

    @abstractmethod
    def way(self, state: int) -> list[Move]:
        """Return the shortest way to a state from the beginning."""

    @abstractmethod
    def nearest(self, component: int, locals_: Collection[int]) -> int:
        """Return the state nearest to the beginning in which an aggregate is in one of these; -1 if there is none."""

    def moves(self, states: Sequence[int], labels: Sequence[int] = ()) -> list[Move]:
        """Return the moves from each of these states to the next; with ``labels``, moves of these, if not negative."""
        found: list[Move] = []
        for (state, to), label in zip(pairwise(states), labels or repeat(-1), strict=False):
            wanted = self.world(to)
            steps = self.product_system.successors(self.world(state))
            found.append(next(move for move, world, step in steps if world == wanted and label in {-1, step.label}))
        return found


class Watch:
    """Looks after a search: whether it has to end, and who is told how far it is."""

    def __init__(self, found: Findings, tell: Callable[[Progress], None] | None) -> None:
        """Begin to take the time."""
        self._found = found
        self._tell = tell
        self._began = time.perf_counter()

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return time.perf_counter() - self._began

    def limit(self, *, more_mib: int = 0) -> str:
        """Return why the search has to end here, if it has to; it is about to take so much ``more`` memory."""
        found, bounds = self._found, self._found.product_system.bounds
        if found.count > bounds.states:
            return f"more than {bounds.states:,} states"
        if bounds.depth is not None and found.depth > bounds.depth:
            return f"more than {bounds.depth:,} steps deep"
        if bounds.seconds is not None and self.seconds > bounds.seconds:
            return f"more than {bounds.seconds:g} seconds"
        if bounds.memory_mib is not None and _memory_mib() + more_mib > bounds.memory_mib:
            return f"more than {bounds.memory_mib:,} MiB of memory"
        return ""

    def report(self, frontier: int) -> None:
        """Tell how far it is."""
        if self._tell is not None:
            found = self._found
            self._tell(Progress(found.count, frontier, found.steps, found.depth, self.seconds))


def _memory_mib() -> int:
    """Return the most memory that this process has had so far, as Linux counts it: in units of 1,024 bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
