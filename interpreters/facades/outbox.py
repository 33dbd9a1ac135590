"""A queue of calls to user code, performed in order and one at a time, by any thread that flushes it.

No lock is held during a call, so user code may add more items; they are performed after those already queued.
"""

from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Final, Generic, TypeVar

T = TypeVar("T")

FAILURES_KEPT: Final = 100
"""The number of failures that are kept; the oldest are dropped first."""


class Outbox(Generic[T]):
    """A queue with a function for its items. Errors are kept in ``failures``, and the queue continues."""

    def __init__(self, perform: Callable[[T], None]) -> None:
        """Start empty."""
        self.failures: Final[deque[Exception]] = deque(maxlen=FAILURES_KEPT)
        self._perform: Final = perform
        self._todo: Final[deque[T]] = deque()
        self._lock: Final = Lock()
        self._performing = False

    def put(self, *items: T) -> None:
        """Add items in this order; ``flush`` performs them."""
        with self._lock:
            self._todo.extend(items)

    def flush(self) -> None:
        """Perform all items, and those added meanwhile; if another thread is doing so already, that thread does it."""
        with self._lock:
            if self._performing:
                return
            self._performing = True
        try:
            while items := self._next():
                self._perform_one(*items)
        except BaseException:
            with self._lock:
                self._performing = False
            raise

    def _next(self) -> tuple[T, ...]:
        with self._lock:
            self._performing = bool(self._todo)
            return (self._todo.popleft(),) if self._todo else ()

    def _perform_one(self, item: T) -> None:
        try:
            self._perform(item)
        except Exception as error:  # noqa: BLE001 - user code: its error does not undo the transition
            self.failures.append(error)
