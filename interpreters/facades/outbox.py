"""What is to be done, first in first out, one thing at a time, by whichever thread comes by.

No lock is held while something is done, so what is done may put more in; that is done after what is there already.
"""

from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Final, Generic, TypeVar

T = TypeVar("T")

FAILURES_KEPT: Final = 100
"""How many failures are kept; the oldest go first."""


class Outbox(Generic[T]):
    """A queue and what is done with each thing in it. What fails is kept in ``failures``, and the rest is done."""

    def __init__(self, perform: Callable[[T], None]) -> None:
        """Begin empty."""
        self.failures: Final[deque[Exception]] = deque(maxlen=FAILURES_KEPT)
        self._perform: Final = perform
        self._todo: Final[deque[T]] = deque()
        self._lock: Final = Lock()
        self._performing = False

    def put(self, *things: T) -> None:
        """Add things in this order; ``flush`` does them."""
        with self._lock:
            self._todo.extend(things)

    def flush(self) -> None:
        """Do what is there and what comes meanwhile; if somebody is at it already, he does it."""
        with self._lock:
            if self._performing:
                return
            self._performing = True
        try:
            while things := self._next():
                self._do(*things)
        except BaseException:
            with self._lock:
                self._performing = False
            raise

    def _next(self) -> tuple[T, ...]:
        with self._lock:
            self._performing = bool(self._todo)
            return (self._todo.popleft(),) if self._todo else ()

    def _do(self, thing: T) -> None:
        try:
            self._perform(thing)
        except Exception as error:  # noqa: BLE001 - user code: whatever it raises, what has happened stands
            self.failures.append(error)
