"""Lines for the operator: decisions that the fleet waits for, each with its command, and failures."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from lifefold.core.fleet.system import board
from lifefold.core.kernel import Aggregate, replace
from lifefold.interpreters.cli.promotion import agent_to_promote
from lifefold.interpreters.cli.wording import age, as_typed, by_number, clock_time, moment
from lifefold.interpreters.explain import pending
from lifefold.interpreters.explain.pending import Awaited, Waiting
from lifefold.interpreters.explain.status import AgentStatus
from lifefold.interpreters.explain.why.phrases import brief, count, enumerated, in_brackets
from lifefold.interpreters.fleet_runner.blocked_merges import Wait
from lifefold.interpreters.fleet_runner.quarantines import Quarantine
from lifefold.interpreters.processes.command import plain


def goes_on(there: Mapping[str, Aggregate]) -> bool:
    """Tell whether tasks can still change: an agent is left to work at them."""
    return board.NAME in there and not board.finished(there[board.NAME])


def waiting(there: Mapping[str, Aggregate]) -> tuple[Waiting, ...]:
    """Return the decisions that a fleet waits for; one about trust names the agent to promote in its command."""
    return tuple(_with_agent(there, each) if each.about is Awaited.TRUST else each for each in pending.waiting(there))


def _with_agent(there: Mapping[str, Aggregate], each: Waiting) -> Waiting:
    (name,) = each.names
    agent = agent_to_promote(there[board.NAME], there[board.NAME].record(f"task:{name}"))
    return replace(each, command=f"trust {shlex.quote(agent)} --promote" if agent else each.command)


class Line(NamedTuple):
    """A line about a decision: what waits, and the command that helps, with the joint between them."""

    what: str
    command: str
    joint: str = ": "

    def whole(self) -> str:
        """Return the line with its command, for a terminal."""
        return plain(f"{self.what}{self.joint}{as_typed(f'lifefold {self.command}')}".encode())

    def said(self) -> str:
        """Return the line without its command, for a page with buttons."""
        return plain(self.what.encode())


def lines(waiting: Sequence[Waiting], paused_by: Mapping[str, str], log: str = "") -> Iterator[str]:
    """Yield a line for each decision; agents that one operator has paused for one reason share a line.

    ``paused_by`` has the operator by agent. ``log`` is the option for the log that commands need, or empty.
    """
    return (each.whole() for each in parted(waiting, paused_by, log))


def parted(waiting: Sequence[Waiting], paused_by: Mapping[str, str], log: str = "") -> Iterator[Line]:
    """Yield the lines with their commands apart."""
    for each in waiting:
        match each.about:
            case Awaited.QUESTION:
                (name,) = map(shlex.quote, each.names)
                until = f" (refused by itself at {moment(each.until_ms)})" if each.until_ms else ""
                command = f"{each.command} {name}" if each.command == "approve" else f'{each.command} {name} "..."'
                what = f"{each.reason}{until}"
                joint = " " if what.endswith("?") else ": "
                yield Line(what, f"{command}{log}, or lifefold reject {name}{log}", joint)
            case Awaited.PLAN:
                yield Line(f"the plan waits for your approval ({count(len(each.names), 'task')})", f"approve{log}")
            case Awaited.TASK:
                (name,) = each.names
                until = f", until {moment(each.until_ms)}" if each.until_ms else ""
                seen = as_typed(f", after lifefold diff {name}{log}") if each.commit else ""
                yield Line(f"{name} is done and waits for your approval{until}", f"approve {name}{log}{seen}")
            case Awaited.TRUST:
                (name,) = each.names
                yield Line(f"{name} {each.reason}", f'{each.command} --reason "..."{log}')
            case Awaited.TASKS:
                yield Line("all tasks are settled, and more may come", f"task add{log}, or lifefold finish{log}")
            case Awaited.BUDGET:
                yield Line(f"{enumerated(each.names)}: {each.reason}", f"{each.command}{log}")
            case Awaited.ACCOUNT:
                (name,) = each.names
                until = moment(each.until_ms).removesuffix(":00")
                what = f"account {name} rests until {until}{in_brackets(each.reason)}"
                yield Line(what, f"{each.command}{log}", "; sooner: ")
            case Awaited.AGENT:
                pass
    yield from _paused([each for each in waiting if each.about is Awaited.AGENT], paused_by, log)


def in_the_way(waits: Sequence[Wait], now_ms: int) -> Iterator[str]:
    """Yield a line for each blocked activity: the obstacle, for how long, and when it was last observed."""
    for each in waits:
        since, seen = age(now_ms - each.since_ms), age(now_ms - each.seen_ms)
        yield plain(f"{each.agent} {' '.join(each.said.split())} (for {since}, seen {seen} ago)".encode())


def quarantined(found: Sequence[Quarantine], log: str = "") -> Iterator[str]:
    """Yield a line for each quarantined entity: since when, why, and the command that releases it."""
    for each in found:
        since, why = clock_time(each.since_ms / 1_000), " ".join(each.reason.split())
        said = f"{each.name}: its {each.entity} is quarantined since {since}: {why}"
        release = as_typed(f"lifefold release {shlex.quote(each.name)}{log}")
        yield plain(f"{said}; {release} lets it go on".encode())


def fallen(stopped_by: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each agent that its errors have stopped: how many, and the last one."""
    for name in sorted(stopped_by, key=by_number):
        yield plain(f"{name} has stopped: {' '.join(stopped_by[name].split())}".encode())


def stuck(agents: Iterable[AgentStatus], now_ms: int, log: str | None = None) -> Iterator[str]:
    """Yield a line for each agent whose session the stall detector has warned of, and which is not given up yet.

    With the option of a ``log``, which can be empty, the line names the command that shows what the session printed.
    """
    for each in sorted(agents, key=lambda agent: by_number(agent.name)):
        if each.silent_since_ms:
            silent = age(now_ms - each.silent_since_ms)
            look = "" if log is None else as_typed(f": lifefold output {shlex.quote(each.name)}{log}")
            yield f"{each.name} is stuck: its session at {each.task} has shown no progress for {silent}{look}"


def _paused(waiting: Sequence[Waiting], paused_by: Mapping[str, str], log: str) -> Iterator[Line]:
    why = {each.names[0]: _why(each, paused_by) for each in waiting}
    agents = sorted(why, key=lambda name: (why[name], by_number(name)))
    groups = [list(group) for _, group in groupby(agents, key=why.__getitem__)]
    for names in groups:
        typed = "resume" if len(groups) == 1 and len(names) > 1 else f"resume {' '.join(names)}"
        are = "is" if len(names) == 1 else "are"
        yield Line(f"{enumerated(names)} {are} paused{why[names[0]]}", f"{typed}{log}")


def _why(each: Waiting, paused_by: Mapping[str, str]) -> str:
    """Return the operator who paused an agent and the reason, in brackets."""
    by = paused_by.get(each.names[0], "")
    said = ", ".join(filter(None, (f"by {by}" if by else "", brief(each.reason))))
    return f" ({said})" if said else ""
