"""An agent that is used by calls: the document's exceptions, hooks, and safe points."""

import logging
import pickle
from collections.abc import Callable
from typing import Any, Final

import pytest

from lifefold.core.kernel import LifecycleEvent
from lifefold.core.lifecycles import runtime_profiles
from lifefold.core.lifecycles.runtime import SDK, Limits, State
from lifefold.interpreters.facades.cooperative import (
    Agent,
    AgentRetiredError,
    AgentState,
    HookError,
    StateTransitionError,
)
from lifefold.interpreters.facades.cooperative.agent import session_grace_ms
from lifefold.interpreters.facades.cooperative.requests import LONGEST_DEADLINE_MS
from recording_agent import Recording, running
from virtual_clock import VirtualClock


def boom() -> None:
    message = "the hook is broken"
    raise LookupError(message)


# Refusals


def test_a_refused_call_changes_nothing_and_calls_no_hook() -> None:
    """Not the task, not the reason, and on_suspend is not run from RUNNABLE (A11, A12, A13)."""
    agent = running()
    agent.wait()
    before, agent.heard = agent.record, []
    calls: tuple[Callable[[], object], ...] = (
        lambda: agent.schedule("T2"),
        lambda: agent.fail("x"),
        agent.suspend,
        agent.shutdown,
        agent.complete_recovery,
        lambda: agent.fail_recovery("x"),
        agent.start,
    )
    for call in calls:
        with pytest.raises(StateTransitionError):
            call()
    assert agent.record == before
    assert (agent.current_task_id, agent.failure_reason) == ("T1", None)
    assert agent.heard == []


def test_a_refusal_says_from_where_to_where_and_what_is_possible() -> None:
    """Ints, names and allowed targets in one error (A20)."""
    with pytest.raises(StateTransitionError, match=r"^Invalid state transition: INITIALIZING -> SCHEDULED$") as refused:
        Agent("agent-1", "Worker").schedule("task-123")
    error = refused.value
    assert (error.current_state, error.target_state) == (0, 2)
    assert (error.current_name, error.target_name) == ("INITIALIZING", "SCHEDULED")
    assert error.allowed == ("RUNNABLE", "FAILED")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301 - our own


def test_the_later_numbering_may_be_chosen() -> None:
    """From 1 to 12; the names are the same (A19)."""
    agent = Agent("a", numbering=SDK)
    assert (agent.state, agent.state_name) == (1, "INITIALIZING")
    assert agent.can_transition_to(2)
    with pytest.raises(StateTransitionError, match="INITIALIZING -> RUNNING") as refused:
        agent.run()
    assert (refused.value.current_state, refused.value.target_state) == (1, 4)


def test_the_names_of_the_numbers_are_the_machines() -> None:
    """``AgentState`` is written out for the type checkers; it says what the core says (A19)."""
    assert [AgentState.name(number) for number in range(12)] == [state.value for state in State]
    assert [getattr(AgentState, state) for state in State] == list(range(12))
    assert AgentState.name(12) == "UNKNOWN(12)"


def test_a_refused_force_names_what_it_would_have_come_to() -> None:
    """Only who runs can be forced (A17)."""
    with pytest.raises(StateTransitionError, match="INITIALIZING -> FAILED"):
        Agent("a").force_preemption("memory")


def section(agent: Any, deadline_ms: object) -> None:
    with agent.non_preemptible(deadline_ms=deadline_ms):
        pass


NONSENSE: Final[dict[str, tuple[Callable[[Any], object], type[Exception]]]] = {
    "no id": (lambda _agent: Agent(3), TypeError),  # type: ignore[arg-type] # that is what is tested
    "no task": (lambda agent: agent.schedule(None), TypeError),
    "a number for a reason": (lambda agent: agent.fail(3), TypeError),
    "bytes for a reason": (lambda agent: agent.fail_recovery(b"x"), TypeError),
    "no reason to preempt": (lambda agent: agent.request_preemption(None), TypeError),
    "a number to retire for": (lambda agent: agent.retire(1), TypeError),
    "a text for a deadline": (lambda agent: section(agent, "5"), TypeError),
    "a truth for a deadline": (lambda agent: section(agent, deadline_ms=True), TypeError),
    "a negative deadline": (lambda agent: section(agent, -1), ValueError),
    "a deadline beyond a year": (lambda agent: section(agent, LONGEST_DEADLINE_MS + 1), ValueError),
}


@pytest.mark.parametrize("nonsense", NONSENSE)
def test_an_argument_that_makes_no_sense_is_an_error_and_changes_nothing(nonsense: str) -> None:
    """Before anything else happens (A12)."""
    call, error = NONSENSE[nonsense]
    agent = running()
    before = agent.record
    with pytest.raises(error):
        call(agent)
    assert agent.record == before
    assert not agent.is_retired


# Hooks


