"""How things are put for people: ages, times, columns, states with their evidence, what comes next, costs."""

import re
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from lifefold.core.fleet.worker import assignment, desired_state
from lifefold.core.lifecycles.session import Usage
from lifefold.core.lifecycles.task import State
from lifefold.interpreters.explain.status import AgentStatus, TaskStatus, Timer
from lifefold.interpreters.fleet_runner.process_evidence import Evidence
from lifefold.interpreters.processes.command import plain

_S, _MIN, _H, _DAY = 1_000, 60_000, 3_600_000, 86_400_000

NO_WORK: Final = "no work is left"
"""Why agents stop in the end, as their board says it: no news for anybody."""

_COMING: Final = {
    "SessionTimeout": "times out",
    "BackoffElapsed": "next try",
    "GraceExceeded": "killed",
    "Rested": "next try",
    "ApprovalExpired": "refused",
    "SubtasksOverdue": "blocked",
    "RestartDue": "restart",
    "IdleElapsed": "suspended",
    "LifetimeElapsed": "stops",
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
    """Return what time brings next, and when: ``times out in 7s``; a hyphen if nothing.

    What is overdue waits for a runner: ``next try due``.
    """
    if timer is None:
        return "-"
    left_ms = timer.deadline_ms - now_ms
    when = f"in {age(left_ms)}" if left_ms >= _S else "now" if left_ms > -_S else "due"
    return f"{_COMING.get(timer.event, timer.event)} {when}"


def next_of(agent: AgentStatus, now_ms: int) -> str:
    """Return what comes next for an agent: what time brings, or a task, if it has asked for one."""
    waits = (
        agent.timer is None
        and agent.desired_state == desired_state.State.RUN
        and agent.doing == assignment.State.WANTING
    )
    return "waits for a task" if waits else coming(agent.timer, now_ms)


def by_state(tasks: Iterable[TaskStatus]) -> Iterator[tuple[str, int]]:
    """Yield the states that tasks are in, and how many are in each, in the order in which a task goes through them."""
    counts = Counter(task.state for task in tasks)
    return ((state, counts[state]) for state in _ORDER if counts[state])


_ORDER: Final = (
    State.CLOSED,
    State.DONE,
    State.IN_PROGRESS,
    State.CLAIMED,
    State.WAITING_FOR_SUBTASKS,
    State.OPEN,
    State.PLANNED,
    State.PENDING_APPROVAL,
    State.ORPHANED,
    State.BLOCKED,
    State.FAILED,
    State.CANCELLED,
)
"""From what is finished to what is to come, and then what people should look at."""


def money(microusd: int) -> str:
    """Return an amount as ``$1.24``; what is less than a cent is not nothing."""
    cents = (microusd + 5_000) // 10_000
    return f"${cents // 100:,}.{cents % 100:02d}" if microusd >= _CENT else "<$0.01"


_CENT: Final = 10_000


def cost(usage: Usage) -> str:
    """Return what was spent: the money, or the tokens where nobody has said what they cost; a hyphen for nothing."""
    if usage.cost_microusd:
        return money(usage.cost_microusd)
    tokens = usage.input_tokens + usage.output_tokens
    return f"{tokens:,} tokens" if tokens else "-"


def spent(usage: Usage) -> str:
    """Return all that is known to be spent: ``$0.12, 1,200 tokens in, 340 out``; empty if nothing is."""
    tokens = f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"
    known = (
        money(usage.cost_microusd) if usage.cost_microusd else "",
        tokens if usage.input_tokens or usage.output_tokens else "",
    )
    return ", ".join(filter(None, known))


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


def cut_in_the_middle(text: str, room: int) -> str:
    """Return a text in so many characters: of a longer one its beginning and its end, which tell it from others."""
    if len(text) <= room:
        return text
    end = max(0, room - 1) // 2
    return f"{text[: max(0, room - 1 - end)]}…{text[len(text) - end :]}" if room > 0 else ""


def by_number(name: str) -> list[tuple[int, str]]:
    """Return what names are sorted by so that ``worker-2`` comes before ``worker-10``."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"([0-9]+)", name)]


def asked(agent: AgentStatus) -> str:
    """Return what was asked of an agent, and why if somebody said so; in the end nobody asks, there is just no work."""
    if agent.reason == NO_WORK:
        return NO_WORK
    if agent.makes_room_for and not agent.reason:
        return f"make room for {agent.makes_room_for}"
    wanted = _ASKED.get(agent.desired_state, agent.desired_state)
    reason = plain(" ".join(agent.reason.split()).encode())
    return f"{wanted}: {reason}" if reason else wanted


_ASKED: Final = {"Drain": "draining"}
"""How it is said what was asked of an agent, where that is not the name of it."""


def work_of(agent: AgentStatus) -> str:
    """Return what an agent is at: its task, or what the run of a service was told; and how much waits to be read."""
    doing = " ".join(agent.doing.split())
    told = doing if len(doing) <= _BRIEF_CHARACTERS else f"{doing[:_BRIEF_CHARACTERS]}…"
    brief = told if agent.kind == "service" else agent.task
    return plain(", ".join(filter(None, (brief, _waits(agent)))).encode()) or "-"


def _waits(agent: AgentStatus) -> str:
    """Return what waits for an agent, or what it was never told.

    Messages and due times of a service, messages that no session succeeded with.
    """
    if agent.kind == "service":
        return f"{agent.waiting} waiting" if agent.waiting else ""
    if agent.undelivered:
        return f"{messages_counted(agent.undelivered)} undelivered"
    return f"{messages_counted(agent.messages)} waiting" if agent.messages else ""


def messages_counted(count: int) -> str:
    """Return how many messages there are, in words."""
    return f"{count} {'letter' if count == 1 else 'messages'}"


_BRIEF_CHARACTERS: Final = 24


def plain_state(agent: AgentStatus, evidence: Evidence | None) -> str:
    """Return the state, with a doubt where the log says that a session lives and no process is there.

    Of a session that was warned of it says for how long it has shown no sign of progress by now.
    """
    if agent.processes and (evidence is None or not evidence.alive):
        return f"{agent.state}? no process"
    if agent.state == "Stopped" and agent.processes:
        return "Stopped, ending"
    if agent.silent_since_ms and evidence is not None and evidence.silent_ms is not None:
        return f"{agent.state}, silent for {age(evidence.silent_ms)}"
    return _DOWN.get(agent.supervisor, agent.state)


_DOWN: Final = {"Asking": "Stopped, restarting", "Resting": "Stopped, restarting", "Quarantined": "Quarantined"}
"""How an agent is that was stopped by its errors, in a fleet that begins such agents anew."""


def this_command() -> str:
    """Return how this program is called from a shell."""
    if shutil.which("lifefold"):
        return "lifefold"
    script = Path(sys.argv[0])
    if script.name == "lifefold":
        return shlex.quote(str(script.absolute()))
    return f"{shlex.quote(sys.executable)} -m lifefold.interpreters.cli"
