"""Worktrees: one per agent, cleaned for each claim of a task. The work of a claim is merged once.

Every operation may be cancelled or killed at any point, and repeated. Its progress is in the repository and nowhere
else. These references record it:

- ``refs/heads/lifefold/FLEET/TASK/EPOCH``: the claim's branch.
- ``refs/lifefold/FLEET/base/TASK/EPOCH``: the start of that branch, which is the target branch at check-out.
- ``refs/lifefold/FLEET/result/TASK/EPOCH``: the commit to be merged, once all work is committed.
- ``refs/lifefold/FLEET/salvage/AGENT/TASK-EPOCH``: unmerged work of an earlier claim in the agent's worktree.
- ``refs/worktree/lifefold/claim``, in each worktree: the claim's branch, while the worktree belongs to the claim.

*The verified state is the merged state*: the worktree with its HEAD and all uncommitted files. An agent may commit, and
may switch to another branch or to none, as long as HEAD descends from the claim's base. Once the result is recorded,
only that commit is merged, because an operator may have approved it. Later changes are not merged. If the worktree does
not belong to the claim any more, only a recorded result is merged.

*A merge touches no working tree* (see ``target_branch``). If the branch is checked out, usually by the user, the
working tree there follows by a fast-forward. Uncommitted changes survive it. If they are in its way, it stops before it
has changed anything.

*One operation at a time* works in a worktree, and one operation makes worktrees or merges. After a runner was killed,
its git command may still run, and the next operation waits for it (see ``locks``). A fleet's name belongs to one run
(see ``tenure``).

*Nothing is lost.* Work that a claim leaves behind is committed as salvage before the worktree is cleaned. Ignored files
stay: they are caches (dependencies, builds) that make the next task quick, and the repository declares that they are
not work. Git cannot keep a repository within the worktree, an unreadable file, or a damaged worktree. Such a worktree
is moved to ``ROOT/.aside/`` as a whole, and a new one replaces it.

*Limits.* Submodules are not filled, and a repository within the work is not merged. If a user switches branches at the
moment of the fast-forward, it affects the new branch.
"""

from contextlib import suppress
from pathlib import Path
from typing import Self

from anyio import to_thread

from lifefold.interpreters.worktrees.agent_worktrees import AgentWorktrees
from lifefold.interpreters.worktrees.branch_guard import LOGGED, BranchGuard
from lifefold.interpreters.worktrees.claim_commit import CLAIM, Claim, one_line
from lifefold.interpreters.worktrees.errors import GitError, MergeConflict, WorkplaceError
from lifefold.interpreters.worktrees.excludes import CHANGED, rules_have_changed
from lifefold.interpreters.worktrees.fast_forward import Forward
from lifefold.interpreters.worktrees.git import Git, path_name, shown
from lifefold.interpreters.worktrees.hidden import changed_ns, changed_since
from lifefold.interpreters.worktrees.local_branch import LocalBranch
from lifefold.interpreters.worktrees.locks import holding
from lifefold.interpreters.worktrees.pinned import repository_at
from lifefold.interpreters.worktrees.ready_branches import LocalBranches, make_ready
from lifefold.interpreters.worktrees.salvage import Salvage, salvage_name
from lifefold.interpreters.worktrees.snapshot import Snapshot, snapshot_of
from lifefold.interpreters.worktrees.survey import contradiction, survey
from lifefold.interpreters.worktrees.target_branch import BranchPlace, TargetBranch
from lifefold.interpreters.worktrees.tenure import Tenure
from lifefold.interpreters.worktrees.workplace import NOTHING_KEPT

_KINDS = ("base", "result")

PRESENT_MS = 700
"""The longest wait of a merge for a killed runner's git in one try; operators get a notice between tries."""


