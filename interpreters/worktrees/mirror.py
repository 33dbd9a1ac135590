"""The work of a fleet at a git remote, brought to this machine: what an operator's commands read.

Hosts push what they have done (see ``cloned_workplace``). A mirror is a bare repository beside the files of a log. It
has the references of that log with the names of a local fleet. So commands read the work of a cluster as they read that
of one machine.

| at the remote, in ``refs/lifefold/FLEET/RUN/`` | in the mirror |
|---|---|
| ``base/TASK/EPOCH`` | ``refs/lifefold/FLEET/base/TASK/EPOCH`` |
| ``result/TASK/EPOCH`` | ``refs/lifefold/FLEET/result/TASK/EPOCH`` |
| ``work/TASK/EPOCH`` | the branch of the claim, ``refs/heads/lifefold/FLEET/TASK/EPOCH`` |
| the target branch | the same |

A mirror changes nothing at the remote but by ``remove``. It can be deleted: the next question makes it again.
"""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import anyio

from lifefold.interpreters.worktrees.claim_commit import Claim
from lifefold.interpreters.worktrees.cleaning import Left
from lifefold.interpreters.worktrees.errors import WorkplaceError
from lifefold.interpreters.worktrees.git import Git, path_name
from lifefold.interpreters.worktrees.pinned import Pins
from lifefold.interpreters.worktrees.ready_branches import ready_branches_of
from lifefold.interpreters.worktrees.remote import Remote
from lifefold.interpreters.worktrees.unmerged_work import LOOK_MS, Unmerged

BASE: Final = "base"
WORK: Final = "work"
RESULT: Final = "result"
"""The kinds of references of a claim at the remote: its start, its files, and the commit to be merged."""


class _Work(NamedTuple):
    """The work of a claim: its last reference at the remote. It is done if it is merged, or changes nothing."""

    task: str
    epoch: str
    reference: str
    is_done: bool


class _Here(NamedTuple):
    """A commit that is here, and its tree."""

    commit: str
    tree: str


class Mirror:
    """The references of one log at a remote, in the repository ``folder``."""

    def __init__(self, url: str, folder: Path, fleet: str, run: str, branch: str) -> None:
        self.folder: Final = folder
        self.pins: Final = Pins(folder, folder, folder)
        self.branch: Final = branch
        self.remote: Final = Remote(url, folder, folder / "objects")
        self.prefix: Final = f"refs/lifefold/{path_name(fleet)}/{path_name(run)}/"
        self._git: Final = Git(folder, pins=self.pins)
        self._ready: Final = ready_branches_of(fleet)
        name = path_name(fleet)
        self._places: Final = {
            BASE: f"refs/lifefold/{name}/{BASE}/",
            RESULT: f"refs/lifefold/{name}/{RESULT}/",
            WORK: f"refs/heads/lifefold/{name}/",
        }

    async def begin(self) -> None:
        """Make the repository, if there is none. Raises OSError, GitError."""
        await self.remote.begin()

    async def bring(self, task: str = "") -> None:
        """Bring the references of a task, or those of all tasks, with the target branch. Raises RemoteAwayError.

        Those that the remote no longer has are removed.
        """
        of = f"{path_name(task)}/*" if task else "*"
        specs = [f"+{self.prefix}{kind}/{of}:{place}{of}" for kind, place in self._places.items()]
        await self.begin()
        await self.remote.fetch(*specs, f"+refs/heads/{self.branch}:refs/heads/{self.branch}")

    def work_of(self, claim: Claim) -> str:
        """Return the name at the remote of the reference to the files of a claim."""
        return f"{self.prefix}{WORK}/{path_name(claim.task)}/{claim.epoch}"

    def result_of(self, claim: Claim) -> str:
        """Return the name at the remote of the reference to the commit that is to be merged."""
        return f"{self.prefix}{RESULT}/{path_name(claim.task)}/{claim.epoch}"

    async def unmerged(self, *, limit_ms: int = LOOK_MS) -> Unmerged:
        """Bring all references, and return the places of unmerged work, until the time limit."""
        found: dict[str, list[str]] = {}
        why = f"the remote {self.remote.shown} has not sent all work within {limit_ms:,} ms"
        with anyio.move_on_after(limit_ms / 1_000):
            try:
                await self.bring()
                for each in await self._works():
                    if not each.is_done:
                        found.setdefault(each.task, []).append(each.reference)
                why = ""
            except (WorkplaceError, OSError) as error:
                why = error.what if isinstance(error, WorkplaceError) else str(error)
        return Unmerged({task: tuple(places) for task, places in found.items()}, why)

    async def left(self) -> Left:
        """Bring all references, and return what the log has left at the remote: of merged, and of unmerged work.

        Work on a ready branch, and work that changes nothing, count as merged. Raises RemoteAwayError, GitError.
        """
        await self.bring()
        every = await self.remote.values(f"{self.prefix}*")
        ready = await self.remote.values(f"{self._ready}*")
        open_claims = {(each.task, each.epoch) for each in await self._works(ready.values()) if not each.is_done}
        kept = {name for name in every if self._claim_of(name) in open_claims}
        merged = {name: commit for name, commit in every.items() if name not in kept}
        return Left(merged=merged, unmerged={name: every[name] for name in kept})

    async def remove(self, *, unmerged: bool) -> Left:
        """Delete the references of merged work at the remote, or all of this log, and return what stays there.

        A reference that has moved meanwhile stays. Raises RemoteAwayError, RefusedPushError.
        """
        left = await self.left()
        await self.remote.delete({**(left.merged or {}), **((left.unmerged or {}) if unmerged else {})})
        return Left(unmerged=await self.remote.values(f"{self.prefix}*"))

    def _claim_of(self, name: str) -> tuple[str, str] | None:
        """Return task and epoch of a reference to work; None for one to the state of sessions, which is no work."""
        kind, *claim = name.removeprefix(self.prefix).split("/")
        return (claim[0], claim[1]) if kind in self._places and len(claim) == 2 else None  # noqa: PLR2004 - TASK/EPOCH

    async def _works(self, ready: Collection[str] = ()) -> Iterator[_Work]:
        """Return the work of each claim, as far as it is here; ``ready`` are the commits of ready branches."""
        here = {kind: await self._here(place) for kind, place in self._places.items()}
        merged = await self._here(self._places[RESULT], f"--merged=refs/heads/{self.branch}")
        return self._judged(here, {*merged, *(claim for claim, of in here[RESULT].items() if of.commit in ready)})

    def _judged(self, here: Mapping[str, Mapping[str, _Here]], done: Collection[str]) -> Iterator[_Work]:
        for claim in sorted({*here[WORK], *here[RESULT]}):
            task, _, epoch = claim.partition("/")
            kind = RESULT if claim in here[RESULT] else WORK
            base = here[BASE].get(claim)
            changes_nothing = base is not None and here[kind][claim].tree == base.tree
            yield _Work(task, epoch, f"{self.prefix}{kind}/{claim}", claim in done or changes_nothing)

    async def _here(self, place: str, *options: str) -> dict[str, _Here]:
        """Return the commits of references here, by claim."""
        listed = await self._git.run("for-each-ref", "--format=%(objectname) %(tree) %(refname)", *options, place)
        found = (line.split(" ", 2) for line in listed.text.splitlines())
        return {name.removeprefix(place): _Here(commit, tree) for commit, tree, name in found}
