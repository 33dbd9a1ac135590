"""The workplace of a host in a cluster: worktrees of a clone of its own, whose work other hosts can go on with.

Each host has a clone beside its files of the fleet, and works in it as a runner does in the user's repository. The
target branch is at the remote (see ``remote_branch``). The remote also has what another host needs of a claim, if this
host is lost. These references are in ``refs/lifefold/FLEET/RUN/``, where ``RUN`` identifies the log:

- ``base/TASK/EPOCH``: the start of the claim.
- ``work/TASK/EPOCH``: the files after the session, and after the verification, as a commit upon the agent's HEAD.
- ``state/TASK/EPOCH``: the state that sessions at the task keep, as a file of a commit (see ``remote_files``).
- ``result/TASK/EPOCH``: the commit to be merged. It is pushed before the log has its name.

*Once.* The log names the commit to merge before the merge begins, and a merge that has begun is never given up. So all
hosts that ever try it merge the same commit, and a host that was lost can only complete the same merge. Its push
expects the old tip of the branch: if another host has merged, the push is refused.

*One host at a time.* A host reads the references of a claim when it takes the claim. Later it overwrites only the
values that it has read or pushed (see ``remote``). So a host that was frozen cannot replace the work of the next one.

*Limits.* What a session has not ended yet, and files that git ignores, are on its host only.
"""

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Self

from lifefold.interpreters.processes.private import make_private
from lifefold.interpreters.worktrees.claim_commit import Claim, one_line
from lifefold.interpreters.worktrees.errors import WorkplaceError
from lifefold.interpreters.worktrees.git import Git, path_name
from lifefold.interpreters.worktrees.locks import open_lock, try_to_take
from lifefold.interpreters.worktrees.pinned import repository_at
from lifefold.interpreters.worktrees.ready_branches import RemoteBranches, make_ready
from lifefold.interpreters.worktrees.remote import Remote
from lifefold.interpreters.worktrees.remote_branch import RemoteBranch
from lifefold.interpreters.worktrees.remote_files import RemoteFiles
from lifefold.interpreters.worktrees.snapshot import Snapshot
from lifefold.interpreters.worktrees.workplace import NOTHING_KEPT
from lifefold.interpreters.worktrees.worktrees import GitWorkplace

NO_BRANCH: Final = "lifefold-clone"
"""The branch that the HEAD of a clone names. It does not exist, so that no branch is checked out there."""

HOST_LOCK: Final = ".host"
"""The file in the folder of a host whose lock the host has while it is at work."""


