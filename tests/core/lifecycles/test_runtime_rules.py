"""The runtime's rules beyond its table: preemption and its deadlines, timeouts, recovery, and what is left open.

The lives here go through the kernel; a decision is named in the docstring of its test, and so is a public thread about
what goes wrong without it.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifefold.core.kernel import EntityStep, Refusal
from lifefold.core.lifecycles import runtime, runtime_profiles
from lifefold.core.lifecycles.runtime import (
    AT_WORK,
    Complete,
    CompleteRecovery,
    DeadlinePassed,
    Fail,
    FailRecovery,
    Limits,
    PreemptionForced,
    PreemptionRequested,
    Ready,
    Recover,
    Run,
    Schedule,
    SectionEntered,
    SectionLeft,
    Shutdown,
    State,
    Suspend,
    Wait,
    due_ms,
    may_recover,
    safe_point,
)
from lifefold.core.lifecycles.runtime_profiles import (
    Overdue,
    RecoveryDue,
)
from lifefold.core.policy.recovery import Retry, fixed_ms, jittered_ms
from lifefold.effects import (
    CallHook,
    LogFailure,
    LogFatal,
    ReportStuck,
    ReportTaskFailed,
    SignalPreemption,
)
from lifefold.interpreters.facades.moves import open_targets
from runtime_life import AgentLife, in_state, inside, running

# Preemption


def test_a_request_inside_a_critical_section_is_answered_after_it() -> None:
    """Inside no safe point asks to yield, and the request is not lost by leaving (A15)."""
    life = inside(running(), None).take(PreemptionRequested("more urgent work"))
    assert not safe_point(life.record)
    life.take(SectionLeft(1))
    assert safe_point(life.record)


def test_a_request_before_a_critical_section_survives_it() -> None:
    """Masking and asking are two things (A15)."""
    life = inside(running().take(PreemptionRequested("now")), 5)
    assert not safe_point(life.record)
    assert safe_point(life.take(SectionLeft(1)).record)


def test_only_the_outermost_section_unmasks() -> None:
    """Sections nest: a depth, not a flag (A18)."""
    life = inside(running().take(PreemptionRequested("now")), None, None)
    assert not safe_point(life.take(SectionLeft(2)).record)
    assert safe_point(life.take(SectionLeft(1)).record)


def test_of_nested_sections_the_earliest_limit_counts() -> None:
    """And it is the inner one's only while that is being executed (A18)."""
    life = inside(running(), 9_000, None, 4_000).take(PreemptionRequested("now"))
    assert due_ms(life.record) == 4_000
    assert due_ms(life.take(SectionLeft(3)).record) == 9_000


@pytest.mark.parametrize("state", State)
def test_a_request_in_any_state_is_told_to_the_agent_and_seen_at_its_safe_point_if_it_has_a_task(state: State) -> None:
    """There is an entry for requests, and it never fails (A25)."""
    life = in_state(state).take(PreemptionRequested("now"))
    assert life.effects == (CallHook("on_preempt_request", ("now",)),)
    assert safe_point(life.record) == (state in AT_WORK)


def test_an_agent_that_does_not_yield_is_signalled_and_then_failed() -> None:
    """The configured timeout, a signal, a grace period, and no later: RUNNING becomes FAILED (A17)."""
    life = running().wait(1_000).take(PreemptionRequested("more urgent work"))
    assert not life.wait(29_999).deadline()
    assert life.wait(1).deadline()
    assert (life.state, life.effects) == (State.RUNNING, (SignalPreemption("more urgent work", 5_000),))
    assert not life.wait(4_999).deadline()
    assert life.wait(1).deadline()
    assert (life.state, life.record.error_code) == (State.FAILED, "forced_preemption")
    assert life.asked(LogFailure)
    assert safe_point(life.record), "a loop that still runs is told to end"


def test_a_declared_section_defers_force_until_its_limit() -> None:
    """Its limit, then the signal, then the grace period, even if the timeout has long passed (A17)."""
    life = inside(running().take(PreemptionRequested("now")), 100_000)
    assert due_ms(life.record) == 100_000
    assert not life.wait(99_999).deadline()
    assert life.wait(1).deadline()
    assert life.asked(SignalPreemption)
    assert not life.wait(4_999).deadline()
    assert life.wait(1).deadline()
    assert life.state is State.FAILED


def test_a_section_without_a_limit_defers_force_until_it_is_left() -> None:
    """The timeout counts from when the request could be answered (A15, A17)."""
    life = inside(running(), None).take(PreemptionRequested("now"))
    assert not life.wait(1_000_000).deadline()
    life.take(SectionLeft(1))
    assert due_ms(life.record) == life.now_ms + 30_000


