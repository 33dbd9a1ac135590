"""The command ``status``: it reads the log, with or without a runner, and looks at the processes."""

import json
from argparse import Namespace
from collections.abc import Iterator
from typing import Any, Final

import anyio
import msgspec

from lifefold.core.fleet.system import board, plan_change
from lifefold.core.fleet.system.rerun import is_over
from lifefold.core.fleet.worker import turns
from lifefold.core.lifecycles.task import State
from lifefold.interpreters.cli import awaited, concerns, host_lines, logs
from lifefold.interpreters.cli.account import Account, usage_json
from lifefold.interpreters.cli.attention import agents_first, in_words
from lifefold.interpreters.cli.concerns import Concern
from lifefold.interpreters.cli.fitting import fitted, terminal_height, terminal_width, wrapped
from lifefold.interpreters.cli.pager import is_coloured
from lifefold.interpreters.cli.table_columns import with_column, with_cost
from lifefold.interpreters.cli.wording import (
    age,
    as_typed,
    asked,
    by_number,
    clock_time,
    is_missing,
    next_of,
    plain_state,
    spent,
    work_of,
)
from lifefold.interpreters.explain import status as projection
from lifefold.interpreters.explain import task_status, unread, words
from lifefold.interpreters.explain.accounts import Balance, balances
from lifefold.interpreters.explain.notifications import NotifierStatus, notifiers, troubles
from lifefold.interpreters.explain.pending import Waiting
from lifefold.interpreters.explain.status import AgentStatus
from lifefold.interpreters.explain.task_status import TaskStatus
from lifefold.interpreters.fleet_runner import quarantines
from lifefold.interpreters.fleet_runner.agent_looks import Looks, looks, marked
from lifefold.interpreters.fleet_runner.blocked_merges import Wait
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.hosts import AT_WORK, HostStatus, evidence_of, hosts_of, waits_of
from lifefold.interpreters.fleet_runner.process_evidence import Evidence
from lifefold.interpreters.fleet_runner.quarantines import Quarantine
from lifefold.interpreters.fleet_runner.unmerged_work import UnmergedWork
from lifefold.interpreters.processes.command import plain
from lifefold.interpreters.store import LogStore


class _Seen(msgspec.Struct):
    """A fleet at one moment: its state in the log, its processes, and its blocked merges."""

    store: LogStore
    agents: list[tuple[AgentStatus, Evidence | None]]
    tasks: tuple[TaskStatus, ...]
    waiting: tuple[Waiting, ...]
    account: Account
    runs: bool
    is_over: bool
    in_the_way: tuple[Wait, ...]
    unmerged: UnmergedWork
    quarantined: tuple[Quarantine, ...]
    changed: tuple[int, int]
    """The number of the plan change in force, and its time in Unix milliseconds; 0 and 0 without one."""
    leases: tuple[Balance, ...]
    """What agents may spend, by document 001's lease: the balances of their own budgets."""
    notifiers: tuple[NotifierStatus, ...]
    untold: tuple[str, ...]
    """What was not delivered, in sentences."""
    unread: dict[str, int]
    """The operator messages that no prompt will have, by task."""
    hosts: tuple[HostStatus, ...]


def status(arguments: Namespace) -> None:
    """Print the agents with desired state, state and process, and the decisions that the fleet waits for."""
    with logs.peek(arguments.db, arguments.at) as store:
        seen = _look(store)
        if arguments.json:
            print(json.dumps(_status_json(seen), indent=2))
            return
        for line in _status_lines(seen, logs.option(store.path)):
            print(line)


def _look(store: LogStore) -> _Seen:
    ledger, account = logs.fold_with_account(store)
    runs, folder, there = store.is_written(), FleetFolder(store.path), ledger.aggregates
    is_now = store.past is None  # the past has no evidence: processes and files are those of today
    tasks = account.attempted(task_status.tasks(there)) if there else ()
    tasks = tasks if awaited.goes_on(there) else task_status.at_rest(tasks)
    agents = projection.at_attempts(projection.agents(there), tasks)
    hosts = anyio.run(hosts_of, store)
    found = [
        (agent, evidence_of(folder, agent, hosts) if is_now else None)
        for agent in sorted(agents, key=lambda agent: by_number(agent.name))
    ]
    in_the_way = waits_of(folder, hosts) if is_now and awaited.goes_on(there) else ()
    return _Seen(
        store,
        found,
        tasks,
        awaited.waiting(there),
        account,
        runs,
        is_over(there),
        in_the_way,
        UnmergedWork(store),
        quarantines.found(store, ledger),
        plan_change.in_force_since(there[board.NAME]) if board.NAME in there else (0, 0),
        tuple(each for each in balances(there) if each.whose == "agent"),
        notifiers(there),
        (*troubles(there), *unread.sentences(there)),
        unread.unread(there),
        tuple(each.status for each in hosts),
    )