class ClonedWorkplace:
    """Worktrees in ``root``, of a clone of ``remote``; work is merged into its branch ``branch``. See ``Workplace``."""

    def __init__(self, remote: Remote, root: Path, fleet: str, run: str, branch: str) -> None:
        """Use ``open`` instead, which makes the clone."""
        clone = _clone_in(root)
        self.remote: Final = remote
        self._fleet: Final = fleet
        self._prefix: Final = f"refs/lifefold/{path_name(fleet)}/{path_name(run)}"
        self._home: Final = Git(clone, pins=repository_at(clone))
        self._branch: Final = RemoteBranch(self._home, branch, remote)
        self._local: Final = GitWorkplace(clone, root / "worktrees", fleet, branch, self._branch)
        self._states: Final = RemoteFiles(self._home, remote)
        self._kept: Final[dict[str, Snapshot]] = {}
        self._taken = ExitStack()

    @classmethod
    async def open(cls, url: str, root: Path, fleet: str, run: str, branch: str) -> Self:
        """Return the workplace of a host whose files are in ``root``; make its clone if there is none.

        Raises WorkplaceError, also if another process has this workplace, or if the remote has no such branch.
        """
        make_private(root)
        with ExitStack() as taken:
            lock = open_lock(root / HOST_LOCK)
            taken.callback(os.close, lock)
            if not try_to_take(lock):
                remedy = "End it, or give this host another name."
                raise WorkplaceError("A host of this name is at work here", root, remedy)
            clone = _clone_in(root)
            if not (clone / ".git" / "HEAD").is_file():
                make_private(clone)
                await Git(clone).run("init", "--quiet", "--template=", f"--initial-branch={NO_BRANCH}")
            remote = Remote(url, root / "exchange.git", clone / ".git" / "objects")
            await remote.begin()
            workplace = cls(remote, root, fleet, run, branch)
            await workplace._branch.look()
            workplace._taken = taken.pop_all()
        return workplace

    def close(self) -> None:
        """Release the workplace."""
        self._taken.close()

    def folder(self, agent: str, task: str) -> Path:
        """Return the agent's worktree."""
        return self._local.folder(agent, task)

    async def prepare(self, agent: str) -> None:
        """Make or repair the agent's worktree."""
        await self._local.prepare(agent)

    async def check_out(
        self, agent: str, task: str, epoch: int, kept: tuple[int, str] = NOTHING_KEPT, *, resumes: bool = False
    ) -> None:
        """Check out the claim's branch, from the present tip of the target branch or from kept work."""
        await self._branch.look()
        if kept[1]:
            await self._bring(Claim(self._fleet, task, kept[0]), kept[1])
        if resumes:
            await self._bring_left(agent, task, epoch)
        await self._local.check_out(agent, task, epoch, kept, resumes=resumes)

    async def enter(self, agent: str, task: str, epoch: int) -> None:
        """Restore the files of the claim from the remote, unless this host has gone on from them, or has pushed them.

        The worktree of a host that was lost meanwhile may have the same claim with older files.
        """
        claim = Claim(self._fleet, task, epoch)
        base, work = self._name("base", claim), self._name("work", claim)
        found = await self.remote.bring(base, work, self._name("result", claim))
        is_here = await self._local.has(agent, task, epoch)
        if not is_here or (work in found and not await self.remote.knows(work, found[work])):
            if base not in found or work not in found:
                what = f"The work of {claim.name} was on a host that is lost"
                raise WorkplaceError(what, self._home.folder, "Try the task again.")
            self._kept.pop(claim.name, None)
            await self._local.restore(agent, task, epoch, found[base], found[work])
        await self.remote.know(found)

    async def keep(self, agent: str, task: str, epoch: int) -> None:
        """Push the files of the claim, unless they are as they were pushed last."""
        claim = Claim(self._fleet, task, epoch)
        seen = await self._local.snapshot(agent, task, epoch)
        if seen is None or self._kept.get(claim.name) == seen:
            return
        message = claim.message(f"Work at {one_line(task)}, not verified", agent)
        work = await self._home.commit_tree(seen.tree, (seen.head,), message)
        await self._put(claim, work=work)
        self._kept[claim.name] = seen

    async def keep_state(self, task: str, kept: int, file: Path) -> None:
        """Push the state of a task, unless it is as it was pushed or brought last."""
        await self._states.keep(self._state(task, kept), file)

    async def bring_state(self, task: str, kept: int, file: Path) -> None:
        """Write the state of a task as it was pushed last, unless this host has a later one."""
        await self._states.bring(self._state(task, kept), file)

    async def differs(self, agent: str, task: str, epoch: int) -> bool:
        """Tell whether the worktree differs from the start of the claim."""
        await self.enter(agent, task, epoch)
        return await self._local.differs(agent, task, epoch)

    async def ignored(self, agent: str, task: str, epoch: int) -> tuple[str, ...]:
        """Return the ignored files that have changed on this host since the claim's check-out."""
        return await self._local.ignored(agent, task, epoch)

    async def park(self, agent: str, task: str, epoch: int, title: str) -> str:
        """Commit the work, and push the commit."""
        await self.enter(agent, task, epoch)
        result = await self._local.park(agent, task, epoch, title)
        await self._put(Claim(self._fleet, task, epoch), result=result)
        return result

    async def merge(  # noqa: PLR0913 - as the protocol has it
        self, agent: str, task: str, epoch: int, title: str, *, result: str, accepted: str = ""
    ) -> str:
        """Merge the commit ``result``, and push the merge commit."""
        await self._branch.look()
        await self._bring(Claim(self._fleet, task, epoch), result)
        return await self._local.merge(agent, task, epoch, title, result=result, accepted=accepted)

    async def make_ready(self, task: str, epoch: int, result: str) -> str:
        """Push the commit ``result`` as a ready branch of the remote."""
        claim = Claim(self._fleet, task, epoch)
        await self._bring(claim, result)
        return await make_ready(self._home, RemoteBranches(self.remote), claim, result)

    async def displaced(self, found: str) -> str:
        """Return an empty text: the remote decides who may move the branch."""
        return await self._local.displaced(found)

    async def clear(self) -> None:
        """Remove the agents' worktrees."""
        await self._local.clear()

    async def warnings(self) -> tuple[str, ...]:
        """Return nothing: no user works in the clone."""
        return ()

    async def take_over(self, run: str, log: Path) -> None:
        """Do nothing: the clone and its references belong to one log."""

    async def go_on(self, run: str) -> None:
        """Do nothing, for the same reason."""

    async def _bring(self, claim: Claim, result: str) -> None:
        """Bring the base of a claim and the commit to merge. Raises WorkplaceError if the remote has lost it."""
        if await self._home.commit_at(claim.base) and await self._home.commit_at(result):
            return
        base = self._name("base", claim)
        found = await self.remote.bring(base, self._name("result", claim))
        if base not in found or not await self._home.commit_at(result):
            what = f"The remote {self.remote.shown} does not have the work of {claim.name}, {result[:12]}, any more"
            raise WorkplaceError(what, self._home.folder, "Retry the task: its work is to be done anew.")
        await self._home.set_ref(claim.base, found[base])

    async def _bring_left(self, agent: str, task: str, epoch: int) -> None:
        """Bring what the agent's last claim of the task has left, on whatever host, as salvage of its worktree."""
        earlier = [Claim(self._fleet, task, number) for number in range(epoch - 1, 0, -1)]
        found = await self.remote.bring(*(self._name("work", claim) for claim in earlier))
        for claim in earlier:
            work = found.get(self._name("work", claim), "")
            if work and await _agent_of(self._home, work) == one_line(agent):
                await self._local.keep_left(agent, claim, work)
                return

    async def _put(self, claim: Claim, **commits: str) -> None:
        """Push commits of a claim, each under the name of its kind, with the start of the claim.

        Raises WorkplaceError if the clone has lost the start: an agent may have deleted its reference.
        """
        base = await self._home.commit_at(claim.base)
        if not base:
            what = f"The reference to the start of {claim.name} is gone, {claim.base}"
            raise WorkplaceError(what, self._home.folder, "Try the task again.")
        await self.remote.put({self._name(kind, claim): commit for kind, commit in ({"base": base} | commits).items()})

    def _state(self, task: str, kept: int) -> str:
        return self._name("state", Claim(self._fleet, task, kept))

    def _name(self, kind: str, claim: Claim) -> str:
        return f"{self._prefix}/{kind}/{path_name(claim.task)}/{claim.epoch}"


async def _agent_of(home: Git, commit: str) -> str:
    """Return the agent that a commit of lifefold names."""
    query = ("log", "-1", "--no-show-signature", "--format=%(trailers:key=Lifefold-Agent,valueonly)")
    return (await home.run(*query, commit)).text.strip()


def _clone_in(root: Path) -> Path:
    return root / "clone"