def test_entering_one_section_after_the_other_does_not_put_the_timeout_off() -> None:
    """An agent that never asks is signalled between two sections, and failed in one that declares nothing."""
    life = running().take(PreemptionRequested("now"))
    for _ in range(3):
        life.take(SectionEntered(1)).wait(10_000).take(SectionLeft(1))
    assert due_ms(life.record) == 30_000
    assert life.deadline()
    life.take(SectionEntered(1)).wait(5_000)
    assert life.deadline()
    assert life.state is State.FAILED


def test_a_section_that_declares_less_than_the_timeout_does_not_shorten_it() -> None:
    """To say how long work takes is not to yield earlier than who does not say it (A17)."""
    life = inside(running().take(PreemptionRequested("now")), 5)
    assert due_ms(life.record) == 30_000


def test_a_section_without_a_limit_that_began_in_time_defers_the_signal() -> None:
    """For as long as it lasts; the next one does not (A17)."""
    life = inside(running().take(PreemptionRequested("now")), None).wait(100_000)
    assert due_ms(life.record) is None
    life.take(SectionLeft(1), SectionEntered(2))
    assert life.deadline()
    assert life.asked(SignalPreemption)


def test_the_grace_period_never_ends_within_the_declared_time_of_a_section_that_began_before_it() -> None:
    """Force is for an overrun (A17)."""
    life = inside(running(), 20_000).take(PreemptionForced("memory"))
    assert due_ms(life.record) == 20_000


def test_a_section_that_is_entered_after_the_signal_defers_nothing() -> None:
    """Who has been told to yield cannot put it off by declaring more work (A17)."""
    life = running().take(PreemptionRequested("now")).wait(30_000)
    assert life.deadline()
    life.wait(1).take(SectionEntered(1, 20_000))
    assert due_ms(life.record) == 35_000


@pytest.mark.parametrize("order", [1, -1], ids=["one after the other", "overlapping"])
def test_back_to_back_sections_do_not_put_preemption_off_for_ever(order: int) -> None:
    """Each has a limit that is never reached; the request is answered all the same (A17)."""
    life = inside(running(), 10_000).take(PreemptionRequested("now"))
    for key in range(2, 7):
        life.wait(9_000).take(*(SectionLeft(key - 1), SectionEntered(key, 10_000))[::order])
        life.deadline()
    assert life.record.preemption.signalled_ms == 45_000
    life.wait(9_000).take(*(SectionLeft(6), SectionEntered(7, 10_000))[::order])
    assert life.deadline() or life.wait(1_000).deadline()
    assert life.record.error_code == "forced_preemption"


def test_waits_do_not_put_preemption_off_for_ever() -> None:
    """An agent that waits before each grace period is over is signalled anew once, and then failed (A17)."""
    life, signals = running().take(PreemptionRequested("now")), 0
    while life.state is State.RUNNING:
        life.wait(4_000)
        while life.deadline():
            signals += len(life.asked(SignalPreemption))
        if life.state is State.RUNNING:
            life.take(Wait(), Run())
    assert (signals, life.record.error_code) == (2, "forced_preemption")
    assert life.now_ms < 45_000


def test_a_deadline_counts_only_while_running_and_goes_on_over_a_wait() -> None:
    """There is no edge from WAITING to FAILED (A8); the timeout is over when the agent comes back, the grace is not."""
    life = running().take(PreemptionRequested("now"), Wait()).wait(100_000)
    assert due_ms(life.record) is None
    assert life.refuses(DeadlinePassed())
    life.take(Run())
    assert life.deadline()
    assert life.state is State.RUNNING
    assert due_ms(life.record) == life.now_ms + 5_000


def test_after_a_wait_an_agent_is_signalled_again_before_it_is_failed() -> None:
    """Between run() and suspend() there is time for a safe point, however long the wait was (A17)."""
    life = running().take(PreemptionRequested("now")).wait(30_000)
    assert life.deadline()
    life.take(Wait()).wait(100_000).take(Run())
    assert life.deadline()
    assert life.state is State.RUNNING
    assert life.take(Suspend()).state is State.SUSPENDED


def test_a_request_before_the_agent_runs_leaves_it_the_whole_timeout() -> None:
    """It could not have answered earlier (A17)."""
    life = in_state(State.SCHEDULED).take(PreemptionRequested("now")).wait(100_000).take(Run())
    assert due_ms(life.record) == life.now_ms + 30_000


def test_a_section_that_is_left_while_waiting_starts_no_timeout() -> None:
    """The request could be answered only when the agent runs again (A15, A17)."""
    life = inside(running(), None).take(PreemptionRequested("now"), Wait(), SectionLeft(1)).wait(100_000).take(Run())
    assert due_ms(life.record) == life.now_ms + 30_000


