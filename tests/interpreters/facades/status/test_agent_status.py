"""The runtime of document 001: its decisions, failures of its environment, concurrent and invalid calls."""

from typing import Any, Final

import pytest

from lifefold.core.lifecycles.status import State
from lifefold.interpreters.facades.status import (
    AgentBusy,
    AgentConfig,
    AgentFailed,
    AgentState,
    AlreadyRunning,
    MemoryStateManager,
    NotFound,
    NotRunning,
    Runtime,
    TaskRefused,
    VersionConflict,
)
from recorded_runtime import RecordedRuntime, UneasyStore, alive

CONFIG: Final = AgentConfig("coder", budget_microusd=1_000)


def boom(_agent_id: str, _incarnation: int) -> None:
    raise ValueError("no room")


def failed(recorded: RecordedRuntime) -> str:
    agent_id = recorded.runtime.spawn_agent(CONFIG)
    recorded.runtime.fail(agent_id, "out of memory", 137)
    return agent_id


def test_both_spellings_of_a_start_are_one() -> None:
    """The document's and its system's (B1)."""
    assert Runtime.start_agent is Runtime.spawn_agent


def test_ids_have_a_unique_number() -> None:
    """A UUID, unless told otherwise."""
    runtime = Runtime(MemoryStateManager())
    first, second = runtime.spawn_agent(), runtime.spawn_agent()
    assert first.startswith("agent_")
    assert len(first) == len("agent_") + 36
    assert first != second


def test_a_busy_agent_is_stopped_by_drain_or_by_force(recorded: RecordedRuntime) -> None:
    """And refuses otherwise, naming its tasks (B2)."""
    one, two = recorded.runtime.spawn_agent(), recorded.runtime.spawn_agent()
    for agent_id in (one, two):
        recorded.runtime.begin_task(agent_id, "t")
        with pytest.raises(AgentBusy, match="still works on t; stop it with drain or with force") as caught:
            recorded.runtime.stop_agent(agent_id)
        assert caught.value.tasks == ("t",)
    assert recorded.runtime.stop_agent(one, force=True).status is State.STOPPED
    assert recorded.runtime.stop_agent(two, drain=True).status is State.RUNNING
    with pytest.raises(TaskRefused, match=r"has no task 'u', and accepts none any more"):
        recorded.runtime.begin_task(two, "u")
    assert recorded.runtime.end_task(two, "t").status is State.STOPPED
    assert recorded.fields[-2:] == [{"incarnation": 1, "forced": 1}, {"incarnation": 1}]


def test_a_failed_agent_is_not_overwritten(recorded: RecordedRuntime) -> None:
    """By a stop, another failure, the end of a task, or a count (B4; GoogleCloudPlatform/scion#354)."""
    agent_id = failed(recorded)
    was = recorded.runtime.get_agent(agent_id)
    recorded.told.clear()
    recorded.runtime.stop_agent(agent_id, force=True)
    recorded.runtime.fail(agent_id, "something else", 1)
    recorded.runtime.end_task(agent_id, "t")
    recorded.runtime.record_pii_detection(agent_id)
    assert recorded.runtime.get_agent(agent_id) == was
    assert (was.reason, was.exit_code) == ("out of memory", 137)
    assert recorded.told == []


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("stop_agent", ()),
        ("fail", ("x",)),
        ("restart", ()),
        ("replace", ()),
        ("begin_task", ("t",)),
        ("reserve", ("w", 1)),
        ("settle", ("w", 1)),
        ("get_agent", ()),
    ],
)
def test_an_unknown_agent_is_not_found_and_nothing_is_told(
    recorded: RecordedRuntime, name: str, arguments: tuple[str | int, ...]
) -> None:
    """By every call (B5)."""
    with pytest.raises(NotFound, match="nobody: there is no such agent"):
        getattr(recorded.runtime, name)("nobody", *arguments)
    assert recorded.told == []


def test_a_restart_keeps_the_id_and_what_was_counted(recorded: RecordedRuntime) -> None:
    """The incarnation says how often it has run (B6, B7)."""
    agent_id = recorded.runtime.spawn_agent(CONFIG)
    recorded.runtime.reserve(agent_id, "w", 300)
    recorded.runtime.settle(agent_id, "w", 200)
    recorded.runtime.record_pii_detection(agent_id)
    recorded.runtime.stop_agent(agent_id)
    assert recorded.runtime.restart(agent_id) == agent_id
    now = recorded.runtime.get_agent(agent_id)
    assert (now.status, now.incarnation, now.pii_detections) == (State.RUNNING, 2, 1)
    assert (now.spent_microusd, now.free_microusd) == (200, 800)


def test_a_restart_under_a_new_id_begins_at_zero(recorded: RecordedRuntime) -> None:
    """And names the one that it replaces (B6, B7)."""
    agent_id = recorded.runtime.spawn_agent(CONFIG)
    with pytest.raises(AlreadyRunning):
        recorded.runtime.restart(agent_id, new_id=True)
    recorded.runtime.record_pii_detection(agent_id)
    recorded.runtime.stop_agent(agent_id)
    now = recorded.runtime.get_agent(recorded.runtime.restart(agent_id, new_id=True))
    assert (now.agent_id, now.replaces, now.pii_detections, now.name) == ("agent_2", agent_id, 0, "coder")
    assert recorded.runtime.get_agent(agent_id).status is State.STOPPED


