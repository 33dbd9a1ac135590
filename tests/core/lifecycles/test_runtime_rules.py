"""The runtime's rules beyond its table: preemption and its deadlines, timeouts, recovery, and what is left open.

The lives here go through the kernel; a decision is named in the docstring of its test, and so is a public thread about
what goes wrong without it.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifefold.core.kernel import EntityStep, Machine, Refusal
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
    Resume,
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
    CancelTimer,
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


def test_suspending_consumes_the_request() -> None:
    """After the agent has yielded once it is not asked again, and can make progress (A16)."""
    life = running().take(PreemptionRequested("now"), Suspend())
    assert not safe_point(life.record)
    life.take(Resume(), Run())
    assert not safe_point(life.record)


def test_a_request_that_comes_while_suspended_waits_for_the_next_safe_point() -> None:
    """Only entering SUSPENDED consumes (A16)."""
    life = in_state(State.SUSPENDED).take(PreemptionRequested("again"), Resume(), Run())
    assert safe_point(life.record)


@pytest.mark.parametrize("state", State)
def test_a_request_in_any_state_is_told_to_the_agent_and_seen_at_its_safe_point_if_it_has_a_task(state: State) -> None:
    """There is an entry for requests, and it never fails (A25)."""
    life = in_state(state).take(PreemptionRequested("now"))
    assert life.effects == (CallHook("on_preempt_request", ("now",)),)
    assert safe_point(life.record) == (state in AT_WORK)


def test_a_request_to_an_idle_agent_does_not_preempt_its_next_task() -> None:
    """What was asked for before there was a task cannot have been about it (A16)."""
    life = in_state(State.RUNNABLE).take(PreemptionRequested("now"), Schedule("T1"), Run())
    assert not safe_point(life.record)
    assert due_ms(life.record) is None


@pytest.mark.parametrize(
    "end", [(Complete(), Ready()), (Fail("x"), Recover(), CompleteRecovery())], ids=["done", "lost"]
)
def test_a_request_ends_with_the_task_that_it_concerned(end: tuple[runtime.Fail, ...]) -> None:
    """The next task is not preempted for the last one's sake, and a section of lost work masks nothing for ever."""
    life = inside(running().take(PreemptionRequested("now")), None).take(*end)
    assert life.record.preemption == runtime.Preemption()


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


def test_an_overrun_without_a_request_has_no_effect() -> None:
    """A limit says how long preemption may be deferred, not how long work may take."""
    life = inside(running(), 10)
    assert due_ms(life.record) is None
    assert not life.wait(1_000_000).deadline()


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


def test_yielding_within_the_grace_period_is_early_enough() -> None:
    """And whatever time passes afterwards (A17)."""
    life = running().take(PreemptionRequested("now")).wait(30_000)
    assert life.deadline()
    life.wait(4_999).take(Suspend()).wait(10_000)
    assert life.refuses(DeadlinePassed())
    assert life.state is State.SUSPENDED


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


def test_a_timeout_of_a_state_that_was_left_is_inert() -> None:
    """StoneCypher/jssm#723, spring-attic/spring-statemachine#728: a stale timer fires although its state was left."""
    life = in_state(State.SUSPENDED)
    timer = life.entity.find("SuspendTimedOut")
    life.take(Resume())
    assert CancelTimer("SuspendTimedOut", timer.generation if timer else 0) in life.effects
    life.take(Run(), Suspend())
    renewed = life.entity.find("SuspendTimedOut")
    assert timer is not None
    assert renewed is not None
    assert renewed.generation != timer.generation


def test_the_limits_are_the_timers() -> None:
    """Each may be set."""
    life = AgentLife(limits=Limits(init_timeout_ms=7))
    life.elapse("InitTimedOut")
    assert life.now_ms == 7


def test_waiting_has_no_timeout_and_no_quiet_way_out() -> None:
    """Strictly the document's one edge (A8)."""
    assert open_targets(runtime.machine, in_state(State.WAITING).record) == (State.RUNNING,)
    assert in_state(State.WAITING).entity.running == ()


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


@pytest.mark.parametrize("state", State)
def test_fail_is_for_the_three_states_that_the_document_names(state: State) -> None:
    """The other edges into FAILED are the timers' (A7), and a refused call changes nothing (A12)."""
    life = in_state(state)
    named = {State.RUNNING, State.SHUTTING_DOWN, State.RECOVERING}
    assert life.refuses(Fail("x")) == (state not in named)


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


def test_an_agent_that_failed_before_its_first_task_has_none_to_report() -> None:
    """After init_timeout there is nothing to give back (A23)."""
    life = AgentLife()
    life.elapse("InitTimedOut")
    assert life.take(Recover(), CompleteRecovery()).asked(ReportTaskFailed) == []
    assert life.state is State.RUNNABLE


@pytest.mark.parametrize("state", [state for state in State if state is not State.RECOVERING])
def test_a_recovery_ends_only_where_one_goes_on(state: State) -> None:
    """The documented precondition is enforced (A13)."""
    assert in_state(state).refuses(CompleteRecovery())
    assert in_state(state).refuses(FailRecovery("x"))


def test_a_graceful_shutdown_may_complete_in_its_profile_only() -> None:
    """The default table has only FAILED (A4)."""
    assert in_state(State.SHUTTING_DOWN).refuses(Complete())
    assert in_state(State.SHUTTING_DOWN, runtime_profiles.graceful).take(Complete()).state is State.COMPLETED


def test_an_agent_that_completed_its_shutdown_has_not_failed_and_takes_no_further_task() -> None:
    """Neither an aborted recovery nor its count is left, and the end is the end, in this profile (A4, A5)."""
    life = in_state(State.RECOVERING, runtime_profiles.graceful).take(Shutdown(), Complete())
    assert (life.record.failure_reason, life.record.error_code, life.record.recoveries) == (None, "", 0)
    assert life.refuses(Ready())
    assert in_state(State.COMPLETED, runtime_profiles.graceful).take(Ready()).state is State.RUNNABLE


@pytest.mark.parametrize("machine", [runtime.machine, runtime_profiles.graceful], ids=lambda each: str(each.name))
def test_a_completed_task_is_not_in_hand_any_more(machine: Machine[runtime.Runtime]) -> None:
    """Nothing is the agent's current task once it is COMPLETED, after a shutdown neither (A23)."""
    assert in_state(State.RUNNING, machine).take(Complete()).record.task_id is None
    assert in_state(State.SHUTTING_DOWN, runtime_profiles.graceful).take(Complete()).record.task_id is None


def test_a_completed_agent_must_be_ready_before_it_is_scheduled_again() -> None:
    """schedule() straight from COMPLETED stays illegal (A2, A3)."""
    life = in_state(State.COMPLETED)
    assert life.refuses(Schedule("T2"))
    assert life.take(Ready()).record.task_id is None
    assert life.take(Schedule("T2")).record.task_id == "T2"


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


def test_a_recovery_that_succeeds_and_fails_again_at_once_spends_the_budget() -> None:
    """bobmatnyc/trusty-tools#3631, hivecommons/hive#6578: a cap that the restart itself resets never gives up (A24)."""
    life = in_state(State.FAILED, runtime_profiles.supervised)
    for _ in range(5):
        life.take(Recover(), CompleteRecovery(), Schedule("T2"), Run(), Fail("again"))
    assert life.refuses(Recover())


def test_a_completed_task_gives_the_budget_back() -> None:
    """What ends a row of failures is work that is done (A24)."""
    life = in_state(State.FAILED).take(Recover(), CompleteRecovery(), Schedule("T2"), Run(), Complete())
    assert life.record.recoveries == 0


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