def test_a_repeated_request_gives_no_new_time() -> None:
    """Only a new reason."""
    life = running().take(PreemptionRequested("first")).wait(20_000).take(PreemptionRequested("second"))
    assert due_ms(life.record) == 30_000
    assert life.record.preemption.reason == "second"


def test_critically_low_resources_force_preemption_without_a_timeout() -> None:
    """The document's third case: there is only the grace period; outside RUNNING there is nothing to force."""
    life = running().take(PreemptionForced("memory"))
    assert life.asked(SignalPreemption) == [SignalPreemption("memory", 5_000)]
    assert life.wait(5_000).deadline()
    assert life.record.failure_reason == "preemption was forced: memory"
    assert in_state(State.WAITING).refuses(PreemptionForced("memory"))


# Timeouts


@pytest.mark.parametrize(
    ("state", "slot", "duration_ms", "code"),
    [
        (State.INITIALIZING, "InitTimedOut", 60_000, "init_timeout"),
        (State.WAITING_RESOURCES, "ResourceTimedOut", 300_000, "resource_timeout"),
        (State.SUSPENDED, "SuspendTimedOut", 3_600_000, "suspend_timeout"),
        (State.RECOVERING, "RecoveryTimedOut", 120_000, "recovery_timeout"),
        (State.SHUTTING_DOWN, "ShutdownTimedOut", 30_000, "agent_shutdown_timeout"),
    ],
)
def test_a_state_that_lasts_too_long_fails_with_its_code_and_is_logged(
    state: State, slot: str, duration_ms: int, code: str
) -> None:
    """Not a millisecond early (A6; statelyai/xstate#5331: a delay that is lost leaves the machine stuck)."""
    life = in_state(state)
    assert isinstance(life.elapse(slot, early_ms=1), Refusal)
    assert isinstance(life.elapse(slot), EntityStep)
    assert life.now_ms == duration_ms
    assert (life.state, life.record.error_code) == (State.FAILED, code)
    assert [effect.error_code for effect in life.asked(LogFailure)] == [code]


@pytest.mark.parametrize("state", [State.SCHEDULED, State.WAITING])
def test_a_watched_agent_that_is_stuck_is_reported_once_and_stays(state: State) -> None:
    """A diagnostic, no invented edge (A8, A26; Untrivial-ai/agent-orchestrator#1187: dead, and shown as working)."""
    life = in_state(state, runtime_profiles.watched)
    life.elapse("Overdue")
    assert life.effects == (ReportStuck(state, 3_600_000),)
    assert (life.state, life.entity.running) == (state, ())
    assert in_state(state).refuses(Overdue())


def test_an_auto_running_agent_goes_on_at_once() -> None:
    """RESUMED becomes RUNNING "automatically", in the profile; by run() otherwise (A10)."""
    life = in_state(State.RESUMED, runtime_profiles.auto_running(runtime.machine))
    life.elapse("Run")
    assert (life.state, life.now_ms) == (State.RUNNING, 0)
    assert in_state(State.RESUMED).entity.running == ()


# Failing, recovering, shutting down


def test_shutdown_aborts_a_recovery() -> None:
    """The edge that the document draws without a method (A5); what had failed is reported (A23)."""
    life = in_state(State.RECOVERING).take(Shutdown())
    assert life.state is State.SHUTTING_DOWN
    assert life.asked(ReportTaskFailed) == [ReportTaskFailed("T1", "it broke")]
    assert life.take(Fail("done")).take(Recover(), CompleteRecovery()).asked(ReportTaskFailed) == []


def test_a_recovered_agent_has_no_task_and_its_task_is_reported_failed() -> None:
    """No stale task in RUNNABLE (A23; sipyourdrink-ltd/bernstein#4453: a dead agent's claim is never released)."""
    life = in_state(State.RECOVERING).take(CompleteRecovery())
    assert life.asked(ReportTaskFailed) == [ReportTaskFailed("T1", "it broke")]
    assert (life.record.task_id, life.record.failure_reason) == (None, None)


def test_an_agent_that_completed_its_shutdown_has_not_failed_and_takes_no_further_task() -> None:
    """Neither an aborted recovery nor its count is left, and the end is the end, in this profile (A4, A5)."""
    life = in_state(State.RECOVERING, runtime_profiles.graceful).take(Shutdown(), Complete())
    assert (life.record.failure_reason, life.record.error_code, life.record.recoveries) == (None, "", 0)
    assert life.refuses(Ready())
    assert in_state(State.COMPLETED, runtime_profiles.graceful).take(Ready()).state is State.RUNNABLE


