"""``run --dry-run``: what a run would do, said before it; nothing is written, and no agent begins."""

import shlex
from collections.abc import Iterator, Sequence
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Final

import anyio

from lifefold.core.fleet import Caps, TaskPlan
from lifefold.core.fleet.dispatch import budgets
from lifefold.core.fleet.system import board
from lifefold.core.fleet.system.rerun import remainder
from lifefold.core.kernel import Aggregate
from lifefold.core.lifecycles.task import State
from lifefold.interpreters.cli import logs
from lifefold.interpreters.cli.commands import planning
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.fitting import terminal_width, wrapped
from lifefold.interpreters.cli.wording import age, in_shell
from lifefold.interpreters.explain.why.phrases import brief, count, enumerated
from lifefold.interpreters.fleet_file import Agent, Fleet, place_of
from lifefold.interpreters.fleet_file.budget import KEYS
from lifefold.interpreters.fleet_file.tasks import unproven
from lifefold.interpreters.fleet_runner import FleetFolder
from lifefold.interpreters.fleet_runner.log_owner import Before
from lifefold.interpreters.fleet_runner.python_targets import unloadable
from lifefold.interpreters.worktrees.errors import WorkplaceError
from lifefold.interpreters.worktrees.ready_branches import ready_branches_of
from lifefold.interpreters.worktrees.survey import survey
from lifefold.interpreters.worktrees.workplace import FolderWorkplace

_OVER: Final = frozenset({State.CLOSED, State.CANCELLED})


def dry_run(fleet: Fleet, log: Path, before: Before | None) -> int:
    """Print what a run would do; ``before`` are the runs that a new log continues.

    Raises ``BadInput`` for whatever would refuse the run.
    """
    if wrong := anyio.run(unloadable, fleet):
        raise BadInput("\n".join(wrong))
    branch = _branch(fleet, log)
    there = _board(log) if before is None else None
    left = _left(fleet, there, before)
    for line in _lines(fleet, log, branch, left, is_new=there is None):
        print(*wrapped(line, terminal_width()), sep="\n")
    found = planning.look(fleet, log) if there is not None else None
    if found is not None:
        planning.show(found, log)
        planning.must_be_possible(found, fleet, log)
    print("nothing was begun, and nothing is changed")
    return 0


def _branch(fleet: Fleet, log: Path) -> str:
    """Return the branch of the fleet's repository, empty without one. Raises ``BadInput`` where a run would."""
    try:
        if fleet.repository is None:
            FolderWorkplace.open(FleetFolder(log).worktrees)
            return ""
        return anyio.run(survey, fleet.repository)[1]
    except WorkplaceError as error:
        raise BadInput(f"{place_of(fleet.source, 'fleet', 'repository')}: {error}") from error


def _board(log: Path) -> Aggregate | None:
    if not log.exists():
        return None
    with logs.peek(str(log)) as store:
        return logs.fold(store).aggregates.get(board.NAME)


def _left(fleet: Fleet, there: Aggregate | None, before: Before | None) -> tuple[TaskPlan, ...]:
    """Return the tasks of the file that a run would do."""
    if before is not None:
        return remainder(fleet.plan, before.ended).tasks
    done = {each.id for each in fleet.tasks if there is not None and _is_over(there, each.id)}
    return tuple(each for each in fleet.tasks if each.id not in done)


def _is_over(there: Aggregate, name: str) -> bool:
    entity = there.entities.get(f"task:{name}")
    return entity is not None and entity.state in _OVER


def _of_work(fleet: Fleet, branch: str) -> str:
    """Return what becomes of verified work."""
    if fleet.to_branch:
        return f"work stays on branches {ready_branches_of(fleet.name).removeprefix('refs/heads/')}TASK"
    return f"work is merged into its branch {branch}"


