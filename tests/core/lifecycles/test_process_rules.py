"""Failures, pauses, timers and crashes: the process's rules beyond its table.

The processes here run on the kernel (``create``, ``advance``) in virtual time. A decision is named in the docstring of
its test, and so is the public thread of a user who suffered from the lack of it.
"""

from typing import Any

import pytest

from lifefold.core.kernel import ActivityEnded, EntityStep, Envelope, Phase, RunnerRecovered, advance, replace
from lifefold.core.lifecycles import process
from lifefold.core.lifecycles.process import (
    BackoffElapsed,
    Crashed,
    Drained,
    Limits,
    MoveRequested,
    Orphaned,
    Process,
    QueueEmptied,
    ResumeRequested,
    RunFailed,
    RunSucceeded,
    StartRequested,
    StartSucceeded,
    State,
    StopRequested,
    SuspendReason,
    SuspendRequested,
    TriggerArrived,
)
from lifefold.effects import Begin, NotifyProcess, PauseTriggers, ResumeTriggers, ServeTriggers
from process_life import ALWAYS, ON_FAILURE, Life, failed, up, waiting

NOT_IDLE = [why for why in SuspendReason if why is not SuspendReason.IDLE]


# Failures of runs


def test_three_failed_runs_in_a_row_fail_the_process() -> None:
    """``max_consecutive_failures`` is reached by the third, counted, and the reason says so."""
    life = up().give(RunFailed("a"), RunFailed("b"))
    assert (life.state, life.record.failure) == (State.RUNNING, "b")
    life.give(RunFailed("c"))
    assert (life.state, life.record.failure) == (State.FAILED, "max consecutive failures reached (3): c")
    assert up(Limits(max_consecutive_failures=1)).give(RunFailed()).record.failure.endswith("(1): unknown")


def test_a_successful_run_clears_the_failures_in_a_row() -> None:
    """Two failures, a success, two failures: the process is up."""
    failing = (RunFailed("x"), RunFailed("x"))
    assert up().give(*failing, RunSucceeded(), *failing).state is State.RUNNING


@pytest.mark.parametrize("limits", [Limits(), ON_FAILURE], ids=lambda limits: limits.restart_policy)
def test_a_new_start_has_its_own_failures(limits: Limits) -> None:
    """Asked for or planned: failures in a row are one process's; restarts are what is counted across them."""
    life = up(limits).give(*[RunFailed("x")] * 3).wait(1_000)
    life = life if life.state is State.STARTING else life.give(StartRequested())
    life.give(StartSucceeded(), RunFailed("x"))
    assert (life.state, life.record.consecutive_failures) == (State.RUNNING, 1)


def test_a_run_in_flight_counts_although_the_process_is_suspended() -> None:
    """It comes to its end, and its end is heard: a success clears, a failure fails (C15)."""
    paused = up().give(RunFailed("x"), SuspendRequested())
    assert paused.going_on == {"ServeTriggers"}
    assert paused.give(RunSucceeded()).record.consecutive_failures == 0
    assert paused.give(*[RunFailed("x")] * 3).state is State.FAILED


def test_a_run_in_flight_counts_although_the_process_waits_for_a_trigger() -> None:
    """A move to AWAITING by hand does not end the runs in flight."""
    moved = up().give(RunFailed("x"), MoveRequested(State.AWAITING))
    assert moved.give(QueueEmptied()).state is State.AWAITING
    assert moved.give(RunFailed("x")).record.consecutive_failures == 2
    assert moved.give(RunSucceeded()).record.consecutive_failures == 0
    assert moved.give(*[RunFailed("x")] * 3).state is State.FAILED


