"""The session's rules beyond its table: counters, thresholds, backoff, and gaps of the document.

The lives here go through the kernel (``create``, ``advance``); a decision is named in the docstring of its test.
"""

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifefold.core.kernel import IllegalTransition, Machine, replace
from lifefold.core.lifecycles import session, session_profiles
from lifefold.core.lifecycles.session import (
    Error,
    Limits,
    OperatorStop,
    PromptReady,
    Session,
    SessionExited,
    SessionStarted,
    State,
    Success,
    Suspended,
    Timeout,
    UrgentMessage,
    WorktreeReady,
)
from lifefold.core.lifecycles.session_profiles import PromptFailed, in_fleet, prompt_failures
from lifefold.core.lifecycles.session_windowed import WindowedSession, windowed
from lifefold.core.policy.reasons import AbortReason
from lifefold.effects import (
    Begin,
    BuildPrompt,
    CancelSession,
    LogFatal,
    PrepareWorktree,
    RunSession,
    StartTimer,
    StorePrompt,
)
from session_life import Life, running, spawning

ERRORS = (SessionExited(Error("x")), SessionExited(Timeout()))


def fail(life: Life, *, start: bool = False, event: SessionExited = ERRORS[0]) -> Life:
    """Let a life in BuildingPrompt have a session that fails, in Spawning or, with ``start``, in Running."""
    life = life.take(PromptReady("do it")).settle()
    if start:
        life = life.take(SessionStarted(life.record.session_seq))
    return life.take(event).settle()


def ready(record: Session | None = None, machine: Machine[Any] = session.machine) -> Life:
    """Return a life in BuildingPrompt."""
    return Life(record, machine).take(WorktreeReady()).settle()


# Counters and thresholds


IN_A_ROW: Final = "1 error in a row (max_consecutive_errors = 1)"
IN_ALL: Final = "1 error in all (max_total_errors = 1)"


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (Limits(max_consecutive_errors=1, max_total_errors=9), IN_A_ROW),
        (Limits(max_consecutive_errors=9, max_total_errors=1), IN_ALL),
        (Limits(max_consecutive_errors=1, max_total_errors=1), f"{IN_A_ROW}, {IN_ALL}"),
    ],
    ids=["consecutive", "total", "both"],
)
def test_the_report_of_a_threshold_names_the_counters_that_reached_it(limits: Limits, said: str) -> None:
    """There is one LogFatal, and it names both counters if both thresholds are reached at once (D4)."""
    life = ready(Session(limits=limits)).take(PromptReady("do it"), SessionExited(Error("x")))
    assert [effect for effect in life.effects if isinstance(effect, LogFatal)] == [
        LogFatal(f"{said}; the last was Error(x)")
    ]


def test_with_reset_on_success_a_start_resets_nothing() -> None:
    """The other reading of the document: only a completed session ends a row of errors (D3)."""
    life = fail(ready(Session(limits=Limits(reset_errors_on="success"))), start=True)
    life.elapse("BackoffElapsed")
    fail(life, start=True)
    assert life.record.consecutive_errors == 2
    assert life.part("BackoffElapsed").deadline_ms == life.now_ms + 4_000
    life.elapse("BackoffElapsed")
    life = life.take(PromptReady("again"), SessionStarted(0), SessionExited(Success()))
    assert life.record.consecutive_errors == 0


def test_the_windowed_profile_forgets_errors_of_long_ago() -> None:
    """In the profile, ``total_errors`` are those of the last window only: 20 errors in a life stop no agent (D22)."""
    limits = Limits(max_total_errors=3, total_errors_window_ms=10_000)
    life = ready(WindowedSession(limits=limits), windowed)
    for n in range(6):
        life.now_ms = n * 5_000
        fail(life, start=True)
        assert life.state is State.COOLING_DOWN
        assert life.record.total_errors == min(n + 1, 2)
        life.elapse("BackoffElapsed")
    assert isinstance(life.record, WindowedSession)
    assert life.record.errors_at_ms == (20_000, 25_000)


