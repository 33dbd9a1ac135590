"""The command of an agent: its placeholders, their values, and its program.

A command is a list of arguments; no shell runs it. The placeholders ``{prompt}``, ``{prompt_file}``, ``{task}`` and
``{worktree}`` are replaced for each session, ``{fleet_dir}`` when the file is read. Braces are written ``{{`` and
``}}``.

The program must exist when the file is read. A bare name is searched on PATH, the agent's own if its ``env`` sets one.
A path is relative to the folder of the fleet file, and is made absolute, because a session runs in its worktree. A
program of the worktree is written ``{worktree}/...``; it may be missing, because an agent may write it.
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
    """Return the arguments of a session. Values are inserted unchanged, with their braces and quotes.

    Raises ``KeyError`` for a placeholder that ``load`` would have refused.
    """
    return filled(command, {"prompt": prompt, "prompt_file": prompt_file, "task": task, "worktree": worktree})


def filled(command: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """Return the arguments with these values of their placeholders, inserted unchanged."""
    return [_substituted(argument, values) for argument in command]


def placeholders(argument: str) -> Iterator[str]:
    """Yield the names of the placeholders of an argument, and each single brace."""
    for match in _BRACES.finditer(argument):
        if match[0] not in {"{{", "}}"}:
            yield match[0] if match[1] is None else match[1]


def literal(text: str) -> str:
    """Return the argument that expands to this text."""
    return text.replace("{", "{{").replace("}", "}}")


def parse_command(value: object) -> tuple[str, ...]:
    """Accept a command with known placeholders only."""
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
"""The command of an agent, with placeholders."""


def settled_command(command: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Return the command with the folder of the fleet file inserted, and the path of its program made absolute."""
    settled = [_with_fleet_dir(argument, folder) for argument in command]
    begins_with_placeholder = settled[0].startswith("{") and not settled[0].startswith("{{")
    if "/" in settled[0] and not settled[0].startswith("/") and not begins_with_placeholder:
        settled[0] = f"{literal(str(folder))}/{settled[0]}"
    return tuple(settled)


def python_command(target: str, folder: Path) -> tuple[str, ...]:
    """Return the command of an agent in Python; its module may be in ``folder``."""
    return sys.executable, "-P", "-m", _WORKER, literal(str(folder)), literal(target)


def is_python_command(command: Sequence[str]) -> bool:
    """Tell whether a command is that of an agent in Python, such as ``python_command`` returns."""
    return _WORKER in command[:4]


_WORKER = "lifefold.interpreters.facades.cooperative.worker"


def what_is_wrong_with(program: str, env: Mapping[str, str]) -> str:
    """Return why the program of a command cannot run; empty if it can, or if that depends on the session."""
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
