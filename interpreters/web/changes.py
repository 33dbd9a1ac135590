"""What a task has changed in its repository, for a page: the comparison of ``lifefold diff``, cut to a size."""

from typing import Final

import anyio

from lifefold.core.fleet.board.fleet_task import FleetTask
from lifefold.interpreters.desk.changes import Changes, NoChangesError, lines
from lifefold.interpreters.desk.difference import patch
from lifefold.interpreters.store import SqliteStore
from lifefold.interpreters.web.structs import Diff

MOST_CHARACTERS: Final = 200_000
"""The most characters of a diff on a page."""

LIMIT_S: Final = 5
"""How long git may take, in seconds."""

_OPTIONS: Final = ("--stat", "--patch")


def diff_of(store: SqliteStore, task: FleetTask) -> Diff | None:
    """Return what a task has changed; None if it has changed nothing yet, or its repository is gone."""
    try:
        changes, text = anyio.run(_in_time, store, task)
    except (NoChangesError, TimeoutError):
        return None
    readable = "\n".join(lines(text))
    return Diff(changes.said, readable[:MOST_CHARACTERS], len(readable) > MOST_CHARACTERS)


async def _in_time(store: SqliteStore, task: FleetTask) -> tuple[Changes, bytes]:
    with anyio.fail_after(LIMIT_S):
        return await patch(store, task, _OPTIONS)
