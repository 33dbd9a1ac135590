"""Part of the profile ``session-supervised``: an interrupted session may have more, or less, time than its grace.

A preempted session has the time that comes with the request (document 000: a deadline). It is asked to end, and has
that time to reach a point where it can stop. At the end of the time it is killed. That is no error.
"""

from typing import Any, ClassVar, Final, Never

from lifefold.core.kernel import Event, Property, Row, Step, Transition, accepts, always_step, replace, row
from lifefold.core.lifecycles.property_forms import leads_where
from lifefold.core.lifecycles.session import Session, SessionStarted, State, UrgentMessage, begin, cancel, is_expected
from lifefold.core.policy.reasons import AbortReason, TransitionReason
from lifefold.effects import CancelSession, StartTimer


class YieldWanted(Event, frozen=True):
    """The session is to end within ``within_ms``; with 0, within its grace."""

    transition_reason: ClassVar = TransitionReason.ABORTED
    abort_reason: ClassVar = AbortReason.SHUTDOWN_SIGNAL

    within_ms: int = 0

    @classmethod
    def examples(cls) -> tuple["YieldWanted", ...]:
        """Return one with its grace, and one with less than any grace."""
        return cls(), cls(1)


class YieldingSession(Session, frozen=True):
    """A session that may take ``within_ms`` to end when it is interrupted, if that is not 0."""

    within_ms: int = 0

    @property
    def present_grace_ms(self) -> int:
        """The time that the session has to end if it is asked to now."""
        return (self.within_ms if self.state is State.INTERRUPTING else 0) or self.limits.grace_ms


def begin_without_request(s: YieldingSession, e: SessionStarted) -> Step[YieldingSession, Never]:
    """Do the action of a start; this session has no request to yield yet."""
    return Step(replace(s, consecutive_errors=begin(s, e).record.consecutive_errors, within_ms=0))


def yield_(s: YieldingSession, e: YieldWanted) -> Step[YieldingSession, CancelSession]:
    """Ask the session to end, and keep the time that it has."""
    return Step(replace(s, within_ms=e.within_ms), cancel(s, e).effects)


def has_the_time_of_its_request(t: Transition) -> bool:
    """A yielding session has the time of its request; a session that is interrupted otherwise has its grace."""
    within_ms = t.event.within_ms if isinstance(t.event, YieldWanted) else 0
    given = [each.delay_ms for each in t.effects if isinstance(each, StartTimer) and each.slot == "GraceExceeded"]
    began = t.before is not None and t.entered is State.INTERRUPTING
    return given == ([within_ms or t.after.record.limits.grace_ms] if began else [])


INSTEAD: Final[dict[tuple[frozenset[Any] | None, type[Event]], Row[Any]]] = {
    (each.sources, each.event): each
    for each in (row(State.SPAWNING, SessionStarted, State.RUNNING, begin_without_request, when=is_expected),)
}
"""Rows that replace a session's for the same state and event, with one more change."""

ROWS: Final[tuple[Row[Any], ...]] = (row(State.RUNNING, YieldWanted, State.INTERRUPTING, yield_),)

PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("a yielding session has the time of its request", has_the_time_of_its_request),
    always_step(
        "a yielding session is asked to end",
        lambda t: any(isinstance(each, CancelSession) for each in t.effects),
        on=YieldWanted,
    ),
    leads_where("a yielding session is being interrupted", {YieldWanted: (State.INTERRUPTING,)}),
    accepts("a running session can be told to yield", {State.RUNNING: (YieldWanted,)}),
    accepts("an interruption of a starting session waits for it", {State.SPAWNING: (UrgentMessage, YieldWanted)}),
)
