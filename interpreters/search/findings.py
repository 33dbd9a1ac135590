"""The findings of a search, with any representation of its states, and the limits that end a search early."""

import resource
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise, repeat
from typing import Final

import msgspec

from lifefold.interpreters.search.component import Move
from lifefold.interpreters.search.product_system import ProductSystem, StateRow
from lifefold.interpreters.search.rule_error import UNANSWERED, RuleError


class Progress(msgspec.Struct, frozen=True):
    """The progress of a search: states, states that are not explored yet (``frontier``), steps, depth, seconds."""

    states: int
    frontier: int
    steps: int
    depth: int
    seconds: float


class BrokenAt(msgspec.Struct, frozen=True):
    """A broken property: in a state, or by the step from it to ``after``. States have numbers."""

    state: int
    after: int | None = None


class Findings(ABC):
    """The findings of a search. States have numbers; the opening is number 0."""

    def __init__(self, product_system: ProductSystem) -> None:
        """Begin without findings."""
        self.product_system: Final = product_system
        self.levels: Final[list[int]] = [0]
        """The number of states before each level."""
        self.steps = 0
        """The number of steps, with those that change nothing."""
        self.stuck: Final[list[int]] = []
        """The states without a step."""
        self.broken: Final[dict[int, BrokenAt]] = {}
        self.witnesses: Final[dict[int, int]] = {}
        """By reachability property: a state in which it holds."""
        self.seconds = 0.0
        self.truncated = ""
        """Why the search ended early; empty if it is complete."""
        self.rule_error: RuleError | None = None
        """The error of the rules that ended the search, if one did."""

    def end(self, why: RuleError | KeyboardInterrupt) -> None:
        """End the search early."""
        self.rule_error = why if isinstance(why, RuleError) else None
        self.truncated = "it was interrupted" if self.rule_error is None else UNANSWERED

    @property
    @abstractmethod
    def count(self) -> int:
        """The number of states that were reached."""

    @property
    def depth(self) -> int:
        """The distance of the farthest states from the opening, in steps."""
        return len(self.levels) - 1

    @abstractmethod
    def world(self, state: int) -> StateRow:
        """Return a state by its number."""

    @abstractmethod
    def way(self, state: int) -> list[Move]:
        """Return a shortest trace to a state from the opening."""

    @abstractmethod
    def nearest(self, component: int, locals_: Collection[int]) -> int:
        """Return the state nearest to the opening in which an aggregate is in one of these; -1 if there is none."""

    def moves(self, states: Sequence[int], labels: Sequence[int] = ()) -> list[Move]:
        """Return the moves from each of these states to the next; with ``labels``, moves of these, if not negative."""
        found: list[Move] = []
        for (state, to), label in zip(pairwise(states), labels or repeat(-1), strict=False):
            wanted = self.world(to)
            steps = self.product_system.successors(self.world(state))
            found.append(next(move for move, world, step in steps if world == wanted and label in {-1, step.label}))
        return found


class Watch:
    """Watches a search: its limits and its reports of progress."""

    def __init__(self, found: Findings, tell: Callable[[Progress], None] | None) -> None:
        """Start the clock."""
        self._found = found
        self._tell = tell
        self._began = time.perf_counter()

    @property
    def seconds(self) -> float:
        """The time since the start, in seconds."""
        return time.perf_counter() - self._began

    def limit(self, *, more_mib: int = 0) -> str:
        """Return the limit that ends the search here, if one does; it is about to take so much ``more`` memory."""
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
        """Report the progress."""
        if self._tell is not None:
            found = self._found
            self._tell(Progress(found.count, frontier, found.steps, found.depth, self.seconds))


def _memory_mib() -> int:
    """Return the peak memory of this process on Linux, which counts in units of 1,024 bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
