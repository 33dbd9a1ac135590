"""The descriptions in document 001, step by step: its diagram, its entry actions, its error states."""

from pathlib import Path

import pytest

from lifefold.core.lifecycles.status import State
from lifefold.interpreters.facades.status import AgentConfig, AgentFailed, SqliteStateManager
from recorded_runtime import RecordedRuntime


@pytest.fixture
def recorded(tmp_path: Path) -> RecordedRuntime:
    return RecordedRuntime(SqliteStateManager(tmp_path / "agents.db"))


def test_the_diagram_is_walked_from_end_to_end(recorded: RecordedRuntime) -> None:
    """Document 001, State Diagram: spawn, stop, restart, and a fatal error."""
    agent_id = recorded.runtime.spawn_agent(AgentConfig("demo"))
    walked = [recorded.runtime.get_agent(agent_id).status]
    walked.append(recorded.runtime.stop_agent(agent_id).status)
    recorded.runtime.restart(agent_id)
    walked.append(recorded.runtime.get_agent(agent_id).status)
    walked.append(recorded.runtime.fail(agent_id, "crash").status)
    assert walked == [State.RUNNING, State.STOPPED, State.RUNNING, State.FAILED]


def test_running_entry(recorded: RecordedRuntime) -> None:
    """Document 001, Entry/Exit Actions, RUNNING Entry: a state of four fields, kept, and ``agent_started``."""
    agent_id = recorded.runtime.spawn_agent()
    state = recorded.store.get_agent_state(agent_id)
    assert (state.agent_id, state.status, state.budget_spent, state.pii_detections) == (agent_id, State.RUNNING, 0.0, 0)
    assert f"{agent_id} agent_started" in recorded.told


def test_stopped_entry(recorded: RecordedRuntime) -> None:
    """Document 001, Entry/Exit Actions, STOPPED Entry: kept, told, released, in this order."""
    agent_id = recorded.runtime.spawn_agent()
    recorded.told.clear()
    recorded.runtime.stop_agent(agent_id)
    assert recorded.store.get_agent_state(agent_id).status is State.STOPPED
    assert recorded.told == [f"{agent_id} agent_stopped", f"{agent_id} release 1"]


def test_failed_entry(recorded: RecordedRuntime) -> None:
    """Document 001, Entry/Exit Actions, FAILED Entry: the reason is kept, told, and cleaning up is tried."""
    agent_id = recorded.runtime.spawn_agent()
    recorded.told.clear()
    recorded.runtime.fail(agent_id, "segmentation fault", -11)
    assert recorded.store.get_agent_state(agent_id).reason == "segmentation fault"
    assert recorded.told == [f"{agent_id} agent_failed", f"{agent_id} release 1"]


def test_concurrent_stop_operations(recorded: RecordedRuntime) -> None:
    """Document 001, Error States: the second call finds the agent stopped."""
    agent_id = recorded.runtime.spawn_agent()
    recorded.runtime.stop_agent(agent_id)
    assert recorded.runtime.stop_agent(agent_id).status is State.STOPPED
    assert recorded.told.count(f"{agent_id} agent_stopped") == 1


def test_failed_to_running_attempt(recorded: RecordedRuntime) -> None:
    """Document 001, Error States: a new agent with a new id takes the failed one's place."""
    agent_id = recorded.runtime.spawn_agent()
    recorded.runtime.fail(agent_id, "crash")
    with pytest.raises(AgentFailed):
        recorded.runtime.restart(agent_id)
    assert recorded.runtime.replace(agent_id) != agent_id


def test_state_persistence(recorded: RecordedRuntime) -> None:
    """Document 001, I4: another runtime on the same file sees every transition."""
    agent_id = recorded.runtime.spawn_agent()
    for call, status in ((recorded.runtime.stop_agent, State.STOPPED), (recorded.runtime.restart, State.RUNNING)):
        call(agent_id)
        assert recorded.another().get_agent(agent_id).status is status
