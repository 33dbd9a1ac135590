"""Commands inside a session of a fleet.

The token of its claim lets a session give ``split`` and ``abort --scope tool``. Other commands that act on a fleet
are for operators. This guards against mistakes and is not a sandbox: a session runs as the same user, and one that
unsets these variables counts as an operator.
"""

import os
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.fleet_runner.redaction import Secrets
from lifefold.interpreters.processes.shim.durable import MARK_VARIABLE

MARKS: Final = (MARK_VARIABLE, "LIFEFOLD_AGENT", "LIFEFOLD_TASK", "LIFEFOLD_TOKEN")
"""Variables of the processes of a fleet, which the shell of an operator does not have."""

ACCEPTED: Final = "a session may give lifefold split and lifefold abort --scope tool, for its own task"

IS_ANOTHERS: Final = "this is not the token of its claim; the session of the task has it as LIFEFOLD_TOKEN"


def session() -> str:
    """Return the session of this process, in words; empty outside a session."""
    if not any(os.environ.get(name) for name in MARKS):
        return ""
    agent, task = (os.environ.get(f"LIFEFOLD_{name}", "") for name in ("AGENT", "TASK"))
    return f"a session{f' of {agent}' if agent else ''}{f' at {task}' if task else ''}"


def actor() -> str:
    """Return the actor of commands inside a session: ``session:AGENT``; empty outside."""
    return f"session:{os.environ.get('LIFEFOLD_AGENT') or 'unknown'}" if session() else ""


def must_be_permitted(arguments: Namespace) -> None:
    """Raise ``BadInput`` inside a session for an operator's command."""
    module, _, function = arguments.command.partition(":")
    raises = module == "budgeting" and any(vars(arguments)[each] for each in _RAISES)
    accepts = module == "planning" and arguments.accept
    upgrades = module == "upgrading" and not arguments.dry_run
    if raises or accepts or upgrades or module in _OF_OPERATORS or arguments.command in {"adding:add", "adding:finish"}:
        must_be_outside("task add" if function == "add" else function)


_OF_OPERATORS: Final = frozenset(
    {
        "answering",
        "approving",
        "attaching",
        "branching",
        "browsing",
        "cleaning",
        "clustering",
        "copying",
        "deciding",
        "editing",
        "releasing",
        "telling",
        "trusting",
    }
)
"""The modules with commands for operators only."""

_RAISES: Final = ("add_usd", "add_tokens", "add_time", "add_sessions")
"""The options by which ``budget`` changes a budget."""


def must_not_run(log: Path) -> None:
    """Raise ``BadInput`` inside a session of the fleet of this log: a session does not run its own fleet."""
    own = os.environ.get("LIFEFOLD_DB", "")
    if own and os.path.realpath(own) == os.path.realpath(log):
        must_be_outside("run, of its own fleet,")


def must_be_outside(what: str) -> None:
    """Raise ``BadInput`` inside a session: ``what`` is for an operator."""
    if found := session():
        raise BadInput(f"this is {found} (its environment says so), and {what} is for an operator; {ACCEPTED}")


def token_parts(token: str) -> tuple[int, str]:
    """Return the epoch of a claim, and its secret. Raises ``BadInput``."""
    number, _, secret = token.partition("-")
    if not number.isdecimal():
        raise BadInput("--token: accepted: the token of a claim, as LIFEFOLD_TOKEN has it in the claim's session")
    return int(number), secret


def hidden(text: str, around: Mapping[str, str] = os.environ) -> str:
    """Return a text of a session without the values of its secrets, because the log and prompts get it."""
    return Secrets(around.items(), around.get("LIFEFOLD_REDACT", "").split()).hidden(text) if session() else text
