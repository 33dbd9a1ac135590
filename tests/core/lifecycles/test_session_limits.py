"""A limit of an account: no error of the agent, unless the agent has no account."""

import pytest
from returns.result import Success

from lifefold.core.kernel import Event
from lifefold.core.lifecycles import session
from lifefold.core.lifecycles.session import Limited, SessionExited, State
from lifefold.core.lifecycles.session_limits import LimitReached, limit_of
from lifefold.core.lifecycles.session_profiles import SupervisedSession, supervised
from lifefold.core.policy.reasons import AbortReason, TransitionReason
from lifefold.effects import CancelSession

ONE_ERROR = session.Limits(max_consecutive_errors=1, max_total_errors=1)
LIMITED = SessionExited(Limited(5, "five_hour", "limit reached"))


def step(event: Event, *, account: str = "claude", limits: session.Limits = ONE_ERROR) -> SupervisedSession:
    """Return a running session after an event."""
    found = supervised.reduce(SupervisedSession(state=State.RUNNING, account=account, limits=limits), event)
    assert isinstance(found, Success)
    after: SupervisedSession = found.unwrap().record
    return after


def test_a_limited_session_counts_no_error() -> None:
    """The agent goes on to its next prompt, also where one error stops it."""
    after = step(LIMITED)
    assert (after.state, after.total_errors, after.suspensions) == (State.BUILDING_PROMPT, 0, 0)


def test_a_session_that_shows_a_limit_is_interrupted() -> None:
    """Some programs wait silently at a limit. The interruption is no error either."""
    record = SupervisedSession(state=State.RUNNING, account="claude", limits=ONE_ERROR)
    after = supervised.reduce(record, LimitReached()).unwrap()
    assert (after.record.state, after.record.total_errors) == (State.INTERRUPTING, 0)
    assert CancelSession() in after.effects


def test_a_limit_shown_at_the_start_is_kept_until_the_session_runs() -> None:
    """The output may be read before the start is reported."""
    assert LimitReached in supervised.postponed(State.SPAWNING)


@pytest.mark.parametrize(
    ("limits", "state"), [(ONE_ERROR, State.STOPPED), (session.Limits(), State.COOLING_DOWN)], ids=["last", "first"]
)
def test_without_an_account_a_limit_is_an_error(limits: session.Limits, state: State) -> None:
    """No account can rest, so the agent backs off and gives up as after any other error."""
    after = step(LIMITED, account="", limits=limits)
    assert (after.state, after.total_errors) == (state, 1)


def test_without_an_account_no_session_is_interrupted_by_a_limit() -> None:
    """It ends by itself, or by its time limit."""
    assert not isinstance(supervised.reduce(SupervisedSession(state=State.RUNNING), LimitReached()), Success)


def test_the_document_has_no_limits() -> None:
    """A running session of the document does not accept one."""
    assert not isinstance(session.machine.reduce(session.Session(state=State.RUNNING), LIMITED), Success)


def test_both_reports_of_a_limit_say_the_same() -> None:
    """The account learns the end, the name and the words of the limit; another event tells no limit."""
    assert limit_of(LIMITED) == limit_of(LimitReached(5, "five_hour", "limit reached")) == LIMITED.outcome
    assert limit_of(SessionExited(session.Success())) is None


def test_a_limit_has_its_reasons_in_the_journal() -> None:
    """The provider has ended the session, and another try makes sense."""
    assert (LIMITED.transition_reason, LIMITED.abort_reason) == (TransitionReason.RETRY, AbortReason.PROVIDER_ERROR)
    assert LimitReached.label() == "LimitReached"


def test_only_sessions_with_an_account_are_limited_in_checks() -> None:
    """Fleets without accounts keep their states."""
    without, with_one = SupervisedSession(), SupervisedSession(account="claude")
    assert not [each for each in SessionExited.examples_for(without) if isinstance(each.outcome, Limited)]
    assert SessionExited.examples_for(with_one) == SessionExited.examples()
    assert (LimitReached.examples_for(without), LimitReached.examples_for(with_one)) == ((), (LimitReached(),))