@pytest.mark.parametrize("new_id", [False, True])
def test_a_failed_agent_is_replaced_and_not_restarted(recorded: RecordedRuntime, *, new_id: bool) -> None:
    """The refusal says how it failed and what to do (B8)."""
    agent_id = failed(recorded)
    with pytest.raises(
        AgentFailed, match=r"failed \(out of memory, exit code 137\).* replace\(\) makes a new"
    ) as caught:
        recorded.runtime.restart(agent_id, new_id=new_id)
    assert (caught.value.reason, caught.value.exit_code) == ("out of memory", 137)
    successor = recorded.runtime.replace(agent_id)
    assert recorded.runtime.get_agent(successor).replaces == agent_id
    assert recorded.fields[-1] == {"incarnation": 1, "replaces": agent_id}
    assert recorded.runtime.get_agent(agent_id).status is State.FAILED


def test_a_running_agent_is_neither_restarted_nor_replaced(recorded: RecordedRuntime) -> None:
    """It runs already (B9)."""
    agent_id = recorded.runtime.spawn_agent()
    recorded.told.clear()
    for call in (recorded.runtime.restart, recorded.runtime.replace):
        with pytest.raises(AlreadyRunning):
            call(agent_id)
    assert recorded.told == []


def test_an_id_that_is_taken_is_not_spawned_again(recorded: RecordedRuntime) -> None:
    """What was launched for it is released (B9)."""
    recorded.runtime.spawn_agent()
    recorded.numbers = iter([1])  # type: ignore[assignment] # any iterator of numbers will do
    with pytest.raises(AlreadyRunning, match="agent_1: there is an agent of this id"):
        recorded.runtime.spawn_agent()
    assert recorded.told[-2:] == ["agent_1 launch 1", "agent_1 release 1"]


def test_a_spawn_that_fails_leaves_nothing(recorded: RecordedRuntime) -> None:
    """No state and no telemetry (B10)."""
    recorded.launch = boom
    with pytest.raises(ValueError, match="no room"):
        recorded.runtime.spawn_agent()
    assert recorded.runtime.list_agents() == ()
    assert recorded.told == ["agent_1 launch 1"]


def test_a_restart_that_fails_leaves_the_agent_stopped(recorded: RecordedRuntime) -> None:
    """It is unchanged, and no telemetry is sent (B10)."""
    agent_id = recorded.runtime.spawn_agent()
    stopped = recorded.runtime.stop_agent(agent_id)
    recorded.launch = boom
    with pytest.raises(ValueError, match="no room"):
        recorded.runtime.restart(agent_id)
    assert recorded.runtime.get_agent(agent_id) == stopped
    assert recorded.told[-1] == "agent_1 launch 2"


def test_what_cannot_be_kept_has_not_happened() -> None:
    """A spawn is rolled back, a stop does not happen, and no telemetry is sent (B10, B11)."""
    store = UneasyStore()
    recorded = RecordedRuntime(store)
    agent_id = recorded.runtime.spawn_agent()
    store.full = True
    recorded.told.clear()
    for call in (recorded.runtime.spawn_agent, lambda: recorded.runtime.stop_agent(agent_id)):
        with pytest.raises(OSError, match="disk full"):
            call()
    assert recorded.told == ["agent_2 launch 1", "agent_2 release 1"]
    assert recorded.runtime.get_agent(agent_id).status is State.RUNNING
    assert [state.agent_id for state in recorded.runtime.list_agents()] == [agent_id]


def test_why_a_start_did_not_come_about_is_not_hidden_by_its_release() -> None:
    """What ``release`` raises then is kept beside it (B11)."""
    store = UneasyStore()
    recorded = RecordedRuntime(store, release=boom)
    store.full = True
    with pytest.raises(OSError, match="disk full"):
        recorded.runtime.spawn_agent()
    assert [str(error) for error in recorded.runtime.failures] == ["no room"]


def test_the_failure_says_reason_and_exit_code(recorded: RecordedRuntime) -> None:
    """In the state and in telemetry (B13, B14, B20; elizaOS/eliza#13771: ``failed`` has a producer)."""
    state = recorded.runtime.get_agent(failed(recorded))
    assert (state.status, state.reason, state.exit_code, state.since_ms) == (State.FAILED, "out of memory", 137, 1_000)
    assert recorded.told[-3:-1] == ["agent_1 agent_failed", "agent_1 release 1"]
    assert recorded.fields[-1] == {"incarnation": 1, "reason": "out of memory", "exit_code": 137}


def test_a_failure_after_a_stop_is_recorded_and_ignored(recorded: RecordedRuntime) -> None:
    """The agent was asked to stop, and has (B15; gastownhall/gascity#76)."""
    agent_id = recorded.runtime.spawn_agent()
    recorded.runtime.stop_agent(agent_id)
    recorded.told.clear()
    now = recorded.runtime.fail(agent_id, "killed", 137)
    assert (now.status, now.late_reports, now.last_late_report) == (State.STOPPED, 1, "killed")
    assert recorded.told == []


