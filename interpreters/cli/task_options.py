"""The options of commands that describe a task, as values of a fleet file: the same forms parse both."""

import shlex
import shutil
from argparse import Namespace
from typing import TypeVar

from lifefold.core.fleet import Caps, TaskPlan
from lifefold.core.lifecycles.task import OnDeath, OnNothing
from lifefold.core.policy.access import AccessLevel
from lifefold.interpreters.cli import operator_commands
from lifefold.interpreters.cli.commands.budgeting import amounts
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.fleet_file import forms
from lifefold.interpreters.fleet_file.budget import KEYS
from lifefold.interpreters.fleet_file.forms import Form
from lifefold.interpreters.fleet_file.keys import Key
from lifefold.interpreters.fleet_file.tasks import LONGEST_ARGUMENT_BYTES, NEEDS_COMMANDS, TaskKeys, is_anew
from lifefold.interpreters.fleet_file.values import RefusedError

T = TypeVar("T")

Commands = tuple[tuple[str, ...], ...]


def task_of(arguments: Namespace) -> TaskPlan:
    """Return the task of the options. Raises ``BadInput`` with the name of an option."""
    verify = read("--verify", TaskKeys.verify.form, [split_words(line) for line in arguments.verify])
    must_run(verify)
    limits = amounts(arguments, "budget")
    orphaned = read("--orphaned", TaskKeys.orphaned.form, arguments.orphaned) if arguments.orphaned else None
    if orphaned is OnDeath.VERIFY and not verify:
        raise BadInput(f'--orphaned: found "verify"; accepted: {NEEDS_COMMANDS}')
    return TaskPlan(
        id=read("--id", TaskKeys.id.form, arguments.id),
        prompt=prompt_of("--prompt", arguments.prompt),
        verify=verify,
        depends_on=tuple(dict.fromkeys(arguments.depends_on)),
        priority=number("--priority", TaskKeys.priority, arguments.priority),
        max_retries=number("--max-retries", TaskKeys.max_retries, arguments.max_retries),
        role=read("--role", TaskKeys.role.form, arguments.role) if arguments.role else "",
        files=tuple(dict.fromkeys(read("--file", TaskKeys.files.form, arguments.file))),
        needs_approval=arguments.approval == "merge",
        trust=read("--trust", TaskKeys.trust.form, arguments.trust) if arguments.trust else AccessLevel.UNTRUSTED,
        most_subtasks=number("--max-subtasks", TaskKeys.max_subtasks, arguments.max_subtasks),
        subtasks_ms=number("--subtasks-timeout", TaskKeys.subtasks_timeout, arguments.subtasks_timeout),
        caps=Caps(*(limits.of(resource) or None for resource in KEYS)),
        orphaned=orphaned,
        on_nothing=read("--on-nothing", TaskKeys.on_nothing.form, arguments.on_nothing or OnNothing.FAIL),
        anew=is_anew(read("--on-retry", TaskKeys.on_retry.form, arguments.on_retry)) if arguments.on_retry else None,
    )


def read(option: str, form: Form[T], value: object) -> T:
    """Parse a value as in a fleet file. Raises ``BadInput``."""
    try:
        return form.parse(value)
    except RefusedError as refused:
        place = "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in refused.at)
        raise BadInput(f"{option}{place}: {refused}") from refused


def number(option: str, key: Key[int], value: object) -> int:
    """Return a number, or the default of its key without one. Raises ``BadInput``."""
    return key.default if value is None else read(option, key.form, value)


def prompt_of(option: str, value: object) -> str:
    """Return a prompt that fits into an argument of a command. Raises ``BadInput``."""
    prompt = read(option, forms.TEXT, value)
    operator_commands.must_be_decoded(option, prompt)
    if len(prompt.encode()) > LONGEST_ARGUMENT_BYTES:
        accepted = f"at most {LONGEST_ARGUMENT_BYTES}; put more into a file of the repository, and name that"
        raise BadInput(f"{option}: found {len(prompt.encode())} bytes; accepted: {accepted}")
    return prompt


def split_words(line: str) -> list[str]:
    """Return the words of a command, as a shell splits them. Raises ``BadInput``."""
    operator_commands.must_be_decoded("--verify", line)
    try:
        return shlex.split(line)
    except ValueError as error:
        raise BadInput(
            f"--verify: {line!r} is not a command: {error}; quote it as for a shell, although no shell runs it"
        ) from error


def must_run(commands: Commands) -> None:
    """Raise ``BadInput`` for a missing program; one in the worktree may be written by the agent."""
    for program, *_ in commands:
        if ("/" not in program or program.startswith("/")) and shutil.which(program) is None:
            accepted = "a program on PATH, or the path of one in the task's worktree, such as ./check"
            raise BadInput(f"--verify: found {program!r}, which cannot be run; accepted: {accepted}")
