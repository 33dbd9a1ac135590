"""The rooms of a host: which aggregates may work there at a time.

An aggregate takes a room of its pool when it is placed here, and when its work comes to a host that it had left. It
keeps the room between two activities. It gives the room back when it is settled, and when another host has it.
"""

import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Final


class Rooms:
    """Counts the aggregates with a room, by pool.

    An aggregate that was placed here counts for ``wait_s`` before its first work arrives.
    """

    def __init__(
        self, pools: Mapping[str, int], capacity: int, wait_s: float, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        """Take the rooms of each pool, and those of the host. ``now_s`` is a clock that no operator sets."""
        self._pools: Final = dict(pools)
        self.capacity: Final = capacity
        self._wait_s: Final = wait_s
        self._now_s: Final = now_s
        self._pool_of: Final[dict[str, str]] = {}
        """The pools of the aggregates that have a room."""
        self._placed_s: Final[dict[str, float]] = {}
        """The times at which aggregates were placed whose work has not arrived."""
        self._at_work: Final[Counter[str]] = Counter()
        """The number of activities of each aggregate that are attended now."""

    def is_placed(self, aggregate: str, pool: str) -> bool:
        """Give an aggregate a room, and tell whether there was one. It has one already if it has not left."""
        if not self._has_room(aggregate, pool):
            return False
        self._pool_of[aggregate] = pool
        self._placed_s[aggregate] = self._now_s()
        return True

    def is_kept(self, aggregate: str, pool: str) -> bool:
        """Let an aggregate whose work has arrived have its room, or another one; tell whether there was one."""
        if not self._has_room(aggregate, pool):
            return False
        self._pool_of.setdefault(aggregate, pool)
        self._placed_s.pop(aggregate, None)
        return True

    @contextmanager
    def at_work(self, aggregate: str) -> Generator[None]:
        """Note that an activity of an aggregate is attended during the block."""
        self._at_work[aggregate] += 1
        try:
            yield
        finally:
            self._at_work[aggregate] -= 1
            if not self._at_work[aggregate]:
                del self._at_work[aggregate]

    def leave(self, aggregate: str) -> None:
        """Give the room of an aggregate back, unless something of it is at work."""
        if aggregate not in self._at_work:
            self._pool_of.pop(aggregate, None)
            self._placed_s.pop(aggregate, None)

    def idle(self) -> list[str]:
        """Return the aggregates that have a room, and of which nothing is at work or on its way."""
        since_s = self._now_s() - self._wait_s
        for name in [each for each, at_s in self._placed_s.items() if at_s < since_s]:
            del self._placed_s[name]
        return [each for each in self._pool_of if each not in self._at_work and each not in self._placed_s]

    def taken(self) -> set[str]:
        """Return the aggregates that have a room."""
        return set(self._pool_of)

    def pools(self) -> Iterator[tuple[str, int, int]]:
        """Yield each pool: its name, the number of its rooms, and how many of them are taken."""
        used = Counter(self._pool_of.values())
        for pool, rooms in self._pools.items():
            yield pool, rooms, used[pool]

    def _has_room(self, aggregate: str, pool: str) -> bool:
        if aggregate in self._pool_of:
            return True
        in_pool = sum(1 for each in self._pool_of.values() if each == pool)
        return len(self._pool_of) < self.capacity and in_pool < self._pools.get(pool, self.capacity)
