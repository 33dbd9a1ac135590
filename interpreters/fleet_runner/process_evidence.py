"""Process evidence: the process of an agent, found by its proven identity, with the time of the observation."""

import time

import msgspec

from lifefold.interpreters.explain.status import AgentStatus
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.processes import SessionError, is_alive, last_progress_ms, read_start


class Evidence(msgspec.Struct, frozen=True):
    """An observation of a process at ``observed_ms``, in Unix milliseconds.

    ``silent_ms`` is the time since the last output or heartbeat of its session; None if the process is not alive.
    ``host`` is the host on which it is; empty for a process of this machine.
    """

    pid: int
    alive: bool
    observed_ms: int
    silent_ms: int | None = None
    host: str = ""


def look(folder: FleetFolder, agent: AgentStatus) -> Evidence | None:
    """Observe the process of an agent's last session; None without one, or if its folder is unreadable."""
    try:
        directory = folder.last_start(agent.name, agent.sessions)
        start, last_ms = (
            read_start(directory),
            last_progress_ms(directory, folder.heartbeat(agent.name, agent.sessions)),
        )
    except (SessionError, OSError):
        return None
    if start is None or last_ms is None:
        return None
    alive, now_ms = is_alive(start.agent), time.time_ns() // 1_000_000
    return Evidence(start.pid, alive, now_ms, max(0, now_ms - last_ms) if alive else None)