def test_a_run_that_ends_while_the_process_is_drained_counts() -> None:
    """A success at the end of a life restores the restarts; a failure then does not fail a stopping process."""
    old = up(replace(ALWAYS, max_lifetime_ms=60_000)).give(Crashed("x")).wait(1_000).give(StartSucceeded()).wait(60_000)
    assert (old.state, old.record.restart_count) == (State.STOPPING, 1)
    assert old.give(RunSucceeded()).record.restart_count == 0
    assert old.give(*[RunFailed("x")] * 4).state is State.STOPPING
    assert old.give(Drained()).wait(0).give(StartSucceeded()).record.consecutive_failures == 0


# Pauses


@pytest.mark.parametrize("why", NOT_IDLE)
def test_a_trigger_does_not_resume_what_was_suspended_for_a_reason(why: SuspendReason) -> None:
    """Only idleness ends by itself; the trigger waits in the queue (C15)."""
    life = up().give(SuspendRequested(why), TriggerArrived(), QueueEmptied())
    assert (life.state, life.record.suspended_for) == (State.SUSPENDED, why)
    assert ResumeTriggers() not in life.effects
    assert life.give(ResumeRequested("paid")).state is State.RUNNING
    assert life.effects.index(ResumeTriggers()) < life.effects.index(NotifyProcess("resumed", "paid"))


def test_a_trigger_resumes_an_idle_process() -> None:
    """Suspended for idleness, and awake with the next trigger (C15)."""
    life = waiting(Limits(idle_timeout_ms=30_000)).wait(30_000)
    assert (life.state, life.record.suspended_for) == (State.SUSPENDED, SuspendReason.IDLE)
    assert life.give(TriggerArrived("cron")).state is State.RUNNING
    assert NotifyProcess("resumed", "cron") in life.effects


def test_another_reason_replaces_idleness_and_idleness_replaces_none() -> None:
    """A process that is out of budget is not woken by a trigger because it had been idle first (C15)."""
    idle = waiting(Limits(idle_timeout_ms=1)).wait(1)
    idle.give(SuspendRequested(SuspendReason.BUDGET), TriggerArrived())
    assert (idle.state, idle.record.suspended_for) == (State.SUSPENDED, SuspendReason.BUDGET)
    idle.give(SuspendRequested(SuspendReason.IDLE), TriggerArrived())
    assert idle.record.suspended_for is SuspendReason.BUDGET


def test_a_waiting_process_is_suspended_by_way_of_running() -> None:
    """AWAITING to SUSPENDED is no edge: it goes through RUNNING in no time, with its triggers paused already (C6)."""
    life = waiting().give(SuspendRequested(SuspendReason.BUDGET))
    assert (life.state, life.delay_ms("SuspendDue"), PauseTriggers() in life.effects) == (State.RUNNING, 0, True)
    life.wait(0)
    assert life.visited[-3:] == [State.AWAITING, State.RUNNING, State.SUSPENDED]
    assert life.news[-1] == "suspended"


def test_a_trigger_that_comes_on_the_way_to_an_idle_suspension_is_not_slept_through() -> None:
    """Between the idle timeout and the suspension there is a moment in which a trigger may come (C6, C15)."""
    life = waiting(Limits(idle_timeout_ms=1_000))
    life.now_ms = 1_000
    life.offer(process.IdleElapsed())
    life.give(TriggerArrived()).wait(60_000)
    assert (life.state, life.record.suspended_for) == (State.RUNNING, None)
    assert life.effects.count(ResumeTriggers()) == 1


def test_a_suspension_on_its_way_can_be_called_off() -> None:
    """A resumption before the suspension is accepted, and the triggers continue (C6)."""
    life = waiting().give(SuspendRequested(), ResumeRequested()).wait(60_000)
    assert (life.state, life.record.suspended_for, life.effects.count(ResumeTriggers())) == (State.RUNNING, None, 1)


def test_a_suspension_on_its_way_is_not_lost_to_an_empty_queue() -> None:
    """A report that nothing is to be done does not lead back to AWAITING, from where there is no way (C6)."""
    life = waiting().give(SuspendRequested(), QueueEmptied()).wait(0)
    assert life.state is State.SUSPENDED


