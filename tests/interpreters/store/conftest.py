"""A path for a log, and a log that exists and is closed."""

from pathlib import Path

import anyio
import pytest

from conformance import entry
from lifefold.interpreters.store import Batch, SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "fleet.db"


@pytest.fixture
def made(path: Path) -> Path:
    """Return the path of a log that is there and closed, with two entries."""
    with SqliteStore.create(path, {"name": "demo"}) as store:
        anyio.run(store.append, Batch((entry("a", 1), entry("a", 2))))
    return path
