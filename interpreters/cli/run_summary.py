"""The end of a run in words: how far the fleet has come, and what is left to do."""

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

from lifefold.core.fleet.system import board
from lifefold.core.fleet.system.rerun import FinishedFleet, ended, remainder
from lifefold.core.kernel import LATE_OR_REPEATED, Aggregate
from lifefold.interpreters.cli import awaited, logs
from lifefold.interpreters.cli.account import Account
from lifefold.interpreters.cli.fitting import terminal_width, wrapped
from lifefold.interpreters.cli.wording import NO_WORK, as_typed, messages_counted, spent, this_command
from lifefold.interpreters.explain import status, task_status, unread
from lifefold.interpreters.explain.why.phrases import brief, enumerated
from lifefold.interpreters.fleet_file import Fleet
from lifefold.interpreters.fleet_runner import FleetFolder, Verdict
from lifefold.interpreters.fleet_runner.log_owner import before_of
from lifefold.interpreters.fleet_runner.notices import Notice
from lifefold.interpreters.fleet_runner.refused_events import RefusedEvents
from lifefold.interpreters.fleet_runner.unmerged_work import UnmergedWork
from lifefold.interpreters.store import peek_log


class Ran(Protocol):
    """A fleet that was run, by a runner or by a brain."""

    @property
    def fleet(self) -> Fleet:
        """The fleet with the plan in force."""
        ...

    @property
    def folder(self) -> FleetFolder:
        """The files of its log."""
        ...

    @property
    def refused(self) -> RefusedEvents:
        """The refused events of this run."""
        ...

    @property
    def aggregates(self) -> Mapping[str, Aggregate]:
        """Its present state."""
        ...

    def standing(self) -> list[Notice]:
        """Return the notices that still hold."""
        ...


def summary(ran: Ran, account: Account, verdict: Verdict, log: Path) -> None:
    """Print how far the fleet has come, and what is left to do."""
    print()
    for line in _summarized(ran, account, verdict, log):
        print(*wrapped(line, terminal_width()), sep="\n")


def _summarized(ran: Ran, account: Account, verdict: Verdict, log: Path) -> Iterator[str]:
    every = task_status.tasks(ran.aggregates)
    tasks = task_status.counted(every)
    closed = sum(1 for task in tasks if task.state == "CLOSED")
    total = spent(account.spending.total)
    removed = f"{len(every) - len(tasks)} removed; " if len(every) > len(tasks) else ""
    yield f"{closed} of {len(tasks)} tasks closed; {removed}{f'spent {total}; ' if total else ''}the log is {log}"
    with peek_log(log) as store:
        unmerged, before = UnmergedWork(store), before_of(store).ended
    yield from filter(None, map(_outcome, every))
    if ran.fleet.repository is not None and (idle := task_status.without_change(tasks)):
        yield f"  {brief(enumerated(idle))}: closed, and nothing was changed"
    outputs = account.outputs(every, ran.folder, logs.option(log))
    unread_messages = unread.sentences(ran.aggregates)
    for line in (*_of_agents(ran, verdict), *unread_messages, *awaited.fallen(account.stopped_by), *outputs):
        yield f"  {as_typed(line)}"
    for name, message, _ in ran.standing():
        if message != account.stopped_by.get(name):
            yield f"  {name}: {as_typed(message)}"
    waiting = awaited.lines(awaited.waiting(ran.aggregates), account.paused_by, logs.option(log))
    for line in (*unmerged.lines([task.id for task in every if task.state != "CLOSED"]), *waiting):
        yield f"  {line}"
    for line in strange(ran.refused.counts):
        yield f"  {line} (listed in {ran.folder.refusals})"
    for line in _onward(ran, verdict, before, this_run(ran.fleet, log)):
        yield line


def _outcome(of: task_status.TaskStatus) -> str:
    """Return the line of a task in the summary; empty if its work is merged."""
    if of.state != "CLOSED":
        return f"  {of.id}: {of.in_words}{f': {of.reason}' if of.reason else ''}"
    return f"  {of.id}: on branch {of.branch}" if of.branch else ""


def strange(refused: Mapping[str, int]) -> Iterator[str]:
    """Yield a line with the numbers of refused events that no orderly run has, by kind."""
    found = [f"{count} {kind}" for kind, count in sorted(refused.items()) if kind not in LATE_OR_REPEATED]
    if found:
        yield f"refused events: {', '.join(found)}"


def _of_agents(ran: Ran, verdict: Verdict) -> Iterator[str]:
    """Yield the agents that have stopped before the end, and those with undelivered operator messages."""
    for agent in status.agents(ran.aggregates):
        if verdict is Verdict.SOME_FAILED and agent.state == "Stopped" and agent.reason not in {NO_WORK, ""}:
            yield f"{agent.name} has stopped: {agent.reason}"
        if agent.undelivered:
            yield f"{agent.name}: {messages_counted(agent.undelivered)} undelivered: no session has completed with them"


def _onward(ran: Ran, verdict: Verdict, before: FinishedFleet, command: str) -> Iterator[str]:
    """Yield the command that goes on with the tasks that are not done."""
    if verdict is Verdict.HELD:
        yield f"only an operator can move this fleet on (see above); then, to go on:  {command}"
    elif verdict is Verdict.LEFT:
        yield f"left before the end; to go on:  {command}"
    elif remainder(ran.fleet.plan, ended(ran.aggregates[board.NAME], before)).tasks:
        yield f"to do in a new log what was not done:  {command} --again"


def this_run(fleet: Fleet, log: Path) -> str:
    """Return the command that runs this fleet with this log."""
    usual = logs.default_log(fleet.source, fleet.name)
    elsewhere = () if logs.are_one(log, usual) else ("--db", str(log))
    return f"{this_command()} run {shlex.join((str(fleet.source), *elsewhere))}"
