"""What is done about handlers that raise: try again after a pause, and then what was declared for the handler.

Every attempt that fails stands in the log (``HandlerFailed``), so that an engine that is restarted counts on. A store
that fails is no failure of a handler: it ends the engine, whatever was declared.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final, cast

import msgspec

from lifefold.core.kernel import Event
from lifefold.interpreters.store import StoreError


class Then(StrEnum):
    """What follows when a handler has failed for the last time."""

    QUARANTINE = "quarantine"
    """The entity takes nothing more until it is released; what it has asked for is not performed."""
    REPORT = "report"
    """The entity is told by the event of ``report``."""
    SKIP = "skip"
    """An effect counts as performed; an activity is over when its state is left."""
    STOP = "stop"
    """The engine ends with the error; the next one tries again."""


class OnError(msgspec.Struct, frozen=True):
    """A policy for handlers that raise: ``retries``, with pauses from ``first_ms`` on, and what follows then.

    A pause is twice as long as the one before it, and ``most_ms`` at most. ``report`` makes, of the effect or activity
    and the error, the event that the entity is told for ``Then.REPORT``; an activity has to yield it.

    Raises ``ValueError`` for ``report`` without ``Then.REPORT``, or the other way round, and for a number below 0.
    """

    retries: int = 4
    first_ms: int = 1_000
    most_ms: int = 60_000
    then: Then = Then.QUARANTINE
    report: Callable[[Any, Exception], Event] | None = None

    def __post_init__(self) -> None:
        """Check what goes together."""
        if (self.then is Then.REPORT) is (self.report is None):
            raise ValueError("OnError: report= goes with then=Then.REPORT, and only with it")
        if min(self.retries, self.first_ms, self.most_ms) < 0:
            raise ValueError("OnError: retries, first_ms and most_ms are 0 or more")

    def pause_ms(self, attempt: int) -> int:
        """Return how long the pause is after the ``attempt``-th attempt has failed, from 1 on."""
        return min(self.first_ms << min(attempt - 1, 62), self.most_ms)


STOP: Final = OnError(retries=0, then=Then.STOP)
"""The engine ends with the first error."""

SKIP: Final = OnError(then=Then.SKIP)
"""After its retries the effect is left undone, and what comes after it is done."""


def is_failure(error: Exception) -> bool:
    """Tell whether an error is a handler's: not one of the store's, alone or among others."""
    if isinstance(error, ExceptionGroup):
        return cast("ExceptionGroup[Exception]", error).split(StoreError)[0] is None
    return not isinstance(error, StoreError)


def said(error: Exception) -> str:
    """Return an error in a line, with those in a group."""
    if isinstance(error, ExceptionGroup):
        return "; ".join(said(each) for each in cast("ExceptionGroup[Exception]", error).exceptions)
    return f"{type(error).__name__}: {error}".removesuffix(": ").replace("\n", " ")[:_CHARACTERS]


_CHARACTERS: Final = 500