def test_a_move_by_name_to_awaiting_calls_a_suspension_off() -> None:
    """A move by hand has precedence, and the triggers are not left paused."""
    life = waiting().give(SuspendRequested(), MoveRequested(State.AWAITING))
    assert (life.state, life.record.suspended_for, life.effects.count(ResumeTriggers())) == (State.AWAITING, None, 1)
    running = up().give(MoveRequested(State.AWAITING))
    assert ResumeTriggers() not in running.effects


def test_a_pause_binds_on_every_path() -> None:
    """ever-works/ever-works#2459: asked for while starting, while down, or while recycling, it holds when it is up."""
    starting = Life().give(StartRequested(), SuspendRequested(SuspendReason.BUDGET), StartSucceeded()).wait(0)
    down = failed().give(SuspendRequested(SuspendReason.BUDGET)).wait(1_000).give(StartSucceeded()).wait(0)
    recycled = up(replace(ALWAYS, max_lifetime_ms=60_000)).give(SuspendRequested(SuspendReason.BUDGET))
    recycled.wait(60_000).give(Drained()).wait(0).give(StartSucceeded()).wait(0)
    for life in (starting, down, recycled):
        assert (life.state, life.record.suspended_for) == (State.SUSPENDED, SuspendReason.BUDGET)


@pytest.mark.parametrize("hours", [0, 5])
def test_work_that_comes_while_a_quota_is_used_up_waits_until_its_reset_is_reported(hours: int) -> None:
    """Nothing is lost, refused or begun, whatever comes and however often the runner goes meanwhile.

    anthropics/claude-code#1314, smtg-ai/claude-squad#114: what is to be done after the reset cannot be queued.
    """
    life = up(ON_FAILURE).give(SuspendRequested(SuspendReason.BUDGET), TriggerArrived("first")).wait(hours * 3_600_000)
    life.crash(60_000)
    life.wait(1_000).give(StartSucceeded()).wait(0).give(TriggerArrived("second"))
    assert (life.state, life.record.suspended_for) == (State.SUSPENDED, SuspendReason.BUDGET)
    begun = [each.activity for each in life.effects if isinstance(each, Begin)]
    assert begun[-1] == ServeTriggers(1, 1_000, paused=True)
    assert ResumeTriggers() not in life.effects
    life.give(ResumeRequested("the quota is reset"))
    assert (life.state, life.record.suspended_for) == (State.RUNNING, None)
    assert life.effects[-2:] == [ResumeTriggers(), NotifyProcess("resumed", "the quota is reset", 1)]


@pytest.mark.parametrize("paused", [True, False])
def test_a_pause_binds_what_begins_only_when_the_one_before_it_is_gone(*, paused: bool) -> None:
    """The triggers of a new start wait for those of the failed one; what is said meanwhile is not forgotten."""
    entity = up().entity
    for event in (Crashed(), StartRequested(), StartSucceeded(), *[SuspendRequested()] * paused):
        answer = advance(process.machine, entity, Envelope("process", event, 0))
        assert isinstance(answer, EntityStep)
        entity = answer.entity
    [ending] = [part for part in entity.running if part.slot == "ServeTriggers" and part.phase is Phase.ENDING]
    answer = advance(process.machine, entity, Envelope("process", ActivityEnded("ServeTriggers", ending.generation), 0))
    assert isinstance(answer, EntityStep)
    [begun] = [effect for effect in answer.effects if isinstance(effect, Begin)]
    assert begun.activity == ServeTriggers(paused=paused)


@pytest.mark.parametrize("paused", [True, False])
def test_a_pause_binds_what_is_asked_for_again_after_a_crash(*, paused: bool) -> None:
    """The runner that comes back does not know of any pause but what it is told with the activity."""
    life = up().give(*[SuspendRequested()] * paused)
    answer = advance(process.machine, life.entity, Envelope("", RunnerRecovered(0), 0))
    assert isinstance(answer, EntityStep)
    [begun] = [effect for effect in answer.effects if isinstance(effect, Begin)]
    assert begun.activity == ServeTriggers(paused=paused)


