"""How things are put for people: ages, times of day, columns, states with their evidence."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from lifefold.core.fleet.status import AgentStatus
from lifefold.core.kernel import LifecycleEvent
from lifefold.interpreters.body.command import plain
from lifefold.interpreters.run.evidence import Evidence

SHOWN: Final = ("session", "task")
"""The machines whose transitions are printed as lines; ``lifefold log`` has all of them."""

_S, _MIN, _H, _DAY = 1_000, 60_000, 3_600_000, 86_400_000


def age(duration_ms: int) -> str:
    """Return a duration as ``12s``, ``3m05s``, ``2h10m``, ``4d``."""
    duration_ms = max(0, duration_ms)
    if duration_ms < _MIN:
        return f"{duration_ms // _S}s"
    if duration_ms < _H:
        return f"{duration_ms // _MIN}m{duration_ms % _MIN // _S:02d}s"
    if duration_ms < _DAY:
        return f"{duration_ms // _H}h{duration_ms % _H // _MIN:02d}m"
    return f"{duration_ms // _DAY}d"


def clock_time(timestamp_s: float) -> str:
    """Return the local time of day, to the millisecond."""
    return datetime.fromtimestamp(timestamp_s, UTC).astimezone().strftime("%H:%M:%S.%f")[:-3]


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as aligned columns."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def plain_state(agent: AgentStatus, evidence: Evidence | None) -> str:
    """Return the state, with a doubt where the log says that a session lives and no process is there."""
    if agent.processes and (evidence is None or not evidence.alive):
        return f"{agent.state}? no process"
    if agent.state == "Stopped" and agent.processes:
        return "Stopped, ending"
    return agent.state


def line(event: LifecycleEvent) -> str:
    """Return a transition as a line for people."""
    moved = f"{event.from_status or '(new)'} -> {event.to_status}"
    name = f"{event.entity_type} {event.entity_id}"
    because = f": {event.reason}" if event.reason else ""
    return plain(f"{clock_time(event.timestamp)}  {name:<24} {moved:<34} {event.metadata['event']}{because}".encode())
