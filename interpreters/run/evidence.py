"""What is really there: an agent's process, looked for by its proven identity, and when that was."""

import time

import msgspec

from lifefold.core.fleet.status import AgentStatus
from lifefold.interpreters.body import SessionError, is_alive, read_start
from lifefold.interpreters.run.folder import FleetFolder


class Evidence(msgspec.Struct, frozen=True):
    """A process that was looked for. ``observed_ms`` is Unix time."""

    pid: int
    alive: bool
    observed_ms: int


def look(folder: FleetFolder, agent: AgentStatus) -> Evidence | None:
    """Look for the process of an agent's last session; None if it never had one."""
    try:
        start = read_start(folder.last_start(agent.name, agent.attempt))
    except SessionError:
        return None
    return None if start is None else Evidence(start.pid, is_alive(start.agent), time.time_ns() // 1_000_000)