def _lines(fleet: Fleet, log: Path, branch: str, left: Sequence[TaskPlan], *, is_new: bool) -> Iterator[str]:
    yield f"fleet {fleet.name}: {count(len(fleet.agents), 'agent')}, {count(len(left), 'task')} to do"
    yield f"  log: {log}{', which is new' if is_new else ', which the run continues'}"
    if fleet.repository is not None:
        yield f"  repository: {fleet.repository}; {_of_work(fleet, branch)}"
        yield f"  worktrees: {FleetFolder(log).worktrees}, one for each agent"
    else:
        yield f"  no repository: folders in {FleetFolder(log).worktrees}, one for each task; nothing is merged"
    yield from (f"  limit: {line}" for line in _limits(fleet.budget.caps, "the fleet"))
    yield "agents:"
    yield from (f"  {each.name}: {'; '.join(_about(each))}" for each in fleet.agents)
    yield from (f"  {each.name}: service, {shlex.join(each.written_command)}" for each in fleet.services)
    yield "tasks, in the order in which they may begin:"
    differ = len({each.priority for each in left}) > 1
    for step, tasks in enumerate(steps(left), 1):
        for each in tasks:
            priority = f"priority {each.priority}; " if differ else ""
            yield f"  {step}. {each.id}: {priority}{'; '.join(_of_task(fleet, each))}"
    asked = [*_asked(fleet, left)]
    yield from ("waits for you:", *(f"  {each}" for each in asked)) if asked else ("waits for you: nothing",)
    for warning in (*fleet.warnings, *unproven(left, merges=fleet.repository is not None)):
        yield f"warning: {warning}"


def steps(tasks: Sequence[TaskPlan]) -> Iterator[list[TaskPlan]]:
    """Yield the tasks that may begin together; each step waits for tasks of earlier ones.

    The first of a step has the highest priority, and among equals comes first in the file, as the board claims them.
    """
    by_id = {each.id: each for each in tasks}
    sorter = TopologicalSorter({each.id: [name for name in each.depends_on if name in by_id] for each in tasks})
    place = {each.id: number for number, each in enumerate(tasks)}
    sorter.prepare()
    while sorter.is_active():
        ready = sorter.get_ready()
        yield sorted((by_id[name] for name in ready), key=lambda each: (each.priority, place[each.id]))
        sorter.done(*ready)


def _about(agent: Agent) -> Iterator[str]:
    if agent.program is not None:
        yield " ".join(filter(None, (agent.program.adapter, agent.program.model)))
    else:
        yield agent.target or agent.written_command[0]
    if agent.account:
        yield f"account {agent.account}"
    if agent.roles:
        yield f"roles {enumerated(agent.roles)}"
    if agent.limits.session_timeout_ms is not None:
        longest = age(agent.limits.session_timeout_ms)
        yield f"a session takes at most {longest}{', by experience less' if agent.adaptive else ''}"
    yield from _limits(agent.caps, "the agent")


def _limits(caps: Caps, whose: str) -> Iterator[str]:
    for resource in KEYS:
        cap = caps.of(resource)
        if cap is not None:
            yield f"{whose} spends at most {budgets.in_words(resource, cap)}"


def _of_task(fleet: Fleet, task: TaskPlan) -> Iterator[str]:
    able = [each.name for each in fleet.agents if _may_take(fleet, each, task)]
    yield f"for {brief(enumerated(able, 'or'))}" if able else "for no agent, as trust stands now"
    if task.depends_on:
        yield f"after {enumerated(task.depends_on)}"
    yield f"verified by {enumerated([in_shell(each) for each in task.verify])}" if task.verify else "not verified"
    if task.files:
        yield f"alone at {enumerated(task.files)}"
    yield from _limits(task.caps, "it")


def _may_take(fleet: Fleet, agent: Agent, task: TaskPlan) -> bool:
    least = max(fleet.gates.claim if fleet.gates is not None else task.trust, task.trust)
    return agent.trust >= least and (not task.role or task.role in agent.roles)


def _asked(fleet: Fleet, left: Sequence[TaskPlan]) -> Iterator[str]:
    """Yield what an operator is asked during the run."""
    if fleet.approve_plan:
        yield "the plan, before its first task: lifefold approve"
    work = [each.id for each in left if each.needs_approval]
    if work:
        yield f"the work of {brief(enumerated(work))}, before its merge: lifefold approve TASK"
    if fleet.questions is not None:
        yield "questions and permissions of agents, as they come: lifefold answer, lifefold approve"
    if fleet.watch:
        yield "more tasks, until lifefold finish"
