"""The form that edits a task, as ``lifefold edit`` does: what it shows, and whether that still holds."""

import hashlib
import shlex
from pathlib import Path
from typing import Final

import msgspec

from lifefold.core.fleet.board.fleet_task import FleetTask
from lifefold.core.fleet.system import board
from lifefold.interpreters.cli import logs
from lifefold.interpreters.cli.commands.editing import why_not
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.explain.accounts import balances
from lifefold.interpreters.fleet_file import FleetFileError, load
from lifefold.interpreters.fleet_file.budget import KEYS
from lifefold.interpreters.store import LogStore, peek_log
from lifefold.interpreters.web.moments import View
from lifefold.interpreters.web.structs import TaskForm

_MARK: Final = 16
"""The characters of a digest that names what a form shows."""


def form_of(view: View, record: FleetTask) -> TaskForm | None:
    """Return the form of a task; None in the past, without its fleet file, and for a task that cannot be changed.

    The file of another fleet, of which a log may be a fork, is not its fleet file. A text with a secret is left out of
    the form, because no page shows one.
    """
    if not view.moment.is_now or why_not(view.there[board.NAME], record) or not _has_file(view.log.store):
        return None
    prompt = record.prompt if view.secrets.hidden(record.prompt) == record.prompt else ""
    verify = tuple(map(shlex.join, record.verify))
    if any(view.secrets.hidden(each) != each for each in verify):
        verify = ()
    own = (each for each in balances(view.there) if (each.whose, each.name) == ("task", record.id))
    limits = {KEYS[each.resource].name: each.in_words() for each in own}
    return TaskForm(_mark(record), prompt, verify, record.priority, record.max_retries, limits)


def _has_file(store: LogStore) -> bool:
    try:
        return load(Path(store.meta("source") or ""), watch=True).name == store.meta("fleet")
    except (FleetFileError, OSError):
        return False


def must_be_as_seen(log: Path, name: str, seen: str) -> None:
    """Raise ``BadInput`` if a task was changed since its form was shown; an empty mark is of no form."""
    with peek_log(log) as store:
        of = logs.fold(store).aggregates.get(board.NAME)
    entity = None if of is None else of.entities.get(f"task:{name}")
    if seen and entity is not None and _mark(entity.record) != seen:
        raise BadInput(f"{name} was changed since this page showed it; look again")


def _mark(of: FleetTask) -> str:
    """Return the name of what a form shows: equal for equal values."""
    said = msgspec.json.encode((of.prompt, of.verify, of.priority, of.max_retries))
    return hashlib.sha256(said).hexdigest()[:_MARK]
