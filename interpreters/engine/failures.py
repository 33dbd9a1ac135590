"""Error policies of handlers, and the failed attempts that count for them: retries after pauses, and then an outcome.

The log records every failed attempt (``HandlerFailed``), so a restarted engine continues to count. An error of the
store is not a failure of a handler: it ends the engine under every policy.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple, cast

import msgspec

from lifefold.core.kernel import Aggregate, Envelope, Event, HandlerFailed
from lifefold.interpreters.store import StoreError


class Then(StrEnum):
    """The outcome when a handler has failed for the last time."""

    QUARANTINE = "quarantine"
    """The entity accepts no input until it is released. The effect is not performed."""
    REPORT = "report"
    """The entity receives the event that ``report`` returns."""
    SKIP = "skip"
    """An effect counts as performed; an activity is over when its state is left."""
    STOP = "stop"
    """The engine ends with the error. The next engine tries again."""


class OnError(msgspec.Struct, frozen=True):
    """A policy for handlers that raise: ``retries`` with pauses, and then the outcome ``then``.

    The first pause lasts ``first_ms``. Each further pause doubles, up to ``most_ms``. For ``Then.REPORT``, ``report``
    turns the effect or activity and the error into an event for the entity. An activity must declare that event.

    Raises ``ValueError`` for ``report`` without ``Then.REPORT``, for the reverse, and for a number below 0.
    """

    retries: int = 4
    first_ms: int = 1_000
    most_ms: int = 60_000
    then: Then = Then.QUARANTINE
    report: Callable[[Any, Exception], Event] | None = None

    def __post_init__(self) -> None:
        """Check that the fields fit each other."""
        if (self.then is Then.REPORT) is (self.report is None):
            raise ValueError("OnError: report= goes with then=Then.REPORT, and only with it")
        if min(self.retries, self.first_ms, self.most_ms) < 0:
            raise ValueError("OnError: retries, first_ms and most_ms are 0 or more")

    def pause_ms(self, attempt: int) -> int:
        """Return the pause after the failed attempt number ``attempt``, counted from 1."""
        return min(self.first_ms << min(attempt - 1, 62), self.most_ms)


STOP: Final = OnError(retries=0, then=Then.STOP)
"""The engine ends with the first error."""

SKIP: Final = OnError(then=Then.SKIP)
"""After the retries the effect is skipped, and the queue continues with the next one."""


def is_failure(error: Exception) -> bool:
    """Tell whether an error comes from a handler: it is no ``StoreError`` and no group that contains one."""
    if isinstance(error, ExceptionGroup):
        return cast("ExceptionGroup[Exception]", error).split(StoreError)[0] is None
    return not isinstance(error, StoreError)


def said(error: Exception) -> str:
    """Return an error as one line; for a group, all its errors."""
    if isinstance(error, ExceptionGroup):
        return "; ".join(said(each) for each in cast("ExceptionGroup[Exception]", error).exceptions)
    return f"{type(error).__name__}: {error}".removesuffix(": ").replace("\n", " ")[:_CHARACTERS]


_CHARACTERS: Final = 500


class Handled(NamedTuple):
    """One call of a handler for an entity. ``event`` names the effect or activity, with attempt 0."""

    aggregate: str
    entity: str
    event: HandlerFailed

    @property
    def key(self) -> tuple[str, str, int, int, str, int]:
        """The identity under which attempts are counted."""
        event = self.event
        return self.aggregate, self.entity, event.version, event.index, event.slot, event.generation


class Failures:
    """The number of failed attempts per call of a handler, and the policies for them."""

    def __init__(self, otherwise: OnError) -> None:
        """Use ``otherwise`` for handlers without a declared policy."""
        self._otherwise: Final = otherwise
        self._last: Final[dict[tuple[str, str, int, int, str, int], HandlerFailed]] = {}

    def note(self, aggregate: str, envelope: Envelope) -> None:
        """Count an entry of the log if it records a failed attempt."""
        if isinstance(envelope.event, HandlerFailed):
            handled = Handled(aggregate, envelope.entity, envelope.event)
            self._last[handled.key] = envelope.event

    def of_running(self, aggregate: Aggregate) -> list[Envelope]:
        """Return the last failed attempt of each running activity of an aggregate."""
        found: list[Envelope] = []
        for (name, ref, _, _, slot, generation), event in self._last.items():
            entity = aggregate.entities.get(ref) if name == aggregate.name and slot else None
            running = () if entity is None else entity.running
            if any((each.slot, each.generation) == (slot, generation) for each in running):
                found.append(Envelope(ref, event, 0, "engine"))
        return found

    def attempts(self, handled: Handled) -> int:
        """Return the number of failed attempts."""
        last = self._last.get(handled.key)
        return 0 if last is None else last.attempt

    def is_given_up(self, handled: Handled) -> bool:
        """Tell whether the log records that this call is not tried again."""
        last = self._last.get(handled.key)
        return last is not None and last.then in {Then.QUARANTINE, Then.SKIP}

    def policy(self, declared: Mapping[type, OnError], kind: type) -> OnError:
        """Return the error policy for a type of effects or activities."""
        return declared.get(kind, self._otherwise)
