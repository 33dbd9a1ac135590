"""Restarts and stops: the process's rules beyond its table.

The processes here run on the kernel (``create``, ``advance``) in virtual time. A decision is named in the docstring of
its test, and so is the public thread of a user who suffered from the lack of it.
"""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifefold.core.kernel import Entity, encode, replace
from lifefold.core.lifecycles.process import (
    Comeback,
    Crashed,
    Drained,
    Limits,
    MoveRequested,
    Process,
    RunSucceeded,
    StartRequested,
    StartSucceeded,
    State,
    StopRequested,
)
from lifefold.effects import NotifyProcess
from process_life import ALWAYS, failed, up

# Restarts


def test_the_default_policy_restarts_nothing() -> None:
    """``never``: a failed process stays down until a start is requested."""
    life = failed(Limits()).wait(10 * 86_400_000)
    assert (life.state, life.news) == (State.FAILED, ["started", "failed"])


@pytest.mark.parametrize("policy", ["on_failure", "always"])
def test_a_failed_process_is_restarted_after_the_backoff_and_not_before(policy: Any) -> None:
    """The first restart comes after a second, and is told as what it is."""
    life = failed(Limits(restart_policy=policy)).wait(999)
    assert life.state is State.FAILED
    life.wait(1).give(StartSucceeded())
    assert (life.state, life.record.restart_count) == (State.RUNNING, 1)
    assert NotifyProcess("restarted", "segmentation fault", 1) in life.effects


def test_a_crash_loop_is_slowed_down_and_then_given_up() -> None:
    """gastownhall/gastown#649: every restart waits twice as long as the one before, and the last failure says so."""
    life = failed()
    pauses: list[int] = []
    while life.record.comeback is Comeback.RESTART:
        pauses.append(life.delay_ms("BackoffElapsed"))
        life.wait(pauses[-1]).give(StartSucceeded(), Crashed("again"))
    assert pauses == [1_000, 2_000, 4_000]
    assert life.news == ["started", "failed", *["restarted", "failed"] * 3, "restart_exhausted"]
    assert NotifyProcess("restart_exhausted", "again", 3) in life.effects
    assert life.wait(86_400_000).state is State.FAILED


@given(st.integers(0, 200), st.integers(1, 100_000), st.integers(1, 10_000_000))
def test_the_backoff_doubles_up_to_its_cap(restarts: int, base_ms: int, cap_ms: int) -> None:
    """block/buzz#5327: ``min(base * 2^restart_count, cap)`` for any count, without overflow; the cap is a minute.

    Supervisor/supervisor#487, #1528: the pauses, and the longest of them, can be set.
    """
    limits = Limits(restart_backoff_ms=base_ms, restart_backoff_cap_ms=cap_ms)
    assert limits.backoff_ms(restarts) == min(base_ms * 2**restarts, cap_ms)
    assert Limits().restart_backoff_cap_ms == 60_000


def test_jitter_shortens_the_backoff_differently_for_each_process_and_the_same_each_time() -> None:
    """Processes that fail together do not restart together, and a replay waits as long.

    Supervisor/supervisor#1640: programs that fail at once are all restarted at once.
    """
    limits = Limits(jitter=0.5, restart_backoff_ms=10_000)
    pauses = {name: limits.backoff_ms(0, name) for name in ("a", "b", "c", "d")}
    assert len(set(pauses.values())) == 4
    assert all(5_000 <= pause <= 10_000 for pause in pauses.values())
    assert limits.backoff_ms(0, "a") == pauses["a"] != limits.backoff_ms(1, "a")


def test_the_count_and_the_pause_survive_a_crash_of_the_runner() -> None:
    """The backoff continues where it was, also after a time without a runner.

    statelyai/xstate#1334, fgmacedo/python-statemachine#434: what was delayed is lost when a machine is restored.
    """
    life = failed().wait(400)
    life.crash(300)
    assert (life.state, life.delay_ms("BackoffElapsed")) == (State.FAILED, 300)
    life.wait(300)
    assert (life.state, life.record.restart_count) == (State.STARTING, 1)


def test_a_pause_survives_writing_and_reading_a_process() -> None:
    """Also if he does nothing with it in between, and writes it down again: the timer is a part of the entity.

    basiltt/xstate-statemachine#128, #213, #221: a timer that is not due is missing in what was read.
    """
    life = failed()
    for _ in range(3):
        life.entity = msgspec.json.decode(encode(life.entity), type=Entity[Process])
        life.crash(100)
    assert life.delay_ms("BackoffElapsed") == 700
    life.wait(699)
    assert life.state is State.FAILED
    assert life.wait(1).state is State.STARTING


def test_no_restarts_at_all_are_exhausted_at_once() -> None:
    """``max_restarts = 0`` with a policy that restarts: the first failure says that it was the last."""
    assert failed(Limits(restart_policy="always", max_restarts=0)).news == ["started", "failed", "restart_exhausted"]


# Stops


def test_runs_in_flight_have_the_drain_timeout_to_end() -> None:
    """Five seconds by default; then they are cancelled, and that is told.

    pytransitions/transitions#682: a timeout that moves the state on and leaves the work running.
    """
    life = up().give(StopRequested()).wait(4_999)
    assert (life.state, life.going_on) == (State.STOPPING, {"DrainProcess"})
    life.wait(1)
    assert (life.state, life.going_on) == (State.STOPPED, set())
    assert NotifyProcess("stopped", "drain timeout") in life.effects


def test_a_stop_is_reported_with_its_reason() -> None:
    """Every stop has its reason: the one that was given, the lifetime, the drain, or several of them.

    BloopAI/vibe-kanban#2547: what was stopped is shown as a success.
    """
    life = up(replace(ALWAYS, max_lifetime_ms=60_000)).wait(65_000).wait(0).give(StartSucceeded())
    life.give(StopRequested("maintenance"), Drained(), StartRequested(), StartSucceeded())
    life.give(MoveRequested(State.STOPPING, "a"), MoveRequested(State.STOPPED, "b"))
    assert [(effect.kind, effect.reason) for effect in life.effects if isinstance(effect, NotifyProcess)] == [
        ("started", ""),
        ("stopped", "max lifetime, drain timeout"),
        ("restarted", "max lifetime"),
        ("stopped", "maintenance"),
        ("started", ""),
        ("stopped", "a, b"),
    ]


def test_without_a_drain_timeout_nothing_is_waited_for() -> None:
    """``drain_timeout_ms = 0`` cancels at once (NousResearch/hermes-agent#99425: no stop is immediate)."""
    assert up(Limits(drain_timeout_ms=0)).give(StopRequested()).wait(0).state is State.STOPPED


def test_a_successful_run_clears_the_count() -> None:
    """Only successful work resets the count."""
    life = failed().wait(1_000).give(StartSucceeded(), RunSucceeded(), Crashed("much later"))
    assert (life.record.restart_count, life.delay_ms("BackoffElapsed")) == (0, 1_000)
