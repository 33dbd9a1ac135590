"""Loads a fleet file: text, TOML, tables, a validated fleet. Each stage is a ``Result``; the first failure ends it.

All errors of the tables are reported together, with file, line and key.
"""

import re
import tomllib
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace
from returns.result import Failure, Result, Success

from lifefold.core.fleet import GatePlan, TaskPlan
from lifefold.core.policy.intensity import Restart
from lifefold.interpreters.fleet_file.agents import read_agents, written_roles
from lifefold.interpreters.fleet_file.budget import FleetBudgetKeys, check_caps, with_time
from lifefold.interpreters.fleet_file.cluster import read_cluster
from lifefold.interpreters.fleet_file.command import placeholders
from lifefold.interpreters.fleet_file.config import RESTART, FleetKeys, fleet_of, written_in
from lifefold.interpreters.fleet_file.files import read_text
from lifefold.interpreters.fleet_file.interpreters import performs_effects_alone, read_interpreters
from lifefold.interpreters.fleet_file.meaning import meaning
from lifefold.interpreters.fleet_file.model import Agent, Fleet, InterpreterEntry, Service
from lifefold.interpreters.fleet_file.notify import read_notifiers
from lifefold.interpreters.fleet_file.prices import read_prices
from lifefold.interpreters.fleet_file.problems import FleetFileError, Problem, Problems, Report
from lifefold.interpreters.fleet_file.programs import report_unpriced
from lifefold.interpreters.fleet_file.questions import QUESTIONS, with_answers
from lifefold.interpreters.fleet_file.table import Table
from lifefold.interpreters.fleet_file.tasks import Crew, read_tasks

T = TypeVar("T")

_LINE = re.compile(r"\bat line (\d+)")


class Tables(msgspec.Struct, frozen=True):
    """The tables of a file, each read by itself; their errors are in the report of ``root``."""

    root: Table
    table: Table
    fleet: Fleet
    agents: Sequence[Agent]
    services: Sequence[Service]
    tasks: Sequence[TaskPlan]
    watch: bool


def load(path: Path | str, *, watch: bool = False) -> Fleet:
    """Return the fleet of a file, as ``read`` does. Raises ``FleetFileError`` with all errors."""
    return sound(read(path, watch=watch))


def load_text(text: str, path: Path | str, *, watch: bool = False) -> Fleet:
    """Return the fleet of a text, which is or will be that of a file. Raises ``FleetFileError`` with all errors."""
    return sound(read_of(text, path, watch=watch))


def sound(outcome: Result[T, Problems]) -> T:
    """Return the value of an outcome. Raises ``FleetFileError`` with all errors."""
    if isinstance(outcome, Failure):
        raise FleetFileError(outcome.failure())
    return outcome.unwrap()


def read(path: Path | str, *, watch: bool = False) -> Result[Fleet, Problems]:
    """Return the fleet of a file, or all errors of the file.

    With ``watch`` the file may have no tasks. Paths in the file are relative to its folder. Only the file, its prompt
    files, the folder of the repository and the programs are examined.
    """
    found = text_of(Path(path).absolute(), str(path))
    return Failure(found.failure()) if isinstance(found, Failure) else read_of(found.unwrap(), path, watch=watch)


def read_of(text: str, path: Path | str, *, watch: bool = False) -> Result[Fleet, Problems]:
    """Return the fleet of a text, which is or will be that of a file, or all errors of the text."""
    file, source = str(path), Path(path).absolute()
    return Result.do(
        fleet
        for document in document_of(text, file)
        for fleet in validated(_tables(Table(Report(file, text), document), source, watch=watch))
    )


def _tables(root: Table, source: Path, *, watch: bool) -> Tables:
    """Read all tables, in the order of their dependencies."""
    table = root.table(FleetKeys)
    fleet = fleet_of(table, source)
    fleet = replace(fleet, questions=with_answers(root, fleet.questions), prices=read_prices(root))
    fleet = replace(fleet, notify=(*read_notifiers(root, source.parent), *fleet.notify))
    agents, services = read_agents(root, source.parent, fleet)
    names = [*(each.name for each in agents), *(each.name for each in services)]
    has_repository = fleet.repository is not None
    fleet = replace(fleet, cluster=read_cluster(root, source.parent, names, has_repository=has_repository))
    used = {placeholder for agent in agents for argument in agent.command for placeholder in placeholders(argument)}
    share = with_time(fleet.budget, [agent.limits for agent in agents]).share
    check_caps(table.table(FleetBudgetKeys), fleet.budget.caps, share)
    is_argument = "prompt" in used or any(agent.program for agent in agents)
    crew = Crew(is_argument, written_roles(root), share, has_repository, to_branch=fleet.to_branch)
    tasks = read_tasks(root, source.parent, crew, may_be_none=watch or (bool(services) and not agents))
    return Tables(root, table, fleet, agents, services, tasks, watch)


