"""The session's rules beyond its table: counters, thresholds, backoff, and gaps of the document.

The lives here go through the kernel (``create``, ``advance``); a decision is named in the docstring of its test.
"""

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifefold.core.kernel import EntityStep, IllegalTransition, Machine, Phase, Refusal, Step, TimerFired, replace
from lifefold.core.lifecycles import session, session_profiles
from lifefold.core.lifecycles.session import (
    BackoffElapsed,
    Error,
    FatalError,
    GraceExceeded,
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
from lifefold.core.lifecycles.session_profiles import PromptFailed, WindowedSession, in_fleet, prompt_failures, windowed
from lifefold.core.policy.reasons import AbortReason
from lifefold.effects import (
    Begin,
    BuildPrompt,
    CancelSession,
    CancelTimer,
    End,
    ForceStopSession,
    IncrementSession,
    LogFatal,
    PrepareWorktree,
    RefreshWorktree,
    RunSession,
    StartTimer,
    StorePrompt,
)
from session_life import Life, in_state, running, spawning

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


@pytest.mark.parametrize("event", ERRORS, ids=["Error", "Timeout"])
def test_the_fifth_error_in_a_row_while_spawning_stops_the_agent(event: SessionExited) -> None:
    """A threshold is reached with >= after counting, so the fifth error stops and the fourth does not (D1)."""
    life = ready()
    for n in range(1, 5):
        fail(life, event=event)
        assert (life.state, life.record.consecutive_errors) == (State.COOLING_DOWN, n)
        life.elapse("BackoffElapsed")
    fail(life, event=event)
    assert life.state is State.STOPPED
    assert (life.record.consecutive_errors, life.record.total_errors) == (5, 5)


def test_the_twentieth_error_of_all_stops_an_agent_that_always_starts() -> None:
    """A start resets the errors in a row: such an agent never gets past the first backoff (D3, D22)."""
    life = ready()
    for n in range(1, 20):
        fail(life, start=True)
        assert (life.record.consecutive_errors, life.record.total_errors) == (1, n)
        assert life.part("BackoffElapsed").deadline_ms == life.now_ms + 2_000
        life.elapse("BackoffElapsed")
    fail(life, start=True)
    assert life.state is State.STOPPED
    assert life.record.total_errors == 20


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


@pytest.mark.parametrize("outcome", [Success(), Error("x"), Timeout()], ids=["Success", "Error", "Timeout"])
def test_an_interrupted_session_is_no_error(outcome: Success | Error | Timeout) -> None:
    """No end of an interrupted session counts or resets a counter."""
    life = in_state(State.INTERRUPTING)
    life.entity = replace(life.entity, record=replace(life.record, consecutive_errors=2, total_errors=7))
    life = life.take(SessionExited(outcome))
    assert life.state is State.BUILDING_PROMPT
    assert (life.record.consecutive_errors, life.record.total_errors) == (2, 7)


def test_success_resets_the_errors_in_a_row_and_never_those_in_all() -> None:
    """``total_errors`` is never reset; ``consecutive_errors`` is by SessionStarted and by Success."""
    life = fail(ready())
    life.elapse("BackoffElapsed")
    life = life.take(PromptReady("again"))
    assert life.record.consecutive_errors == 1
    life = life.take(SessionStarted(0))
    assert life.record.consecutive_errors == 0
    life = life.take(SessionExited(Success()))
    assert (life.record.consecutive_errors, life.record.total_errors) == (0, 1)


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


def test_the_windowed_profile_stops_at_the_threshold_within_the_window() -> None:
    """Errors close to each other count as they do in the default."""
    life = ready(WindowedSession(limits=Limits(max_total_errors=2)), windowed)
    fail(life, start=True)
    life.elapse("BackoffElapsed")
    fail(life, start=True)
    assert life.state is State.STOPPED
    assert windowed.name == "session-windowed"


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


def test_a_session_that_was_asked_to_suspend_counts_nowhere() -> None:
    """However often its runner goes: each time another runner was started."""
    life = ready(Session(limits=Limits(max_total_errors=1)), in_fleet)
    for _ in range(3):
        life = life.take(PromptReady("go on"), SessionStarted(0), SessionExited(Suspended(asked=True)))
        assert (life.state, life.record.suspensions) == (State.COOLING_DOWN, 0)
        assert life.part("BackoffElapsed").deadline_ms == life.now_ms + 2_000
        life.elapse("BackoffElapsed")


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


def test_the_backoff_timer_is_started_by_the_state_and_cancelled_with_it() -> None:
    """The row's own effect is None; CoolingDown declares the timer, which begins and ends with it (D23)."""
    life = running()
    life.now_ms = 100
    life = life.take(SessionExited(Error("x")))
    assert life.effects == (StartTimer("BackoffElapsed", 2_000, life.entity.version, 2_100),)
    life = life.take(OperatorStop())
    assert life.effects == (CancelTimer("BackoffElapsed", life.entity.version - 1),)


def test_a_backoff_ends_at_its_deadline_and_not_before() -> None:
    """It ends at the time of the error plus the backoff; a report before is refused, one after is stale (D20)."""
    life = in_state(State.COOLING_DOWN)
    early = life.elapse("BackoffElapsed", early_ms=1)
    assert isinstance(early, Refusal)
    assert (early.kind, early.reason) == ("early", "BackoffElapsed is due in 1 ms")
    assert life.entity.state is State.COOLING_DOWN
    timer = life.part("BackoffElapsed")
    assert isinstance(life.elapse("BackoffElapsed"), EntityStep)
    assert life.state is State.BUILDING_PROMPT
    again = life.give(TimerFired("BackoffElapsed", timer.generation))
    assert isinstance(again, Refusal)
    assert again.kind == "stale"


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


def test_a_stop_during_spawning_leaves_no_process() -> None:
    """OperatorStop in Spawning has no effect of its own, but the session ends with its states (D9)."""
    life = spawning()
    session_part = life.part("RunSession")
    life = life.take(OperatorStop())
    assert life.state is State.STOPPED
    assert life.effects == (End("RunSession", session_part.generation),)


def test_a_start_that_comes_after_a_stop_is_inert() -> None:
    """SessionStarted of an ended session changes nothing (D9, D12)."""
    life = spawning()
    generation = life.part("RunSession").generation
    life = life.take(OperatorStop())
    before = life.entity
    late = life.give(SessionStarted(0), slot="RunSession", generation=generation)
    assert isinstance(late, Refusal)
    assert late.kind == "stale"
    assert life.entity is before


@pytest.mark.parametrize("state", [State.SPAWNING, State.RUNNING, State.INTERRUPTING])
def test_a_fatal_error_ends_the_session_it_happens_in(state: State) -> None:
    """FatalError only logs, as the document says; the session's end is derived (D10)."""
    life = in_state(state)
    life = life.take(FatalError("no space left"))
    assert life.effects[:2] == (
        LogFatal("no space left"),
        End("RunSession", life.part("RunSession", Phase.ENDING).generation),
    )
    assert life.state is State.STOPPED


@pytest.mark.parametrize("state", session.SESSION_LIVES)
def test_a_stopped_session_that_ignores_its_end_needs_no_state_of_its_own(state: State) -> None:
    """Ending an activity means TERM, grace and KILL until confirmed: no GraceExceeded is needed (D11).

    BloopAI/vibe-kanban#2377: what cannot be ended cleanly, or is gone already, cannot be stopped.
    """
    life = in_state(state)
    life = life.take(OperatorStop())
    assert [part.phase for part in life.entity.running] == [Phase.ENDING]
    assert isinstance(life.give(GraceExceeded()), Refusal)
    assert isinstance(life.confirm("RunSession"), EntityStep)
    assert life.entity.running == ()
    assert life.state is State.STOPPED


def test_a_late_exit_of_a_killed_session_does_not_hit_the_next_one() -> None:
    """Every event of an activity carries its generation, so that the old session's exit is stale (D12)."""
    life = in_state(State.INTERRUPTING)
    old = life.part("RunSession").generation
    life.elapse("GraceExceeded")
    life = life.take(PromptReady("next")).settle()
    life = life.take(SessionStarted(0))
    assert life.state is State.RUNNING
    for outcome in (Success(), Error("killed"), Timeout()):
        late = life.give(SessionExited(outcome), slot="RunSession", generation=old)
        assert isinstance(late, Refusal)
        assert (late.kind, late.reason) == ("stale", f"RunSession of generation {old} is not live in Running")
    assert life.state is State.RUNNING


def test_the_next_session_begins_only_when_the_killed_one_is_confirmed_dead() -> None:
    """After GraceExceeded there are never two sessions in one worktree (D13)."""
    life = in_state(State.INTERRUPTING)
    life.elapse("GraceExceeded")
    old = life.part("RunSession", Phase.ENDING).generation
    assert life.effects[:2] == (ForceStopSession(), End("RunSession", old))
    life = life.take(PromptReady("next"))
    assert life.state is State.SPAWNING
    assert [effect for effect in life.effects if isinstance(effect, Begin)] == []
    waiting = life.part("RunSession", Phase.WAITING)
    life.confirm("RunSession")
    assert life.effects == (Begin("RunSession", RunSession("next", 0, 2, 5_000), waiting.generation),)
    assert life.part("RunSession").generation == waiting.generation


def test_a_session_that_only_waited_is_forgotten_by_a_stop() -> None:
    """An activity that never began is not ended; an ending one is confirmed as before (D9, D13)."""
    life = in_state(State.INTERRUPTING)
    life.elapse("GraceExceeded")
    life = life.take(PromptReady("next"))
    life = life.take(OperatorStop())
    assert life.effects == ()
    assert life.entity.find("RunSession", Phase.WAITING) is None
    life.settle()
    assert life.effects == ()
    assert life.entity.running == ()


def test_an_urgent_message_while_spawning_interrupts_right_after_the_start() -> None:
    """It waits, then comes directly after SessionStarted, in the same input (D14)."""
    life = spawning()
    waits = life.give(UrgentMessage())
    assert isinstance(waits, EntityStep)
    assert (waits.transitions, waits.effects, life.state) == ((), (), State.SPAWNING)
    life = life.take(SessionStarted(0))
    assert life.state is State.INTERRUPTING
    assert CancelSession() in life.effects
    assert life.entity.postponed == ()


def test_an_urgent_message_that_waited_for_a_session_that_never_ran_is_refused() -> None:
    """CoolingDown keeps its backoff: the message is not taken there, and its sender's interpreter is told (D14)."""
    life = spawning()
    life.give(UrgentMessage())
    life = life.take(SessionExited(Error("x")))
    assert life.state is State.COOLING_DOWN
    assert [(refusal.kind, refusal.envelope.event) for refusal in life.refusals] == [("illegal", UrgentMessage())]
    assert life.entity.postponed == ()


@pytest.mark.parametrize(
    "state", [state for state in State if state not in {State.SPAWNING, State.RUNNING}], ids=lambda state: state.value
)
def test_an_urgent_message_elsewhere_is_refused_and_changes_nothing(state: State) -> None:
    """There it waits in the mailbox, not in the session; Stopped rejects it to the sender (D14)."""
    life = in_state(state)
    before = life.entity
    answer = life.give(UrgentMessage())
    assert isinstance(answer, Refusal)
    assert answer.kind == "illegal"
    assert life.entity is before


def test_every_spawn_has_an_attempt_of_its_own_and_only_completed_sessions_count() -> None:
    """``session_seq`` stays while sessions fail or are interrupted, ``attempt`` goes up with every prompt (D15)."""
    life = fail(ready())
    life.elapse("BackoffElapsed")
    life = (
        life.take(PromptReady("again"))
        .settle()
        .take(SessionStarted(0), UrgentMessage(), SessionExited(Error("x")))
        .settle()
    )
    life = life.take(PromptReady("third"))
    assert (life.record.session_seq, life.record.attempt) == (0, 3)
    life = life.take(SessionStarted(0), SessionExited(Success())).settle().take(WorktreeReady())
    assert (life.record.session_seq, life.record.attempt) == (1, 3)


def test_a_success_without_a_start_is_refused() -> None:
    """By default a session that was never confirmed as started cannot succeed (D16)."""
    life = spawning()
    part = life.part("RunSession")
    assert isinstance(life.give(SessionExited(Success()), slot="RunSession", generation=part.generation), Refusal)
    assert life.state is State.SPAWNING
    assert life.part("RunSession") == part


def test_a_repeated_start_and_a_start_of_another_session_are_refused() -> None:
    """Neither changes anything (D17)."""
    life = spawning()
    generation = life.part("RunSession").generation
    for seq, legal in ((1, False), (0, True), (0, False)):
        before = life.entity
        answer = life.give(SessionStarted(seq), slot="RunSession", generation=generation)
        assert isinstance(answer, EntityStep) is legal
        assert legal or life.entity is before


def test_a_completed_sessions_worktree_is_refreshed_and_counted_once() -> None:
    """The same event as at the beginning; the machine counts, the effect is a notification (D19, D24)."""
    life = in_state(State.SESSION_COMPLETE)
    begun = life.part("RefreshWorktree").generation
    assert life.effects == (Begin("RefreshWorktree", RefreshWorktree(0), begun),)
    life = life.take(WorktreeReady())
    assert life.effects.count(IncrementSession(1)) == 1
    assert (life.record.session_seq, life.state) == (1, State.BUILDING_PROMPT)
    late = life.give(WorktreeReady(), slot="RefreshWorktree", generation=begun)
    assert isinstance(late, Refusal)
    assert life.record.session_seq == 1


def test_a_stopped_agent_takes_a_stop_and_a_fatal_error_and_stays_stopped() -> None:
    """The global rows hold in Stopped as well: the stop has no effect, the error is logged (D8)."""
    life = in_state(State.STOPPED).settle()
    life = life.take(OperatorStop())
    assert (life.state, life.effects) == (State.STOPPED, ())
    life = life.take(FatalError("disk"))
    assert (life.state, life.effects) == (State.STOPPED, (LogFatal("disk"),))


@pytest.mark.parametrize("state", [State.INITIALIZING, State.BUILDING_PROMPT, State.SESSION_COMPLETE])
def test_what_prepares_a_session_can_only_fail_for_good(state: State) -> None:
    """Neither Initializing nor BuildingPrompt has a failure of its own: their activities yield FatalError (D6, D7)."""
    assert in_state(state).take(FatalError("no repository")).state is State.STOPPED


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


def test_an_interrupted_session_that_ends_in_time_needs_no_kill() -> None:
    """The grace timer goes with the state; the session itself is over with its exit."""
    life = in_state(State.INTERRUPTING)
    timer = life.part("GraceExceeded")
    life = life.take(SessionExited(Success()))
    assert CancelTimer("GraceExceeded", timer.generation) in life.effects
    assert [effect for effect in life.effects if isinstance(effect, End | ForceStopSession)] == []


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


def test_a_backoff_event_goes_only_where_a_backoff_is() -> None:
    """BackoffElapsed by itself is a row of CoolingDown and of nothing else."""
    accepts = [s for s in State if isinstance(session.machine.step(Session(state=s), BackoffElapsed()), Step)]
    assert accepts == [State.COOLING_DOWN]


def test_the_reasons_of_events_are_for_the_journal_and_in_no_table() -> None:
    """The document's words stand alone; the usual reason is not printed either."""
    for event in (UrgentMessage, OperatorStop):
        assert event.label() == event.__name__
        assert repr(event()) == f"{event.__name__}()"
        assert event().abort_reason is AbortReason.USER_INTERRUPT


def test_the_usage_of_two_sessions_is_their_sum() -> None:
    assert session.Usage(1, 2, 3).plus(session.Usage(10, 20, 30)) == session.Usage(11, 22, 33)
