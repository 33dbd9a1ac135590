"""Where the work of a log's tasks lies that was not merged, in words for people."""

from collections.abc import Collection, Iterator
from functools import cached_property
from pathlib import Path

import anyio

from lifefold.interpreters.explain.why.phrases import enumerated
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.store import SqliteStore
from lifefold.interpreters.worktrees.git import path_name
from lifefold.interpreters.worktrees.unmerged_work import LOOK_MS, Unmerged, unmerged


class Leavings:
    """What lies in the repository of a log; nothing while a runner is at work.

    It is looked once, when a task is asked for. Ask for none whose work is merged: git can take long.
    """

    def __init__(self, store: SqliteStore) -> None:
        """Find out where to look."""
        home, fleet, branch = (store.meta(each) or "" for each in ("git_directory", "fleet", "branch"))
        self._where = (Path(home), fleet, branch, FleetFolder(store.path).worktrees)
        self._is_there = bool(home and branch) and not store.is_written()

    @cached_property
    def _found(self) -> Unmerged:
        return anyio.run(unmerged, *self._where) if self._is_there else Unmerged({})

    def of(self, task: str) -> tuple[str, ...]:
        """Return where a task's work lies: branches, references, folders with what is not committed."""
        return self._found.places.get(path_name(task), ())

    def doubts(self, tasks: Collection[str]) -> tuple[str, ...]:
        """Return why more of these tasks may lie there, if it may, as a sentence without its full stop."""
        if not tasks or self._found.is_whole:
            return ()
        return (f"it was not looked everywhere for work that was not merged: git took longer than {LOOK_MS:,} ms",)

    def lines(self, tasks: Collection[str]) -> Iterator[str]:
        """Yield where the work of each of these tasks lies, and what is in doubt: sentences without full stops."""
        for task in tasks:
            if places := self.of(task):
                yield f"what was not merged of {task} is in {enumerated(places)}"
        yield from self.doubts(tasks)

    def words(self, task: str) -> str:
        """Return the same of one task; nothing if nothing is left."""
        return "; ".join(self.lines((task,)))
