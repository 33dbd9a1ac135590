"""The ``[[tasks]]`` of a fleet file."""

import os
import shutil
from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Final, Literal

import msgspec

from lifefold.core.fleet import TaskPlan
from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.system.plan import MOST_RETRIES
from lifefold.core.fleet.system.ready_branches import impossible_keys
from lifefold.core.lifecycles.budget.amounts import Amounts
from lifefold.core.lifecycles.task import OnDeath, OnNothing
from lifefold.core.policy.access import AccessLevel
from lifefold.interpreters.explain.why.phrases import brief, enumerated
from lifefold.interpreters.fleet_file import forms, values
from lifefold.interpreters.fleet_file.budget import TaskBudgetKeys, check_caps, read_caps
from lifefold.interpreters.fleet_file.files import read_text
from lifefold.interpreters.fleet_file.gates import LEVEL
from lifefold.interpreters.fleet_file.keys import Key, Section
from lifefold.interpreters.fleet_file.table import Names, Table

LONGEST_ARGUMENT_BYTES = 100_000
"""The longest prompt as an argument; Linux allows 131072 bytes, and the prompt of a retry is longer."""

LOWEST_PRIORITY = 1_000

ON_DEATH: Final = forms.choice(*OnDeath)
"""The outcome of a task after the death of its session."""

ON_NOTHING: Final = forms.choice(*OnNothing)
"""The outcome of a task without verification and without a change."""


NEEDS_COMMANDS: Final = '"verify" for a task with commands in verify, which decide about the work'
WITH_BRANCHES: Final = 'merge = "branch" in [fleet] merges nothing: '
"""Why some keys are impossible there; a reason follows."""
NEEDS_REPOSITORY: Final = '"verify" in a fleet with a repository: without one the changes of a session are unknown'


class TaskKeys(Section, header="[[tasks]]", named_by="id", one_of=("prompt", "prompt_file"), least=1):
    """The tasks."""

    id = Key(forms.TASK_ID, "the id", "", required=True)
    prompt = Key(forms.TEXT, "the prompt: at most 100,000 bytes if the command of any agent has `{prompt}`", "")
    prompt_file = Key(forms.TEXT, "a file with the prompt", "")
    verify = Key[tuple[tuple[str, ...], ...]](
        forms.COMMANDS,
        "commands that must all exit with 0, in the task's worktree, before the merge; each a program on PATH, or a"
        " path in the worktree",
        (),
    )
    depends_on = Key[tuple[str, ...]](
        forms.TASK_IDS, "tasks that must be closed (verified and merged) before this one begins", ()
    )
    priority = Key(forms.integer(1, LOWEST_PRIORITY), "1 is the highest", 2)
    max_retries = Key(forms.integer(0, MOST_RETRIES), "the retries after a failure", 3)
    role = Key(forms.NAME, "only agents with this role in their `roles` get it", "", absent="any agent")
    trust = Key(LEVEL, "only agents with this trust get it", AccessLevel.UNTRUSTED)
    files = Key[tuple[str, ...]](
        forms.WORK_PATHS,
        "the files it changes, a folder for its content; tasks with common files run one at a time",
        (),
    )
    approval = Key(forms.NONE_OR_MERGE, '`"merge"`: an operator must approve its work before the merge', "none")
    max_subtasks = Key(
        forms.integer(0, fleet_task.MOST_SUBTASKS),
        "the most tasks that its agents may split it into, over all attempts",
        0,
    )
    subtasks_timeout = Key(
        forms.duration(1), "the longest wait for the tasks that it was split into", fleet_task.SUBTASKS_MS
    )
    orphaned = Key[OnDeath | None](
        ON_DEATH, "the outcome after the death of its session, as `orphaned` of the fleet", None, absent="the fleet's"
    )
    on_nothing = Key(
        ON_NOTHING,
        "the outcome of a session that succeeds without a change in the repository, if it has no `verify`:"
        " `close` is for tasks that need not change anything",
        OnNothing.FAIL,
    )
    on_retry = Key[Literal["resume", "anew"] | None](
        forms.ON_RETRY, "the conversation of a retry, as `on_retry` of the fleet", None, absent="the fleet's"
    )
    budget = TaskBudgetKeys


