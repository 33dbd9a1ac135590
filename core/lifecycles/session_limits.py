"""Part of the profile ``session-supervised``: a limit of the agent's account is no error.

A session may end because its account may not be used for some time (``Limited``). It may also show such a limit while
it runs (``LimitReached``), since some programs wait silently then. A session that shows one is interrupted. No error is
counted in either case, and the agent goes on to its next prompt. The fleet decides when that begins. An agent without
an account cannot wait for one: a limit is an error of its session like any other.
"""

from typing import Any, ClassVar, Final

from lifefold.core.kernel import Event, Pattern, Property, Row, Transition, accepts, always_step, row
from lifefold.core.lifecycles.session import (
    Limited,
    SessionExited,
    State,
    cancel,
    count_error,
    give_up,
    threshold_reached,
)
from lifefold.core.lifecycles.session_yielding import YieldingSession
from lifefold.core.policy.reasons import AbortReason, TransitionReason


class LimitReached(Event, frozen=True):
    """A running session has met a limit of its account. The fields are those of ``Limited``."""

    transition_reason: ClassVar = TransitionReason.RETRY
    abort_reason: ClassVar = AbortReason.PROVIDER_ERROR

    until_ms: int | None = None
    scope: str = ""
    message: str = ""

    @classmethod
    def label(cls) -> str:
        """Return the name alone: the fields are for the account."""
        return cls.__name__

    @classmethod
    def examples_for(cls, record: Any) -> tuple["LimitReached", ...]:
        """Return one for a session with an account."""
        return (cls(),) if record.account else ()


class LimitableSession(YieldingSession, frozen=True):
    """A session whose model service is used through ``account``; empty for none."""

    account: str = ""


LIMITED: Final = Pattern(SessionExited, "Limited", lambda e: type(e.outcome) is Limited)


def limit_of(event: Event) -> Limited | None:
    """Return the limit that an event of a session reports; None if it reports none."""
    match event:
        case SessionExited(outcome=Limited() as limited):
            return limited
        case LimitReached(until_ms, scope, message):
            return Limited(until_ms, scope, message)
        case _:
            return None


def has_account(s: LimitableSession, _e: SessionExited | LimitReached) -> bool:
    """The session has an account, which the fleet lets rest."""
    return bool(s.account)


def is_no_error(t: Transition) -> bool:
    """A limit of an account counts no error and no suspension, and never stops its agent."""
    if not t.was.account or limit_of(t.event) is None:
        return True
    was, now = t.was, t.after.record
    counted = (now.consecutive_errors, now.total_errors, now.suspensions)
    same = counted == (was.consecutive_errors, was.total_errors, was.suspensions)
    return same and t.after.state in {State.BUILDING_PROMPT, State.INTERRUPTING}


def is_an_error_without_account(t: Transition) -> bool:
    """A limit counts as one error for an agent without an account."""
    if t.was.state is not State.RUNNING or t.was.account:
        return True
    limited = limit_of(t.event) is not None
    return not limited or bool(t.after.record.total_errors == t.was.total_errors + 1)


ROWS: Final[tuple[Row[Any], ...]] = (
    row(State.RUNNING, LIMITED, State.BUILDING_PROMPT, when=has_account),
    row(State.RUNNING, LIMITED, State.STOPPED, give_up, when=threshold_reached),
    row(State.RUNNING, LIMITED, State.COOLING_DOWN, count_error),
    row(State.RUNNING, LimitReached, State.INTERRUPTING, cancel, when=has_account),
)

PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("a limit of an account counts no error and stops no agent", is_no_error, on=Event),
    always_step("a limit is an error of an agent without an account", is_an_error_without_account, on=Event),
    accepts(
        "a limit of an account is accepted from a running session",
        {State.RUNNING: (LIMITED, LimitReached)},
        when=lambda e: bool(e.record.account),
    ),
)