def test_a_pause_that_is_to_come_can_be_called_off() -> None:
    """While the process starts, or is down and coming back."""
    starting = Life().give(StartRequested(), SuspendRequested(), ResumeRequested(), StartSucceeded()).wait(0)
    down = failed().give(SuspendRequested(), ResumeRequested()).wait(1_000).give(StartSucceeded()).wait(0)
    assert (starting.state, down.state) == (State.RUNNING, State.RUNNING)


def test_a_pause_of_what_is_down_for_good_is_refused() -> None:
    """The requester is told that there is nothing to be paused."""
    assert "its condition does not hold" in failed(Limits()).refuse(SuspendRequested())


def test_a_process_that_was_idle_comes_back_awake() -> None:
    """Idleness belongs to the process that was idle, not to the one after it."""
    life = waiting(replace(ON_FAILURE, idle_timeout_ms=1_000)).wait(1_000).give(Crashed("x"))
    life.wait(1_000).give(StartSucceeded()).wait(0)
    assert (life.state, life.record.suspended_for) == (State.RUNNING, None)


# Times


@pytest.mark.parametrize("slot", ["IdleElapsed", "LifetimeElapsed"])
def test_a_time_of_zero_means_never(slot: str) -> None:
    """The default: no idle timeout and no maximum lifetime."""
    life = waiting()
    assert life.entity.find(slot) is None
    assert life.wait(10 * 365 * 86_400_000).state is State.AWAITING


def test_idleness_is_counted_from_the_end_of_the_last_run_and_from_a_resumption() -> None:
    """A process at work is never idle; a resumed one has the whole timeout again."""
    life = up(Limits(idle_timeout_ms=30_000)).wait(3_600_000)
    life.give(QueueEmptied()).wait(29_999).give(TriggerArrived()).wait(60_000).give(RunSucceeded(), QueueEmptied())
    assert life.wait(29_999).state is State.AWAITING
    assert life.wait(1).state is State.SUSPENDED
    life.give(ResumeRequested(), QueueEmptied()).wait(29_999)
    assert life.state is State.AWAITING


@pytest.mark.parametrize("policy", ["never", "on_failure"])
def test_at_the_end_of_its_lifetime_a_process_is_stopped(policy: Any) -> None:
    """It is drained, and stays down until a start is requested."""
    life = up(Limits(restart_policy=policy, max_lifetime_ms=60_000)).wait(60_000)
    assert life.state is State.STOPPING
    assert life.give(Drained()).wait(86_400_000).state is State.STOPPED


def test_with_the_policy_always_it_is_started_anew_and_that_does_not_count() -> None:
    """A recycle is no restart: it waits for nothing, and takes none of those that there are."""
    life = up(replace(ALWAYS, max_lifetime_ms=60_000))
    for _ in range(10):
        life.wait(60_000).give(Drained()).wait(0).give(StartSucceeded())
    assert (life.state, life.record.restart_count) == (State.RUNNING, 0)
    assert life.news == ["started", *["stopped", "restarted"] * 10]


def test_a_lifetime_goes_on_while_the_process_waits_or_is_suspended() -> None:
    """It is counted from the start of the process, through all later states."""
    life = up(Limits(max_lifetime_ms=60_000)).wait(20_000).give(QueueEmptied()).wait(20_000)
    life.give(SuspendRequested()).wait(19_999)
    assert life.state is State.SUSPENDED
    assert life.wait(1).state is State.STOPPING


# Crashes


