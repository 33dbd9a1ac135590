"""The world outside of a runner, in virtual time: what will happen when, and the activities that go on.

What goes on there outlives every runner: an agent's process says what it says, whether somebody listens or not. Things
happen in the order of their times. At one time timers go first, then what is to happen at once, and then, one by one
and each with all that follows from it at once, what was waited for: what activities say, by name, so that it does not
matter who has arranged what when; then all else as it was arranged. The engine has this order in virtual time, too (see
``enacted``).
"""

import heapq
from collections.abc import Callable
from typing import Any, Final

from lifefold.interpreters.simulate.environment import Said

Part = tuple[str, str, str, int]
"""What goes on is known by aggregate, entity, slot, generation."""

Order = tuple[int | str, ...]
"""What goes first at one time."""

_AT_ONCE: Final[Order] = (1,)
WAITED: Final[Order] = (3,)


def due(part: Part) -> Order:
    """Return the order of a timer."""
    return (0, *part)


def turn(part: Part) -> Order:
    """Return the order of what an activity says, and of its end."""
    return (2, *part)


class Agenda:
    """What is to happen, by time: callables, each with what it is called with."""

    def __init__(self, now_ms: int) -> None:
        """Begin with nothing."""
        self.now_ms = now_ms
        self._heap: Final[list[tuple[int, Order, int, Callable[..., None], tuple[Any, ...]]]] = []
        self._arranged = 0

    def at(self, at_ms: int, what: Callable[..., None], *given: Any, order: Order = ()) -> None:
        """Arrange for something to happen, now at the earliest."""
        self._arranged += 1
        order = order or (WAITED if at_ms > self.now_ms else _AT_ONCE)
        heapq.heappush(self._heap, (max(at_ms, self.now_ms), order, self._arranged, what, given))

    def next_ms(self) -> int | None:
        """Return when something happens next; None if nothing does."""
        return self._heap[0][0] if self._heap else None

    def step(self) -> None:
        """Let the next thing happen."""
        self.now_ms, _, _, what, given = heapq.heappop(self._heap)
        what(*given)


class Process:
    """An activity that goes on: what it will say, and what it has said that nobody has heard yet."""

    __slots__ = ("heard", "is_over", "said", "spoken")

    def __init__(self, said: list[Said]) -> None:
        """Take what it says, in order."""
        self.said = said
        self.spoken: int = 0
        """How much of it was said."""
        self.heard: int = 0
        """How much of that a runner has taken in durably, or refused."""
        self.is_over = False
