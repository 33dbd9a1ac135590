"""``run --again``: a new log with the tasks that a finished fleet left undone; the old log stays unchanged."""

import sys
from pathlib import Path

import anyio

from lifefold.core.fleet.system import board
from lifefold.core.fleet.system.rerun import FinishedFleet, ended, is_over, left_out, remainder
from lifefold.core.kernel import Aggregate
from lifefold.interpreters.cli import logs
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.server_logs import announce_next
from lifefold.interpreters.fleet_file import Fleet
from lifefold.interpreters.fleet_runner import OtherFleetError
from lifefold.interpreters.fleet_runner.log_owner import Before, before_of, must_be_in_its_repository
from lifefold.interpreters.store import LogStore


def again(fleet: Fleet, log: Path) -> tuple[Before, Path]:
    """Return the runs before the next run, and the path of its log.

    Raises ``BadInput`` unless the fleet of this log is over, has tasks left, and is in the repository it began in.
    """
    if not log.exists():
        raise BadInput(f"--again: there is no log {log} yet; without --again this command begins the fleet")
    then = logs.next_log(log)
    if then.exists():
        raise BadInput(f"--again: {then} continues {log} already; go on with that: --db {then}")
    with logs.peek(str(log)) as store:
        _must_be_of(fleet, store)
        before, branch = before_of(store), store.meta("branch") or ""
        over = _finished_board(store)
    so_far = ended(over, before.ended)
    _print_left_out(fleet, over, so_far)
    if not remainder(fleet.plan, so_far).tasks:
        why = "every task is closed, is cancelled, or depends on a cancelled task"
        raise BadInput(f"--again: nothing of {fleet.source} is left to do: {why}")
    announce_next(log, then)
    return Before(so_far, branch), then


def _must_be_of(fleet: Fleet, store: LogStore) -> None:
    """Raise ``BadInput`` for the log of another fleet, or one with another repository."""
    owner = store.meta("fleet")
    if owner != fleet.name:
        raise BadInput(f"--again: {store.path} is the log of the fleet {owner!r}, not of {fleet.name!r}")
    if bool(store.meta("branch")) is not (fleet.repository is not None):
        why = "had a repository, and the fleet file has none" if store.meta("branch") else "had no repository"
        raise BadInput(f"--again: the fleet of {store.path} {why}: its closed tasks are not done here; use a new --db")
    try:
        anyio.run(must_be_in_its_repository, fleet, store)
    except OtherFleetError as error:
        raise BadInput(f"--again: {error}") from error


def _finished_board(store: LogStore) -> Aggregate:
    """Return the board of a finished fleet. Raises ``BadInput`` for a fleet that is not over."""
    aggregates = logs.fold(store).aggregates
    is_written = store.is_written()
    if is_written or not is_over(aggregates):
        how = "a runner is at work with it" if is_written else "without --again this command continues it"
        raise BadInput(f"--again: the fleet of {store.path} is not over yet; {how}")
    return aggregates[board.NAME]


def _print_left_out(fleet: Fleet, over: Aggregate, so_far: FinishedFleet) -> None:
    planned = {each.id for each in fleet.plan.tasks}
    for name in left_out(fleet.plan, over, so_far):
        why = "it depends on a cancelled task" if name in planned else "it is not in the fleet file"
        print(f"left out: {name}: {why}", file=sys.stderr)
