"""Logs for tests of the desk: a whole run of a fleet, decided without processes."""

from functools import cache, partial
from pathlib import Path

import anyio

from benchmarks.fold import Run
from lifefold.interpreters.store import Batch, Entry, SqliteStore


@cache
def run_of(agents: int, tasks: int) -> Run:
    """Return a run of a fleet from its opening until all tasks are closed."""
    return Run(agents, tasks)


def written(path: Path, entries: list[Entry], name: str = "fleet") -> Path:
    """Write a log with these entries."""
    with SqliteStore.create(path, {"fleet": name, "meaning": "{}"}) as store:
        anyio.run(partial(store.append, Batch(entries)))
    return path


def go_on(path: Path, entries: list[Entry]) -> None:
    """Write further entries to a log."""
    with SqliteStore.open(path) as store:
        anyio.run(partial(store.append, Batch(entries)))
