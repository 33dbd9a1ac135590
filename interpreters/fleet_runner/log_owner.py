"""The owner of a log: a fleet with its plan, a repository, and the runs before."""

import json
import secrets
import shlex
from itertools import count
from pathlib import Path
from typing import Final

import msgspec

from lifefold.core.fleet.board import intake
from lifefold.core.fleet.board.claim_token import KEY_CHARS
from lifefold.core.fleet.system.rerun import FinishedFleet, remainder
from lifefold.core.kernel import Aggregate
from lifefold.interpreters.fleet_file import Fleet, describe_difference
from lifefold.interpreters.store import LogStore
from lifefold.interpreters.worktrees.errors import TakenOverError
from lifefold.interpreters.worktrees.origin import Origin, is_origin, origin_of
from lifefold.interpreters.worktrees.workplace import Workplace
from lifefold.interpreters.worktrees.worktrees import GitWorkplace


class OtherFleetError(Exception):
    """The log belongs to another fleet, to an earlier plan of this fleet, or to another repository."""


class Before(msgspec.Struct, frozen=True):
    """The runs before a run: their end, and the target branch, which this run keeps."""

    ended: FinishedFleet = FinishedFleet()
    branch: str = ""


CLAIM_KEY: Final = "claim_key"
"""The name of the secret in the log from which the tokens of claims are derived."""

NONE_BEFORE: Final = Before()
"""No earlier runs."""


async def written_of(fleet: Fleet, workplace: Workplace, before: Before) -> dict[str, str]:
    """Return the metadata of a new log."""
    meta = {"fleet": fleet.name, "meaning": fleet.meaning, "source": str(fleet.source), "branch": ""}
    meta["before"] = msgspec.json.encode(before).decode()
    meta["plan"] = msgspec.json.encode(remainder(fleet.plan, before.ended)).decode()
    if isinstance(workplace, GitWorkplace) and fleet.repository is not None:
        origin = await origin_of(fleet.repository, workplace.branch)
        meta |= {
            "branch": workplace.branch,
            "git_directory": str(origin.directory),
            "first_commit": origin.first_commit,
        }
    return {**meta, "run": secrets.token_hex(8), CLAIM_KEY: secrets.token_hex(KEY_CHARS // 2)}


def before_of(store: LogStore) -> Before:
    """Return the runs before the run of this log."""
    return store.meta_as("before", Before) or NONE_BEFORE


async def must_belong(fleet: Fleet, store: LogStore) -> None:
    """Raise ``OtherFleetError`` unless this fleet may continue the log in this repository."""
    must_be_of(fleet, store)
    await must_be_in_its_repository(fleet, store)


def must_be_of(fleet: Fleet, store: LogStore) -> None:
    """Raise ``OtherFleetError`` unless the log belongs to a fleet of this name."""
    owner = store.meta("fleet")
    if owner != fleet.name:
        message = f"{store.path}: is the log of the fleet {owner!r}, not of {fleet.name!r}; use another --db"
        raise OtherFleetError(message)


def must_mean(fleet: Fleet, store: LogStore, meaning: str) -> None:
    """Raise ``OtherFleetError`` unless the fleet file has the plan in force in its log."""
    if json.loads(meaning) != json.loads(fleet.meaning):
        changes = "; ".join(describe_difference(meaning, fleet.meaning))
        command = f"lifefold run {shlex.quote(str(fleet.source))} --accept --db {shlex.quote(str(store.path))}"
        message = (
            f"{fleet.source}: differs from the plan in force in {store.path} ({changes}); to accept that: {command}"
        )
        raise OtherFleetError(message)


def must_watch(fleet: Fleet, log: Path, of: Aggregate | None) -> None:
    """Raise ``OtherFleetError`` for ``--watch`` with a log that began without it; ``of`` is its board."""
    if fleet.watch and of is not None and intake.REF not in of.entities:
        message = f"{log}: was begun without --watch, and ends with its tasks; use another --db"
        raise OtherFleetError(message)


def fresh_log(log: Path) -> Path:
    """Return the path of a new log beside this one."""
    names = (log.with_name(f"{log.stem}-anew{'' if number == 1 else f'-{number}'}.db") for number in count(1))
    return next(each for each in names if not each.exists())


def onward(error: TakenOverError, fleet: Fleet, log: Path) -> TakenOverError:
    """Return the error that another run has taken over the name of a fleet, with the commands that work."""
    run = f"lifefold run {shlex.quote(str(fleet.source))} --db"
    there = f"To continue that run:\n    {run} {shlex.quote(str(error.log))}\n" if error.log.exists() else ""
    anew = f"To do all tasks again in a new log:\n    {run} {shlex.quote(str(fresh_log(log)))}"
    return TakenOverError(error.what, error.where, f"\n{there}{anew}", error.log)


async def must_be_in_its_repository(fleet: Fleet, store: LogStore) -> None:
    """Raise ``OtherFleetError`` unless this is the repository in which the log began."""
    directory, first_commit = store.meta("git_directory"), store.meta("first_commit")
    if fleet.repository is None or directory is None or first_commit is None:
        return
    origin = Origin(Path(directory), first_commit)
    if not await is_origin(origin, fleet.repository, fleet.name, store.meta("run") or ""):
        message = (
            f"{store.path}: began in another repository than {fleet.repository}, in that of {directory}"
            f" with the first commit {first_commit[:12]}; use the log that began here, or another --db"
        )
        raise OtherFleetError(message)
