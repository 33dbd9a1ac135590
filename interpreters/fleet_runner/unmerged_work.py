"""The unmerged work of a log's tasks, as sentences for the operator."""

from collections.abc import Collection, Iterator
from functools import cached_property
from pathlib import Path

import anyio

from lifefold.interpreters.explain.why.phrases import enumerated
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.remote_work import NoRemoteError, mirror_of
from lifefold.interpreters.store import LogStore
from lifefold.interpreters.worktrees.git import path_name
from lifefold.interpreters.worktrees.mirror import Mirror
from lifefold.interpreters.worktrees.unmerged_work import Unmerged, unmerged


class UnmergedWork:
    """The unmerged work in the repository of a log; empty while a runner is at work, and for the past of a log.

    The repository, or the git remote of a cluster, is searched once, at the first question about a task. Do not ask
    about merged tasks, because git can take long.
    """

    def __init__(self, store: LogStore) -> None:
        """Read the places to search from the log."""
        home, fleet, branch = (store.meta(each) or "" for each in ("git_directory", "fleet", "branch"))
        self._where = (Path(home), fleet, branch, FleetFolder(store.path).worktrees)
        self._is_there = bool(branch) and store.past is None and not store.is_written()
        self._mirror: Mirror | NoRemoteError | None = None
        if self._is_there and not home:
            try:
                self._mirror = mirror_of(store)
            except NoRemoteError as error:
                self._mirror = error

    @cached_property
    def _found(self) -> Unmerged:
        match self._mirror:
            case Mirror():
                return anyio.run(self._mirror.unmerged)
            case NoRemoteError():
                return Unmerged({}, str(self._mirror))
            case None:
                return anyio.run(unmerged, *self._where) if self._is_there else Unmerged({})

    def of(self, task: str) -> tuple[str, ...]:
        """Return the places of a task's unmerged work: branches, references, worktrees with uncommitted files."""
        return self._found.places.get(path_name(task), ())

    def doubts(self, tasks: Collection[str]) -> tuple[str, ...]:
        """Return why the answer may be incomplete for these tasks, as sentences without full stops."""
        if not tasks or self._found.is_whole:
            return ()
        return (f"the search for unmerged work is incomplete: {self._found.why}",)

    def lines(self, tasks: Collection[str]) -> Iterator[str]:
        """Yield the places of the unmerged work of these tasks, and doubts, as sentences without full stops."""
        for task in tasks:
            if places := self.of(task):
                yield f"unmerged work of {task} is in {enumerated(places)}"
        yield from self.doubts(tasks)

    def words(self, task: str) -> str:
        """Return the same of one task; empty without unmerged work."""
        return "; ".join(self.lines((task,)))
