"""Stopping what takes long: what is under way is broken off, as soon as somebody says so, and what was done is kept.

A simulation is pure, and so it may be broken off at any point: the signal's handler raises ``Stopped`` within work
that may be broken off, and nowhere else.
"""

import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

T = TypeVar("T")

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Stopped(BaseException):
    """Somebody has asked that this be stopped."""


class Stopping:
    """Says whether somebody has asked to stop."""

    def __init__(self) -> None:
        """Begin with nobody having asked."""
        self._is_stopped = False
        self._is_breakable = False

    def __call__(self) -> bool:
        """Tell whether somebody has."""
        return self._is_stopped

    def stop(self) -> None:
        """Ask for it. Raises ``Stopped`` within work that may be broken off."""
        self._is_stopped = True
        if self._is_breakable:
            self._is_breakable = False
            raise Stopped

    def unless(self, work: Callable[[], T]) -> T | None:
        """Return what some work comes to; None if somebody asks to stop before it is done, or has already."""
        try:
            try:
                self._is_breakable = True
                return None if self._is_stopped else work()
            finally:
                self._is_breakable = False
        except Stopped:
            return None


def unless_stopped(is_stopped: Callable[[], bool] | None, work: Callable[[], T]) -> T | None:
    """Return what some work comes to; None if it is broken off by whoever says ``is_stopped``, if that can be done."""
    return is_stopped.unless(work) if isinstance(is_stopped, Stopping) else work()


@contextmanager
def until_stopped() -> Generator[Stopping]:
    """Let Ctrl-C and SIGTERM stop it, once: yields whether they have. The second time they end it as ever."""
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
