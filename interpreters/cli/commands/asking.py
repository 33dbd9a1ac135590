"""Commands that ask a log: ``status``, ``tasks``, ``log``. They work while a fleet runs and when it does not."""

import json
import time
from argparse import Namespace
from typing import Any

import msgspec

from lifefold.core.fleet import status as projection
from lifefold.core.fleet import system
from lifefold.interpreters.cli import logs
from lifefold.interpreters.cli.story import told
from lifefold.interpreters.cli.words import age, asked, by_number, columns, coming, plain_state
from lifefold.interpreters.engine import Ledger
from lifefold.interpreters.run.evidence import Evidence, look
from lifefold.interpreters.run.folder import FleetFolder
from lifefold.interpreters.store import SqliteStore


def status(arguments: Namespace) -> None:
    """Print what was asked of the agents, what the log says of them, and what is there."""
    with logs.peek(arguments.db) as store:
        ledger = logs.fold(store)
        runs = store.is_written()
        folder = FleetFolder(store.path)
        found = [(agent, look(folder, agent)) for agent in projection.agents(ledger.aggregates)]
        tasks = projection.tasks(ledger.aggregates) if ledger.aggregates else ()
        if arguments.json:
            print(json.dumps(_status_json(store, found, tasks, runs=runs), indent=2))
            return
        _print_status(store, found, tasks, runs=runs)


def _status_json(store: SqliteStore, found: Any, tasks: Any, *, runs: bool) -> dict[str, Any]:
    counts: dict[str, int] = {}
    for task in tasks:
        counts[task.state] = counts.get(task.state, 0) + 1
    agents = [{**msgspec.to_builtins(agent), "process": msgspec.to_builtins(evidence)} for agent, evidence in found]
    return {
        "fleet": store.meta("fleet"),
        "log": str(store.path),
        "runner": "running" if runs else "not running",
        "agents": agents,
        "tasks": counts,
    }


def _print_status(store: SqliteStore, found: Any, tasks: Any, *, runs: bool) -> None:
    now_ms = time.time_ns() // 1_000_000
    closed = sum(1 for task in tasks if task.state == "CLOSED")
    runner = "a runner is at work" if runs else "no runner"
    print(f"fleet {store.meta('fleet')}: {runner}; {closed} of {len(tasks)} tasks closed")
    rows = [("AGENT", "ASKED", "STATE", "FOR", "TASK", "SESSION", "ATTEMPT", "PROCESS", "NEXT")]
    rows += [
        (
            agent.name,
            asked(agent),
            plain_state(agent, evidence),
            age(now_ms - agent.since_ms),
            agent.task or "-",
            str(agent.session_seq),
            str(agent.attempt),
            _process(evidence),
            coming(agent.timer, now_ms),
        )
        for agent, evidence in sorted(found, key=lambda each: by_number(each[0].name))
    ]
    print(columns(rows))


def _process(evidence: Evidence | None) -> str:
    if evidence is None:
        return "-"
    return f"{evidence.pid} {'alive' if evidence.alive else 'gone'}"


def tasks(arguments: Namespace) -> None:
    """Print the tasks."""
    with logs.peek(arguments.db) as store:
        ledger = logs.fold(store)
    found = projection.tasks(ledger.aggregates) if ledger.aggregates else ()
    if arguments.json:
        print(json.dumps(msgspec.to_builtins(found), indent=2))
        return
    rows = [("TASK", "STATE", "OWNER", "CLAIMS", "RETRIES", "AFTER", "COMMIT", "REASON")]
    rows += [
        (
            task.id,
            task.state,
            task.owner or "-",
            str(task.claims),
            f"{task.retries}/{task.max_retries}",
            ",".join(task.depends_on) or "-",
            task.commit[:10] or "-",
            " ".join(task.reason.split()) or "-",
        )
        for task in found
    ]
    print(columns(rows))


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
