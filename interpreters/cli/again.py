"""What a fleet that is over has left undone, taken up in a new log; the old one stays as it is."""

import sys
from pathlib import Path

import anyio

from lifefold.core.fleet.system import board
from lifefold.core.fleet.system.rerun import FinishedFleet, ended, is_over, left_out, remainder
from lifefold.core.kernel import Aggregate
from lifefold.interpreters.cli import logs
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.fleet_file import Fleet
from lifefold.interpreters.fleet_runner import OtherFleetError
from lifefold.interpreters.fleet_runner.log_owner import Before, before_of, must_be_in_its_repository
from lifefold.interpreters.store import SqliteStore


def again(fleet: Fleet, log: Path) -> tuple[Before, Path]:
    """Return what was before the next run, and where its log is kept.

    Raises ``BadInput`` unless the fleet of this log is over, has left something to be done, and is where it was.
    """
    if not log.exists():
        raise BadInput(f"--again: there is no log {log} yet; without --again this fleet begins")
    then = logs.next_log(log)
    if then.exists():
        raise BadInput(f"--again: what {log} has left was taken up already, in {then}; go on with that: --db {then}")
    with logs.peek(str(log)) as store:
        _must_be_of(fleet, store)
        before, branch = before_of(store), store.meta("branch") or ""
        desk = _board_of_what_is_over(store)
    so_far = ended(desk, before.ended)
    _tell_what_is_left_out(fleet, desk, so_far)
    if not remainder(fleet.plan, so_far).tasks:
        what = "all is closed but what was cancelled, or needs what was"
        raise BadInput(f"--again: nothing is left to be done of {fleet.source}: {what}")
    return Before(so_far, branch), then


def _must_be_of(fleet: Fleet, store: SqliteStore) -> None:
    """Raise ``BadInput`` for the log of another fleet, or one whose work was merged elsewhere, or nowhere."""
    owner = store.meta("fleet")
    if owner != fleet.name:
        raise BadInput(f"--again: {store.path} is the log of the fleet {owner!r}, not of {fleet.name!r}")
    if bool(store.meta("branch")) is not (fleet.repository is not None):
        what = "had a repository, and the fleet file has none" if store.meta("branch") else "had no repository"
        raise BadInput(f"--again: the fleet of {store.path} {what}: what is closed there is not here; use a new --db")
    try:
        anyio.run(must_be_in_its_repository, fleet, store)
    except OtherFleetError as error:
        raise BadInput(f"--again: {error}") from error


def _board_of_what_is_over(store: SqliteStore) -> Aggregate:
    """Return the board of a fleet that is over. Raises ``BadInput`` for one that is not."""
    aggregates = logs.fold(store).aggregates
    is_written = store.is_written()
    if is_written or not is_over(aggregates):
        how = "a runner is at work with it" if is_written else "without --again this command goes on with it"
        raise BadInput(f"--again: the fleet of {store.path} is not over yet; {how}")
    return aggregates[board.NAME]


def _tell_what_is_left_out(fleet: Fleet, desk: Aggregate, so_far: FinishedFleet) -> None:
    planned = {each.id for each in fleet.plan.tasks}
    for name in left_out(fleet.plan, desk, so_far):
        why = "it needs what was cancelled" if name in planned else "it is not in the fleet file"
        print(f"left out: {name}: {why}", file=sys.stderr)
