"""The scheduler of a simulation: all future events in virtual time, and the running activities.

Activities outlive every runner: a process makes its reports with or without one. Events happen in the order of their
times. At equal times timers come first, and then immediate events. The reports of activities follow by name, one by
one with all consequences. All other events come last, as they were scheduled. So the order in which reports were
scheduled does not matter. The engine has the same order in virtual time (see ``on_engine``).
"""

import heapq
from collections.abc import Callable
from typing import Any, Final

from lifefold.interpreters.simulate.environment import Said

Part = tuple[str, str, str, int]
"""The identity of an activity: aggregate, entity, slot, generation."""

Order = tuple[int | str, ...]
"""The order of events at one time."""

_AT_ONCE: Final[Order] = (1,)
WAITED: Final[Order] = (3,)


def due(part: Part) -> Order:
    """Return the order of a timer."""
    return (0, *part)


def turn(part: Part) -> Order:
    """Return the order of what an activity says, and of its end."""
    return (2, *part)


class Agenda:
    """The future events, by time: callables with their arguments."""

    def __init__(self, now_ms: int) -> None:
        """Begin without events."""
        self.now_ms = now_ms
        self._heap: Final[list[tuple[int, Order, int, Callable[..., None], tuple[Any, ...]]]] = []
        self._arranged = 0

    def at(self, at_ms: int, what: Callable[..., None], *given: Any, order: Order = ()) -> None:
        """Schedule an event, now at the earliest."""
        self._arranged += 1
        order = order or (WAITED if at_ms > self.now_ms else _AT_ONCE)
        heapq.heappush(self._heap, (max(at_ms, self.now_ms), order, self._arranged, what, given))

    def next_ms(self) -> int | None:
        """Return the time of the next event; None if there is none."""
        return self._heap[0][0] if self._heap else None

    def step(self) -> None:
        """Let the next event happen."""
        self.now_ms, _, _, what, given = heapq.heappop(self._heap)
        what(*given)


class Process:
    """A running activity: its future reports, and the reports that no runner has got yet."""

    __slots__ = ("heard", "is_over", "said", "spoken")

    def __init__(self, said: list[Said]) -> None:
        """Take its reports, in order."""
        self.said = said
        self.spoken: int = 0
        """The number of reports that it has made."""
        self.heard: int = 0
        """The number of them that a runner has accepted durably, or refused."""
        self.is_over = False
