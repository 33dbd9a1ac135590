"""Commands that add tasks to a board: ``task add``, ``finish``, and ``split`` for an agent at its own task.

Options accept the values that the same keys of a fleet file accept, by the same forms.
"""

import json
import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from lifefold.core.fleet import Budget, Caps, Plan, TaskPlan
from lifefold.core.fleet.board import fleet_task, intake
from lifefold.core.fleet.dispatch.task_index import tasks_of
from lifefold.core.fleet.system import board
from lifefold.core.fleet.system.ready_branches import impossible_keys
from lifefold.core.kernel import Aggregate, replace
from lifefold.core.lifecycles.task import OnDeath, State
from lifefold.interpreters.cli import inside, operator_commands
from lifefold.interpreters.cli.commands.adding_many import add_all
from lifefold.interpreters.cli.commands.board_additions import begun_with, budget_on, given, slots_of
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.names import must_be_there
from lifefold.interpreters.cli.operator_commands import Judge, Refused, Said
from lifefold.interpreters.cli.task_options import prompt_of, read, task_of
from lifefold.interpreters.engine import REFUSED
from lifefold.interpreters.explain.task_words import is_in
from lifefold.interpreters.fleet_file.budget import problems_of
from lifefold.interpreters.fleet_file.tasks import (
    NEEDS_REPOSITORY,
    WITH_BRANCHES,
    TaskKeys,
)
from lifefold.interpreters.fleet_file.values import as_array, as_table


def add(arguments: Namespace) -> int:
    """Add a task to the board."""
    if arguments.source:
        return add_all(arguments)
    if arguments.id is None or arguments.prompt is None:
        raise BadInput("give --id and --prompt of a task, or --from FILE with a list of tasks")
    plan = task_of(arguments)
    begun, before, merges = begun_with(arguments.db)
    if plan.orphaned is OnDeath.VERIFY and not merges:
        raise BadInput(f'--orphaned: found "verify"; accepted: {NEEDS_REPOSITORY}')
    _must_be_possible(plan, begun)
    waits = tuple(each for each in plan.depends_on if each not in before.closed)

    def judge(aggregates: Mapping[str, Aggregate]) -> Iterator[Said | Refused]:
        of = aggregates[board.NAME]
        _must_fit(of, replace(plan, depends_on=waits), (*before.closed, *before.cancelled))
        _must_be_payable(plan, budget_on(of, begun))
        yield from given(of, (replace(plan, depends_on=waits),), begun)

    return operator_commands.say(arguments.db, judge, "tasks")


def _must_be_possible(plan: TaskPlan, begun: Plan) -> None:
    """Raise ``BadInput`` for what no task can have in a fleet with ready branches."""
    for field, why in impossible_keys(plan) if begun.to_branch else ():
        option = fleet_task.KEYS[field].replace("_", "-")
        raise BadInput(f"--{option}: accepted: none, because {WITH_BRANCHES}{why}")


def _must_be_payable(plan: TaskPlan, budget: Budget | None) -> None:
    """Raise ``BadInput`` for a budget in a fleet that has not metered usage from its start."""
    if plan.caps != Caps() and budget is None:
        raise BadInput("--budget-...: this fleet does not meter usage, because its file has no budget")
    for name, problem in problems_of(plan.caps, budget.share) if budget is not None else ():
        raise BadInput(f"--budget-{name}: {problem}")


def _must_fit(of: Aggregate, plan: TaskPlan, earlier: tuple[str, ...]) -> None:
    """Raise ``BadInput`` for a task id in use, now or in an earlier run, and for unknown dependencies and roles."""
    names = sorted(each.id for each in tasks_of(of))
    taken = [each for each in (*names, *earlier) if each.casefold() == plan.id.casefold()]
    if taken:
        raise BadInput(f"--id: there is a task {taken[0]} already; accepted: another id")
    must_be_there("task", plan.depends_on, names)
    worker_slots = slots_of(of)
    if plan.trust and all(each.trust is None for each in worker_slots):
        raise BadInput("--trust: this fleet gates nothing, because its file has no gates and no trust")
    must_be_there(
        "role", [plan.role] if plan.role else [], sorted({role for each in worker_slots for role in each.roles})
    )


def finish(arguments: Namespace) -> int:
    """Tell a fleet that waits for tasks that no more will come."""

    def judge(aggregates: Mapping[str, Aggregate]) -> Iterator[Said | Refused]:
        of = aggregates[board.NAME]
        if board.finished(of):
            yield Refused("fleet", f"{REFUSED}it is over already")
        elif intake.are_open(of):
            done = "it ends when its tasks are settled"
            yield Said("fleet", board.NAME, intake.REF, intake.LastTaskIn(arguments.reason), done)
        elif intake.REF in of.entities:
            yield Refused("fleet", "finish was given already: it ends when its tasks are settled")
        else:
            yield Refused("fleet", f"{REFUSED}it was started without --watch, and ends when its tasks are settled")

    if arguments.reason:
        operator_commands.must_be_text("the reason", arguments.reason)
    return operator_commands.say(arguments.db, judge, "tasks")


