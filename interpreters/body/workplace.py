"""Where an agent works: a place of its own, clean for each claim of a task, from which what was done is merged once.

Every operation may be cancelled or killed at any point and performed again. It finds out from the repository itself how
far it had come; nothing is remembered elsewhere. These references are what it reads:

====================================================  =================================================================
``refs/heads/lifefold/FLEET/TASK/EPOCH``              the claim's branch
``refs/lifefold/FLEET/base/TASK/EPOCH``               where that branch began: the fleet's branch at check-out
``refs/lifefold/FLEET/result/TASK/EPOCH``             what is to be merged, once all of it has been committed
``refs/lifefold/FLEET/salvage/AGENT/TASK-EPOCH``      what an earlier claim left unmerged in the agent's worktree
``refs/worktree/lifefold/claim`` (in each worktree)   the claim's branch, while the worktree belongs to the claim
====================================================  =================================================================

*What was verified is what is merged*: the worktree as it stands, its HEAD and whatever is not committed. An agent may
commit, and may switch to another branch or to none, as long as HEAD descends from where the claim began. If the
worktree does not belong to the claim any more, only a recorded result is merged, never a guess.

*A merge touches no working tree.* The merge commit is computed by ``git merge-tree``, and then the fleet's branch is
moved to it if it still is where it was; otherwise that is repeated from its new tip. A crash before the move leaves an
unreachable commit, one after it a commit with the claim's trailer in the fleet's history, by which it is found again.
Only where the branch is checked out, as a rule by the user, the working tree there follows by a fast-forward; changes
that were not committed survive it, or, if they are in its way, stop it before it has done anything.

*Nothing is lost.* What a claim leaves behind is committed as salvage before the worktree is cleaned. Ignored files stay
where they are: they are caches (dependencies, builds) that make the next task quick, and the repository itself says
that they are not work. What git cannot keep (a repository within the worktree, an unreadable file, a damaged worktree)
is moved to ``ROOT/.aside/`` as a whole, and a new worktree takes its place.

*What is not covered.* Submodules are not filled, and a repository within the work is not merged. A user who switches
branches in the very moment of the fast-forward gets it on the branch that he has switched to.
"""

import fcntl
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

import anyio

from lifefold.interpreters.body.command import plain
from lifefold.interpreters.body.git import (
    Git,
    GitError,
    WorkplaceError,
    path_name,
    remove_locks,
    set_aside,
    shown,
    survey,
)

__all__ = ["FolderWorkplace", "GitWorkplace", "MergeConflict", "Workplace", "WorkplaceError"]

MERGE_ROUNDS = 20
"""How often a merge is repeated because somebody else moves the branch, or holds git's lock on it."""

ROUND_MS = 100
"""How long a merge waits for git's lock before it is tried again."""

QUEUE_TIMEOUT_MS = 600_000
QUEUE_POLL_MS = 20
"""How long an operation waits for its turn among those of other processes, and how often it looks."""

TITLE_CHARS = 200
"""How much of a title gets into a commit's subject."""

_CLAIM = "refs/worktree/lifefold/claim"
_KINDS = ("base", "result")


class Workplace(Protocol):
    """Where the agents of a fleet work. Every operation may be performed again after a crash at any point of it."""

    def folder(self, agent: str, task: str) -> Path:
        """Return where the agent's session and the task's verification commands run."""
        ...

    async def prepare(self, agent: str) -> None:
        """Make or repair the agent's place."""
        ...

    async def check_out(self, agent: str, task: str, epoch: int) -> None:
        """Make the place clean for this claim of the task; if that has been done already, leave it as it is."""
        ...

    async def merge(self, agent: str, task: str, epoch: int, title: str) -> str:
        """Bring home what was done; return the commit that the fleet's branch got, empty if nothing changed.

        Raises MergeConflict if it does not fit what others have done meanwhile.
        """
        ...


class MergeConflict(WorkplaceError):
    """The work and what others have merged meanwhile change the same places, in ``paths``."""

    def __init__(self, what: str, where: Path, remedy: str, paths: tuple[str, ...]) -> None:
        super().__init__(what, where, remedy)
        self.args = (what, where, remedy, paths)
        self.paths = paths

    @property
    def reason(self) -> str:
        """What is in conflict, for people and for the agent's next prompt."""
        return str(self)


