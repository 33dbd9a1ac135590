"""A target branch in the user's repository: the user's working tree follows it, and a guard notices moves by agents.

Nothing is merged into a branch that an agent has moved (see ``branch_guard``).
"""

import re
from pathlib import Path
from typing import Final

import anyio

from lifefold.interpreters.worktrees.branch_guard import BranchGuard
from lifefold.interpreters.worktrees.errors import InTheWayError, WorkplaceError
from lifefold.interpreters.worktrees.fast_forward import Forward
from lifefold.interpreters.worktrees.git import Git
from lifefold.interpreters.worktrees.index_lock import whose

_LOCK: Final = re.compile(r"'([^']*\.lock)'")


class LocalBranch:
    """The branch of the short name ``name`` in the repository ``home``; see ``BranchPlace``."""

    def __init__(self, home: Git, name: str, forward: Forward, guard: BranchGuard) -> None:
        self.name: Final = name
        self._home: Final = home
        self._forward: Final = forward
        self._guard: Final = guard
        self._reference: Final = f"refs/heads/{name}"

    async def recover(self) -> None:
        """Repair an interrupted fast-forward."""
        await self._forward.recover()

    async def tip(self) -> str:
        """Return the branch's commit."""
        tip = await self._home.commit_at(self._reference)
        if not tip:
            what = f"the fleet's branch {self.name} does not exist any more"
            raise WorkplaceError(what, self._home.folder, "Make it again where it was, or start a new run.")
        return tip

    async def sound(self, tip: str) -> str:
        """Return the commit from which new work begins."""
        return await self._guard.sound(tip)

    async def check(self, tip: str, accepted: str = "") -> None:
        """Raise MovedError if an agent has moved the branch to ``tip``, unless the operator has accepted ``tip``."""
        left = self._guard.left
        if not left or tip != accepted or tip in left:
            await self._guard.check(tip)
            return
        before = await self._guard.before(tip)
        self._guard.leave(tip)
        tree = await self._guard.users_tree()
        if tree is not None:
            await self._forward.catch_up(tree, self._reference, before, tip)

    async def advance(self, tip: str, commit: str) -> str:
        """Move the branch, and let the user's working tree follow."""
        self._guard.leave(tip, commit)
        hindrance = ""
        # Shielded: an interrupted fast-forward would need a repair of the user's files.
        with anyio.CancelScope(shield=True):
            hindrance = await self._forward.advance(self._reference, tip, commit)
        if not hindrance:
            self._guard.leave(commit)
            return ""
        lock = _LOCK.search(hindrance)
        if lock:
            what = f"{self.name} is locked: {whose(Path(lock[1]), self._home.folder)}"
            raise InTheWayError(what, self._home.folder, "The merge is retried then.")
        return hindrance
