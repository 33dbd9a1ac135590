"""The commands ``status`` and ``tasks``: they read the log, with or without a runner."""

import json
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from lifefold.core.fleet.system import board, plan_change
from lifefold.core.fleet.system.rerun import is_over
from lifefold.core.fleet.worker import turns
from lifefold.core.lifecycles.session import Usage
from lifefold.core.lifecycles.task import State
from lifefold.interpreters.cli import awaited, logs
from lifefold.interpreters.cli.account import Account, usage_json
from lifefold.interpreters.cli.fitting import fitted, terminal_width
from lifefold.interpreters.cli.wording import (
    age,
    as_typed,
    asked,
    by_number,
    by_state,
    clock_time,
    coming,
    cost,
    is_missing,
    next_of,
    plain_state,
    spent,
    work_of,
)
from lifefold.interpreters.explain import status as projection
from lifefold.interpreters.explain import task_status, unread
from lifefold.interpreters.explain.accounts import Balance, balances
from lifefold.interpreters.explain.notifications import NotifierStatus, notifiers, troubles
from lifefold.interpreters.explain.pending import Waiting
from lifefold.interpreters.explain.status import AgentStatus
from lifefold.interpreters.explain.task_status import TaskStatus
from lifefold.interpreters.fleet_runner import quarantines
from lifefold.interpreters.fleet_runner.agent_looks import Looks, looks, marked
from lifefold.interpreters.fleet_runner.blocked_merges import Wait, read_waits
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.process_evidence import Evidence, look
from lifefold.interpreters.fleet_runner.quarantines import Quarantine
from lifefold.interpreters.fleet_runner.unmerged_work import UnmergedWork
from lifefold.interpreters.processes.command import plain
from lifefold.interpreters.store import SqliteStore


class _Seen(msgspec.Struct):
    """A fleet at one moment: its state in the log, its processes, and its blocked merges."""

    store: SqliteStore
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


def status(arguments: Namespace) -> None:
    """Print the agents with desired state, state and process, and the decisions that the fleet waits for."""
    with logs.peek(arguments.db) as store:
        seen = _look(store)
        if arguments.json:
            print(json.dumps(_status_json(seen), indent=2))
            return
        for line in _status_lines(seen, logs.option(store.path)):
            print(line)


