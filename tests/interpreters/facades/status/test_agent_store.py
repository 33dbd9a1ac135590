"""The state managers of agents: whole, one version at a time, readable by programs that know the four fields."""

import json
from pathlib import Path
from typing import Final

import msgspec
import pytest

from lifefold.core.lifecycles.status import State
from lifefold.interpreters.facades.status import (
    AgentConfig,
    AgentState,
    MemoryStateManager,
    NotFound,
    Runtime,
    SqliteStateManager,
    StateManager,
    StoreUnavailable,
    UnreadableState,
    VersionConflict,
)

FOUR = b'{"agent_id": "agent_1", "status": "Running", "budget_spent": 1.25, "pii_detections": 3}'


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> StateManager:
    return MemoryStateManager() if request.param == "memory" else SqliteStateManager(tmp_path / "agents.db")


def test_what_was_saved_is_what_is_read(store: StateManager) -> None:
    """The whole state, and its version counts the saves (I1)."""
    state = AgentState("agent_1", State.RUNNING, tasks=("t",))
    store.save_agent_state(state, 0)
    assert store.get_agent_state("agent_1") == msgspec.structs.replace(state, version=1)
    store.save_agent_state(state, 1)
    assert store.get_agent_state("agent_1").version == 2


def test_a_save_over_another_version_is_refused(store: StateManager) -> None:
    """So no change is lost, and an agent cannot be made twice (B16)."""
    store.save_agent_state(AgentState("agent_1", State.RUNNING), 0)
    for expected in (0, 2):
        with pytest.raises(VersionConflict, match=f"agent_1 is not at version {expected} any more"):
            store.save_agent_state(AgentState("agent_1", State.STOPPED), expected)
    with pytest.raises(VersionConflict):
        store.save_agent_state(AgentState("agent_2", State.RUNNING), 1)
    assert store.get_agent_state("agent_1").status is State.RUNNING


def test_agents_are_listed_in_the_order_of_their_ids(store: StateManager) -> None:
    """All of them, whatever has become of them."""
    for agent_id in ("b", "a"):
        store.save_agent_state(AgentState(agent_id, State.FAILED), 0)
    assert store.list_agents() == ("a", "b")


def test_an_unknown_agent_is_not_found(store: StateManager) -> None:
    """By a typed error (B5)."""
    with pytest.raises(NotFound, match="nobody: there is no such agent") as caught:
        store.get_agent_state("nobody")
    assert caught.value.agent_id == "nobody"


def test_the_documents_four_fields_are_enough() -> None:
    """What an earlier system has stored can be read, and goes on (B14)."""
    state = AgentState.from_json(FOUR)
    assert (state.agent_id, state.status, state.pii_detections) == ("agent_1", State.RUNNING, 3)
    assert state.spent_microusd == 1_250_000
    store = MemoryStateManager()
    store.save_agent_state(state, 0)
    runtime = Runtime(store)
    runtime.stop_agent("agent_1")
    runtime.restart("agent_1")
    failed = runtime.fail("agent_1", "boom")
    assert (failed.budget_spent, failed.pii_detections, failed.incarnation) == (1.25, 3, 2)


def test_a_failed_agent_of_four_fields_has_an_unknown_reason() -> None:
    """It is failed all the same, and nothing is written about it (B14)."""
    store = MemoryStateManager()
    store.save_agent_state(AgentState.from_json(FOUR.replace(b"Running", b"Failed")), 0)
    assert Runtime(store).stop_agent("agent_1").status is State.FAILED


def test_programs_that_know_four_fields_can_read_the_document() -> None:
    """They come first and mean what they meant."""
    store = MemoryStateManager()
    runtime = Runtime(store, new_id=lambda: "agent_1")
    runtime.spawn_agent(AgentConfig(budget_microusd=2_000_000))
    runtime.reserve("agent_1", "w", 1_250_000)
    runtime.settle("agent_1", "w", 1_250_000)
    written = json.loads(store.get_agent_state("agent_1").to_json())
    assert list(written.items())[:4] == [
        ("agent_id", "agent_1"), ("status", "RUNNING"), ("budget_spent", 1.25), ("pii_detections", 0)
    ]  # fmt: skip


DEEP: Final = b'{"agent_id": ' + b"[" * 100_000
"""A document that no reader that calls itself gets to the end of."""


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b"\xff", b'{"agent_id": "a", "status": "IDLE"}', b'{"status": 1}', DEEP]
)
def test_what_is_no_state_is_not_read_as_one(data: bytes) -> None:
    """There is no IDLE either (B18)."""
    with pytest.raises(UnreadableState, match="not an agent's state"):
        AgentState.from_json(data)


def test_a_file_outlives_its_process(tmp_path: Path) -> None:
    """What was saved is there for the next one (I4)."""
    first = SqliteStateManager(tmp_path / "agents.db")
    agent_id = Runtime(first).spawn_agent(AgentConfig("coder", budget_microusd=5))
    state = first.get_agent_state(agent_id)
    first.close()
    assert SqliteStateManager(tmp_path / "agents.db").get_agent_state(agent_id) == state


def test_a_file_that_cannot_be_used_says_so(tmp_path: Path) -> None:
    """Which one, and why; no error of another library comes through."""
    with pytest.raises(StoreUnavailable, match=r"no/agents\.db: unable to open"):
        SqliteStateManager(tmp_path / "no" / "agents.db")
    closed = SqliteStateManager(tmp_path / "agents.db")
    closed.close()
    with pytest.raises(StoreUnavailable):
        closed.list_agents()
    with pytest.raises(StoreUnavailable):
        closed.get_agent_state("agent_1")
    with pytest.raises(StoreUnavailable):
        closed.save_agent_state(AgentState("agent_1", State.RUNNING), 0)
