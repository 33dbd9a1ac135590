"""The salvage of a fleet: what a claim left in an agent's worktree, kept as a commit under a reference of its own.

The references are ``refs/lifefold/FLEET/salvage/AGENT/TASK-EPOCH``. A claim that leaves something again has
another one, with the commit after a dot.
"""

import re
from typing import Final

from lifefold.interpreters.worktrees.claim_commit import Claim
from lifefold.interpreters.worktrees.errors import GitError
from lifefold.interpreters.worktrees.git import Git, path_name
from lifefold.interpreters.worktrees.ready_branches import ready_branches_of
from lifefold.interpreters.worktrees.target_branch import TargetBranch

_AGAIN: Final = re.compile(r"\.[0-9a-f]{40,64}")


class Salvage:
    """The salvage of ``fleet`` in the repository ``home``; what is in the ``target`` branch or ready is not kept."""

    def __init__(self, home: Git, fleet: str, target: TargetBranch) -> None:
        self._home: Final = home
        self._fleet: Final = fleet
        self._target: Final = target

    async def keep(self, owner: str, name: str, commit: str) -> None:
        """Keep a commit as salvage of a worktree, unless it is kept, or ready, or in the target branch."""
        if await self._home.is_ancestor(commit, await self._target.tip()):
            return
        if await self._home.references(f"--points-at={commit}", self._of(owner), ready_branches_of(self._fleet)):
            return
        place = f"{self._of(owner)}{name}"
        if await self._home.commit_at(place):  # the same claim has left something before
            place = f"{place}.{commit}"
        await self._home.set_ref(place, commit)

    async def keep_lost(self, owner: str, head: str) -> None:
        """Keep the last commit of a worktree that is not sound any more, if it is known and can be read."""
        try:
            if head.strip("0") and await self._home.commit_at(head):
                await self.keep(owner, "lost", head)
        except GitError as error:
            if not error.damaged:
                raise

    async def last_of(self, owner: str, claim: Claim) -> str:
        """Return the newest salvage of an agent's last claim of a task before this one; empty without any."""
        newest_first = await self._home.references("--sort=-committerdate", self._of(owner))
        for epoch in range(claim.epoch - 1, 0, -1):
            place = f"{self._of(owner)}{salvage_name(Claim(self._fleet, claim.task, epoch).branch)}"
            for found in newest_first:
                if found == place or (found.startswith(place) and _AGAIN.fullmatch(found.removeprefix(place))):
                    return found
        return ""

    def _of(self, owner: str) -> str:
        return f"refs/lifefold/{path_name(self._fleet)}/salvage/{owner}/"


def salvage_name(branch: str) -> str:
    """Return ``TASK-EPOCH`` of the name of a claim's branch."""
    return "-".join(branch.split("/")[-2:])