class Crew(msgspec.Struct, frozen=True):
    """The settings of agents that tasks must fit.

    ``prompt_is_argument``: the command of an agent has the prompt as an argument, which limits the length of prompts.
    ``roles`` are those of the agents, ``share`` is the reservation of a claim, and ``merges`` tells whether there is a
    repository. ``others`` are tasks of a living fleet, on which more tasks can depend. ``to_branch``: verified work
    stays on a branch of its task.
    """

    prompt_is_argument: bool
    roles: Sequence[str]
    share: Amounts
    merges: bool
    others: Sequence[str] = ()
    to_branch: bool = False


def read_tasks(root: Table, folder: Path, crew: Crew, *, may_be_none: bool = False) -> list[TaskPlan]:
    """Return all tasks; prompt files are relative to ``folder``."""
    names = Names()
    tables = list(root.tables(TaskKeys, may_be_none=may_be_none))
    tasks = [_task(table, folder, crew) for table in tables]
    for table, task in zip(tables, tasks, strict=True):
        names.is_new(table, "id", task.id)
        if crew.prompt_is_argument and len(task.prompt.encode()) > LONGEST_ARGUMENT_BYTES:
            of = "{prompt} and agent programs"
            accepted = f"at most {LONGEST_ARGUMENT_BYTES} for {of}; give your agents {{prompt_file}} instead"
            key = "prompt" if "prompt" in table else "prompt_file"
            table.problem(key, f"found {len(task.prompt.encode())} bytes; accepted: {accepted}")
        if task.role and task.role not in crew.roles:
            accepted = f"roles of agents in this file{forms.meant(task.role, crew.roles)}"
            table.problem("role", f"found {values.shown(task.role)}, which no agent has; accepted: {accepted}")
    _check_dependencies(tables, tasks, crew.others)
    return tasks


def is_anew(on_retry: Literal["resume", "anew"] | None) -> bool | None:
    """Return whether a retry begins another conversation; None if the task leaves that to the fleet."""
    return None if on_retry is None else on_retry == "anew"


def on_retry_of(anew: bool | None) -> Literal["resume", "anew"] | None:  # noqa: FBT001 - the one thing to write
    """Return the value of ``on_retry``, as a file has it."""
    return None if anew is None else "anew" if anew else "resume"


def unproven(tasks: Sequence[TaskPlan], *, merges: bool) -> Iterator[str]:
    """Yield a warning about tasks without verification, except those that need not change anything.

    ``merges`` tells whether the fleet has a repository: only there a session that changes nothing is known.
    """
    names = [each.id for each in tasks if not each.verify and each.on_nothing is not OnNothing.CLOSE]
    if names:
        which = brief(enumerated(names))
        has = "has" if len(names) == 1 else "have"
        yield f"{which} {has} no verify: {_MERGED if merges else _TAKEN}"


_MERGED: Final = "the work of a session that succeeds is merged unverified, and one without a change has failed"
_TAKEN: Final = "a session that succeeds counts as done unverified, also if it has changed nothing"


def _task(table: Table, folder: Path, crew: Crew) -> TaskPlan:
    budget = table.table(TaskBudgetKeys)
    task = TaskPlan(
        id=table.read(TaskKeys.id),
        prompt=_prompt(table, folder),
        verify=table.read(TaskKeys.verify),
        depends_on=tuple(dict.fromkeys(table.read(TaskKeys.depends_on))),
        priority=table.read(TaskKeys.priority),
        max_retries=table.read(TaskKeys.max_retries),
        role=table.read(TaskKeys.role),
        files=tuple(dict.fromkeys(table.read(TaskKeys.files))),
        needs_approval=table.read(TaskKeys.approval) == "merge",
        most_subtasks=table.read(TaskKeys.max_subtasks),
        subtasks_ms=table.read(TaskKeys.subtasks_timeout),
        caps=read_caps(budget),
        trust=table.read(TaskKeys.trust),
        orphaned=table.read(TaskKeys.orphaned),
        on_nothing=table.read(TaskKeys.on_nothing),
        anew=is_anew(table.read(TaskKeys.on_retry)),
    )
    check_caps(budget, task.caps, crew.share)
    table.finish()
    _check_programs(table, task)
    if task.orphaned is OnDeath.VERIFY:
        if not task.verify:
            table.problem("orphaned", f"found {values.shown(task.orphaned)}; accepted: {NEEDS_COMMANDS}")
        if not crew.merges:
            table.problem("orphaned", f"found {values.shown(task.orphaned)}; accepted: {NEEDS_REPOSITORY}")
    for field, why in impossible_keys(task) if crew.to_branch else ():
        key = fleet_task.KEYS[field]
        table.problem(key, f"found {values.shown(table.values.get(key))}; accepted: none, because {WITH_BRANCHES}{why}")
    for path in task.files:
        if set(path) & set("*?["):
            found = f"{values.shown(path)} is taken for a name, not for a pattern"
            table.warn("files", f"{found}; a folder stands for all that is in it")
    if "subtasks_timeout" in table and not task.most_subtasks:
        table.warn("subtasks_timeout", "no max_subtasks: the task is never split, so subtasks_timeout has no effect")
    return task


