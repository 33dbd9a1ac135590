"""Stopping a long computation: the present work is interrupted by a signal, and the results so far are kept.

A simulation is pure, so it may be interrupted at any point: the signal's handler raises ``Stopped`` within work that
may be interrupted, and nowhere else.
"""

import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

T = TypeVar("T")

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Stopped(BaseException):
    """The user has asked to stop."""


class Stopping:
    """Tells whether the user has asked to stop."""

    def __init__(self) -> None:
        """Begin without a request."""
        self._is_stopped = False
        self._is_breakable = False

    def __call__(self) -> bool:
        """Tell whether the user has asked to stop."""
        return self._is_stopped

    def stop(self) -> None:
        """Request it. Raises ``Stopped`` within work that may be interrupted."""
        self._is_stopped = True
        if self._is_breakable:
            self._is_breakable = False
            raise Stopped

    def unless(self, work: Callable[[], T]) -> T | None:
        """Return the result of some work; None if it is stopped before its end, or was already."""
        try:
            try:
                self._is_breakable = True
                return None if self._is_stopped else work()
            finally:
                self._is_breakable = False
        except Stopped:
            return None


def unless_stopped(is_stopped: Callable[[], bool] | None, work: Callable[[], T]) -> T | None:
    """Return the result of some work; None if ``is_stopped`` interrupts it, if it can do that."""
    return is_stopped.unless(work) if isinstance(is_stopped, Stopping) else work()


@contextmanager
def until_stopped() -> Generator[Stopping]:
    """Let Ctrl-C and SIGTERM stop it, once: yields whether they have. The second signal ends the process as usual."""
    stopping = Stopping()
    before = {each: signal.getsignal(each) for each in SIGNALS}

    def as_ever() -> None:
        for each, handler in before.items():
            signal.signal(each, handler)

    def stop(_number: int, _frame: Any) -> None:
        as_ever()
        stopping.stop()

    for each in SIGNALS:
        signal.signal(each, stop)
    try:
        yield stopping
    finally:
        as_ever()
