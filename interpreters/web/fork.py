"""A fork: a log of its own that has the entries of another one up to a position, to look at and to try commands on.

Its fleet has a name of its own, so ``lifefold run`` refuses to go on with it: the original goes on, and the worktrees
and processes are those of the original. Rules decide operator commands in it as in any other log.
"""

import tempfile
from functools import partial
from pathlib import Path
from typing import Final

import anyio

from lifefold.interpreters.store import Batch, SqliteStore
from lifefold.interpreters.web.moments import View

KEPT: Final = ("meaning", "plan", "before", "source")
"""The metadata that a fork has of its original; what leads to a repository is left out."""


def forked(view: View) -> Path:
    """Write the fork of a log at the position of a view, in a new folder, and return its path."""
    log, seq = view.log, view.moment.seq
    path = Path(tempfile.mkdtemp(prefix="lifefold-fork-")) / f"{log.key}-at-{seq}.db"
    with SqliteStore.peek(log.path) as store:
        entries = anyio.run(store.between, 0, seq)
        kept = {name: value for name in KEPT if (value := store.meta(name)) is not None}
    with SqliteStore.create(path, {**kept, "fleet": f"{log.fleet} forked at {seq}"}) as fork:
        anyio.run(partial(fork.append, Batch(entries)))
    return path
