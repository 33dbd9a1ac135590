"""How things are put for people: ages, times of day, columns, states with their evidence, what comes next."""

import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from lifefold.core.fleet.status import AgentStatus, Timer
from lifefold.interpreters.run.evidence import Evidence

_S, _MIN, _H, _DAY = 1_000, 60_000, 3_600_000, 86_400_000

NO_WORK: Final = "no work is left"
"""Why agents stop in the end, as their board says it: no news for anybody."""

_COMING: Final = {
    "SessionTimeout": "times out",
    "BackoffElapsed": "next try",
    "GraceExceeded": "killed",
}
"""What a timer brings, by the event's name."""


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


def coming(timer: Timer | None, now_ms: int) -> str:
    """Return what time brings next, and when: ``times out in 7s``; a hyphen if nothing."""
    if timer is None:
        return "-"
    left_ms = timer.deadline_ms - now_ms
    return f"{_COMING.get(timer.event, timer.event)} {f'in {age(left_ms)}' if left_ms >= _S else 'now'}"


def clock_time(timestamp_s: float) -> str:
    """Return the local time of day, to the millisecond, with the date before it unless that is today's."""
    then = datetime.fromtimestamp(timestamp_s, UTC).astimezone()
    date = "" if then.date() == datetime.now(UTC).astimezone().date() else f"{then:%Y-%m-%d} "
    return date + then.strftime("%H:%M:%S.%f")[:-3]


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as aligned columns."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def by_number(name: str) -> list[tuple[int, str]]:
    """Return what names are sorted by so that ``worker-2`` comes before ``worker-10``."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"([0-9]+)", name)]


def asked(agent: AgentStatus) -> str:
    """Return what was asked of an agent, and why if somebody said so; in the end nobody asks, there is just no work."""
    if agent.reason == NO_WORK:
        return NO_WORK
    return f"{agent.intent}: {agent.reason}" if agent.reason else agent.intent


def plain_state(agent: AgentStatus, evidence: Evidence | None) -> str:
    """Return the state, with a doubt where the log says that a session lives and no process is there."""
    if agent.processes and (evidence is None or not evidence.alive):
        return f"{agent.state}? no process"
    if agent.state == "Stopped" and agent.processes:
        return "Stopped, ending"
    return agent.state


def this_command() -> str:
    """Return how this program is called from a shell."""
    if shutil.which("lifefold"):
        return "lifefold"
    script = Path(sys.argv[0])
    if script.name == "lifefold":
        return shlex.quote(str(script.absolute()))
    return f"{shlex.quote(sys.executable)} -m lifefold.interpreters.cli"
