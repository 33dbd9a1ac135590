"""Every test of the engine runs on both stores and, if it is asynchronous, on both back ends."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine_harness import Log, MemoryLog, Pottery, SqliteLog


@pytest.fixture(params=["memory", "sqlite"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Log]:
    log: Log = MemoryLog() if request.param == "memory" else SqliteLog(tmp_path / "pottery.db")
    yield log
    log.close()


@pytest.fixture
async def pottery(log: Log) -> Pottery:
    return Pottery(log)