def test_recovery_has_no_limit_in_the_default_table() -> None:
    """The budget is a supervisor's: it is told, and may ignore it (A24)."""
    life = in_state(State.FAILED)
    for _ in range(20):
        life.take(Recover(), FailRecovery("x"))
    assert not may_recover(life.record)
    assert life.record.recoveries == 5
    assert life.take(Recover()).state is State.RECOVERING


def test_a_supervised_agent_recovers_by_itself_five_times_and_then_stays_failed() -> None:
    """With doubling delays; then an alert, once, and its task is given back (A24; block/buzz#5327: a restart storm)."""
    life = in_state(State.FAILED, runtime_profiles.supervised)
    delays: list[int] = []
    for _ in range(5):
        since_ms = life.now_ms
        life.elapse("RecoveryDue")
        assert life.state is State.RECOVERING
        delays.append(life.now_ms - since_ms)
        life.take(FailRecovery("still broken"))
    assert delays == [1_000, 2_000, 4_000, 8_000, 16_000]
    life.elapse("RecoveryDue")
    assert life.effects == (
        LogFatal("a stays FAILED after 5 recoveries: still broken"),
        ReportTaskFailed("T1", "still broken"),
    )
    assert (life.state, life.record.task_id, life.entity.running) == (State.FAILED, None, ())
    assert life.refuses(Recover())
    assert State.RECOVERING not in open_targets(runtime_profiles.supervised, life.record)
    assert in_state(State.FAILED).refuses(RecoveryDue())


def test_an_alert_says_the_code_if_there_is_no_reason() -> None:
    """Whatever is known of the failure."""
    life = AgentLife(runtime_profiles.supervised, Limits(max_recoveries=0)).take(*in_path())
    life.elapse("RecoveryDue")
    assert life.asked(LogFatal) == [LogFatal("a stays FAILED after 0 recoveries: ")]


def in_path() -> tuple[runtime.Start, runtime.Schedule, runtime.Run, runtime.Fail]:
    return runtime.Start(), Schedule("T1"), Run(), Fail("")


# Retry strategies


def test_exponential_backoff_doubles() -> None:
    """1 s, 2 s, 4 s, 8 s, and so on, up to its cap (document 000, Retry Strategies)."""
    assert [Retry().delay_ms(n) for n in range(1, 9)] == [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]


def test_a_fixed_delay_is_constant() -> None:
    """Document 000, Retry Strategies."""
    assert {Retry("fixed", base_ms=70).delay_ms(n) for n in range(1, 99)} == {70}
    assert fixed_ms(3, base_ms=70) == 70


@given(st.integers(1, 40), st.text(max_size=5), st.floats(0, 1))
def test_jitter_adds_up_to_its_fraction_and_is_the_same_each_time(attempt: int, who: str, jitter: float) -> None:
    """``delay + uniform(0, delay * 0.1)`` of the document's example, without a random number."""
    delay_ms = Retry().delay_ms(attempt)
    jittered = Retry("jittered", jitter=jitter).delay_ms(attempt, who)
    assert delay_ms <= jittered <= delay_ms * (1 + jitter)
    assert jittered == jittered_ms(attempt, base_ms=1_000, cap_ms=60_000, jitter=jitter, who=who)


def test_agents_that_failed_together_do_not_retry_together() -> None:
    """The thundering herd."""
    assert len({Retry("jittered").delay_ms(4, f"agent-{n}") for n in range(50)}) > 40


def test_an_unknown_retry_strategy_is_refused() -> None:
    """The message says which there are."""
    with pytest.raises(ValueError, match="strategy must be one of exponential, fixed, jittered, not 'whatever'"):
        Retry("whatever")  # type: ignore[arg-type] # what a file may say


@pytest.mark.parametrize("numbers", [{"base_ms": 0}, {"cap_ms": 0}, {"jitter": 1.5}, {"jitter": -0.1}])
def test_a_retry_that_could_never_work_is_refused_by_name(numbers: dict[str, float]) -> None:
    """The message names the field."""
    with pytest.raises(ValueError, match=next(iter(numbers))):
        Retry(**numbers)  # type: ignore[arg-type] # a fraction or a count, by name


@pytest.mark.parametrize(
    ("grace_ms", "kept_to"),
    [(5_000, (3_000, 1_000)), (36_000, (21_600, 5_000)), (60_000, (30_000, 5_000)), (0, (0, 0))],
)
def test_limits_within_a_grace_end_before_it_and_are_never_longer(grace_ms: int, kept_to: tuple[int, int]) -> None:
    """Who does not yield is failed after four fifths of the grace at the latest, or after its own limits."""
    limits = Limits().within(grace_ms)
    assert (limits.preemption_timeout_ms, limits.preemption_grace_ms) == kept_to
    assert limits.within(10**9) == limits
