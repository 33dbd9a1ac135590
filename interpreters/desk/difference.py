"""The difference that the work at a task makes, with the output of its verification, as one value."""

from collections.abc import Sequence

import msgspec

from lifefold.core.fleet.board.fleet_task import FleetTask
from lifefold.interpreters.desk.changes import Changes, Repository
from lifefold.interpreters.desk.session_output import secrets_of_log
from lifefold.interpreters.desk.verifications import Verification, verifications
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.store import SqliteStore


class Difference(msgspec.Struct, frozen=True):
    """The compared states, the difference in git's format, and the verification if it was asked for.

    Bytes of files that are no UTF-8 are replaced in ``diff``; ``patch`` has them.
    """

    changes: Changes
    diff: str
    verifications: tuple[Verification, ...] = ()


async def patch(store: SqliteStore, task: FleetTask, options: Sequence[str] = ()) -> tuple[Changes, bytes]:
    """Return what is compared for a task, and the difference as bytes. Raises ``NoChangesError``."""
    repository = Repository(store)
    changes = await repository.changes(task)
    return changes, await repository.diff(changes, *options)


async def verified(store: SqliteStore, task: FleetTask, changes: Changes) -> tuple[Verification, ...]:
    """Return the verification of the compared work."""
    return await verifications(FleetFolder(store.path), task.id, changes.claim, secrets_of_log(store))


async def difference(
    store: SqliteStore, task: FleetTask, options: Sequence[str] = (), *, with_verification: bool = False
) -> Difference:
    """Return the difference that the work at a task makes. Raises ``NoChangesError``."""
    changes, text = await patch(store, task, options)
    found = await verified(store, task, changes) if with_verification else ()
    return Difference(changes, text.decode("utf-8", "replace"), found)