class FolderWorkplace:
    """Plain folders, one per task, kept between attempts. There is nothing to be merged."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()

    def folder(self, agent: str, task: str) -> Path:  # noqa: ARG002 - whoever works at the task works there
        """Return the task's folder."""
        return self._root / path_name(task)

    async def prepare(self, agent: str) -> None:  # noqa: ARG002 - an agent has no place but the task's
        """Make the folder for the tasks' folders."""
        _make(self._root)

    async def check_out(self, agent: str, task: str, epoch: int) -> None:  # noqa: ARG002 - it is kept between attempts
        """Make the task's folder, if there is none."""
        _make(self.folder(agent, task))

    async def merge(self, agent: str, task: str, epoch: int, title: str) -> str:  # noqa: ARG002 - nothing is merged
        """Return an empty text: what was done is where it belongs."""
        return ""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of a task, and what belongs to it in the repository."""

    fleet: str
    task: str
    epoch: int

    @property
    def name(self) -> str:
        """``FLEET/TASK/EPOCH``, as it is written in references and trailers."""
        return f"{path_name(self.fleet)}/{path_name(self.task)}/{self.epoch}"

    @property
    def branch(self) -> str:
        """The claim's branch."""
        return f"refs/heads/lifefold/{self.name}"

    @property
    def base(self) -> str:
        """The reference to the commit at which the branch began."""
        return self._reference("base")

    @property
    def result(self) -> str:
        """The reference to the commit that is to be merged."""
        return self._reference("result")

    def message(self, subject: str) -> str:
        """Return a commit message that says which claim the commit belongs to."""
        return f"{subject}\n\nLifefold-Task: {_one_line(self.task)}\nLifefold-Claim: {self.name}\n"

    def _reference(self, kind: str) -> str:
        return f"refs/lifefold/{path_name(self.fleet)}/{kind}/{path_name(self.task)}/{self.epoch}"