def split(arguments: Namespace) -> int:
    """Split the task that is assigned to an agent, under its claim."""
    name = arguments.task or os.environ.get("LIFEFOLD_TASK", "")
    token = arguments.token or os.environ.get("LIFEFOLD_TOKEN", "")
    for value, what, known in ((name, "TASK", "LIFEFOLD_TASK"), (token, "--token TOKEN", "LIFEFOLD_TOKEN")):
        if not value:
            raise BadInput(f"{what} is missing; a session of the fleet has it in its environment, as {known}")
    judge = splitting(name, *inside.token_parts(token), _parts(arguments))
    return operator_commands.say_of_a_session(arguments.db or os.environ.get("LIFEFOLD_DB"), judge, "tasks")


def splitting(name: str, epoch: int, secret: str, given: Sequence[fleet_task.Subtask]) -> Judge:
    """Return the judge of the command that splits a task under a claim."""
    parts = tuple(replace(each, prompt=inside.hidden(each.prompt)) for each in given)
    event = fleet_task.Split(epoch, parts, secret)

    def judge(aggregates: Mapping[str, Aggregate]) -> Iterator[Said | Refused]:
        of = aggregates[board.NAME]
        must_be_there("task", [name], sorted(each.id for each in tasks_of(of)))
        record: fleet_task.FleetTask = of.record(f"task:{name}")
        why = _why_not_split(record, event)
        yield (
            Refused(name, f"{REFUSED}{why}")
            if why
            else Said(name, board.NAME, f"task:{name}", event, _divided(record, len(parts)))
        )

    return judge


def _divided(record: fleet_task.FleetTask, count: int) -> str:
    names = [record.part(record.parts + number) for number in range(1, count + 1)]
    return f"split into {' '.join(names)}; this session has ended, and the rest of the task is in these parts"


def _why_not_split(record: fleet_task.FleetTask, event: fleet_task.Split) -> str:
    """Return why a task cannot be split so; empty if it can."""
    count = len(event.tasks)
    most = min(record.most_subtasks, fleet_task.MOST_SUBTASKS)
    if record.state not in {State.CLAIMED, State.IN_PROGRESS}:
        return f"it {is_in(record.state)}: only the agent that works at a task can split it"
    if record.epoch != event.epoch:
        return f"claim {event.epoch} of it is over; {record.owner} has it now, under claim {record.epoch}"
    if record.token != event.token:
        return inside.IS_ANOTHERS
    if not most:
        return "it may not be split: the fleet file has no max_subtasks for it"
    if count > most - record.parts:
        had = f", and has {record.parts}" if record.parts else ""
        return f"{count} are too many: it may have {most} subtasks in all{had}"
    return ""


def _parts(arguments: Namespace) -> list[fleet_task.Subtask]:
    """Return the parts of the options. Raises ``BadInput``."""
    if bool(arguments.part) is bool(arguments.json):
        raise BadInput("describe the parts either with --part PROMPT for each, or with --json FILE")
    if arguments.part:
        return [fleet_task.Subtask(prompt_of("--part", prompt)) for prompt in arguments.part]
    return parts_of(_document(arguments.json))


def parts_of(given: Sequence[object]) -> list[fleet_task.Subtask]:
    """Return the parts of a task as tables describe them. Raises ``BadInput`` with the number of a part."""
    return [_part(f"part {number}", value) for number, value in enumerate(given, 1)]


def _document(file: str) -> Sequence[object]:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        value: Any = json.loads(text)
    except (OSError, ValueError) as error:
        raise BadInput(f"--json {file}: cannot be read: {error}") from error
    parts = as_array(value)
    if not parts:
        raise BadInput(f'--json {file}: accepted: an array of one part or more, such as [{{"prompt": "do the first"}}]')
    return parts


def _part(place: str, value: object) -> fleet_task.Subtask:
    table = as_table(value)
    if table is None or "prompt" not in table or table.keys() - _PART_KEYS:
        keys = ", ".join(table or ()) or "no keys"
        raise BadInput(f'{place}: found {keys}; accepted: "prompt", and if wanted "verify" and "files"')
    return fleet_task.Subtask(
        prompt_of(f"{place}, prompt", table["prompt"]),
        read(f"{place}, verify", TaskKeys.verify.form, table.get("verify", [])),
        read(f"{place}, files", TaskKeys.files.form, table.get("files", [])),
    )


_PART_KEYS: Final = {"prompt", "verify", "files"}
