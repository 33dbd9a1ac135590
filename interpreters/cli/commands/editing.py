"""The command ``edit``: changes one task of a living fleet, in its fleet file and in the plan in force.

Both change together, so the next run reads the file that the plan in force has.
"""

import os
import shlex
import subprocess
import tempfile
from argparse import Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.dispatch.task_index import tasks_of
from lifefold.core.fleet.system import board
from lifefold.core.kernel import Aggregate
from lifefold.core.lifecycles.task import State
from lifefold.interpreters.cli import logs, operator_commands
from lifefold.interpreters.cli.answers import DELIVERY
from lifefold.interpreters.cli.commands import planning
from lifefold.interpreters.cli.commands.budgeting import amounts
from lifefold.interpreters.cli.commands.deciding import ADD_AND_AGAIN, no_agent_left
from lifefold.interpreters.cli.confirming import has_terminal, must_be_confirmed
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.logs import LOG
from lifefold.interpreters.cli.names import must_be_there
from lifefold.interpreters.cli.operator_commands import Refused
from lifefold.interpreters.cli.task_options import must_run, number, prompt_of, read, split_words
from lifefold.interpreters.engine import REFUSED
from lifefold.interpreters.explain.task_words import is_in
from lifefold.interpreters.fleet_file import Fleet, FleetFileError, load_text
from lifefold.interpreters.fleet_file.budget import KEYS
from lifefold.interpreters.fleet_file.editing import EditError, edited
from lifefold.interpreters.fleet_file.files import read_text, write_text
from lifefold.interpreters.fleet_file.tasks import TaskKeys
from lifefold.interpreters.fleet_runner.plan_changes import added_task


class Edit(msgspec.Struct, frozen=True):
    """The keys of a task with their new values, and the keys that the task loses."""

    values: Mapping[str, object]
    without: tuple[str, ...] = ()


class Found(msgspec.Struct, frozen=True):
    """A task to edit: its fleet file with its text and its fleet, its log and its record on the board."""

    source: Path
    text: str
    fleet: Fleet
    log: Path
    of: Aggregate
    record: fleet_task.FleetTask


def edit(arguments: Namespace) -> int:
    """Change keys of a task in the fleet file and in the plan; show the difference, and ask."""
    found, why = _found(arguments.db, arguments.task)
    if why:
        return _refused(arguments.db, arguments.task, why)
    wanted = _edit_of(arguments, found.record)
    text = _edited(found, wanted)
    after = _fleet_of(found.source, text)
    change = planning.look(after, found.log)
    if change is None or not change.lines:
        return _refused(arguments.db, arguments.task, "it is so already; nothing changes")
    if change.obstacles:
        told = "; ".join(
            f"{each.of_edit}: {planning.instead_of(each.instead, after, found.log, is_at_work=False)}"
            for each in change.obstacles
        )
        return _refused(arguments.db, arguments.task, f"{REFUSED}{told}")
    note = DELIVERY.get().note
    for line in planning.shown(change, found.log):
        note(line)
    if not arguments.yes:
        must_be_confirmed(f"change {arguments.task} so, in {found.source} and in the plan?", "--yes")
    if read_text(found.source) != found.text:
        raise BadInput(f"{found.source} was changed meanwhile; nothing has changed; give the command again")
    write_text(found.source, text)
    try:
        planning.accept(after, found.log, change, edited=arguments.task)
    except BadInput:
        write_text(found.source, found.text)
        raise
    return 0


def _refused(db: str | None, name: str, why: str) -> int:
    def judge(_aggregates: Mapping[str, Aggregate]) -> Iterator[Refused]:
        yield Refused(name, why)

    return operator_commands.say(db, judge, "tasks")


def _found(db: str | None, name: str) -> tuple[Found, str]:
    """Return the task to edit, and why it cannot be edited. Raises ``BadInput`` for an unknown one, or for its file."""
    of = operator_commands.present(db)[board.NAME]
    must_be_there("task", [name], sorted(each.id for each in tasks_of(of)))
    with logs.peek(db) as store:
        log, source = store.path, Path(store.meta("source") or "")
    record: fleet_task.FleetTask = of.record(f"task:{name}")
    try:
        text = read_text(source)
    except (OSError, ValueError) as error:
        raise BadInput(f"{source}: this fleet file cannot be read: {error}") from error
    found = Found(source, text, _fleet_of(source, text), log, of, record)
    why = why_not(of, record)
    if not why and (pending := planning.look(found.fleet, log)) is not None and pending.lines:
        raise BadInput(
            f"{source} has other changes, which are not in force; accept them first, or put them back:"
            f" lifefold plan {shlex.quote(str(source))}{logs.option(log)}"
        )
    return found, why


