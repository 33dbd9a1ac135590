"""``task add --from``: a list of tasks for a living fleet. All of them are put on the board, or none."""

import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Final

from lifefold.core.fleet import Budget, TaskPlan
from lifefold.core.fleet.dispatch.task_index import tasks_of
from lifefold.core.fleet.system import board
from lifefold.core.kernel import Aggregate, replace
from lifefold.interpreters.cli import operator_commands
from lifefold.interpreters.cli.commands.board_additions import begun_with, budget_on, given, slots_of
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.operator_commands import Refused, Said
from lifefold.interpreters.fleet_file import FleetFileError
from lifefold.interpreters.fleet_file.files import read_text
from lifefold.interpreters.fleet_file.loading import sound
from lifefold.interpreters.fleet_file.task_lists import read_list
from lifefold.interpreters.fleet_file.tasks import Crew

STDIN: Final = "-"

_OF_ONE: Final = (
    "id", "prompt", "depends_on", "priority", "max_retries", "verify", "role", "file", "trust", "max_subtasks",
    "subtasks_timeout", "orphaned", "on_nothing", "on_retry", "budget_usd", "budget_tokens", "budget_time",
    "budget_sessions",
)  # fmt: skip
"""The options that describe one task."""


def add_all(arguments: Namespace) -> int:
    """Add the tasks of a list. Raises ``BadInput`` with all errors of the list, and adds none then."""
    beside = [name for name in _OF_ONE if (value := getattr(arguments, name)) or value == 0]
    if beside or arguments.approval != "none":
        option = (*beside, "approval")[0].replace("_", "-")
        raise BadInput(f"--from has whole tasks; write {option} into the list instead of --{option}")
    text, file, folder = _text_of(arguments.source)
    begun, before, merges = begun_with(arguments.db)
    earlier = (*before.closed, *before.cancelled)

    def read(of: Aggregate) -> list[TaskPlan]:
        names = [each.id for each in tasks_of(of)]
        slots, budget = slots_of(of), budget_on(of, begun)
        roles = sorted({role for each in slots for role in each.roles})
        share = (budget or Budget()).share
        crew = Crew(True, roles, share, merges, (*names, *before.closed), begun.to_branch)  # noqa: FBT003 - the limit
        outcome = read_list(
            text,
            file,
            folder,
            crew,
            taken={each.casefold(): each for each in (*names, *earlier)},
            gates=any(each.trust is not None for each in slots),
            metered=budget is not None,
        )
        try:
            return sound(outcome)
        except FleetFileError as error:
            raise BadInput(f"{error}\nno task was added") from error

    def judge(aggregates: Mapping[str, Aggregate]) -> Iterator[Said | Refused]:
        of = aggregates[board.NAME]
        plans = {
            each.id: replace(each, depends_on=tuple(name for name in each.depends_on if name not in before.closed))
            for each in read(of)
        }
        needs = {each.id: [name for name in each.depends_on if name in plans] for each in plans.values()}
        yield from given(of, [plans[name] for name in TopologicalSorter(needs).static_order()], begun)

    return operator_commands.say(arguments.db, judge, "tasks")


def _text_of(source: str) -> tuple[str, str, Path]:
    """Return the text of a list, its name in messages, and the folder of its prompt files. Raises ``BadInput``."""
    try:
        if source == STDIN:
            return sys.stdin.read(), "the standard input", Path.cwd()
        return read_text(Path(source)), source, Path(source).absolute().parent
    except (OSError, ValueError) as error:
        raise BadInput(f"--from {source}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
