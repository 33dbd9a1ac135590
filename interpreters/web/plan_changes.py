"""The plan change that waits: how the fleet file of a log differs from the plan in force, and its acceptance.

The log has the place of its fleet file. An acceptance names the difference that its operator has seen. It is refused if
the file was changed since then.
"""

import hashlib
from pathlib import Path
from typing import Final

import msgspec

from lifefold.core.fleet.system import board
from lifefold.core.kernel import Aggregate
from lifefold.interpreters.cli.commands import planning
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.fleet_file import Fleet, FleetFileError, load
from lifefold.interpreters.fleet_runner.plan_changes import Proposed, proposed
from lifefold.interpreters.store import LogStore, peek_log
from lifefold.interpreters.web.moments import View
from lifefold.interpreters.web.structs import Action, PlanChange

_MARK: Final = 16
"""The characters of a digest that names a difference."""


def waiting(view: View) -> PlanChange | None:
    """Return the difference that an operator can accept; None in the past, without a difference, and without a file."""
    if not view.moment.is_now or not view.has_board or view.is_over:
        return None
    source = Path(view.log.store.meta("source") or "")
    if not source.is_file():
        return None
    try:
        fleet = load(source, watch=True)
        found = _difference(fleet, view.log.store, view.there[board.NAME])
    except (FleetFileError, BadInput) as error:
        return PlanChange(str(source), 0, (), (), str(error), ())
    if found is None or not found.lines:
        return None
    lines = tuple(planning.shown(found, view.log.path))
    obstacles = tuple(map(str, found.obstacles))
    command = {"command": "accept-plan", "seen": _mark(found, fleet)}
    can = not obstacles or found.is_possible_in_part
    label = "Accept the rest" if obstacles else "Accept the change"
    about = "parts without an effect stay as they are" if obstacles else "the plan of the file is in force then"
    accept = (Action(label, command | ({"rest": True} if obstacles else {}), about),) if can else ()
    return PlanChange(str(source), found.number, lines, obstacles, "", accept)


def accept(log: Path, seen: str, *, rest: bool) -> None:
    """Accept the difference that an operator has seen. Raises ``BadInput`` with the reason of a refusal."""
    with peek_log(log) as store:
        source = Path(store.meta("source") or "")
    try:
        fleet = load(source, watch=True)
    except FleetFileError as error:
        raise BadInput(str(error)) from error
    whole = planning.look(fleet, log)
    if whole is None:
        raise BadInput("nothing has changed: the fleet file is the plan in force")
    if _mark(whole, fleet) != seen:
        raise BadInput(f"{source} or its fleet was changed since this difference was shown; look again")
    found = planning.look(fleet, log, partial=True) if rest else whole
    if found is not None:
        planning.must_be_possible(found, fleet, log)
        planning.accept(fleet, log, found)


def _difference(fleet: Fleet, store: LogStore, of: Aggregate) -> Proposed | None:
    """Return how a file differs; None for the file of another fleet, of which a fork is one."""
    if store.meta("fleet") != fleet.name:
        return None
    try:
        return proposed(fleet, store, of)
    except ValueError as error:
        raise BadInput(str(error)) from error


def _mark(found: Proposed, fleet: Fleet) -> str:
    """Return the name of a difference: equal for an equal file after the same accepted changes."""
    said = msgspec.json.encode((found.number, found.lines, fleet.meaning))
    return hashlib.sha256(said).hexdigest()[:_MARK]