def test_a_restarted_runner_finds_the_dead(recorded: RecordedRuntime) -> None:
    """RUNNING in the store, dead in fact: FAILED, and told (B17; connectonion#545, OpenSRE#57, vibe-kanban#1571)."""
    dead, living, stopped = (recorded.runtime.spawn_agent() for _ in range(3))
    recorded.runtime.stop_agent(stopped)
    runtime = recorded.another(liveness=lambda state: state.agent_id == living)
    assert [state.status for state in runtime.list_agents()] == [State.FAILED, State.RUNNING, State.STOPPED]
    assert runtime.get_agent(dead).reason == "orphaned"
    assert recorded.told[-2:] == [f"{dead} agent_failed", f"{dead} release 1"]
    assert [state.agent_id for state in runtime.list_agents(State.FAILED)] == [dead]


def test_a_probe_that_fails_or_is_late_fails_no_agent(recorded: RecordedRuntime) -> None:
    """Not to know is no proof of death, and the one asked about is not the one that runs now (B17)."""
    agent_id = recorded.runtime.spawn_agent()

    def broken(_state: AgentState) -> bool:
        raise OSError("no such host")

    def late(_state: AgentState) -> bool:
        recorded.runtime.stop_agent(agent_id)
        recorded.runtime.restart(agent_id)
        return False

    assert recorded.runtime.reconcile(broken) == ()
    assert recorded.runtime.reconcile(late) == ()
    assert recorded.runtime.reconcile(alive) == ()
    assert recorded.runtime.get_agent(agent_id).status is State.RUNNING
    assert [str(error) for error in recorded.runtime.failures] == ["no such host"]


@pytest.mark.parametrize(
    ("name", "arguments", "error", "message"),
    [
        ("spawn_agent", ("coder",), TypeError, "expected AgentConfig, not str"),
        ("list_agents", ("asleep",), ValueError, "among must be one of RUNNING, STOPPED, FAILED, not 'asleep'"),
        ("fail", ("agent_1", "x", True), TypeError, "exit_code must be an int, not bool"),
        ("fail", ("agent_1", None), TypeError, "reason must be a str, not NoneType"),
        ("begin_task", ("agent_1", ""), ValueError, "task must not be empty"),
        ("begin_task", ("agent_1", "\ud800"), ValueError, "task has half a surrogate pair"),
        ("reserve", ("agent_1", "w", -1), ValueError, "amount_microusd must be between 1 and"),
        ("reserve", ("agent_1", "w", 0), ValueError, "amount_microusd must be between 1 and"),
        ("reserve", ("agent_1", "w", 0.5), TypeError, "amount_microusd must be an int, not float"),
    ],
)
def test_an_argument_that_makes_no_sense_is_named(
    recorded: RecordedRuntime, name: str, arguments: tuple[Any, ...], error: type[Exception], message: str
) -> None:
    """And nothing has happened."""
    recorded.runtime.spawn_agent()
    with pytest.raises(error, match=message):
        getattr(recorded.runtime, name)(*arguments)
    assert recorded.runtime.get_agent("agent_1").version == 1


def test_a_configuration_that_makes_no_sense_is_not_made() -> None:
    """The message names the field."""
    with pytest.raises(ValueError, match="budget_microusd must be between 0 and"):
        AgentConfig(budget_microusd=-1)
    with pytest.raises(ValueError, match="lease_ms must be between 1 and"):
        AgentConfig(lease_ms=0)


def test_tasks_are_begun_and_ended_once(recorded: RecordedRuntime) -> None:
    """By an agent that runs."""
    agent_id = recorded.runtime.spawn_agent()
    recorded.runtime.begin_task(agent_id, "t")
    with pytest.raises(TaskRefused, match="has a task 't'"):
        recorded.runtime.begin_task(agent_id, "t")
    with pytest.raises(TaskRefused, match="has no task 'u'"):
        recorded.runtime.end_task(agent_id, "u")
    recorded.runtime.stop_agent(agent_id, force=True)
    with pytest.raises(NotRunning, match="has stopped; restart it first"):
        recorded.runtime.begin_task(agent_id, "t")
    with pytest.raises(AgentFailed):
        recorded.runtime.begin_task(failed(recorded), "t")


def test_what_is_reported_after_a_forced_stop_is_taken(recorded: RecordedRuntime) -> None:
    """The task that it cut off ends now, and personal data that was found before counts (B2, B15)."""
    agent_id = recorded.runtime.spawn_agent()
    recorded.runtime.begin_task(agent_id, "t")
    stopped = recorded.runtime.stop_agent(agent_id, force=True)
    assert recorded.runtime.end_task(agent_id, "t") == stopped
    now = recorded.runtime.record_pii_detection(agent_id)
    assert (now.status, now.pii_detections) == (State.STOPPED, 1)


def test_a_conflict_names_the_agent_and_the_version() -> None:
    """For those who use a state manager themselves."""
    error = VersionConflict("agent_1", 3)
    assert (error.agent_id, error.expected) == ("agent_1", 3)