def _status_json(seen: _Seen) -> dict[str, Any]:
    counts: dict[str, int] = {}
    for task in task_status.counted(seen.tasks):
        counts[task.state] = counts.get(task.state, 0) + 1
    spending = seen.account.spending
    agents = [
        {
            **msgspec.to_builtins(agent),
            "looks": msgspec.to_builtins(_looks(seen, agent, evidence)),
            "lease": [msgspec.to_builtins(each) for each in seen.leases if each.name == agent.name],
            "process": msgspec.to_builtins(evidence),
            "stopped_by": seen.account.stopped_by.get(agent.name, ""),
            **usage_json(spending.of_agent(agent.name)),
        }
        for agent, evidence in seen.agents
    ]
    return {
        "fleet": seen.store.meta("fleet"),
        "log": str(seen.store.path),
        **_moment(seen.store),
        "runner": _runner(seen),
        "is_over": seen.is_over,
        "change": {"number": seen.changed[0], "since_ms": seen.changed[1]},
        "agents": agents,
        "hosts": [msgspec.to_builtins(each) for each in seen.hosts],
        "tasks": counts,
        "removed": [task.id for task in seen.tasks if task.removed],
        "waiting": [msgspec.to_builtins(each) for each in seen.waiting],
        "unmerged": {task: places for task in _open(seen) if (places := seen.unmerged.of(task))},
        "doubts": seen.unmerged.doubts(_open(seen)),
        "quarantined": [msgspec.to_builtins(each) for each in seen.quarantined],
        "in_the_way": [msgspec.to_builtins(each) for each in seen.in_the_way],
        "unread": seen.unread,
        "notifiers": [msgspec.to_builtins(each) for each in seen.notifiers],
        **usage_json(spending.total),
    }


def _looks(seen: _Seen, agent: AgentStatus, evidence: Evidence | None) -> Looks | None:
    if seen.store.past is not None:
        return None
    return looks(agent, evidence, logs.now_ms(seen.store), runs=seen.runs)


def _moment(store: LogStore) -> dict[str, Any]:
    """Return of which moment a status of the past is; nothing for the present."""
    return {} if store.past is None else {"at": {"seq": store.past[0], "at_ms": store.past[1]}}


def _runner(seen: _Seen) -> str:
    """Return whether a runner is at work; the log does not say that of the past."""
    return "unknown" if seen.store.past is not None else "running" if seen.runs else "not running"


def _open(seen: _Seen) -> list[str]:
    """Return the ids of the tasks that are not closed."""
    return [each.id for each in seen.tasks if each.state != State.CLOSED]


