"""A fleet in the middle of its work: ``PYTHONPATH=tests/support python fleet_1.py LOG`` writes its log."""

import sys
from pathlib import Path
from typing import Any

from fleet_log import FleetLog
from lifefold.core.fleet import AgentPlan, TaskPlan


def write(log: Path, **parts: Any) -> None:
    """Write a log of three tasks and two agents: one task has failed once, one is begun, one is open."""
    tasks = tuple(TaskPlan(name, prompt=f"write {name}") for name in ("notes", "index", "summary"))
    fleet = FleetLog(log, *tasks, agents=(AgentPlan("ann"), AgentPlan("bob")), **parts)
    fleet.failed("notes").claimed("index", "bob")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
