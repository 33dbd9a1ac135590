"""Desks for the tests of pages, guards, streams and commands."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from asking_log import LEAVE, WORDS, at_work
from web_desk import Served, served
from web_reports import lost


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Tokens lie in a folder of the test."""
    folder = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log with a permission and a question that wait."""
    return at_work(tmp_path / "fleet.db", LEAVE, WORDS).path


@pytest.fixture
def desk(log: Path, tmp_path: Path) -> Iterator[Served]:
    """The desk of that log, and of a report."""
    with served([log], reports=[lost(tmp_path)]) as desk:
        yield desk