class GitWorkplace:
    """A worktree of ``repository`` for each agent, ``root/AGENT``, from which work is merged into ``branch``.

    ``branch`` is the short name of the target branch, which is at ``place``; without one it is in the repository.
    Several processes may use one root. A run makes its workplace with ``open``, and then calls ``take_over`` or
    ``go_on``.
    """

    def __init__(self, repository: Path, root: Path, fleet: str, branch: str, place: BranchPlace | None = None) -> None:
        self.branch = branch
        self._home = Git(repository.absolute(), pins=repository_at(repository))
        self._root = root.absolute()
        self._fleet = fleet
        if place is None:
            forward = Forward(self._home, fleet, self._root / ".lock")
            place = LocalBranch(self._home, branch, forward, BranchGuard(self._home, self._root, branch))
        self._target = TargetBranch(self._home, place)
        self._salvaged = Salvage(self._home, fleet, self._target)
        self._worktrees = AgentWorktrees(self._home, self._root, self._target, self._salvaged)
        self._tenure: Tenure | None = None

    @classmethod
    async def open(cls, repository: Path, root: Path, fleet: str, branch: str = "") -> Self:
        """Return the workplace of a run, and lock ``repository`` against other runs of the fleet until ``close``.

        A continued run passes the branch of its start; a new run uses the branch that is checked out. The repository's
        references are not changed. Raises WorkplaceError if a fleet cannot work in the repository, or if another run of
        the fleet does.
        """
        top, branch = (repository, branch) if branch else await survey(repository)
        workplace = cls(top, root, fleet, branch)
        await workplace._must_have_room()
        workplace._tenure = Tenure(await workplace._home.common_directory(), fleet)
        return workplace

    async def take_over(self, run: str, log: Path) -> None:
        """Give the fleet's name in the repository to this new run; keep the work of an earlier one as salvage."""
        await self._retire()
        with suppress(OSError):  # if the root is no folder, it is moved aside before its first use
            self._worktrees.rules.unlink()
        await self._target.start()
        if self._tenure is not None:
            self._tenure.begin(run, log)

    async def go_on(self, run: str) -> None:
        """Raise WorkplaceError if another run has taken over the name, and with it the references."""
        if self._tenure is not None:
            self._tenure.must_be_of(run)

    def close(self) -> None:
        """Unlock the repository for other runs of the fleet."""
        if self._tenure is not None:
            self._tenure.close()

    def folder(self, agent: str, task: str) -> Path:  # noqa: ARG002 - an agent does all its tasks in one worktree
        """Return the agent's worktree."""
        return self._worktrees.folder(agent)

    async def prepare(self, agent: str) -> None:
        """Make the agent's worktree, or repair it."""
        async with self._worktrees.place(agent):
            pass

    async def check_out(
        self, agent: str, task: str, epoch: int, kept: tuple[int, str] = NOTHING_KEPT, *, resumes: bool = False
    ) -> None:
        """Salvage the work of an earlier claim in the agent's worktree, clean it, and check out the claim's branch.

        The branch of kept work begins at its commit, and has the base of the claim that has done it. With ``resumes``
        the salvage of the agent's last claim of the task comes back as changes that are not committed.
        """
        claim = Claim(self._fleet, task, epoch)
        async with self._worktrees.place(agent) as worktree:
            if await worktree.target_of(CLAIM) == claim.branch:
                return
            place = await self._emptied(worktree)
            await self._enter(place, claim, kept)
            if resumes:
                await self._bring_back(place, claim)
            await place.run("symbolic-ref", CLAIM, claim.branch)

    async def enter(self, agent: str, task: str, epoch: int) -> None:
        """Do nothing: all agents work on this machine."""

    async def keep(self, agent: str, task: str, epoch: int) -> None:
        """Do nothing, for the same reason: the worktree stays."""

    async def keep_state(self, task: str, kept: int, file: Path) -> None:
        """Do nothing: the file stays, too."""

    async def bring_state(self, task: str, kept: int, file: Path) -> None:
        """Do nothing: the file is there."""

    async def has(self, agent: str, task: str, epoch: int) -> bool:
        """Tell whether the agent's worktree belongs to the claim."""
        async with self._worktrees.place(agent) as worktree:
            return await worktree.target_of(CLAIM) == Claim(self._fleet, task, epoch).branch

    async def snapshot(self, agent: str, task: str, epoch: int) -> Snapshot | None:
        """Return the files of the claim in the agent's worktree; None if it has no such claim, or an unresolved merge.

        Nothing is changed there.
        """
        async with self._worktrees.place(agent) as worktree:
            if await worktree.target_of(CLAIM) != Claim(self._fleet, task, epoch).branch or await worktree.unmerged():
                return None
            return await snapshot_of(worktree)

    async def keep_left(self, agent: str, claim: Claim, work: str) -> None:
        """Keep the commit ``work`` as salvage of the agent's worktree: its claim has left that on another machine."""
        await self._salvaged.keep(path_name(agent), salvage_name(claim.branch), work)

    async def restore(self, agent: str, task: str, epoch: int, base: str, work: str) -> None:
        """Give the agent's worktree to a claim that began at ``base`` elsewhere, with the files of the commit ``work``.

        Its parent becomes the head of the claim's branch. What the worktree has now is kept as salvage.
        """
        claim = Claim(self._fleet, task, epoch)
        async with self._worktrees.place(agent) as worktree:
            place = await self._emptied(worktree)
            await self._home.set_ref(claim.base, base)
            await self._home.set_ref(claim.branch, await self._home.commit_at(f"{work}^"))
            await self._enter(place, claim, NOTHING_KEPT)
            await place.run("read-tree", "-m", "-u", "HEAD", work)
            await place.run("symbolic-ref", CLAIM, claim.branch)

    async def differs(self, agent: str, task: str, epoch: int) -> bool:
        """Tell whether the worktree differs from the claim's base: by commits, by changes, or by new files.

        Commits without a net change, and ignored files, are no difference. Raises WorkplaceError if the worktree does
        not belong to the claim any more.
        """
        claim = Claim(self._fleet, task, epoch)
        async with self._worktrees.place(agent) as worktree:
            await self._must_be_there(worktree, claim)
            await worktree.heed_all()
            if not await worktree.is_clean():
                return True
            return await worktree.tree_of("HEAD") != await worktree.tree_of(claim.base)

    async def ignored(self, agent: str, task: str, epoch: int) -> tuple[str, ...]:
        """Return the ignored files and folders that have changed since the claim's check-out.

        A folder stands for its contents. Earlier claims have left the others, which are not this claim's.
        """
        del task, epoch
        async with self._worktrees.place(agent) as worktree:
            pins = worktree.pins
            since = None if pins is None else changed_ns(pins.directory / CLAIM)
            if since is None:
                return ()
            return await to_thread.run_sync(changed_since, worktree.folder, await worktree.ignored(), since)

    async def park(self, agent: str, task: str, epoch: int, title: str) -> str:
        """Commit the changes of the claim; return that commit, which is the result to be merged.

        A reference protects it from git's garbage collection. The reference is not read, because agents can move
        references. Raises MergeConflict or WorkplaceError if the work cannot be merged as it is.
        """
        claim, title = Claim(self._fleet, task, epoch), one_line(title) or one_line(task)
        async with self._worktrees.place(agent) as worktree:
            return await self._collect(worktree, claim, claim.message(f"{one_line(task)}: {title}", agent))

    async def merge(  # noqa: PLR0913 - a claim, and its data from the log
        self, agent: str, task: str, epoch: int, title: str, *, result: str, accepted: str = ""
    ) -> str:
        """Merge the commit ``result`` of a claim into the target branch; return the merge commit, or "".

        Raises MergeConflict. Raises InTheWayError if changes of the user block the merge, and MovedError if an agent
        has moved the branch to another commit than ``accepted``. Raises WorkplaceError if it can never be merged.
        """
        claim, title = Claim(self._fleet, task, epoch), one_line(title) or one_line(task)
        if not await self._home.commit_at(claim.base):
            raise WorkplaceError(f"{claim.name} was never checked out", self._home.folder, "Check it out first.")
        async with self._worktrees.alone(PRESENT_MS):
            await self._target.recover()
        async with self._worktrees.place(agent) as worktree, self._worktrees.alone(PRESENT_MS):
            message = claim.message(f"Merge {one_line(task)}: {title}", agent)
            return await self._target.integrate(worktree, claim, result, message, accepted)

    async def make_ready(self, task: str, epoch: int, result: str) -> str:
        """Put the commit ``result`` of a claim on the task's ready branch, and return its name; see the protocol."""
        claim = Claim(self._fleet, task, epoch)
        if not await self._home.commit_at(claim.base):
            raise WorkplaceError(f"{claim.name} was never checked out", self._home.folder, "Check it out first.")
        async with self._worktrees.alone(PRESENT_MS):
            return await make_ready(self._home, LocalBranches(self._home), claim, result)

    async def displaced(self, found: str) -> str:
        """Return why nothing is merged into the branch, which an agent has moved to ``found``; empty if it may be."""
        return await self._target.displaced(found)

    async def warnings(self) -> tuple[str, ...]:
        """Return warnings: the configuration contradicts the repository's folders, or ignore rules have changed."""
        wrong = await contradiction(self._home.folder)
        changed = await rules_have_changed(self._home, self._worktrees.rules)
        return (*([str(wrong)] if wrong else ()), *([CHANGED] if changed else ()))

    async def clear(self) -> None:
        """Remove the agents' worktrees; the claims' branches stay. See ``AgentWorktrees.clear``."""
        await self._worktrees.clear()

    async def _must_have_room(self) -> None:
        for name in ("refs/heads/lifefold", f"refs/heads/lifefold/{path_name(self._fleet)}"):
            if await self._home.commit_at(name):
                what = f"A branch has the name that the branches of a fleet begin with, {name}"
                raise WorkplaceError(what, self._home.folder, "Rename it.")

    async def _retire(self) -> None:
        """Free the names of an earlier run of the fleet: its claims were numbered from one, like those of this run."""
        fleet = path_name(self._fleet)
        branches = f"refs/heads/lifefold/{fleet}/"
        for worktree in await self._home.linked_worktrees():
            if (await worktree.target_of(CLAIM)).startswith(branches):
                await self._let_go(worktree)
            if (await worktree.target_of("HEAD")).startswith(branches):
                await worktree.detach()
        for name in await self._home.references(branches):
            await self._salvaged.keep("earlier", salvage_name(name), await self._home.commit_at(name))
        for name in await self._home.references(branches, *(f"refs/lifefold/{fleet}/{kind}/" for kind in _KINDS)):
            await self._home.run("update-ref", "--no-deref", "-d", name)

    async def _let_go(self, worktree: Git) -> None:
        """Keep the work of an earlier run in a worktree, with uncommitted files; its claim is over."""
        async with holding(worktree.folder.parent / ".locks" / worktree.folder.name):
            with suppress(GitError):
                if not await worktree.is_clean():
                    await self._worktrees.salvage(worktree)
            if await worktree.target_of(CLAIM):
                await worktree.run("symbolic-ref", "--delete", CLAIM)

    async def _emptied(self, worktree: Git) -> Git:
        """Return the worktree without the work of an earlier claim, or a new one in its place."""
        is_empty = await self._worktrees.vacate(worktree)
        return worktree if is_empty else await self._worktrees.replace(worktree.folder)

    async def _base(self, claim: Claim, kept: tuple[int, str]) -> str:
        """Return the commit at which a claim begins; of kept work that of its claim."""
        result, commit = kept
        if not commit:
            return await self._target.start()
        earlier = Claim(self._fleet, claim.task, result)
        base = await self._home.commit_at(earlier.base)
        if not base or not await self._home.commit_at(commit):
            remedy = "Retry the task: its work is to be done anew."
            raise WorkplaceError(f"The kept work of {earlier.name} is lost", self._home.folder, remedy)
        return base

    async def _enter(self, worktree: Git, claim: Claim, kept: tuple[int, str]) -> None:
        """Check out the claim's branch in a clean worktree; an existing branch keeps its commits."""
        if not await self._home.commit_at(claim.base):
            await self._home.set_ref(claim.base, await self._base(claim, kept))
        if not await self._home.commit_at(claim.branch):
            await self._home.set_ref(claim.branch, kept[1] or claim.base)
        async with self._worktrees.alone():
            checkout = (*LOGGED, "checkout", "--quiet", "--force", claim.branch.removeprefix("refs/heads/"), "--")
            await worktree.run(*checkout)

    async def _bring_back(self, worktree: Git, claim: Claim) -> None:
        """Apply the salvage of the agent's last claim of the task; leave out what conflicts with the target branch.

        An agent that resumes its conversation knows its changes, and does not make them again.
        """
        left = await self._salvaged.last_of(worktree.folder.name, claim)
        if not left:
            return
        tree, conflicts = await worktree.merged_tree(claim.branch, left)
        if not conflicts:
            await worktree.run("read-tree", "-m", "-u", "HEAD", tree)

    async def _collect(self, worktree: Git, claim: Claim, message: str) -> str:
        """Commit the contents of the worktree, and return that commit."""
        await self._must_be_there(worktree, claim)
        unmerged = await worktree.unmerged()
        if unmerged:
            what = f"The work holds a merge that is not resolved, in {shown(unmerged)}"
            raise MergeConflict(what, worktree.folder, "Resolve it.")
        await self._return_to_branch(worktree, claim)
        await worktree.heed_all()
        await worktree.commit_all(message)
        result = await worktree.commit_at("HEAD")
        inner = await worktree.added_repositories(claim.base, result)
        if inner:
            what = f"The work holds repositories of its own, {shown(inner)}"
            raise WorkplaceError(what, worktree.folder, "Remove their .git, or ignore them.")
        await self._home.set_ref(claim.result, result)
        return result

    async def _must_be_there(self, worktree: Git, claim: Claim) -> None:
        """Raise WorkplaceError if the worktree does not belong to the claim any more."""
        if await worktree.target_of(CLAIM) != claim.branch:
            what = f"The worktree that {claim.name} was worked on in has been taken away or damaged"
            remedy = f"Try the task again; what was committed is on {claim.branch}."
            raise WorkplaceError(what, self._home.folder, remedy)

    async def _return_to_branch(self, worktree: Git, claim: Claim) -> None:
        """Move the claim's branch to HEAD, and HEAD to the branch, without touching a file."""
        head = await worktree.commit_at("HEAD")
        if not head or not await worktree.is_ancestor(claim.base, head):
            what = f"HEAD has left the work: {head or 'no commit'} does not descend from where {claim.name} began"
            raise WorkplaceError(what, worktree.folder, f"Bring the work onto {claim.branch}.")
        if await worktree.target_of("HEAD") == claim.branch:
            return
        branch = await self._home.commit_at(claim.branch)
        if branch and not await self._home.is_ancestor(branch, head):
            await self._salvaged.keep(worktree.folder.name, salvage_name(claim.branch), branch)
        await self._home.set_ref(claim.branch, head)
        await worktree.run("symbolic-ref", "HEAD", claim.branch)