def test_in_the_prompt_failures_profile_a_failed_prompt_counts_as_a_failed_spawn() -> None:
    """PromptFailed cools down, then stops at a threshold; in the default it is no event at all (D6)."""
    life = ready(Session(limits=Limits(max_consecutive_errors=2)), prompt_failures)
    life.give(PromptFailed("no answer"))
    assert (life.state, life.record.consecutive_errors, life.record.total_errors) == (State.COOLING_DOWN, 1, 1)
    life.settle().elapse("BackoffElapsed")
    life.give(PromptFailed("no answer"))
    assert life.state is State.STOPPED
    assert life.effects[0] == LogFatal("2 errors in a row (max_consecutive_errors = 2); the last was Error(no answer)")
    assert isinstance(session.machine.step(ready().record, PromptFailed()), IllegalTransition)


def test_a_suspension_after_errors_does_not_shorten_the_pause() -> None:
    """It lasts as long as the longer of the two pauses (D2, D28)."""
    tired = session.Session(consecutive_errors=4, suspensions=1)
    assert session_profiles.pause(tired) == session.backoff(tired) == 16_000


def test_in_a_fleet_a_suspended_session_is_no_error_and_is_followed_by_an_ever_longer_pause() -> None:
    """So an agent that does nothing else does not keep the machine busy; in the default it is no end at all (D28)."""
    life, pauses_ms = ready(machine=in_fleet), list[int]()
    for _ in range(3):
        life = life.take(PromptReady("go on"), SessionStarted(0), SessionExited(Suspended()))
        pauses_ms.append(life.part("BackoffElapsed").deadline_ms - life.now_ms)
        life.elapse("BackoffElapsed")
    assert pauses_ms == [2_000, 4_000, 8_000]
    assert (life.record.suspensions, life.record.consecutive_errors, life.record.total_errors) == (3, 0, 0)
    assert isinstance(session.machine.step(running().record, SessionExited(Suspended())), IllegalTransition)


def test_too_many_suspensions_in_a_row_are_an_error_and_enough_of_those_the_end() -> None:
    """The count begins again with the error, and with a success."""
    life = ready(Session(limits=Limits(max_total_errors=2)), in_fleet)
    for expected in ((1, 0), (0, 1), (1, 1)):
        life = life.take(PromptReady("go on"), SessionStarted(0), SessionExited(Suspended()))
        assert (life.state, life.record.suspensions, life.record.total_errors) == (State.COOLING_DOWN, *expected)
        life.elapse("BackoffElapsed")
    won = life.take(PromptReady("go on"), SessionStarted(0), SessionExited(Success()))
    assert won.record.suspensions == 0
    life = ready(Session(limits=Limits(max_total_errors=1)), in_fleet)
    life = life.take(PromptReady("go on"), SessionStarted(0), SessionExited(Suspended()))
    assert life.state is State.STOPPED
    assert life.effects[0] == LogFatal("1 error in all (max_total_errors = 1); the last was Suspended")


# Backoff


@pytest.mark.parametrize(
    ("n", "duration_ms"),
    [
        (1, 2_000), (2, 4_000), (3, 8_000), (4, 16_000), (5, 32_000), (6, 60_000), (7, 60_000),
        (64, 60_000), (10**9, 60_000),
    ],
)  # fmt: skip
def test_the_backoff_is_the_documents_table(n: int, duration_ms: int) -> None:
    """``min(2000 * 2^(n-1), 60000)``, general (D2) and saturated before it can overflow (D5)."""
    assert session.backoff(Session(consecutive_errors=n)) == duration_ms


@given(st.integers(1, 40), st.floats(0, 1), st.text(), st.integers(0, 1_000))
def test_jitter_shortens_the_backoff_by_no_more_than_its_fraction(n: int, jitter: float, name: str, total: int) -> None:
    """Jitter is optional, a pure function of the agent and the error, and bounded (D27)."""
    exact_ms = session.backoff(Session(consecutive_errors=n))
    spread = Session(name=name, consecutive_errors=n, total_errors=total, limits=Limits(jitter=jitter))
    assert exact_ms - exact_ms * jitter <= session.backoff(spread) <= exact_ms
    assert session.backoff(spread) == session.backoff(replace(spread, attempt=9, prompt="other"))


def test_jitter_brings_agents_that_fail_together_back_apart() -> None:
    """Twenty agents that fail at the same moment wait for different times (D27)."""
    limits = Limits(jitter=0.5)
    waits = {session.backoff(Session(name=f"agent-{i}", consecutive_errors=6, limits=limits)) for i in range(20)}
    assert len(waits) > 15


# Configuration


