"""The command ``abort``: a tool call, by its agent; the siblings of a task, or a task with its parts, by an operator.

The board decides which tasks are aborted. This command prints them in advance, computed by the same functions.
"""

import os
from argparse import Namespace
from collections.abc import Iterator, Mapping
from typing import Final

from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.dispatch.aborts import family, is_to_end
from lifefold.core.fleet.dispatch.task_index import tasks_of
from lifefold.core.fleet.system import board
from lifefold.core.kernel import Aggregate
from lifefold.core.lifecycles.task import State
from lifefold.core.policy.abort import AbortScope, affected, escalated
from lifefold.interpreters.cli import inside, operator_commands
from lifefold.interpreters.cli.commands.deciding import INSTEAD_OF_CANCELLING
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.logs import LOG
from lifefold.interpreters.cli.names import must_be_there
from lifefold.interpreters.cli.operator_commands import Judge, Refused, Said
from lifefold.interpreters.engine import REFUSED
from lifefold.interpreters.explain.task_words import is_in


def abort(arguments: Namespace) -> int:
    """Report that a tool was aborted, or abort the siblings of a task, or the task."""
    scope, name = AbortScope(arguments.scope), arguments.task or os.environ.get("LIFEFOLD_TASK", "")
    if scope is not AbortScope.TOOL:
        inside.must_be_outside(f"abort --scope {scope}")
    if not name:
        raise BadInput("TASK is missing; a session of the fleet has it in its environment, as LIFEFOLD_TASK")
    if arguments.because:
        operator_commands.must_be_text("the reason", arguments.because)
    event = _of_tool(arguments) if scope is AbortScope.TOOL else _of_tasks(arguments, scope)
    say = operator_commands.say_of_a_session if scope is AbortScope.TOOL else operator_commands.say
    return say(arguments.db or os.environ.get("LIFEFOLD_DB"), judged(name, event), "tasks")


def judged(name: str, event: fleet_task.ToolAborted | fleet_task.AbortWanted) -> Judge:
    """Return the judge of a command that aborts."""

    def judge(aggregates: Mapping[str, Aggregate]) -> Iterator[Said | Refused]:
        of = aggregates[board.NAME]
        must_be_there("task", [name], sorted(each.id for each in tasks_of(of)))
        record: fleet_task.FleetTask = of.record(f"task:{name}")
        why = _why_not(record, event)
        yield (
            Refused(name, f"{REFUSED}{why}")
            if why
            else Said(name, board.NAME, f"task:{name}", event, _reached(of, record, event.scope))
        )

    return judge


def _of_tool(arguments: Namespace) -> fleet_task.ToolAborted:
    epoch, token = inside.token_parts(arguments.token or os.environ.get("LIFEFOLD_TOKEN", ""))
    operator_commands.must_be_text("--tool", arguments.tool)
    return fleet_task.ToolAborted(epoch, inside.hidden(arguments.tool), inside.hidden(arguments.because), token)


def _of_tasks(arguments: Namespace, scope: AbortScope) -> fleet_task.AbortWanted:
    for option, value in (("--tool", arguments.tool), ("--token", arguments.token)):
        if value:
            raise BadInput(f"{option} is for --scope tool; leave it out with --scope {scope}")
    return fleet_task.AbortWanted(scope, arguments.because)


def _why_not(record: fleet_task.FleetTask, event: fleet_task.ToolAborted | fleet_task.AbortWanted) -> str:
    """Return why a task refuses the abort; empty if it accepts it."""
    if record.fate is None:
        return f"the fleet file has no table [fleet.aborts]; lifefold cancel {record.id}{LOG} ends it, with its parts"
    if record.state in {State.CLOSED, State.CANCELLED}:
        return f"it {is_in(record.state)}: nothing is left to abort"
    if isinstance(event, fleet_task.ToolAborted):
        return _why_not_of_tool(record, event)
    if event.scope is AbortScope.SIBLING and not record.parent:
        return "it is not a part of a task, and has no siblings"
    if event.scope is AbortScope.SESSION and record.state not in fleet_task.CANCELLABLE:
        return f"it {is_in(record.state)}: {INSTEAD_OF_CANCELLING[record.state](record)}"
    return ""


def _why_not_of_tool(record: fleet_task.FleetTask, event: fleet_task.ToolAborted) -> str:
    if record.state not in {State.CLAIMED, State.IN_PROGRESS}:
        return f"it {is_in(record.state)}: only the agent that works at a task calls tools for it"
    if record.epoch != event.epoch:
        return f"claim {event.epoch} of it is over; {record.owner} has it now, under claim {record.epoch}"
    return "" if event.token == record.token else inside.IS_ANOTHERS


def _reached(of: Aggregate, record: fleet_task.FleetTask, scope: AbortScope) -> str:
    """Return the text that names the tasks that are aborted."""
    policy = fleet_task.Fate().policy if record.fate is None else record.fate.policy
    found = [each.session for each in affected(family(of, record.id), record.id, scope, policy)]
    names = [each for each in found if is_to_end(of.record(f"task:{each}"))]
    said = _ONLY_SAID if escalated(scope, policy) is AbortScope.TOOL else "no task is left to abort"
    return f"aborted: {' '.join(names)}" if names else said


_ONLY_SAID: Final = "recorded; the session goes on, and no other task is affected"
