"""Every test of the engine runs on both stores and, if it is asynchronous, on both back ends.

The log in a file must be a behaviour of the model of its system (``recorded_runs``).
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

import kiln
from engine_harness import Log, MemoryLog, Pottery, SqliteLog
from recorded_runs import Place


@pytest.fixture(params=["memory", "sqlite"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Log]:
    log: Log = MemoryLog() if request.param == "memory" else SqliteLog(tmp_path / "pottery.db")
    place = Place(tmp_path, "pottery.db", kiln.system)
    yield log
    log.close()
    del place  # it is looked at as long as it is held


@pytest.fixture
async def pottery(log: Log) -> Pottery:
    return Pottery(log)