def _status_lines(seen: _Seen, log: str) -> Iterator[str]:
    """Yield the lines of a status: progress, what waits for an operator, what has failed, the agents.

    A terminal gets as many as it has lines, those that need an operator first; a pipe gets all.
    """
    width, height, colours = terminal_width(), terminal_height(), is_coloured()
    head = [line for each in _headline(seen) for line in wrapped(each, width)]
    hosts = _host_lines(seen, width)
    room_of_agents = None if height is None else max(FEWEST_AGENTS, height // 2 - len(head) - len(hosts))
    agents = [*_agent_lines(seen, width, room_of_agents), *hosts]
    room = None if height is None else max(1, height - len(head) - len(agents))
    yield from head
    yield from concerns.lines(list(_concerns(seen, log, width)), width, room, colours=colours)
    yield from agents


def _host_lines(seen: _Seen, width: int | None) -> list[str]:
    """Return the table of hosts; nothing for a fleet on one machine."""
    if not seen.hosts:
        return []
    first = sorted(seen.hosts, key=lambda host: host.state == AT_WORK)[: host_lines.MOST_LINES]
    more = len(seen.hosts) - len(first)
    shown = host_lines.table(first if width is not None else seen.hosts, width).splitlines()
    return ["", *shown, *([as_typed(f"and {more} more hosts: lifefold hosts")] if more and width is not None else [])]


FEWEST_AGENTS: Final = 5
"""The fewest lines of the table of agents on a terminal."""


def _headline(seen: _Seen) -> Iterator[str]:
    """Yield how far the fleet is, and which plan change is in force."""
    tasks = task_status.counted(seen.tasks)
    others = [each for each in tasks if each.state != State.CLOSED]
    removed = f"{len(seen.tasks) - len(tasks)} removed" if len(seen.tasks) > len(tasks) else ""
    total = spent(seen.account.spending.total)
    runner = "a runner is at work" if seen.runs else "it is over" if seen.is_over else "no runner"
    runner = logs.then(seen.store) or runner
    closed = f"{len(tasks) - len(others)} of {len(tasks)} tasks closed"
    far = ", ".join(filter(None, (closed, in_words(others), removed)))
    yield f"fleet {seen.store.meta('fleet')}: {runner}; {far}{f'; spent {total}' if total else ''}"
    number, since_ms = seen.changed
    if number:
        yield f"plan change {number} is in force since {clock_time(since_ms / 1_000)}"


def _concerns(seen: _Seen, log: str, width: int | None) -> Iterator[Concern]:
    """Yield what waits for an operator, and what has failed."""
    tasks, now_ms = task_status.counted(seen.tasks), logs.now_ms(seen.store)
    folder = FleetFolder(seen.store.path)
    yield from concerns.waiting(awaited.quarantined(seen.quarantined, log))
    yield from concerns.waiting(awaited.lines(seen.waiting, seen.account.paused_by, log))
    yield from concerns.failed(tasks, log, None if width is None else concerns.REASON_LINES * width)
    if seen.runs:
        yield from concerns.failing(awaited.stuck((agent for agent, _ in seen.agents), now_ms, log))
    yield from concerns.failing(awaited.in_the_way(seen.in_the_way, now_ms))
    yield from concerns.failing(host_lines.refusals(seen.hosts))
    yield from concerns.failing(plain(line.encode()) for line in seen.untold)
    yield from concerns.failing(awaited.fallen(seen.account.stopped_by))
    if width is None and seen.store.past is None:  # a page has them for a person: lifefold output, lifefold show
        yield from concerns.failing(as_typed(line) for line in seen.account.outputs(tasks, folder, log))
    yield from concerns.failing(seen.unmerged.lines(_open(seen)))


def _agent_lines(seen: _Seen, width: int | None, room: int | None) -> list[str]:
    """Return the table of agents in at most ``room`` lines: those that need an operator come first then."""
    now_ms, spending = logs.now_ms(seen.store), seen.account.spending
    agents = seen.agents
    if room is not None and len(agents) >= room:
        evidence = {agent.name: found for agent, found in agents}
        first = agents_first(agent for agent, _ in agents)[: max(1, room - 2)]
        agents = [(agent, evidence[agent.name]) for agent in first]
    rows: list[tuple[str, ...]] = [("AGENT", "ASKED", "STATE", "FOR", "TASK", "ATTEMPT", "PROCESS", "NEXT")]
    rows += [
        (
            agent.name,
            asked(agent),
            _state(seen, agent, evidence),
            age(now_ms - agent.since_ms),
            work_of(agent),
            str(agent.attempt or "-"),
            _process(agent, evidence),
            next_of(agent, now_ms, is_gone=_is_missing(seen, agent, evidence)),
        )
        for agent, evidence in agents
    ]
    rows = with_column(rows, "TRUST", [agent.level or "-" for agent, _ in agents], rows[0].index("TASK"))
    rows = with_column(rows, "CONVERSATION", [agent.conversation or "-" for agent, _ in agents], rows[0].index("NEXT"))
    rows = with_column(rows, "TURN", [_turn(agent) or "-" for agent, _ in agents], rows[0].index("ATTEMPT"))
    rows = with_cost(rows, [spending.of_agent(agent.name) for agent, _ in agents], len(rows[0]))
    table = fitted(rows, width, first_out=_FIRST_OUT, shortened=("TASK", "AGENT", "STATE", "NEXT"), note=width is None)
    more = len(seen.agents) - len(agents)
    return [*table.splitlines(), *([f"and {more} more agents"] if more else [])]


def _state(seen: _Seen, agent: AgentStatus, evidence: Evidence | None) -> str:
    if seen.store.past is not None:
        return words.of_agent(agent.state, agent.task, agent.desired_state)
    return marked(_looks(seen, agent, evidence), plain_state(agent, evidence, runs=seen.runs))


def _is_missing(seen: _Seen, agent: AgentStatus, evidence: Evidence | None) -> bool:
    return seen.store.past is None and is_missing(agent, evidence, runs=seen.runs)


_FIRST_OUT: Final = ("CONVERSATION", "PROCESS", "TRUST", "TURN", "ASKED", "COST", "ATTEMPT")
"""The columns of agents that a narrow terminal leaves out first, in this order."""


def _turn(agent: AgentStatus) -> str:
    """Return the turn of an agent in words; one whose session was asked to end has no phase until the next session."""
    words = agent.turn.in_words() if agent.turn is not None else ""
    works = agent.turn is not None and agent.turn.state in turns.RUNS
    return "between sessions" if works and not agent.processes else words


def _process(agent: AgentStatus, evidence: Evidence | None) -> str:
    """Return the process of a session; a gone process is shown only if the log believes it alive."""
    if evidence is None or not (evidence.alive or agent.processes):
        return "-"
    where = f" on {evidence.host}" if evidence.host else ""
    return f"{evidence.pid} {'alive' if evidence.alive else 'gone'}{where}"
