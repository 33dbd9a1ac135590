"""Completion of the command line in a shell: commands, options, and the names of tasks and agents in the log.

The shell calls this program with what was typed so far (argcomplete). Nothing is printed but candidates, and a log that
cannot be read has none.
"""

import argparse
from argparse import Namespace
from collections.abc import Iterable, Iterator
from typing import Any, cast

from argcomplete import autocomplete
from argcomplete.completers import FilesCompleter

from lifefold.core.fleet.dispatch.task_index import tasks_of
from lifefold.core.fleet.system import board
from lifefold.interpreters.cli import logs
from lifefold.interpreters.cli.addressees import agent_names
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.engine import LogMismatchError
from lifefold.interpreters.store import StoreError


def complete(whole: argparse.ArgumentParser) -> None:
    """Print the candidates for what was typed, and end this process; return if no shell asks for them."""
    for action in _actions(whole):
        names = str(action.metavar or "")
        if names in _COMPLETERS:
            action.completer = _COMPLETERS[names]  # type: ignore[attr-defined]  # argcomplete's own attribute
    autocomplete(whole, always_complete_options=False)


def _actions(of: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in of._actions:  # noqa: SLF001 - argparse has no public name for them
        choices: object = action.choices
        if isinstance(choices, dict):  # the commands of a parser, by name
            for each in cast("dict[str, argparse.ArgumentParser]", choices).values():
                yield from _actions(each)
        yield action


def _tasks(parsed_args: Namespace, **_context: Any) -> Iterable[str]:
    return _names(parsed_args, tasks=True)


def _agents(parsed_args: Namespace, **_context: Any) -> Iterable[str]:
    return _names(parsed_args, agents=True)


def _both(parsed_args: Namespace, **_context: Any) -> Iterable[str]:
    return _names(parsed_args, tasks=True, agents=True)


def _names(parsed: Namespace, *, tasks: bool = False, agents: bool = False) -> list[str]:
    try:
        with logs.peek(getattr(parsed, "db", None)) as store:
            there = logs.fold(store).aggregates
    except (BadInput, StoreError, LogMismatchError, OSError):
        return []
    of = there.get(board.NAME)
    found = [each.id for each in tasks_of(of)] if tasks and of is not None else []
    return [*found, *(agent_names(there) if agents else ())]


_fleet_files = FilesCompleter((".toml",))

_COMPLETERS = {
    "TASK": _tasks,
    "AGENT": _agents,
    "AGENT|TASK": _both,
    "NAME": _both,
    "FLEET.toml": _fleet_files,
}
"""What completes an argument, by the word for it in the help."""
