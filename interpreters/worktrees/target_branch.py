"""The fleet's branch, and how work gets into it: once, and without touching a working tree before it is certain to fit.

The merge commit is computed by ``git merge-tree``, and then the branch is moved to it if it still is where it was;
otherwise that is repeated from its new tip. A crash before the move leaves an unreachable commit, one after it a commit
whose second parent is the claim's result, by which it is found again. A branch that an agent has moved is not merged
into (see ``branch_guard``).
"""

import re
from pathlib import Path
from typing import Final

import anyio

from lifefold.interpreters.worktrees.branch_guard import BranchGuard, MovedError
from lifefold.interpreters.worktrees.claim_commit import Claim, one_line
from lifefold.interpreters.worktrees.errors import InTheWayError, MergeConflict, WorkplaceError
from lifefold.interpreters.worktrees.fast_forward import Forward
from lifefold.interpreters.worktrees.git import Git, shown
from lifefold.interpreters.worktrees.index_lock import whose

MERGE_ROUNDS = 20
"""How often a merge is repeated because others move the branch."""

_LOCK = re.compile(r"'([^']*\.lock)'")


class Trunk:
    """A fleet's branch in the repository ``home``; ``name`` is its short name."""

    def __init__(self, home: Git, name: str, forward: Forward, guard: BranchGuard) -> None:
        self.name: Final = name
        self._home: Final = home
        self._forward: Final = forward
        self._guard: Final = guard
        self._reference: Final = f"refs/heads/{name}"

    async def tip(self) -> str:
        """Return where the branch is. Raises WorkplaceError if it is not there any more."""
        tip = await self._home.commit_at(self._reference)
        if not tip:
            what = f"the fleet's branch {self.name} does not exist any more"
            raise WorkplaceError(what, self._home.folder, "Make it again where it was, or start a new run.")
        return tip

    async def recover(self) -> None:
        """Make good a merge into the branch that was cut off. Raises InTheWayError if that has to wait."""
        await self._forward.recover()

    async def merged_as(self, claim: Claim, result: str, tip: str) -> str:
        """Return the commit by which a claim's result was merged already, or an empty text.

        That is told by its second parent, and by being one of the commits that the branch itself was moved to. What a
        message says is not believed: agents write messages, too.
        """
        asked = ("rev-list", "--merges", "--first-parent", "--parents", f"{claim.base}..{tip}")
        lines = [line.split() for line in (await self._home.run(*asked)).text.splitlines()]
        return next((commit for commit, *parents in lines if parents[1:] == [result]), "")

    async def start(self) -> str:
        """Return the commit that new work begins from."""
        return await self._guard.sound(await self.tip())

    async def displaced(self, found: str) -> str:
        """Say why the branch, at ``found``, is not merged into; an empty text if it is elsewhere, or is all right."""
        tip = await self.tip()
        try:
            await self._guard.check(tip)
        except MovedError as error:
            return str(error) if tip == found else ""
        return ""

    async def _check(self, tip: str, accepted: str) -> None:
        """Raise MovedError if an agent has moved the branch to ``tip``, unless the operator accepts it there."""
        left = self._guard.left
        if not left or tip != accepted or tip in left:
            await self._guard.check(tip)
            return
        before = await self._guard.before(tip)
        self._guard.leave(tip)
        tree = await self._guard.users_tree()
        if tree is not None:
            await self._forward.catch_up(tree, self._reference, before, tip)

    async def integrate(self, worktree: Git, claim: Claim, result: str, title: str, accepted: str) -> str:
        """Merge a claim's result into the branch as it is now, again if that moves meanwhile; return the merge commit.

        That is an empty text if the result changes nothing. Raises MergeConflict; MovedError if an agent has moved the
        branch to another commit than ``accepted``; InTheWayError if changes of the user's own are in the way, or if
        others move or lock the branch all the time.
        """
        hindrance = ""
        await self.recover()
        for _ in range(MERGE_ROUNDS):
            tip = await self.tip()
            await self._check(tip, accepted)
            merged = await self.merged_as(claim, result, tip)
            if merged:
                return merged
            tree = await self._merged_tree(worktree, claim, tip, result)
            if tree == await self._home.tree_of(tip):
                return ""
            message = claim.message(f"Merge {one_line(claim.task)}: {title}")
            commit = await self._home.commit_tree(tree, (tip, result), message)
            self._guard.leave(tip, commit)
            # A fast-forward that is cut off halfway would leave a mess in the user's own files.
            with anyio.CancelScope(shield=True):
                hindrance = await self._forward.advance(self._reference, tip, commit)
            if not hindrance:
                self._guard.leave(commit)
                return commit
            lock = _LOCK.search(hindrance)
            if lock:
                what = f"{self.name} is locked: {whose(Path(lock[1]), self._home.folder)}"
                raise InTheWayError(what, self._home.folder, "Then this is done again.")
        remedy = "See what else works on that branch; then the merge is done again."
        raise InTheWayError(f"{self.name} could not be advanced: {hindrance}", self._home.folder, remedy)

    async def _merged_tree(self, worktree: Git, claim: Claim, tip: str, result: str) -> str:
        """Return the tree of the merge, computed under the attributes of the agent's worktree."""
        tree, paths = await worktree.merged_tree(tip, result)
        if not paths:
            return tree
        branch = claim.branch.removeprefix("refs/heads/")
        what = f"The work on {branch} conflicts with what others have merged meanwhile, in {shown(paths)}"
        remedy = f"Do it again on what is there now; the work itself is on {branch}."
        raise MergeConflict(what, worktree.folder, remedy)
