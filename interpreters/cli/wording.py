"""Texts for operators: ages, times, columns, costs, states with their evidence, the next timer, commands as typed."""

import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from lifefold.core.fleet.worker import assignment, desired_state
from lifefold.core.lifecycles import session
from lifefold.core.lifecycles.session import Usage
from lifefold.interpreters.explain import words
from lifefold.interpreters.explain.plain_reasons import given_reason
from lifefold.interpreters.explain.status import AgentStatus
from lifefold.interpreters.explain.timers import Timer
from lifefold.interpreters.fleet_runner.process_evidence import Evidence
from lifefold.interpreters.processes.command import plain

_S, _MIN, _H, _DAY = 1_000, 60_000, 3_600_000, 86_400_000

NO_WORK: Final = "no work is left"
"""The reason with which the board stops agents at the end of a fleet; it is not shown as a failure."""

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
    "RestOver": "resumes",
    "Nudged": "nudged",
    "Stalled": "ended",
}
"""The consequence of a timer, by the name of its event."""


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
    """Return the consequence of a timer and its time: ``times out in 7s``; a hyphen without a timer.

    An overdue timer waits for a runner: ``next try due``.
    """
    if timer is None:
        return "-"
    left_ms = timer.deadline_ms - now_ms
    when = f"in {age(left_ms)}" if left_ms >= _S else "now" if left_ms > -_S else "due"
    return f"{_COMING.get(timer.event, timer.event)} {when}"


def next_of(agent: AgentStatus, now_ms: int, *, is_gone: bool = False) -> str:
    """Return the next step of an agent: its timer, or the task or the budget that the agent waits for.

    A session whose process ``is_gone`` does not time out, and is not ended for its silence.
    """
    if is_gone and agent.timer is not None and agent.timer.event in _OF_PROCESS:
        return "-"
    waits = (
        agent.timer is None
        and agent.desired_state == desired_state.State.RUN
        and agent.doing == assignment.State.WANTING
    )
    wanted = f"{agent.lacks} budget" if agent.lacks else "a task"
    return f"waits for {wanted}" if waits else coming(agent.timer, now_ms)


_OF_PROCESS: Final = frozenset({"SessionTimeout", "Nudged", "Stalled"})
"""The timers of a session that mean nothing without its process."""


def money(microusd: int) -> str:
    """Return an amount as ``$1.24``; less than a cent is ``<$0.01``."""
    cents = (microusd + 5_000) // 10_000
    return f"${cents // 100:,}.{cents % 100:02d}" if microusd >= _CENT else "<$0.01"


_CENT: Final = 10_000


def cost(usage: Usage) -> str:
    """Return the money spent, or the tokens if no session has reported money; a hyphen for nothing."""
    if usage.cost_microusd:
        return money(usage.cost_microusd)
    tokens = usage.input_tokens + usage.output_tokens
    return f"{tokens:,} tokens" if tokens else "-"


def spent(usage: Usage) -> str:
    """Return the reported costs: ``$0.12, 1,200 tokens in, 340 out``; empty without any."""
    tokens = f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"
    known = (
        money(usage.cost_microusd) if usage.cost_microusd else "",
        tokens if usage.input_tokens or usage.output_tokens else "",
    )
    return ", ".join(filter(None, known))


def clock_time(timestamp_s: float) -> str:
    """Return the local time of day, to the millisecond, after the date unless it is today."""
    then = datetime.fromtimestamp(timestamp_s, UTC).astimezone()
    date = "" if then.date() == datetime.now(UTC).astimezone().date() else f"{then:%Y-%m-%d} "
    return date + then.strftime("%H:%M:%S.%f")[:-3]


def moment(at_ms: int) -> str:
    """Return the local time of day of a Unix time in milliseconds, to the second."""
    return clock_time(at_ms / 1_000).rpartition(".")[0]


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as aligned columns."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def cut_in_the_middle(text: str, room: int) -> str:
    """Return a text in at most ``room`` characters; a longer one keeps its beginning and its end."""
    if len(text) <= room:
        return text
    end = max(0, room - 1) // 2
    return f"{text[: max(0, room - 1 - end)]}…{text[len(text) - end :]}" if room > 0 else ""


def by_number(name: str) -> list[tuple[int, str]]:
    """Return a sort key by which ``worker-2`` comes before ``worker-10``."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"([0-9]+)", name)]


def asked(agent: AgentStatus) -> str:
    """Return the desired state of an agent and its reason; ``NO_WORK`` at the end of a fleet."""
    if agent.reason == NO_WORK:
        return NO_WORK
    if agent.preempted_for and not agent.reason:
        return f"preempted for {agent.preempted_for}"
    wanted = _ASKED.get(agent.desired_state, agent.desired_state)
    reason = plain(" ".join(given_reason(agent.reason).split()).encode())
    return f"{wanted}: {reason}" if reason else wanted


_ASKED: Final = {"Drain": "draining"}
"""The words for desired states that are not shown by their names."""


def work_of(agent: AgentStatus) -> str:
    """Return the task of an agent, or the input of a service's run, and the number of waiting messages."""
    doing = " ".join(agent.doing.split())
    shortened = doing if len(doing) <= _BRIEF_CHARACTERS else f"{doing[:_BRIEF_CHARACTERS]}…"
    brief = shortened if agent.kind == "service" else agent.task
    return plain(", ".join(filter(None, (brief, _waits(agent)))).encode()) or "-"


