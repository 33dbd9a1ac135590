"""The fleet's branch, and how work gets into it: once, and without touching a working tree before it is certain to fit.

The merge commit is computed by ``git merge-tree``, and then the branch is moved to it if it still is where it was;
otherwise that is repeated from its new tip. A crash before the move leaves an unreachable commit, one after it a commit
with the claim's trailer in the branch's history, by which it is found again.
"""

import re
from pathlib import Path
from typing import Final

import anyio

from lifefold.interpreters.body.claim import Claim, one_line
from lifefold.interpreters.body.errors import InTheWayError, MergeConflict, WorkplaceError
from lifefold.interpreters.body.forward import Forward
from lifefold.interpreters.body.git import Git, shown
from lifefold.interpreters.body.index_lock import whose

MERGE_ROUNDS = 20
"""How often a merge is repeated because others move the branch."""

_LOCK = re.compile(r"'([^']*\.lock)'")


class Trunk:
    """A fleet's branch in the repository ``home``; ``name`` is its short name."""

    def __init__(self, home: Git, name: str, forward: Forward) -> None:
        self.name: Final = name
        self._home: Final = home
        self._forward: Final = forward
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

    async def merged_as(self, claim: Claim, tip: str) -> str:
        """Return the merge commit of a claim that has been merged already, or an empty text."""
        trailer = f"--grep=^Lifefold-Claim: {claim.name.replace('.', '[.]')}$"
        asked = ("rev-list", "--merges", "--max-count=1", "--extended-regexp", trailer, f"{claim.base}..{tip}")
        return (await self._home.run(*asked)).text

    async def integrate(self, worktree: Git, claim: Claim, result: str, title: str) -> str:
        """Merge a claim's result into the branch as it is now, again if that moves meanwhile; return the merge commit.

        That is an empty text if the result changes nothing. Raises MergeConflict; InTheWayError if changes of the
        user's own are in the way, or if others move or lock the branch all the time.
        """
        hindrance = ""
        await self.recover()
        for _ in range(MERGE_ROUNDS):
            tip = await self.tip()
            merged = await self.merged_as(claim, tip)
            if merged:
                return merged
            tree = await self._merged_tree(worktree, claim, tip, result)
            if tree == await self._home.tree_of(tip):
                return ""
            message = claim.message(f"Merge {one_line(claim.task)}: {title}")
            commit = await self._home.commit_tree(tree, (tip, result), message)
            # A fast-forward that is cut off halfway would leave a mess in the user's own files.
            with anyio.CancelScope(shield=True):
                hindrance = await self._forward.advance(self._reference, tip, commit)
            if not hindrance:
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
