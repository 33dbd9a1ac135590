"""The target branch of a fleet: work is merged into it once, and no working tree is touched before the merge succeeds.

``git merge-tree`` computes the merge commit. Then the branch is moved to it, if the branch has not moved meanwhile;
otherwise the merge is repeated from its new tip. A crash before the move leaves an unreachable commit. A crash after it
leaves a merge commit whose second parent is the claim's result, and the next try finds it.

The branch is in the user's repository (see ``local_branch``), or at a remote (see ``remote_branch``).
"""

from typing import Final, Protocol

from lifefold.interpreters.worktrees.branch_guard import MovedError
from lifefold.interpreters.worktrees.claim_commit import Claim
from lifefold.interpreters.worktrees.errors import InTheWayError, MergeConflict
from lifefold.interpreters.worktrees.git import Git, shown

MERGE_ROUNDS = 20
"""The number of tries of a merge while the branch keeps moving."""


class BranchPlace(Protocol):
    """The place of a branch: a repository with a user and agents, or a remote."""

    @property
    def name(self) -> str:
        """The short name of the branch."""
        ...

    async def recover(self) -> None:
        """Repair an interrupted move of the branch. Raises InTheWayError if that must wait."""
        ...

    async def tip(self) -> str:
        """Return the branch's commit. Raises WorkplaceError if the branch does not exist any more."""
        ...

    async def sound(self, tip: str) -> str:
        """Return the commit from which new work begins: ``tip``, or an earlier one if an agent has moved the branch."""
        ...

    async def check(self, tip: str, accepted: str = "") -> None:
        """Raise MovedError if an agent has moved the branch to ``tip``, unless the operator has accepted ``tip``."""
        ...

    async def advance(self, tip: str, commit: str) -> str:
        """Move the branch from its commit ``tip`` to a descendant.

        Returns an empty text, or the hindrance if the caller may repeat the merge at once. Raises InTheWayError if the
        merge must wait.
        """
        ...


class TargetBranch:
    """The target branch of a fleet at ``place``; ``home`` is the repository in which merges are computed."""

    def __init__(self, home: Git, place: BranchPlace) -> None:
        self.name: Final = place.name
        self._home: Final = home
        self._place: Final = place

    async def tip(self) -> str:
        """Return the branch's commit. Raises WorkplaceError if the branch does not exist any more."""
        return await self._place.tip()

    async def recover(self) -> None:
        """Repair an interrupted merge into the branch. Raises InTheWayError if that must wait."""
        await self._place.recover()

    async def merged_as(self, claim: Claim, result: str, tip: str) -> str:
        """Return the commit that merged a claim's result already, or an empty text.

        Such a commit is in the first-parent history of the branch, and the result is its second parent. Commit messages
        are no evidence, because agents write messages too.
        """
        query = ("rev-list", "--merges", "--first-parent", "--parents", f"{claim.base}..{tip}")
        lines = [line.split() for line in (await self._home.run(*query)).text.splitlines()]
        return next((commit for commit, *parents in lines if parents[1:] == [result]), "")

    async def start(self) -> str:
        """Return the commit from which new work begins."""
        return await self._place.sound(await self.tip())

    async def displaced(self, found: str) -> str:
        """Return why nothing is merged into the branch at ``found``; empty if it is elsewhere, or in order."""
        tip = await self.tip()
        try:
            await self._place.check(tip)
        except MovedError as error:
            return str(error) if tip == found else ""
        return ""

    async def integrate(self, worktree: Git, claim: Claim, result: str, message: str, accepted: str) -> str:
        """Merge a claim's result into the branch, repeatedly if the branch moves meanwhile; return the merge commit.

        Returns an empty text if the result changes nothing. Raises MergeConflict. Raises MovedError if an agent has
        moved the branch to another commit than ``accepted``. Raises InTheWayError if changes of the user block the
        merge, or if the branch is locked or keeps moving.
        """
        hindrance = ""
        await self.recover()
        for _ in range(MERGE_ROUNDS):
            tip = await self.tip()
            await self._place.check(tip, accepted)
            merged = await self.merged_as(claim, result, tip)
            if merged:
                return merged
            tree = await self._merged_tree(worktree, claim, tip, result)
            if tree == await self._home.tree_of(tip):
                return ""
            commit = await self._home.commit_tree(tree, (tip, result), message)
            hindrance = await self._place.advance(tip, commit)
            if not hindrance:
                return commit
        remedy = "Find out what else works on that branch; the merge is retried then."
        raise InTheWayError(f"{self.name} could not be advanced: {hindrance}", self._home.folder, remedy)

    async def _merged_tree(self, worktree: Git, claim: Claim, tip: str, result: str) -> str:
        """Return the tree of the merge, computed under the attributes of the agent's worktree."""
        tree, paths = await worktree.merged_tree(tip, result)
        if not paths:
            return tree
        branch = claim.branch.removeprefix("refs/heads/")
        what = f"The work on {branch} conflicts with what others have merged meanwhile, in {shown(paths)}"
        remedy = f"Repeat the work on the present state of the branch; the old work is on {branch}."
        raise MergeConflict(what, worktree.folder, remedy)