def validated(tables: Tables) -> Result[Fleet, Problems]:
    """Validate the tables together: return the fleet, or all errors."""
    _must_have_workers(tables)
    report_unpriced(tables.root, tables.fleet, tables.agents, tables.tasks)
    gates = _gates(tables)
    _warn_of_what_has_no_effect(tables)
    interpreters = list(read_interpreters(tables.root))
    tables.root.finish()
    return tables.root.report.outcome(tables).map(lambda sound: _planned(sound, gates, interpreters))


def _must_have_workers(tables: Tables) -> None:
    if not tables.services or tables.agents:
        return
    if not tables.watch:
        accepted = "an agent of another kind that takes the tasks, or lifefold run --watch, for services alone"
        tables.root.problem(
            "agents", f"the file has services only, and a fleet ends with its tasks; accepted: {accepted}"
        )
    elif tables.tasks:
        tables.root.problem(
            "tasks", "the file has services only; accepted: tasks in a fleet with an agent that takes them"
        )


def _warn_of_what_has_no_effect(tables: Tables) -> None:
    fleet, table = tables.fleet, tables.table
    if fleet.restarts is None and any(each.restart != Restart() for each in tables.agents):
        table.warn(RESTART, "no agent is restarted without [fleet.restart], so [agents.restart] has no effect")
    if fleet.questions is not None and find_spec("mcp") is None:
        table.warn(QUESTIONS, "without the package mcp no agent can ask an operator: pip install 'lifefold[mcp]'")
    if "approval_timeout" in table and not any(task.needs_approval for task in tables.tasks) and not fleet.gates:
        table.warn("approval_timeout", 'no task has approval = "merge", so approval_timeout has no effect')


def _gates(tables: Tables) -> GatePlan | None:
    """Return the gates of the fleet; some agent must be able to take a first task."""
    agents, tasks, gates = tables.agents, tables.tasks, tables.fleet.gates
    if gates is None and (any(each.trust for each in agents) or any(each.trust for each in tasks)):
        gates = GatePlan()
    if gates is None or not agents or not tasks or tables.watch:
        return gates
    if not any(_may_begin(agents, gates, task) for task in tasks):
        accepted = "an agent with the trust for a task without dependencies, or lifefold run --watch, to promote one"
        tables.table.problem("gates", f"no agent has the trust to begin with any task; accepted: {accepted}")
    return gates


def _planned(tables: Tables, gates: GatePlan | None, interpreters: list[InterpreterEntry]) -> Fleet:
    """Combine the tables into one fleet, with its meaning."""
    kept = [each for each in interpreters if not performs_effects_alone(each)]
    agents, services, tasks = tables.agents, tables.services, tables.tasks
    return replace(
        tables.fleet,
        agents=tuple(agents),
        services=tuple(services),
        tasks=tuple(tasks),
        watch=tables.watch,
        gates=gates,
        warnings=tuple(tables.root.report.warnings),
        interpreters=tuple(interpreters),
        meaning=meaning(written_in(tables.fleet, tables.table), agents, tasks, kept, services, tables.fleet.notify),
    )


def _may_begin(agents: Sequence[Agent], gates: GatePlan, task: TaskPlan) -> bool:
    """Tell whether an agent has the trust to take a task without dependencies at the start."""
    least = max(gates.claim, task.trust)
    able = [each for each in agents if each.trust >= least and (not task.role or task.role in each.roles)]
    return bool(able) and not task.depends_on


def text_of(source: Path, file: str) -> Result[str, Problems]:
    """Return the text of the file, or why it is unreadable."""
    try:
        return Success(read_text(source))
    except (OSError, ValueError) as error:
        return unreadable(file, f"cannot read this fleet file: {getattr(error, 'strerror', None) or error}")


def document_of(text: str, file: str) -> Result[dict[str, Any], Problems]:
    """Return the text as TOML, or why it is not TOML."""
    try:
        return Success(tomllib.loads(text))
    except RecursionError:
        return unreadable(file, "this is nested too deeply")
    except ValueError as error:
        # Besides TOMLDecodeError: Python refuses to read an integer of thousands of digits.
        line = _LINE.search(str(error))
        return unreadable(file, f"this is not TOML: {error}", int(line[1]) if line else None)


def unreadable(file: str, message: str, line: int | None = None) -> Failure[Problems]:
    """Return the one error of a text that cannot be read at all."""
    return Failure((Problem(file, "", line, message),))