@pytest.mark.parametrize("policy", ["never", "on_failure"])
def test_what_was_live_when_the_runner_died_is_failed_and_the_policy_decides(policy: Any) -> None:
    """A screen that says "running" would lie; the orphan is a failure like any (C12)."""
    life = up(Limits(restart_policy=policy))
    life.crash(5_000)
    assert (life.state, life.record.failure, life.going_on) == (State.FAILED, "orphaned", set())
    assert life.wait(1_000).state is (State.FAILED if policy == "never" else State.STARTING)


def test_a_start_that_lost_its_runner_is_retried_if_the_policy_says_so() -> None:
    """The requester of the start cannot have been told (C8, C12)."""
    life = Life(ALWAYS).give(StartRequested())
    life.crash(0)
    assert life.wait(1_000).state is State.STARTING


def test_what_is_at_rest_is_no_orphan() -> None:
    """Nothing was live, so nothing was lost (C12)."""
    for life in (Life(), failed(Limits()), up().give(StopRequested(), Drained())):
        assert "Orphaned is not possible" in life.refuse(Orphaned())


def test_a_recovered_process_that_is_adopted_goes_on() -> None:
    """``RunnerRecovered`` alone asks for the work again, with its own timers; only ``Orphaned`` says that it is gone.

    statelyai/xstate#4627: what a state begins when it is entered is not begun when it is restored.
    """
    life = up(Limits(max_lifetime_ms=60_000)).wait(10_000)
    life.effects.clear()
    life.offer(RunnerRecovered(1_000))
    asked = [effect for effect in life.effects if isinstance(effect, Begin)]
    assert [(each.activity, each.resumed) for each in asked] == [(ServeTriggers(1, 1_000), True)]
    assert (life.state, life.delay_ms("LifetimeElapsed")) == (State.RUNNING, 50_000)


# Limits


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"restart_policy": "sometimes"}, "restart_policy must be one of never, on_failure, always, not 'sometimes'"),
        ({"max_restarts": -1}, "max_restarts must be at least 0, not -1"),
        ({"idle_timeout_ms": -1}, "idle_timeout_ms must be at least 0, not -1"),
        ({"max_lifetime_ms": -1}, "max_lifetime_ms must be at least 0, not -1"),
        ({"drain_timeout_ms": -1}, "drain_timeout_ms must be at least 0, not -1"),
        ({"restart_backoff_ms": 0}, "restart_backoff_ms must be at least 1, not 0"),
        ({"restart_backoff_cap_ms": 0}, "restart_backoff_cap_ms must be at least 1, not 0"),
        ({"max_consecutive_failures": 0}, "max_consecutive_failures must be at least 1, not 0"),
        ({"queue_limit": 0}, "queue_limit must be at least 1, not 0"),
        ({"concurrency": 0}, "concurrency must be between 1 and 100, not 0"),
        ({"concurrency": 101}, "concurrency must be between 1 and 100, not 101"),
        ({"jitter": 1.5}, "jitter must be between 0 and 1, not 1.5"),
    ],
)
def test_limits_that_could_never_work_are_refused(fields: dict[str, Any], said: str) -> None:
    """The error names the field, what it must be and what it is."""
    with pytest.raises(ValueError, match=r".") as refused:
        Limits(**fields)
    assert str(refused.value) == said


def test_the_defaults_are_those_of_the_documents_system() -> None:
    """Nobody is restarted, suspended or ended who did not ask for it."""
    limits = Limits()
    assert (limits.restart_policy, limits.max_restarts, limits.restart_backoff_ms) == ("never", 3, 1_000)
    assert (limits.max_consecutive_failures, limits.drain_timeout_ms) == (3, 5_000)
    assert (limits.idle_timeout_ms, limits.max_lifetime_ms, limits.concurrency, limits.queue_limit) == (0, 0, 1, 1_000)
    assert Process().limits == limits


def test_a_restart_that_is_not_to_come_does_not_come_by_being_said() -> None:
    """The event of a timer that has nothing to say leaves the process where it is."""
    life = failed(Limits()).give(BackoffElapsed())
    assert life.state is State.FAILED