def why_not(of: Aggregate, each: fleet_task.FleetTask) -> str:
    """Return in a sentence why no change of a task has an effect; empty if one can have."""
    if why := no_agent_left(of, ADD_AND_AGAIN):
        return f"{REFUSED}{why}"
    if each.parent:
        return f'{REFUSED}it is a part of {each.parent}, which its agent has split; lifefold send {each.id} "..."{LOG}'
    if each.removed:
        return f"{REFUSED}it was {fleet_task.NOT_IN_THE_PLAN}, and only the file can put it back"
    if each.state in _OVER:
        more = f'lifefold task add --id {each.id}-2 --prompt "..."{LOG}'
        return f"{REFUSED}it {is_in(each.state)}: {_OVER[each.state]}; more work is another task: {more}"
    return ""


_OVER: Final[Mapping[State, str]] = {State.CLOSED: "its work is done", State.CANCELLED: "that is final"}


def _edit_of(arguments: Namespace, record: fleet_task.FleetTask) -> Edit:
    """Return the edit that the options describe. Raises ``BadInput`` with the name of an option."""
    values: dict[str, object] = {}
    without: tuple[str, ...] = ()
    if arguments.prompt is not None:
        values["prompt"], without = prompt_of("--prompt", arguments.prompt), ("prompt_file",)
    elif arguments.prompt_file is not None:
        values["prompt_file"], without = str(Path(arguments.prompt_file).absolute()), ("prompt",)
    elif arguments.editor:
        values["prompt"], without = prompt_of("--editor", typed_in_editor(record.prompt)), ("prompt_file",)
    if arguments.verify:
        verify = read("--verify", TaskKeys.verify.form, [split_words(line) for line in arguments.verify])
        must_run(verify)
        values["verify"] = [list(each) for each in verify]
    for key in (TaskKeys.priority, TaskKeys.max_retries):
        written = getattr(arguments, key.name)
        if written is not None:
            values[key.name] = number(f"--{key.name.replace('_', '-')}", key, written)
    limits = amounts(arguments, "budget")
    values |= {f"budget.{key.name}": key.form.write(limits.of(r)) for r, key in KEYS.items() if limits.of(r)}
    if not values:
        raise BadInput("name what changes, for example --prompt, --editor, --verify or --priority")
    return Edit(values, without)


def typed_in_editor(prompt: str) -> str:
    """Return a prompt as the operator has changed it in an editor. Raises ``BadInput`` if the editor fails."""
    if not has_terminal():
        raise BadInput("--editor needs a terminal; without one, give --prompt or --prompt-file")
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    with tempfile.NamedTemporaryFile("w", suffix=".md", encoding="utf-8") as file:
        file.write(prompt)
        file.flush()
        try:
            code = subprocess.call([*editor, file.name])  # noqa: S603 - the operator's own editor
        except OSError as error:
            raise BadInput(f"--editor: {editor[0]}: {error.strerror}; set EDITOR to another one") from error
        if code:
            raise BadInput(f"--editor: {editor[0]} ended with {code}; nothing has changed")
        written = read_text(Path(file.name))
    return written if prompt.endswith("\n") else written.removesuffix("\n")


def _edited(found: Found, wanted: Edit) -> str:
    """Return the text of the fleet file after the edit; a task that a command has added is written into it."""
    text, name = found.text, found.record.id
    if all(each.id != name for each in found.fleet.tasks):
        end = "" if text.endswith("\n") else "\n"
        text += "\n".join((end, *added_task(found.fleet, found.of, name), ""))
    try:
        return edited(text, name, wanted.values, wanted.without)
    except EditError as error:
        raise BadInput(f"{found.source}: {error}") from error


def _fleet_of(source: Path, text: str) -> Fleet:
    try:
        return load_text(text, source, watch=True)
    except FleetFileError as error:
        raise BadInput(str(error)) from error
