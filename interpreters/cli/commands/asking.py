"""Commands that ask a log: ``status``, ``tasks``, ``log``. They work while a fleet runs and when it does not."""

import json
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from lifefold.core.fleet import status as projection
from lifefold.core.fleet import system
from lifefold.core.fleet.status import AgentStatus, TaskStatus, Waiting
from lifefold.core.session import Usage
from lifefold.core.task import State
from lifefold.interpreters.cli import awaited, logs
from lifefold.interpreters.cli.account import Account, usage_json
from lifefold.interpreters.cli.story import told
from lifefold.interpreters.cli.words import (
    age,
    asked,
    by_number,
    by_state,
    columns,
    coming,
    cost,
    plain_state,
    spent,
    work_of,
)
from lifefold.interpreters.engine import Ledger
from lifefold.interpreters.run.evidence import Evidence, look
from lifefold.interpreters.run.folder import FleetFolder
from lifefold.interpreters.store import SqliteStore


class _Seen(msgspec.Struct):
    """A fleet as its log has it at a moment, and what was found of its processes."""

    store: SqliteStore
    agents: list[tuple[AgentStatus, Evidence | None]]
    tasks: tuple[TaskStatus, ...]
    waiting: tuple[Waiting, ...]
    account: Account
    runs: bool


def status(arguments: Namespace) -> None:
    """Print what was asked of the agents, what the log says of them, what is there, and what waits for a person."""
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
    tasks = projection.tasks(there) if there else ()
    return _Seen(store, found, tasks, projection.waiting(there), account, runs)


def _status_json(seen: _Seen) -> dict[str, Any]:
    counts: dict[str, int] = {}
    for task in seen.tasks:
        counts[task.state] = counts.get(task.state, 0) + 1
    spending = seen.account.spending
    agents = [
        {
            **msgspec.to_builtins(agent),
            "process": msgspec.to_builtins(evidence),
            **usage_json(spending.of_agent(agent.name)),
        }
        for agent, evidence in seen.agents
    ]
    return {
        "fleet": seen.store.meta("fleet"),
        "log": str(seen.store.path),
        "runner": "running" if seen.runs else "not running",
        "agents": agents,
        "tasks": counts,
        "waiting": [msgspec.to_builtins(each) for each in seen.waiting],
        **usage_json(spending.total),
    }


def _status_lines(seen: _Seen, log: str) -> Iterator[str]:
    """Yield what a person reads: how far it is, what waits for a word, the agents."""
    closed = sum(1 for task in seen.tasks if task.state == State.CLOSED)
    others = [f"{count} {state}" for state, count in by_state(seen.tasks) if state != State.CLOSED]
    spending = seen.account.spending
    total = spent(spending.total)
    runner = "a runner is at work" if seen.runs else "no runner"
    far = ", ".join((f"{closed} of {len(seen.tasks)} tasks closed", *others))
    yield f"fleet {seen.store.meta('fleet')}: {runner}; {far}{f'; spent {total}' if total else ''}"
    yield from (f"! {line}" for line in awaited.lines(seen.waiting, seen.account.paused_by, log))
    now_ms = time.time_ns() // 1_000_000
    rows: list[tuple[str, ...]] = [("AGENT", "ASKED", "STATE", "FOR", "TASK", "SESSION", "ATTEMPT", "PROCESS", "NEXT")]
    rows += [
        (
            agent.name,
            asked(agent),
            plain_state(agent, evidence),
            age(now_ms - agent.since_ms),
            work_of(agent),
            str(agent.session_seq),
            str(agent.attempt),
            _process(evidence),
            coming(agent.timer, now_ms),
        )
        for agent, evidence in seen.agents
    ]
    trust = [agent.level or "-" for agent, _ in seen.agents]
    rows = _with(rows, "TRUST", trust, rows[0].index("TASK"))
    yield columns(_with_cost(rows, [spending.of_agent(agent.name) for agent, _ in seen.agents], len(rows[0])))


def _with_cost(rows: Sequence[tuple[str, ...]], usages: Sequence[Usage], place: int) -> list[tuple[str, ...]]:
    """Return rows, the first of them the head, with a column of what each has cost; without it if nothing is known."""
    known = any(usage != Usage() for usage in usages)
    return _with(rows, "COST", [cost(usage) for usage in usages] if known else ["-"] * len(usages), place)


def _with(rows: Sequence[tuple[str, ...]], head: str, cells: Sequence[str], place: int) -> list[tuple[str, ...]]:
    """Return rows with one more column; without it if none of its cells says anything."""
    if all(cell == "-" for cell in cells):
        return list(rows)
    return [(*row[:place], cell, *row[place:]) for row, cell in zip(rows, (head, *cells), strict=True)]


def _process(evidence: Evidence | None) -> str:
    if evidence is None:
        return "-"
    return f"{evidence.pid} {'alive' if evidence.alive else 'gone'}"


def tasks(arguments: Namespace) -> None:
    """Print the tasks."""
    with logs.peek(arguments.db) as store:
        ledger, account = logs.fold_with_account(store)
    found = projection.tasks(ledger.aggregates) if ledger.aggregates else ()
    usages = [account.spending.of_task(task.id) for task in found]
    if arguments.json:
        pairs = zip(found, usages, strict=True)
        print(json.dumps([{**msgspec.to_builtins(task), **usage_json(usage)} for task, usage in pairs], indent=2))
        return
    now_ms = time.time_ns() // 1_000_000
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
            coming(task.timer, now_ms),
            " ".join(task.reason.split()) or "-",
        )
        for task in found
    ]
    rows = _with(rows, "TRUST", [task.level or "-" for task in found], rows[0].index("AFTER"))
    print(columns(_with_cost(rows, usages, rows[0].index("COMMIT"))))


def log(arguments: Namespace) -> None:
    """Print every transition."""
    with logs.peek(arguments.db) as store:
        happenings = [
            happening
            for decision in logs.decisions(store, Ledger(system))
            for happening in told(decision.entry.stream, decision.reaction)
        ]
    if arguments.json:
        print(json.dumps(msgspec.to_builtins([happening.event for happening in happenings]), indent=2))
        return
    for happening in happenings:
        print(happening.line())