class GitWorkplace:
    """A worktree of ``repository`` for each agent, ``root/AGENT``; what is done is merged into ``branch``.

    ``branch`` is the short name of the fleet's branch. ``open`` finds it for a new run and sees whether the repository
    can be worked with; a run that is continued gives the one that it began with. Several processes may use one root.
    """

    def __init__(self, repository: Path, root: Path, fleet: str, branch: str) -> None:
        self.branch = branch
        self._home = Git(repository.absolute())
        self._root = root.absolute()
        self._fleet = fleet
        self._branch = f"refs/heads/{branch}"
        self._lock = anyio.Lock()

    @classmethod
    async def open(cls, repository: Path, root: Path, fleet: str) -> Self:
        """Return the workplace of a new run, whose branch is the one that is checked out in ``repository``.

        What an earlier run of a fleet of this name has left is kept as salvage; there must be no other that still runs.
        Raises WorkplaceError if the repository is not one that a fleet can work in.
        """
        top, branch = await survey(repository)
        workplace = cls(top, root, fleet, branch)
        await workplace._retire()
        return workplace

    def folder(self, agent: str, task: str) -> Path:  # noqa: ARG002 - an agent does all its tasks in one worktree
        """Return the agent's worktree."""
        return self._root / path_name(agent)

    async def prepare(self, agent: str) -> None:
        """Make the agent's worktree, or repair it."""
        await self._ready(agent)

    async def check_out(self, agent: str, task: str, epoch: int) -> None:
        """Salvage what an earlier claim has left in the agent's worktree, clean it, put the claim's branch there."""
        claim = Claim(self._fleet, task, epoch)
        worktree = await self._ready(agent)
        if await worktree.target_of(_CLAIM) == claim.branch:
            return
        if not await self._vacate(worktree):
            await self._replace(worktree)
        await self._enter(worktree, claim)

    async def merge(self, agent: str, task: str, epoch: int, title: str) -> str:
        """Commit what the claim has changed and merge it into the fleet's branch; return the merge commit, or "".

        Raises MergeConflict; also WorkplaceError, if changes of the user's own are in the way or the work is not there.
        """
        claim, title = Claim(self._fleet, task, epoch), _one_line(title) or _one_line(task)
        if not await self._home.commit_at(claim.base):
            raise WorkplaceError(f"{claim.name} was never checked out", self._home.folder, "Check it out first.")
        merged = await self._merged_as(claim, await self._tip())
        if merged:
            return merged
        worktree = await self._ready(agent)
        result = await self._collect(worktree, claim, title)
        async with self._alone():
            return await self._integrate(worktree, claim, result, title)

    async def _tip(self) -> str:
        tip = await self._home.commit_at(self._branch)
        if not tip:
            remedy = "Make it again where it was, or start a new run."
            raise WorkplaceError(f"the fleet's branch {self.branch} does not exist any more", self._home.folder, remedy)
        return tip

    async def _retire(self) -> None:
        """Free the names that an earlier run of the fleet has used: its claims were numbered from one, as ours are."""
        fleet = path_name(self._fleet)
        for name in ("refs/heads/lifefold", f"refs/heads/lifefold/{fleet}"):
            if await self._home.commit_at(name):
                what = f"A branch has the name that the branches of a fleet begin with, {name}"
                raise WorkplaceError(what, self._home.folder, "Rename it.")
        branches = f"refs/heads/lifefold/{fleet}/"
        for worktree in await self._home.linked_worktrees():
            if (await worktree.target_of("HEAD")).startswith(branches):
                await worktree.detach()
            if (await worktree.target_of(_CLAIM)).startswith(branches):
                await worktree.run("symbolic-ref", "--delete", _CLAIM)
        for name in await self._home.references(branches):
            await self._keep("earlier", _salvage_name(name), await self._home.commit_at(name))
        for name in await self._home.references(branches, *(f"refs/lifefold/{fleet}/{kind}/" for kind in _KINDS)):
            await self._home.run("update-ref", "-d", name)

    async def _ready(self, agent: str) -> Git:
        worktree = Git(self.folder(agent, ""))
        directory = await worktree.own_directory(self._home)
        if directory is None:
            await self._replace(worktree)
        else:
            remove_locks(directory)
        return worktree

    async def _replace(self, worktree: Git) -> None:
        """Move away whatever is where the worktree should be, and make a new one."""
        folder = worktree.folder
        async with self._alone():
            for known in await self._home.worktrees():
                head = known.get("HEAD", "")
                if Path(known["worktree"]) == folder.resolve() and head.strip("0") and await self._home.commit_at(head):
                    await self._keep(folder.name, "lost", head)
            set_aside(folder, self._root / ".aside")
            add = ("worktree", "add", "--quiet", "--force", "--force", "--detach")
            await self._home.run(*add, str(folder), await self._tip())

    async def _vacate(self, worktree: Git) -> bool:
        """Keep what an earlier claim has left, end what it has begun, clean up; return whether that was possible."""
        try:
            await self._salvage(worktree)
            await worktree.forget_unfinished()
            await worktree.run("checkout", "--quiet", "--force", "--detach", await self._tip())
            await worktree.run("clean", "--quiet", "--force", "-d")
            return await worktree.is_clean()
        except GitError:
            return False

    async def _salvage(self, worktree: Git) -> None:
        claimed = await worktree.target_of(_CLAIM)
        name = _salvage_name(claimed) or "unclaimed"
        if not await worktree.is_clean():
            await worktree.detach()  # the agent may have switched to a branch of the user's
            await worktree.commit_all(f"Salvage of {name}, left by {worktree.folder.name}")
        head = await worktree.commit_at("HEAD")
        if head:
            await self._keep(worktree.folder.name, name, head)
        if claimed:
            await worktree.run("symbolic-ref", "--delete", _CLAIM)

    async def _keep(self, owner: str, name: str, commit: str) -> None:
        """Keep a commit as salvage of a worktree's, unless it is kept already, or is in the fleet's branch."""
        if await self._home.is_ancestor(commit, await self._tip()):
            return
        salvage = f"refs/lifefold/{path_name(self._fleet)}/salvage/{owner}/"
        if await self._home.references(f"--points-at={commit}", salvage):
            return
        place = f"{salvage}{name}"
        if await self._home.commit_at(place):  # the same claim has left something before
            place = f"{place}.{commit}"
        await self._home.set_ref(place, commit)

    async def _enter(self, worktree: Git, claim: Claim) -> None:
        """Put the claim's branch into a clean worktree; one that is there already keeps its commits."""
        if not await self._home.commit_at(claim.base):
            await self._home.set_ref(claim.base, await self._tip())
        if not await self._home.commit_at(claim.branch):
            await self._home.set_ref(claim.branch, claim.base)
        async with self._alone():
            await worktree.run("checkout", "--quiet", "--force", claim.branch.removeprefix("refs/heads/"), "--")
        await worktree.run("symbolic-ref", _CLAIM, claim.branch)

    async def _collect(self, worktree: Git, claim: Claim, title: str) -> str:
        """Commit what is in the worktree, record it as the claim's result, and return it."""
        if await worktree.target_of(_CLAIM) != claim.branch:
            return await self._recorded(claim)
        unmerged = await worktree.unmerged()
        if unmerged:
            what = f"The work holds a merge that is not resolved, in {shown(unmerged)}"
            raise MergeConflict(what, worktree.folder, "Resolve it.", unmerged)
        await self._return_to_branch(worktree, claim)
        await worktree.commit_all(claim.message(title))
        result = await worktree.commit_at("HEAD")
        inner = await worktree.added_repositories(claim.base, result)
        if inner:
            what = f"The work holds repositories of its own, {shown(inner)}"
            raise WorkplaceError(what, worktree.folder, "Remove their .git, or ignore them.")
        await self._home.set_ref(claim.result, result)
        return result

    async def _recorded(self, claim: Claim) -> str:
        result = await self._home.commit_at(claim.result)
        if not result:
            what = f"The worktree that {claim.name} was worked on in has been taken away"
            remedy = f"Try the task again; what was committed is on {claim.branch}."
            raise WorkplaceError(what, self._home.folder, remedy)
        return result

    async def _return_to_branch(self, worktree: Git, claim: Claim) -> None:
        """Let the claim's branch be where HEAD is, and HEAD on it, without touching a file."""
        head = await worktree.commit_at("HEAD")
        if not head or not await worktree.is_ancestor(claim.base, head):
            what = f"HEAD has left the work: {head or 'no commit'} does not descend from where {claim.name} began"
            raise WorkplaceError(what, worktree.folder, f"Bring the work onto {claim.branch}.")
        if await worktree.target_of("HEAD") == claim.branch:
            return
        branch = await self._home.commit_at(claim.branch)
        if branch and not await self._home.is_ancestor(branch, head):
            await self._keep(worktree.folder.name, _salvage_name(claim.branch), branch)
        await self._home.set_ref(claim.branch, head)
        await worktree.run("symbolic-ref", "HEAD", claim.branch)

    async def _integrate(self, worktree: Git, claim: Claim, result: str, title: str) -> str:
        """Merge a result into the fleet's branch as it is now; again, if that moves meanwhile."""
        hindrance = ""
        for turn in range(MERGE_ROUNDS):
            await anyio.sleep(turn * ROUND_MS / 1000 if "lock" in hindrance else 0)
            tip = await self._tip()
            merged = await self._merged_as(claim, tip)
            if merged:
                return merged
            tree = await self._merged_tree(worktree, claim, tip, result)
            if tree == await self._home.tree_of(tip):
                return ""
            message = claim.message(f"Merge {_one_line(claim.task)}: {title}")
            commit = await self._home.commit_tree(tree, (tip, result), message)
            # A fast-forward that is cut off halfway would leave a mess in the user's own files.
            with anyio.CancelScope(shield=True):
                hindrance = await self._home.advance(self._branch, tip, commit)
            if not hindrance:
                return commit
        remedy = "See what else works on that branch; then the merge is done again."
        raise WorkplaceError(f"{self.branch} could not be advanced: {hindrance}", self._home.folder, remedy)

    async def _merged_tree(self, worktree: Git, claim: Claim, tip: str, result: str) -> str:
        """Return the tree of the merge, computed under the attributes of the agent's worktree."""
        tree, paths = await worktree.merged_tree(tip, result)
        if not paths:
            return tree
        what = f"The work on {claim.name} conflicts with what others have merged meanwhile, in {shown(paths)}"
        remedy = f"Do it again on what is there now; the work itself is on {claim.branch.removeprefix('refs/heads/')}."
        raise MergeConflict(what, worktree.folder, remedy, paths)

    async def _merged_as(self, claim: Claim, tip: str) -> str:
        """Return the merge commit of a claim that has been merged already, or an empty text."""
        trailer = f"--grep=^Lifefold-Claim: {claim.name.replace('.', '[.]')}$"
        asked = ("rev-list", "--merges", "--max-count=1", "--extended-regexp", trailer, f"{claim.base}..{tip}")
        return (await self._home.run(*asked)).text

    @asynccontextmanager
    async def _alone(self) -> AsyncGenerator[None, None]:
        """Keep others away, of this process and of other ones, who merge or change which worktrees there are.

        Merges would only make each other repeat. But while a worktree is being made, every git command that looks
        through the worktrees (also a checkout of a branch does) can fail on the half-made one.
        """
        async with self._lock:
            descriptor = _lock_file(self._root)
            try:
                await _take(descriptor, self._root)
                yield
            finally:
                os.close(descriptor)


def _lock_file(root: Path) -> int:
    _make(root)
    return os.open(root / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


async def _take(descriptor: int, root: Path) -> None:
    """Take the lock that goes with a descriptor, and is released when that is closed."""
    with anyio.move_on_after(QUEUE_TIMEOUT_MS / 1000):
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                await anyio.sleep(QUEUE_POLL_MS / 1000)
            else:
                return
    what = f"Another process has held the lock for more than {QUEUE_TIMEOUT_MS} ms"
    raise WorkplaceError(what, root / ".lock", "End it, if it hangs; then this is done again.")


def _make(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)


def _salvage_name(branch: str) -> str:
    """Return ``TASK-EPOCH`` of the name of a claim's branch."""
    return "-".join(branch.split("/")[-2:])


def _one_line(text: str) -> str:
    return " ".join(plain(text.encode("utf-8", "replace")).split())[:TITLE_CHARS]
