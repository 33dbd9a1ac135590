"""The difference that the work at a task makes, with the output of its verification, as one value."""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Final

import msgspec

from lifefold.core.fleet.board.fleet_task import FleetTask
from lifefold.interpreters.desk.changes import Changes, Repository, Then
from lifefold.interpreters.desk.session_output import secrets_of_log
from lifefold.interpreters.desk.verifications import Verification, begun_by, verifications
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.store import LogStore


class Difference(msgspec.Struct, frozen=True):
    """The compared states, the difference in git's format, and the verification if it was asked for.

    Bytes of files that are no UTF-8 are replaced in ``diff``; ``patch`` has them.
    """

    changes: Changes
    diff: str
    verifications: tuple[Verification, ...] = ()


class Attempts(msgspec.Struct, frozen=True):
    """Which work at a task is compared, and with what: 0 is its present work, and its base.

    ``claims`` has the claims of both attempts, each the last one first. With ``then`` it is the work of that moment.
    """

    attempt: int = 0
    since: int = 0
    claims: Mapping[int, Sequence[int]] = {}
    then: Then | None = None


PRESENT: Final = Attempts()
"""The present work at a task, against its base."""


async def compared(repository: Repository, task: FleetTask, of: Attempts = PRESENT) -> Changes:
    """Return what is compared. Raises ``NoChangesError``."""
    if of.attempt:
        changes = await repository.of_attempt(task, of.attempt, of.claims.get(of.attempt, ()), of.then)
    else:
        changes = await repository.changes(task, of.then)
    if not of.since:
        return changes
    before = await repository.of_attempt(task, of.since, of.claims.get(of.since, ()), of.then)
    return await repository.since(changes, of.since, before)


async def patch(
    store: LogStore, task: FleetTask, options: Sequence[str] = (), of: Attempts = PRESENT, within_s: float = inf
) -> tuple[Changes, bytes]:
    """Return what is compared for a task, and the difference as bytes; a git remote may send for so long.

    Raises ``NoChangesError``.
    """
    repository = Repository(store, within_s)
    changes = await compared(repository, task, of)
    return changes, await repository.diff(changes, *options)


async def verified(store: LogStore, task: FleetTask, changes: Changes) -> tuple[Verification, ...]:
    """Return the verification of the compared work, as far as it had come at the moment of the log."""
    found = await verifications(FleetFolder(store.path), task.id, changes.claim, secrets_of_log(store))
    return found if store.past is None else begun_by(found, store.past[1])


async def difference(
    store: LogStore,
    task: FleetTask,
    options: Sequence[str] = (),
    of: Attempts = PRESENT,
    *,
    with_verification: bool = False,
) -> Difference:
    """Return the difference that the work at a task makes. Raises ``NoChangesError``."""
    changes, text = await patch(store, task, options, of)
    found = await verified(store, task, changes) if with_verification else ()
    return Difference(changes, text.decode("utf-8", "replace"), found)
