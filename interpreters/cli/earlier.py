"""Tasks that are not in a log because an earlier log of the fleet has them: a run with ``--again`` begins a new log."""

import shlex
from pathlib import Path

from lifefold.core.fleet.system import board
from lifefold.interpreters.cli import logs
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.names import UnknownName
from lifefold.interpreters.explain.task_words import is_in
from lifefold.interpreters.store import LogStore, StoreError, peek_log


def found_earlier(store: LogStore, unknown: UnknownName) -> BadInput:
    """Return the error about an unknown name; for a task of an earlier log, with its state there and the command."""
    for log in logs.earlier_logs(store.path):
        state = _state_in(log, unknown.name) if unknown.what.endswith("task") else ""
        if state:
            there = f"lifefold why {shlex.quote(unknown.name)} --db {shlex.quote(str(log))}"
            then = f"it {is_in(state)} in the earlier log {log}; {there} explains it"
            said = f"{unknown.name} is not in {store.path}: {then}"
            return BadInput(logs.typed(said, store))
    return unknown


def _state_in(log: Path, task: str) -> str:
    """Return the state of a task in a log; empty if the log does not have it, or cannot be read."""
    try:
        with peek_log(log) as store:
            of = logs.fold(store).aggregates.get(board.NAME)
    except (BadInput, StoreError, OSError):
        return ""
    found = None if of is None else of.entities.get(f"task:{task}")
    return "" if found is None else str(found.state)
