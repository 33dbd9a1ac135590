"""The ``[[tasks]]`` of a fleet file."""

import os
import shutil
from collections.abc import Sequence
from difflib import get_close_matches
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from lifefold.core.fleet import TaskPlan
from lifefold.interpreters.fleet import values
from lifefold.interpreters.fleet.files import read_text
from lifefold.interpreters.fleet.table import Names, Table

LONGEST_ARGUMENT_BYTES = 100_000
"""The longest prompt that is handed over as an argument. Linux allows 131072 bytes, and a retry's prompt is longer."""

LOWEST_PRIORITY = 1_000
MOST_RETRIES = 1_000


def read_tasks(root: Table, folder: Path, *, prompt_is_argument: bool) -> list[TaskPlan]:
    """Return all tasks; prompt files are relative to ``folder``.

    ``prompt_is_argument`` if an agent's command has ``{prompt}``, which limits a prompt's length.
    """
    names = Names()
    tables = list(root.tables("tasks", named_by="id"))
    tasks = [_task(table, folder) for table in tables]
    for table, task in zip(tables, tasks, strict=True):
        names.is_new(table, "id", task.id)
        if prompt_is_argument and len(task.prompt.encode()) > LONGEST_ARGUMENT_BYTES:
            accepted = f"at most {LONGEST_ARGUMENT_BYTES} for {{prompt}}; give your agents {{prompt_file}} instead"
            key = "prompt" if "prompt" in table else "prompt_file"
            table.problem(key, f"found {len(task.prompt.encode())} bytes; accepted: {accepted}")
    _check_dependencies(tables, tasks)
    return tasks


def _task(table: Table, folder: Path) -> TaskPlan:
    task_id = table.required("id", values.task_id, "")
    prompt = _prompt(table, folder)
    verify: tuple[tuple[str, ...], ...] = table.optional("verify", values.commands, ())
    depends_on: tuple[str, ...] = table.optional("depends_on", values.strings, ())
    task = TaskPlan(
        id=task_id,
        prompt=prompt,
        verify=verify,
        depends_on=tuple(dict.fromkeys(depends_on)),
        priority=table.optional("priority", values.integer(1, LOWEST_PRIORITY), 2),
        max_retries=table.optional("max_retries", values.integer(0, MOST_RETRIES), 3),
    )
    table.finish()
    for index, (program, *_) in enumerate(verify):
        # A path that is relative leads into the worktree, where the program may still be written.
        if ("/" not in program or program.startswith("/")) and shutil.which(program) is None:
            accepted = "a program on PATH, or the path of one in the task's worktree, such as ./check"
            found = f"found {values.shown(program)}, which cannot be run"
            table.problem("verify", f"{found}; accepted: {accepted}", index, 0)
    return task


def _prompt(table: Table, folder: Path) -> str:
    if "prompt" in table and "prompt_file" in table:
        table.problem("prompt_file", "found both prompt and prompt_file; accepted: exactly one of the two")
    elif "prompt" not in table and "prompt_file" not in table:
        table.missing("prompt", "prompt_file")
    prompt = table.optional("prompt", values.text, "")
    file = table.optional("prompt_file", values.text, "")
    return prompt if "prompt" in table or not file else _prompt_of(table, folder, file)


def _prompt_of(table: Table, folder: Path, file: str) -> str:
    if not os.path.isfile(folder / file):  # noqa: PTH113 - never raises; and a pipe might never come to an end
        accepted = "a text file, from the fleet file's folder"
        table.problem("prompt_file", f"found {values.shown(file)}, which is no file; accepted: {accepted}")
        return ""
    try:
        return values.text(read_text(folder / file))
    except values.RefusedError as refused:
        table.problem("prompt_file", f"{values.shown(file)}: {refused}")
    except (OSError, ValueError) as error:
        table.problem("prompt_file", f"cannot read {values.shown(file)}: {getattr(error, 'strerror', None) or error}")
    return ""


def _check_dependencies(tables: Sequence[Table], tasks: Sequence[TaskPlan]) -> None:
    # A task whose id is refused is there all the same: whoever depends on it has made no mistake.
    known = [found for table in tables if isinstance(found := table.values.get("id"), str)]
    for table, task in zip(tables, tasks, strict=True):
        for needed in task.depends_on:
            if needed not in known:
                close = get_close_matches(needed, known, n=1)
                hint = f'; did you mean "{close[0]}"?' if close else ""
                accepted = "ids of tasks in this file"
                table.problem("depends_on", f"found {values.shown(needed)}; accepted: {accepted}{hint}")
    by_id = dict(zip((task.id for task in tasks), tables, strict=True))
    for cycle in _cycles({task.id: list(task.depends_on) for task in tasks}):
        by_id[cycle[0]].problem("depends_on", f"the tasks wait for each other: {' -> '.join((*cycle, cycle[0]))}")


def _cycles(needs: dict[str, list[str]]) -> list[list[str]]:
    """Return cycles, each from its first task in the file, until the tasks that are in none have none left."""
    order = {task: position for position, task in enumerate(needs)}
    left = dict(needs)
    cycles: list[list[str]] = []
    while True:
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            # It names each task before the one that needs it, and the first one twice.
            cycle: list[str] = error.args[1][:0:-1]
            first = cycle.index(min(cycle, key=order.__getitem__))
            cycles.append(cycle[first:] + cycle[:first])
            left = {task: needed for task, needed in left.items() if task not in cycle}
        else:
            return cycles