def _check_programs(table: Table, task: TaskPlan) -> None:
    for index, (program, *_) in enumerate(task.verify):
        # A relative path leads into the worktree, where an agent may write the program.
        if ("/" not in program or program.startswith("/")) and shutil.which(program) is None:
            accepted = "a program on PATH, or the path of one in the task's worktree, such as ./check"
            found = f"found {values.shown(program)}, which cannot be run"
            table.problem("verify", f"{found}; accepted: {accepted}", index, 0)


def _prompt(table: Table, folder: Path) -> str:
    if "prompt" in table and "prompt_file" in table:
        table.problem("prompt_file", "found both prompt and prompt_file; accepted: exactly one of the two")
    elif "prompt" not in table and "prompt_file" not in table:
        table.missing("prompt", "prompt_file")
    prompt = table.read(TaskKeys.prompt)
    file = table.read(TaskKeys.prompt_file)
    return prompt if "prompt" in table or not file else _prompt_of(table, folder, file)


def _prompt_of(table: Table, folder: Path, file: str) -> str:
    if not os.path.isfile(folder / file):  # noqa: PTH113 - never raises; and a pipe might never come to an end
        accepted = "a text file, from the fleet file's folder"
        table.problem("prompt_file", f"found {values.shown(file)}, which is not a file; accepted: {accepted}")
        return ""
    try:
        return forms.TEXT.parse(read_text(folder / file))
    except values.RefusedError as refused:
        table.problem("prompt_file", f"{values.shown(file)}: {refused}")
    except (OSError, ValueError) as error:
        table.problem("prompt_file", f"cannot read {values.shown(file)}: {getattr(error, 'strerror', None) or error}")
    return ""


def _check_dependencies(tables: Sequence[Table], tasks: Sequence[TaskPlan], others: Sequence[str]) -> None:
    # A task with a refused id counts as known, so that its dependents are not reported as well.
    known = [*(found for table in tables if isinstance(found := table.values.get("id"), str)), *others]
    for table, task in zip(tables, tasks, strict=True):
        for needed in task.depends_on:
            if needed not in known:
                where = "in this file or on the board" if others else "in this file"
                accepted = f"ids of tasks {where}{forms.meant(needed, known)}"
                table.problem("depends_on", f"found {values.shown(needed)}; accepted: {accepted}")
    by_id = dict(zip((task.id for task in tasks), tables, strict=True))
    for cycle in _cycles({task.id: list(task.depends_on) for task in tasks}):
        by_id[cycle[0]].problem("depends_on", f"the tasks wait for each other: {' -> '.join((*cycle, cycle[0]))}")


def _cycles(needs: dict[str, list[str]]) -> list[list[str]]:
    """Return the cycles of dependencies, each from its first task in the file."""
    order = {task: position for position, task in enumerate(needs)}
    left = dict(needs)
    cycles: list[list[str]] = []
    while True:
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            # The error names each task before its dependent, and the first one twice.
            cycle: list[str] = error.args[1][:0:-1]
            first = cycle.index(min(cycle, key=order.__getitem__))
            cycles.append(cycle[first:] + cycle[:first])
            left = {task: needed for task, needed in left.items() if task not in cycle}
        else:
            return cycles
