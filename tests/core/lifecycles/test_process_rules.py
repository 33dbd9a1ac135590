"""Failures, pauses, timers and crashes: the process's rules beyond its table.

The processes here run on the kernel (``create``, ``advance``) in virtual time. A decision is named in the docstring of
its test, and so is the public thread of a user who suffered from the lack of it.
"""

from typing import Any

import pytest

from lifefold.core.kernel import ActivityEnded, EntityStep, Envelope, Phase, RunnerRecovered, advance
from lifefold.core.lifecycles import process
from lifefold.core.lifecycles.process import (
    BackoffElapsed,
    Crashed,
    Limits,
    Process,
    ResumeRequested,
    RunFailed,
    RunSucceeded,
    StartRequested,
    StartSucceeded,
    State,
    SuspendReason,
    SuspendRequested,
    TriggerArrived,
)
from lifefold.effects import Begin, NotifyProcess, ResumeTriggers, ServeTriggers
from process_life import ON_FAILURE, failed, up, waiting

# Failures of runs


# Pauses


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


# Times


@pytest.mark.parametrize("slot", ["IdleElapsed", "LifetimeElapsed"])
def test_a_time_of_zero_means_never(slot: str) -> None:
    """The default: no idle timeout and no maximum lifetime."""
    life = waiting()
    assert life.entity.find(slot) is None
    assert life.wait(10 * 365 * 86_400_000).state is State.AWAITING


# Crashes


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
    """No process is restarted, suspended or ended without a request."""
    limits = Limits()
    assert (limits.restart_policy, limits.max_restarts, limits.restart_backoff_ms) == ("never", 3, 1_000)
    assert (limits.max_consecutive_failures, limits.drain_timeout_ms) == (3, 5_000)
    assert (limits.idle_timeout_ms, limits.max_lifetime_ms, limits.concurrency, limits.queue_limit) == (0, 0, 1, 1_000)
    assert Process().limits == limits


def test_a_restart_that_is_not_to_come_does_not_come_by_being_said() -> None:
    """The event of a timer that has nothing to say leaves the process where it is."""
    life = failed(Limits()).give(BackoffElapsed())
    assert life.state is State.FAILED


def test_a_successful_run_clears_the_failures_in_a_row() -> None:
    """Two failures, a success, two failures: the process is up."""
    failing = (RunFailed("x"), RunFailed("x"))
    assert up().give(*failing, RunSucceeded(), *failing).state is State.RUNNING