def _look(store: SqliteStore) -> _Seen:
    ledger, account = logs.fold_with_account(store)
    runs, folder, there = store.is_written(), FleetFolder(store.path), ledger.aggregates
    agents = sorted(projection.agents(there), key=lambda agent: by_number(agent.name))
    found = [(agent, look(folder, agent)) for agent in agents]
    tasks = account.claimed(task_status.tasks(there)) if there else ()
    in_the_way = read_waits(folder.waits) if awaited.goes_on(there) else ()
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
        "runner": "running" if seen.runs else "not running",
        "is_over": seen.is_over,
        "change": {"number": seen.changed[0], "since_ms": seen.changed[1]},
        "agents": agents,
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
    return looks(agent, evidence, time.time_ns() // 1_000_000, runs=seen.runs)


def _open(seen: _Seen) -> list[str]:
    """Return the ids of the tasks that are not closed."""
    return [each.id for each in seen.tasks if each.state != State.CLOSED]


def _status_lines(seen: _Seen, log: str) -> Iterator[str]:
    """Yield the lines of a status: progress, decisions that the fleet waits for, failures, agents."""
    tasks = task_status.counted(seen.tasks)
    closed = sum(1 for task in tasks if task.state == State.CLOSED)
    others = [f"{count} {state}" for state, count in by_state(tasks) if state != State.CLOSED]
    others += [f"{len(seen.tasks) - len(tasks)} removed"] if len(seen.tasks) > len(tasks) else []
    spending = seen.account.spending
    total = spent(spending.total)
    runner = "a runner is at work" if seen.runs else "it is over" if seen.is_over else "no runner"
    far = ", ".join((f"{closed} of {len(tasks)} tasks closed", *others))
    yield f"fleet {seen.store.meta('fleet')}: {runner}; {far}{f'; spent {total}' if total else ''}"
    now_ms = time.time_ns() // 1_000_000
    number, since_ms = seen.changed
    if number:
        yield f"plan change {number} is in force since {clock_time(since_ms / 1_000)}"
    yield from (f"! {line}" for line in awaited.quarantined(seen.quarantined, log))
    yield from (f"! {line}" for line in awaited.lines(seen.waiting, seen.account.paused_by, log))
    yield from (f"! {line}" for line in awaited.in_the_way(seen.in_the_way, now_ms))
    yield from (f"! {plain(line.encode())}" for line in seen.untold)
    yield from (f"! {line}" for line in awaited.fallen(seen.account.stopped_by))
    yield from (f"! {as_typed(line)}" for line in seen.account.outputs(tasks, FleetFolder(seen.store.path), log))
    yield from (f"! {line}" for line in seen.unmerged.lines(_open(seen)))
    rows: list[tuple[str, ...]] = [("AGENT", "ASKED", "STATE", "FOR", "TASK", "SESSION", "ATTEMPT", "PROCESS", "NEXT")]
    rows += [
        (
            agent.name,
            asked(agent),
            marked(_looks(seen, agent, evidence), plain_state(agent, evidence, runs=seen.runs)),
            age(now_ms - agent.since_ms),
            work_of(agent),
            str(agent.session_seq),
            str(agent.attempt),
            _process(agent, evidence),
            next_of(agent, now_ms, is_gone=is_missing(agent, evidence, runs=seen.runs)),
        )
        for agent, evidence in seen.agents
    ]
    trust = [agent.level or "-" for agent, _ in seen.agents]
    rows = _with(rows, "TRUST", trust, rows[0].index("TASK"))
    rows = _with(rows, "CONVERSATION", [agent.conversation or "-" for agent, _ in seen.agents], rows[0].index("NEXT"))
    phases = [_turn(agent) or "-" for agent, _ in seen.agents]
    rows = _with(rows, "TURN", phases, rows[0].index("SESSION"))
    rows = _with_cost(rows, [spending.of_agent(agent.name) for agent, _ in seen.agents], len(rows[0]))
    yield fitted(rows, terminal_width(), first_out=_FIRST_OUT, shortened=("TASK", "AGENT", "STATE", "NEXT"))


_FIRST_OUT: Final = ("CONVERSATION", "SESSION", "ATTEMPT", "PROCESS", "TRUST", "TURN", "ASKED", "COST")
"""The columns of agents that a narrow terminal leaves out first, in this order."""


def _turn(agent: AgentStatus) -> str:
    """Return the turn of an agent in words; one whose session was asked to end has no phase until the next session."""
    words = agent.turn.in_words() if agent.turn is not None else ""
    works = agent.turn is not None and agent.turn.state in turns.RUNS
    return "between sessions" if works and not agent.processes else words


def _with_cost(rows: Sequence[tuple[str, ...]], usages: Sequence[Usage], place: int) -> list[tuple[str, ...]]:
    """Return rows, the first of them the head, with a column COST; without it if no cost is known."""
    known = any(usage != Usage() for usage in usages)
    return _with(rows, "COST", [cost(usage) for usage in usages] if known else ["-"] * len(usages), place)


def _with(rows: Sequence[tuple[str, ...]], head: str, cells: Sequence[str], place: int) -> list[tuple[str, ...]]:
    """Return rows with one more column; without it if all its cells are hyphens."""
    if all(cell == "-" for cell in cells):
        return list(rows)
    return [(*row[:place], cell, *row[place:]) for row, cell in zip(rows, (head, *cells), strict=True)]


def _process(agent: AgentStatus, evidence: Evidence | None) -> str:
    """Return the process of a session; a gone process is shown only if the log believes it alive."""
    if evidence is None or not (evidence.alive or agent.processes):
        return "-"
    return f"{evidence.pid} {'alive' if evidence.alive else 'gone'}"


def tasks(arguments: Namespace) -> None:
    """Print the tasks."""
    with logs.peek(arguments.db) as store:
        ledger, account = logs.fold_with_account(store)
    there = ledger.aggregates
    found = account.claimed(task_status.tasks(there)) if there else ()
    usages = [account.spending.of_task(task.id) for task in found]
    if arguments.json:
        pairs = zip(found, usages, strict=True)
        print(json.dumps([{**msgspec.to_builtins(task), **usage_json(usage)} for task, usage in pairs], indent=2))
        return
    now_ms = time.time_ns() // 1_000_000
    goes_on = awaited.goes_on(there)
    rows: list[tuple[str, ...]] = [("TASK", "STATE", "OWNER", "CLAIMS", "RETRIES", "AFTER", "COMMIT", "NEXT", "REASON")]
    rows += [
        (
            task.id,
            task.state,
            task.owner or "-",
            str(task.claims),
            f"{task.retries}/{task.max_retries}",
            ",".join(task.depends_on) or "-",
            task.commit[:10] or "-",
            coming(task.timer if goes_on else None, now_ms),
            " ".join(task.reason.split()) or "-",
        )
        for task in found
    ]
    rows = _with(rows, "TRUST", [task.level or "-" for task in found], rows[0].index("AFTER"))
    rows = _with_cost(rows, usages, rows[0].index("COMMIT"))
    first_out = ("COMMIT", "AFTER", "CLAIMS", "TRUST", "COST", "RETRIES")
    print(fitted(rows, terminal_width(), first_out=first_out, shortened=("REASON", "TASK", "OWNER")))
