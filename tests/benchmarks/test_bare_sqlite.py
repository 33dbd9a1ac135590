"""What the benchmark of durable dispatch compares with: SQLite alone writes the same log."""

from pathlib import Path

import pytest

from benchmarks.agents import Agents
from benchmarks.bare_sqlite import Recorder, replay, replay_in_store
from lifefold.interpreters.store import SqliteStore

pytestmark = pytest.mark.anyio


async def test_sqlite_alone_and_the_store_alone_write_the_log_of_the_engine(tmp_path: Path) -> None:
    """All three files have the same entries, in a sound chain, and the same record of performed effects."""
    agents = Agents(2, 1)
    with SqliteStore.create(tmp_path / "engine.db", {}) as store:
        recorder = Recorder(store)
        await agents.live(recorder)
        batches = await recorder.batches()
        written = list(await store.read()), await store.performed()
    replay(tmp_path / "bare.db", batches)
    await replay_in_store(tmp_path / "store.db", batches)
    for name in ("bare.db", "store.db"):
        with SqliteStore.open(tmp_path / name) as copy:
            assert (list(await copy.read()), await copy.performed()) == written
