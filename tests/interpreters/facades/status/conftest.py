"""Recorded runtimes of agents, on each store."""

from pathlib import Path

import pytest

from lifefold.interpreters.facades.status import MemoryStateManager, SqliteStateManager, StateManager
from recorded_runtime import RecordedRuntime


@pytest.fixture(params=["memory", "sqlite"])
def recorded(request: pytest.FixtureRequest, tmp_path: Path) -> RecordedRuntime:
    store: StateManager = (
        MemoryStateManager() if request.param == "memory" else SqliteStateManager(tmp_path / "agents.db")
    )
    return RecordedRuntime(store)
