"""What a command loads before it answers: a reader of a log waits for no part that only a runner needs."""

import subprocess
import sys
from typing import Final

import pytest

RUNNER: Final = ("lifefold.interpreters.fleet_runner.runner", "importlib.metadata", "watchfiles", "rich", "numpy")
"""Modules that a reader of a log does not need, and that are slow to load."""


@pytest.mark.parametrize("command", ["listing_tasks", "showing", "telling", "supervising"])
def test_a_command_that_reads_a_log_loads_no_runner(command: str) -> None:
    program = f"import sys, lifefold.interpreters.cli.commands.{command}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert [name for name in RUNNER if name in loaded] == []
