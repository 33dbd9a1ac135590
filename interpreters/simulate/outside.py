"""The world outside of a runner, in virtual time: what will happen when, and the activities that go on.

What goes on there outlives every runner: an agent's process says what it says, whether somebody listens or not. Things
happen in the order of their times, and at one time in the order in which they were arranged.
"""

import heapq
from collections.abc import Callable
from typing import Any, Final

from lifefold.interpreters.simulate.environment import Said

Part = tuple[str, str, str, int]
"""What goes on is known by aggregate, entity, slot, generation."""


class Agenda:
    """What is to happen, by time: callables, each with what it is called with."""

    def __init__(self, now_ms: int) -> None:
        """Begin with nothing."""
        self.now_ms = now_ms
        self._heap: Final[list[tuple[int, int, Callable[..., None], tuple[Any, ...]]]] = []
        self._arranged = 0

    def at(self, at_ms: int, what: Callable[..., None], *given: Any) -> None:
        """Arrange for something to happen, now at the earliest."""
        self._arranged += 1
        heapq.heappush(self._heap, (max(at_ms, self.now_ms), self._arranged, what, given))

    def next_ms(self) -> int | None:
        """Return when something happens next; None if nothing does."""
        return self._heap[0][0] if self._heap else None

    def step(self) -> None:
        """Let the next thing happen."""
        self.now_ms, _, what, given = heapq.heappop(self._heap)
        what(*given)


class Process:
    """An activity that goes on: what it will say, and what it has said that nobody has heard yet."""

    __slots__ = ("heard", "is_over", "said", "spoken")

    def __init__(self, said: list[Said]) -> None:
        """Take what it says, in order."""
        self.said = said
        self.spoken = 0
        """How much of it was said."""
        self.heard = 0
        """How much of that a runner has taken in durably, or refused."""
        self.is_over = False