@pytest.mark.parametrize(
    "field",
    ["max_consecutive_errors", "max_total_errors", "backoff_base_ms", "backoff_cap_ms", "total_errors_window_ms"],
)
@pytest.mark.parametrize("value", [0, -1])
def test_a_limit_that_is_zero_or_negative_is_a_configuration_error(field: str, value: int) -> None:
    """The error names the field and the given value (D26)."""
    limits: dict[str, Any] = {field: value}
    with pytest.raises(ValueError, match=f"{field} must be at least 1, not {value}"):
        Limits(**limits)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("grace_ms", -1, "grace_ms must be at least 0, not -1"),
        ("session_timeout_ms", 0, "session_timeout_ms must be at least 1, not 0"),
        ("session_timeout_ms", -5, "session_timeout_ms must be at least 1, not -5"),
    ],
)
def test_a_time_that_could_never_work_is_a_configuration_error(field: str, value: int, words: str) -> None:
    """The error names the field and the given value (D26)."""
    limits: dict[str, Any] = {field: value}
    with pytest.raises(ValueError, match=words):
        Limits(**limits)


@pytest.mark.parametrize("jitter", [-0.1, 1.1, float("nan")])
def test_jitter_is_a_fraction(jitter: float) -> None:
    """More than all of a delay, or less than nothing, cannot be taken away (D26)."""
    with pytest.raises(ValueError, match="jitter must be between 0 and 1"):
        Limits(jitter=jitter)


def test_the_extremes_that_work_are_accepted() -> None:
    """No grace at all, a timeout of a millisecond, thresholds of one, and the whole delay as jitter."""
    limits = Limits(1, 1, 1, 1, 1.0, 0, 1, "success", 1)
    assert (limits.grace_ms, limits.session_timeout_ms, limits.jitter) == (0, 1, 1.0)


# What the document leaves open


def test_an_agent_begins_by_getting_a_worktree_and_then_a_prompt() -> None:
    """The activities of the first states, each with what it needs to know."""
    life = Life()
    assert life.effects == (Begin("PrepareWorktree", PrepareWorktree(), 1),)
    life = life.take(WorktreeReady())
    assert life.effects == (Begin("BuildPrompt", BuildPrompt(0), 2),)
    life = life.take(PromptReady("do it"))
    assert life.effects == (
        StorePrompt("do it"),
        Begin("RunSession", RunSession("do it", 0, 1, 5_000, None), 3),
    )


def test_a_session_is_given_the_limits_of_its_agent() -> None:
    """Grace and timeout go to the interpreter with the session; the grace is also the timer of Interrupting (D21)."""
    life = spawning(Session(limits=Limits(grace_ms=7, session_timeout_ms=9)))
    assert life.part("RunSession").activity == RunSession("do it", 0, 1, 7, 9)
    life = life.take(SessionStarted(0), UrgentMessage())
    assert life.effects == (CancelSession(), StartTimer("GraceExceeded", 7, life.entity.version, 7))


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (Success(), "Success"),
        (Error("exit status 2"), "Error(exit status 2)"),
        (Timeout(), "Timeout"),
        (Timeout("session_timeout of 5s is over"), "Timeout(session_timeout of 5s is over)"),
    ],
    ids=["Success", "Error", "Timeout", "Timeout with its limit"],
)
def test_an_outcome_is_described_in_the_documents_words(outcome: Success | Error | Timeout, words: str) -> None:
    """As the table's events spell it."""
    assert session.describe(outcome) == words


def test_the_invariant_holds_below_the_thresholds_and_in_stopped_only() -> None:
    """An agent at a threshold is stopped, or something is wrong with the machine."""
    assert session.counts_within_thresholds(Session(consecutive_errors=4, total_errors=19))
    assert not session.counts_within_thresholds(Session(consecutive_errors=5))
    assert not session.counts_within_thresholds(Session(total_errors=20))
    assert session.counts_within_thresholds(Session(state=State.STOPPED, consecutive_errors=5, total_errors=20))
    assert session.machine.invariants == (session.counts_within_thresholds,)


def test_the_reasons_of_events_are_for_the_journal_and_in_no_table() -> None:
    """The document's words stand alone; the usual reason is not printed either."""
    for event in (UrgentMessage, OperatorStop):
        assert event.label() == event.__name__
        assert repr(event()) == f"{event.__name__}()"
        assert event().abort_reason is AbortReason.USER_INTERRUPT


def test_the_usage_of_two_sessions_is_their_sum() -> None:
    assert session.Usage(1, 2, 3).plus(session.Usage(10, 20, 30)) == session.Usage(11, 22, 33)
