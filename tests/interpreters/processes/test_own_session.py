"""Processes that are started while an operator presses Ctrl-C."""

import subprocess
import sys
from pathlib import Path

import pytest

import ctrl_c_storm


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return what became of each process that was started under a storm of SIGINT."""
    argv = [sys.executable, str(Path(ctrl_c_storm.__file__)), str(tmp_path_factory.mktemp("storm"))]
    done = subprocess.run(argv, start_new_session=True, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_ctrl_c_ends_no_git_that_is_being_started(started: list[str]) -> None:
    """A new process is in the terminal's group for a moment. SIGINT in that moment once failed a verified task."""
    assert started[: ctrl_c_storm.COMMANDS] == ["0"] * ctrl_c_storm.COMMANDS


def test_ctrl_c_ends_no_session_that_is_being_started(started: list[str]) -> None:
    assert started[ctrl_c_storm.COMMANDS :] == ["exited 0"] * ctrl_c_storm.SESSIONS