def test_the_hooks_come_in_the_decided_order_and_states() -> None:
    """validate, before-hook, commit, on_state_change, after-hook (A11, A21)."""
    agent = Recording()
    for call in (
        agent.start, lambda: agent.schedule("T1"), agent.run, agent.suspend, agent.resume, agent.run,
        lambda: agent.fail("x"), agent.recover, lambda: agent.fail_recovery("y"), agent.recover,
        agent.complete_recovery, lambda: agent.schedule("T2"), agent.run, agent.shutdown,
    ):  # fmt: skip
        call()
    assert agent.heard == [
        ("on_startup", "INITIALIZING"), ("INITIALIZING", "RUNNABLE"),
        ("RUNNABLE", "SCHEDULED"), ("on_scheduled", "T1", "SCHEDULED"),
        ("SCHEDULED", "RUNNING"),
        ("on_suspend", "RUNNING"), ("RUNNING", "SUSPENDED"),
        ("SUSPENDED", "RESUMED"), ("on_resume", "RESUMED"),
        ("RESUMED", "RUNNING"),
        ("RUNNING", "FAILED"),
        ("FAILED", "RECOVERING"), ("on_recovery_start", "RECOVERING"),
        ("RECOVERING", "FAILED"), ("on_recovery_complete", False, "FAILED"),
        ("FAILED", "RECOVERING"), ("on_recovery_start", "RECOVERING"),
        ("RECOVERING", "RUNNABLE"), ("on_recovery_complete", True, "RUNNABLE"),
        ("on_task_failed", "T1", "y", "RUNNABLE"),
        ("RUNNABLE", "SCHEDULED"), ("on_scheduled", "T2", "SCHEDULED"),
        ("SCHEDULED", "RUNNING"),
        ("on_shutdown", "RUNNING"), ("RUNNING", "SHUTTING_DOWN"),
    ]  # fmt: skip


@pytest.mark.parametrize(("hook", "method"), [("on_suspend", "suspend"), ("on_shutdown", "shutdown")])
def test_a_failing_hook_before_a_transition_prevents_it(hook: str, method: str) -> None:
    """With a typed error whose cause is the hook's own; the state and the request are as before (A14)."""
    agent = running()
    agent.request_preemption("now")
    before = agent.record
    agent.calls[hook] = boom
    with pytest.raises(HookError, match=rf"^{hook}\(\) failed, so the state has not changed$") as prevented:
        getattr(agent, method)()
    assert isinstance(prevented.value.__cause__, LookupError)
    assert agent.record == before
    del agent.calls[hook]
    getattr(agent, method)()


def test_a_failing_startup_leaves_the_agent_initializing() -> None:
    """And its init timeout runs on (A14)."""
    clock = VirtualClock()
    agent = Recording(clock=clock)
    agent.calls["on_startup"] = boom
    with pytest.raises(HookError):
        agent.start()
    assert agent.state_name == "INITIALIZING"
    clock.sleep(60)
    agent.tick()
    assert (agent.state_name, agent.error_code) == ("FAILED", "init_timeout")


