"""What is really there: an agent's process, looked for by its proven identity, and when that was."""

import time

import msgspec

from lifefold.interpreters.explain.status import AgentStatus
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.processes import SessionError, is_alive, last_progress_ms, read_start


class Evidence(msgspec.Struct, frozen=True):
    """A process that was looked for. ``observed_ms`` is Unix time.

    ``silent_ms`` is how long ago its session last showed that it moves, if it lives: by output, or by its heartbeat.
    """

    pid: int
    alive: bool
    observed_ms: int
    silent_ms: int | None = None


def look(folder: FleetFolder, agent: AgentStatus) -> Evidence | None:
    """Look for the process of an agent's last session; None if it never had one, or its folder cannot be read."""
    try:
        directory = folder.last_start(agent.name, agent.attempt)
        start, last_ms = read_start(directory), last_progress_ms(directory, folder.heartbeat(agent.name, agent.attempt))
    except (SessionError, OSError):
        return None
    if start is None or last_ms is None:
        return None
    alive, now_ms = is_alive(start.agent), time.time_ns() // 1_000_000
    return Evidence(start.pid, alive, now_ms, max(0, now_ms - last_ms) if alive else None)
