"""An agent's command: its placeholders, what is put in their place, and where its program lies.

A command is a list of arguments and no shell ever sees it. In each argument ``{prompt}``, ``{prompt_file}``, ``{task}``
and ``{worktree}`` stand for what a session is given, and ``{{`` and ``}}`` for the braces themselves. ``{fleet_dir}``,
the folder of the fleet file, is known as soon as the file is read and is put in its place then.

The program is looked for when the file is read. A bare name is looked for on PATH (the agent's own, if its ``env`` sets
one). A path is relative to the fleet file's folder, and is made absolute, because a session runs in its worktree; a
program of the worktree itself is written ``{worktree}/...`` and is not looked for, since it may not be there yet.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from lifefold.interpreters.fleet_file.forms import WORDS, Form
from lifefold.interpreters.fleet_file.values import RefusedError

SESSION_PLACEHOLDERS = ("prompt", "prompt_file", "task", "worktree")
FLEET_PLACEHOLDER = "fleet_dir"
PLACEHOLDER_FORM = "{prompt}, {prompt_file}, {task}, {worktree} and {fleet_dir}; a brace itself is written {{ or }}"

_BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


def expand(command: Sequence[str], *, prompt: str, prompt_file: str, task: str, worktree: str) -> list[str]:
    """Return the arguments to start a session with. What is put in is taken as it is, whatever braces or quotes it has.

    Raises ``KeyError`` for a placeholder that ``load`` would have refused.
    """
    values = {"prompt": prompt, "prompt_file": prompt_file, "task": task, "worktree": worktree}
    return [_substituted(argument, values) for argument in command]


def placeholders(argument: str) -> Iterator[str]:
    """Yield the names of an argument's placeholders; for a brace that belongs to none, the brace."""
    for match in _BRACES.finditer(argument):
        if match[0] not in {"{{", "}}"}:
            yield match[0] if match[1] is None else match[1]


def literal(text: str) -> str:
    """Return a text as an argument that stands for nothing but itself."""
    return text.replace("{", "{{").replace("}", "}}")


def parse_command(value: object) -> tuple[str, ...]:
    """Accept a command whose placeholders are all known."""
    command = WORDS.parse(value)
    for index, argument in enumerate(command):
        for name in placeholders(argument):
            if name not in SESSION_PLACEHOLDERS and name != FLEET_PLACEHOLDER:
                raise RefusedError(name if name in {"{", "}"} else f"{{{name}}}", PLACEHOLDER_FORM, index)
    return command


_ARGUMENT = rf"^(?:[^{{}}]|\{{\{{|\}}\}}|\{{(?:{'|'.join((*SESSION_PLACEHOLDERS, FLEET_PLACEHOLDER))})\}})*$"

COMMAND = Form(
    WORDS.accepted,
    WORDS.brief,
    {"type": "array", "minItems": 1, "items": {"type": "string", "pattern": _ARGUMENT}},
    parse_command,
    list,
)
"""An agent's command, with placeholders."""


def settled_command(command: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Return the command with the fleet file's folder put in, and a program that is given as a path made absolute."""
    settled = [_with_fleet_dir(argument, folder) for argument in command]
    begins_with_placeholder = settled[0].startswith("{") and not settled[0].startswith("{{")
    if "/" in settled[0] and not settled[0].startswith("/") and not begins_with_placeholder:
        settled[0] = f"{literal(str(folder))}/{settled[0]}"
    return tuple(settled)


def python_command(target: str, folder: Path) -> tuple[str, ...]:
    """Return the command of an agent that is a class of the user's, in a module that may lie in ``folder``."""
    worker = "lifefold.interpreters.facades.cooperative.worker"
    return sys.executable, "-P", "-m", worker, literal(str(folder)), literal(target)


def what_is_wrong_with(program: str, env: Mapping[str, str]) -> str:
    """Say why a settled command's program cannot be run; nothing if it can, or if that depends on the session."""
    if any(True for _ in placeholders(program)):
        return ""
    name = _substituted(program, {})
    if shutil.which(name, path=env.get("PATH")) is not None:
        return ""
    if "/" not in name or not os.path.exists(name):  # noqa: PTH110 - never raises
        return "is not there"
    return "is a folder" if os.path.isdir(name) else "is not executable"  # noqa: PTH112 - never raises


def _substituted(argument: str, values: Mapping[str, str]) -> str:
    return _BRACES.sub(lambda match: match[0][0] if match[0] in {"{{", "}}"} else values[match[1]], argument)


def _with_fleet_dir(argument: str, folder: Path) -> str:
    return _BRACES.sub(lambda match: literal(str(folder)) if match[1] == FLEET_PLACEHOLDER else match[0], argument)