@pytest.mark.parametrize("hook", ["on_state_change", "on_resume"])
def test_a_failing_hook_after_a_transition_is_kept_and_the_transition_stands(
    hook: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged, and the hooks after it are called (A14, E42)."""
    agent = running()
    agent.suspend()
    agent.calls[hook] = boom
    agent.resume()
    assert agent.state_name == "RESUMED"
    assert agent.heard[-1] == ("on_resume", "RESUMED")
    assert [type(failure) for failure in agent.failures] == [LookupError]
    assert "failed" in caplog.text


def test_the_hooks_of_a_plain_agent_do_nothing_or_log(caplog: pytest.LogCaptureFixture) -> None:
    """No hook must be overridden."""
    clock = VirtualClock()
    agent = Agent("a", clock=clock)
    agent.start()
    agent.schedule("T1")
    agent.run()
    agent.force_preemption("memory")
    clock.sleep(5)
    agent.tick()
    agent.recover()
    agent.complete_recovery()
    agent.schedule("T2")
    agent.run()
    agent.suspend()
    agent.resume()
    agent.run()
    agent.shutdown()
    assert agent.failures == ()
    assert caplog.messages == [
        "preemption is overdue (memory): 5000 ms of grace",
        "forced_preemption: preemption was forced: memory",
        "task T1 failed: preemption was forced: memory",
    ]


# Preemption


def test_a_section_is_left_whatever_happens_inside() -> None:
    """An error inside goes through, and the request is seen after it (A15)."""
    agent = running()
    agent.request_preemption("now")
    with pytest.raises(LookupError), agent.non_preemptible():
        boom()
    assert agent.safe_point()


def test_sections_nest() -> None:
    """The depth counts (A18)."""
    agent = running()
    agent.request_preemption("now")
    with agent.non_preemptible(deadline_ms=10):
        with agent.non_preemptible():
            assert not agent.safe_point()
        assert not agent.safe_point()
    assert agent.safe_point()


def test_leaving_a_section_of_work_that_is_over_is_no_error() -> None:
    """The task may end inside its section, and so may the agent (A9, A23)."""
    agent = running()
    with agent.non_preemptible():
        agent.complete()
        agent.ready()
    with agent.non_preemptible():
        agent.retire("enough")
    assert agent.is_retired


def test_an_agent_that_never_asks_is_signalled_and_failed_as_time_goes_on() -> None:
    """Timers are due at any call, and DeadlinePassed is sent by the handle (A17)."""
    clock = VirtualClock()
    agent = running(clock=clock)
    agent.request_preemption("now")
    clock.sleep(30)
    agent.tick()
    assert agent.heard[-1] == ("on_preempt_overdue", "now", 5_000, "RUNNING")
    clock.sleep(5)
    assert agent.safe_point(), "work in progress is told to end"
    assert (agent.state_name, agent.error_code) == ("FAILED", "forced_preemption")
    with pytest.raises(StateTransitionError, match="FAILED -> SUSPENDED"):
        agent.suspend()


MESSAGES: Final[tuple[tuple[object, str | None], ...]] = (
    ({"content_type": "application/json", "payload": b'{"type":"PREEMPT_REQUEST","reason":"why"}'}, "why"),
    ({"content_type": "application/json", "payload": b'{"type":"PREEMPT_REQUEST"}'}, ""),
    ({"content_type": "application/json", "payload": '{"type":"PREEMPT_REQUEST","reason":null,"more":[1]}'}, ""),
    ({"content_type": "application/json", "payload": b'{"type":"PREEMPT_REQUEST","reason":7}'}, None),
    ({"content_type": "application/json", "payload": b'{"type":"TERMINATE"}'}, None),
    ({"content_type": "application/json", "payload": b"\xff\xfe"}, None),
    ({"content_type": "application/json", "payload": "\ud800"}, None),
    (
        {"content_type": "application/json", "payload": b'{"type":"PREEMPT_REQUEST","x":' + b"[" * 100_000},
        None,
    ),
    ({"content_type": "application/json", "payload": {"type": "PREEMPT_REQUEST"}}, None),
    ({"content_type": "text/plain", "payload": b'{"type":"PREEMPT_REQUEST"}'}, None),
    ({}, None),
    ("PREEMPT_REQUEST", None),
    (None, None),
)


@pytest.mark.parametrize(("message", "reason"), MESSAGES, ids=map(str, range(len(MESSAGES))))
def test_a_control_message_asks_for_preemption_or_is_ignored(message: object, reason: str | None) -> None:
    """The wire's way in (A25)."""
    agent = running()
    agent.on_control(message)
    expected = [] if reason is None else [("on_preempt_request", reason, "RUNNING")]
    assert agent.heard == expected
    assert agent.safe_point() == (reason is not None)


# Time


def test_with_auto_run_resume_goes_on_to_running() -> None:
    """RESUMED is passed through, and told (A10)."""
    agent = running(auto_run=True)
    agent.suspend()
    agent.resume()
    assert agent.heard[-3:] == [("SUSPENDED", "RESUMED"), ("on_resume", "RESUMED"), ("RESUMED", "RUNNING")]


def test_a_supervised_agent_recovers_as_time_goes_on_and_gives_up(caplog: pytest.LogCaptureFixture) -> None:
    """The budget of the profile, with an alert at its end (A24)."""
    clock = VirtualClock()
    agent = running(clock=clock, machine=runtime_profiles.supervised, limits=Limits(max_recoveries=2))
    agent.calls["on_recovery_start"] = lambda: agent.fail_recovery("still broken")
    agent.fail("it broke")
    for _ in range(20):
        clock.sleep(1)
        agent.tick()
    assert [heard[0] for heard in agent.heard].count("on_recovery_start") == 2
    assert agent.heard[-1] == ("on_task_failed", "T1", "still broken", "FAILED")
    assert [r.message for r in caplog.records if r.levelno == logging.CRITICAL] == [
        "a stays FAILED after 2 recoveries: still broken"
    ]
    assert not agent.can_transition_to(AgentState.RECOVERING)


def test_a_watched_agent_that_is_stuck_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A diagnostic (A8, A26)."""
    clock = VirtualClock()
    agent = running(clock=clock, machine=runtime_profiles.watched, limits=Limits(stuck_after_ms=1_000))
    agent.wait()
    clock.sleep(1)
    agent.tick()
    assert caplog.messages == ["in WAITING for 1000 ms"]
    assert agent.state_name == "WAITING"


# Retiring and auditing


@pytest.mark.parametrize("steps", range(4))
def test_an_agent_can_be_retired_from_any_state_and_does_nothing_any_more(steps: int) -> None:
    """Outside of the table, and audited (A9, A26)."""
    audited: list[LifecycleEvent] = []
    agent = Recording(audit=audited.append)
    for call in (agent.start, lambda: agent.schedule("T1"), agent.run)[:steps]:
        call()
    before = agent.record
    agent.retire("no more work")
    agent.retire("again")
    assert agent.is_retired
    assert not any(agent.can_transition_to(number) for number in range(13))
    assert agent.safe_point(), "work in progress is told to end"
    agent.tick()
    for forbidden in (agent.start, agent.suspend, agent.request_preemption, lambda: agent.schedule("T2")):
        with pytest.raises(AgentRetiredError, match="agent a was retired"):
            forbidden()
    assert agent.record == before
    assert len(audited) == steps + 1
    assert (audited[-1].from_status, audited[-1].to_status, audited[-1].reason) == (
        before.state, "RETIRED", "no more work",
    )  # fmt: skip
    assert audited[-1].metadata == ({"task_id": "T1"} if steps > 1 else {})


def test_an_agent_without_an_audit_can_be_retired(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged in any case (A9)."""
    Agent("a").retire("no more work")
    Agent("b").retire()
    assert caplog.messages == ["retired in INITIALIZING: no more work", "retired in INITIALIZING"]


def test_a_call_of_a_retired_agent_raises_the_reason_and_the_remedy() -> None:
    """The first reason counts (A9)."""
    agent, silent = Agent("a"), Agent("b")
    agent.retire("no more work")
    agent.retire("again")
    silent.retire()
    with pytest.raises(AgentRetiredError, match=r"^agent a was retired \(no more work\); make another one$"):
        agent.start()
    with pytest.raises(AgentRetiredError, match=r"^agent b was retired; make another one$"):
        silent.start()


def test_an_agent_and_its_task_have_names() -> None:
    """Empty ones are refused where they are given."""
    with pytest.raises(ValueError, match="agent_id must not be empty"):
        Agent("")
    agent = Agent("a")
    agent.start()
    with pytest.raises(ValueError, match="task_id must not be empty"):
        agent.schedule("")
    assert agent.state_name == "RUNNABLE"


def test_every_transition_is_audited_timeouts_included() -> None:
    """With the agent's id, and who did it (A6)."""
    audited: list[LifecycleEvent] = []
    clock = VirtualClock()
    agent = Agent("agent-1", clock=clock, audit=audited.append)
    clock.sleep(60)
    agent.tick()
    agent.recover()
    assert [(e.entity_type, e.entity_id, e.from_status, e.to_status, e.actor, e.timestamp) for e in audited] == [
        ("runtime", "agent-1", "INITIALIZING", "FAILED", "timer", 60.0),
        ("runtime", "agent-1", "FAILED", "RECOVERING", "", 60.0),
    ]


def test_an_audit_that_fails_takes_no_hook_with_it() -> None:
    """What it is told of has happened: its error is kept, also that of a retirement (A14)."""

    def full(_event: LifecycleEvent) -> None:
        raise OSError("disk full")

    agent = Recording(audit=full)
    agent.start()
    assert ("INITIALIZING", "RUNNABLE") in agent.heard
    agent.retire("moved away")
    assert agent.is_retired
    assert [str(error) for error in agent.failures] == ["disk full", "disk full"]


def test_an_agent_that_is_restored_has_neither_the_sections_nor_the_limits_of_the_old_process() -> None:
    """Sections belong to threads that are gone, limits to the class; the task and the state come along."""
    old = running(limits=Limits(suspend_timeout_ms=1))
    section = old.non_preemptible()
    with section:
        old.suspend()
        record = old.record
        assert record.preemption.sections
    new = Recording()
    new.restore(record)
    assert (new.state_name, new.current_task_id) == ("SUSPENDED", record.task_id)
    assert (new.record.preemption.sections, new.record.limits) == ((), Limits())
    with pytest.raises(ValueError, match="cannot continue as"):
        new.restore(record)


def test_an_agent_of_a_session_yields_within_the_grace_of_the_session() -> None:
    """Whatever limits it was made with: one that is still there when the grace is over is killed, and says nothing."""
    token = session_grace_ms.set(5_000)
    try:
        for limits in (None, Limits(preemption_timeout_ms=60_000, preemption_grace_ms=60_000)):
            clock = VirtualClock()
            agent = running(clock=clock, limits=limits)
            agent.request_preemption("go")
            for clock.now_ms in range(0, 5_000, 200):
                agent.tick()
            assert (agent.state_name, agent.error_code) == ("FAILED", "forced_preemption")
            assert ("on_preempt_overdue", "go", 1_000, "RUNNING") in agent.heard
    finally:
        session_grace_ms.reset(token)
