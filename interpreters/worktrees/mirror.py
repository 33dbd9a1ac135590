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

from collections.abc import AsyncGenerator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import anyio

from lifefold.interpreters.processes.private import make_private
from lifefold.interpreters.worktrees.claim_commit import Claim
from lifefold.interpreters.worktrees.cleaning import Left
from lifefold.interpreters.worktrees.errors import WorkplaceError
from lifefold.interpreters.worktrees.git import Git, path_name
from lifefold.interpreters.worktrees.locks import holding
from lifefold.interpreters.worktrees.pinned import Pins
from lifefold.interpreters.worktrees.ready_branches import ready_branches_of
from lifefold.interpreters.worktrees.remote import FETCH_MS, Remote
from lifefold.interpreters.worktrees.unmerged_work import LOOK_MS, Unmerged

BASE: Final = "base"
WORK: Final = "work"
RESULT: Final = "result"
"""The kinds of references of a claim at the remote: its start, its files, and the commit to be merged."""

STATE: Final = "state"
"""The kind of the references to the states of sessions, which are no work."""

LOCK: Final = "lifefold.lock"
"""The file in a mirror whose lock a command has that changes the mirror."""


class _Work(NamedTuple):
    """The work of a claim: its last reference at the remote. It is done if it is merged, or changes nothing."""

    claim: str
    reference: str
    is_done: bool


class _Here(NamedTuple):
    """A commit that is here, and its tree."""

    commit: str
    tree: str


_AllHere: TypeAlias = Mapping[str, Mapping[str, _Here]]
"""The commits that are here: by kind, and then by ``TASK/EPOCH``."""


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
        """Make the repository, if there is none. Raises OSError, GitError, InTheWayError."""
        if not (self.folder / "HEAD").is_file():
            async with self._alone():
                await self.remote.begin()

    async def bring(self, task: str = "") -> None:
        """Bring the references of a task, or those of all tasks, with the target branch.

        Those that the remote no longer has are removed. Raises RemoteAwayError, and InTheWayError if another command
        brings references for an hour.
        """
        of = f"{path_name(task)}/*" if task else "*"
        specs = [f"+{self.prefix}{kind}/{of}:{place}{of}" for kind, place in self._places.items()]
        await self.begin()
        async with self._alone():
            await self.remote.fetch(*specs, f"+refs/heads/{self.branch}:refs/heads/{self.branch}")

    @asynccontextmanager
    async def _alone(self) -> AsyncGenerator[None]:
        """Let no other command change the mirror meanwhile: two fetches would be in the way of one another."""
        make_private(self.folder)
        async with holding(self.folder / LOCK, FETCH_MS):
            yield

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
                for each in await self._works(await self._all_here()):
                    if not each.is_done:
                        found.setdefault(each.claim.partition("/")[0], []).append(each.reference)
                why = ""
            except (WorkplaceError, OSError) as error:
                why = error.what if isinstance(error, WorkplaceError) else str(error)
        return Unmerged({task: tuple(places) for task, places in found.items()}, why)

    async def left(self) -> Left:
        """Bring all references, and return what the log has left at the remote: of merged, and of unmerged work.

        Work on a ready branch, and work that changes nothing, count as merged. A reference counts as unmerged if it is
        of an unknown kind, or is not at the remote as it was brought. Raises RemoteAwayError, GitError.
        """
        await self.bring()
        here = await self._all_here()
        every = await self.remote.values(f"{self.prefix}*")
        ready = await self.remote.values(f"{self._ready}*")
        known = {self._name(kind, claim): of.commit for kind, found in here.items() for claim, of in found.items()}
        works = {name: commit for name, commit in every.items() if not name.startswith(self._name(STATE, ""))}
        open_claims = {self._claim_of(name) for name, commit in works.items() if known.get(name) != commit}
        open_claims |= {each.claim for each in await self._works(here, ready.values()) if not each.is_done}
        unmerged = {name: commit for name, commit in works.items() if self._claim_of(name) in open_claims}
        return Left(merged={name: every[name] for name in every if name not in unmerged}, unmerged=unmerged)

    async def remove(self, left: Left, *, unmerged: bool) -> Left:
        """Delete the references of merged work that were found at the remote, or all of them, and return what stays.

        One that has moved since stays. Raises RemoteAwayError, RefusedPushError.
        """
        await self.remote.delete({**(left.merged or {}), **((left.unmerged or {}) if unmerged else {})})
        return Left(unmerged=await self.remote.values(f"{self.prefix}*"))

    def _name(self, kind: str, claim: str) -> str:
        """Return the name of a reference at the remote."""
        return f"{self.prefix}{kind}/{claim}"

    def _claim_of(self, name: str) -> str:
        """Return ``TASK/EPOCH`` of a reference at the remote."""
        return name.removeprefix(self.prefix).partition("/")[2]

    async def _works(self, here: _AllHere, ready: Collection[str] = ()) -> Iterator[_Work]:
        """Return the work of each claim, as far as it is here; ``ready`` are the commits of ready branches."""
        merged = await self._here(self._places[RESULT], f"--merged=refs/heads/{self.branch}")
        results = here[RESULT].items()
        return self._judged(here, {claim for claim, of in results if merged.get(claim) == of or of.commit in ready})

    def _judged(self, here: _AllHere, done: Collection[str]) -> Iterator[_Work]:
        for claim in sorted({*here[WORK], *here[RESULT]}):
            kind = RESULT if claim in here[RESULT] else WORK
            base = here[BASE].get(claim)
            changes_nothing = base is not None and here[kind][claim].tree == base.tree
            yield _Work(claim, self._name(kind, claim), claim in done or changes_nothing)

    async def _all_here(self) -> _AllHere:
        return {kind: await self._here(place) for kind, place in self._places.items()}

    async def _here(self, place: str, *options: str) -> dict[str, _Here]:
        """Return the commits of references here, by claim."""
        listed = await self._git.run("for-each-ref", "--format=%(objectname) %(tree) %(refname)", *options, place)
        found = (line.split(" ", 2) for line in listed.text.splitlines())
        return {name.removeprefix(place): _Here(commit, tree) for commit, tree, name in found}