def _waits(agent: AgentStatus) -> str:
    """Return how many inputs of a service wait, or how many messages of an agent wait or were never delivered.

    Messages in the prompt of a running session are counted by themselves.
    """
    if agent.kind == "service":
        return f"{agent.waiting} waiting" if agent.waiting else ""
    if agent.undelivered:
        return f"{messages_counted(agent.undelivered)} undelivered"
    waiting = agent.messages - agent.prompted
    return ", ".join(
        (
            *((f"{messages_counted(agent.prompted)} in its prompt",) if agent.prompted else ()),
            *((f"{messages_counted(waiting)} waiting",) if waiting else ()),
        )
    )


def messages_counted(count: int) -> str:
    """Return how many messages there are, in words."""
    return f"{count} {'message' if count == 1 else 'messages'}"


_BRIEF_CHARACTERS: Final = 24


def is_missing(agent: AgentStatus, evidence: Evidence | None, *, runs: bool) -> bool:
    """Tell whether the log has a session whose process is gone; a runner at work (``runs``) may just be starting it."""
    is_starting = runs and evidence is None and agent.state == session.State.SPAWNING
    return bool(agent.processes) and not is_starting and (evidence is None or not evidence.alive)


def plain_state(agent: AgentStatus, evidence: Evidence | None, *, runs: bool) -> str:
    """Return the state of an agent, with a question mark if the log has a session and its process is gone.

    A session that the stall detector has warned of is shown with the length of its silence, and one that waits for an
    answer asks. While a runner is at work, that length is the one of the line about the stuck agent.
    """
    state = words.of_agent(agent.state, agent.task, agent.desired_state)
    if is_missing(agent, evidence, runs=runs):
        return f"{state}? no process"
    if agent.state == "Stopped" and agent.processes:
        return "stopped, ending"
    if agent.silent_since_ms and evidence is not None and evidence.silent_ms is not None:
        silent_ms = evidence.observed_ms - agent.silent_since_ms if runs else evidence.silent_ms
        return f"{state}, silent for {age(silent_ms)}"
    if agent.turn is not None and agent.turn.questions:
        return f"{state}, asks"
    return _DOWN.get(agent.supervisor, state)


_DOWN: Final = {"Asking": "stopped, restarting", "Resting": "stopped, restarting", "Quarantined": "quarantined"}
"""The state of an agent that its errors have stopped, by its supervisor, in a fleet that restarts agents."""


COMMANDS: Final = (
    "abort|answer|approve|attach|brain|branch|budget|cancel|check|clean|completion|copy|demo|diagram|diff|doctor|edit|export|finish|fleets|fork|host|hosts|import|init|log|machines"
    "|mcp|move|output|pause|plan|reject|release|replay|resume|retry|run|schema|send|serve|show|simulate|split|status|stop"
    "|table|task|tasks|trust|unit|upgrade|verify|watch|why"
)
"""The commands that messages name, as a pattern."""

_NAMED: Final = re.compile(rf"(?<![\w/.'-])lifefold (?=(?:{COMMANDS})\b)")


def as_typed(text: str) -> str:
    """Return a text with its commands as this shell finds them: ``lifefold status`` becomes ``this_command() status``.

    Messages of the core and of the runner name the program ``lifefold``; only the command line knows how it was called.
    """
    command = this_command()
    return text if command == "lifefold" else _NAMED.sub(lambda _: f"{command} ", text)


def this_command() -> str:
    """Return the words by which a shell calls this program."""
    if shutil.which("lifefold"):
        return "lifefold"
    script = Path(sys.argv[0])
    if script.name == "lifefold":
        return shlex.quote(str(script.absolute()))
    return f"{shlex.quote(sys.executable)} -m lifefold.interpreters.cli"


def in_shell(argv: Iterable[str]) -> str:
    """Return a command as a shell takes it, in the quotes that are the easiest to read."""
    return " ".join(map(_quoted, argv))


def _quoted(text: str) -> str:
    quoted = shlex.quote(text)
    return f'"{text}"' if "'" in text and not _MEANT_BY_SHELLS.search(text) else quoted


_MEANT_BY_SHELLS: Final = re.compile(r'["$`\\!]')
"""The characters with a meaning inside double quotes."""
