"""A target branch at a remote: it is moved by a push that expects the commit from which the merge was computed.

Only agents work in the clone. So no working tree follows, and an agent that moves the clone's own branch moves nothing.
A person with access to the remote may move the branch there, and the next merge begins at its new tip.
"""

from contextlib import suppress
from typing import Final

from lifefold.interpreters.worktrees.errors import GitError, InTheWayError
from lifefold.interpreters.worktrees.git import Git
from lifefold.interpreters.worktrees.remote import Change, Remote


class RemoteBranch:
    """The branch of the short name ``name`` at a remote; ``home`` is the clone. See ``BranchPlace``."""

    def __init__(self, home: Git, name: str, remote: Remote) -> None:
        self.name: Final = name
        self._home: Final = home
        self._remote: Final = remote
        self._reference: Final = f"refs/heads/{name}"
        self._tip = ""

    async def look(self) -> str:
        """Ask the remote for the branch's commit, bring it, and return it. Raises InTheWayError without one."""
        found = (await self._remote.bring(self._reference)).get(self._reference, "")
        if not found:
            what = f"The remote {self._remote.shown} has no branch {self.name}"
            raise InTheWayError(what, self._home.folder, f"Push it there: git push REMOTE {self._reference}.")
        await self._know(found)
        return found

    async def recover(self) -> None:
        """Do nothing: the remote moves the branch, or does not."""

    async def tip(self) -> str:
        """Return the branch's commit as of the last look."""
        return self._tip or await self.look()

    async def sound(self, tip: str) -> str:
        """Return the commit from which new work begins."""
        return tip

    async def check(self, tip: str, accepted: str = "") -> None:
        """Do nothing: the remote decides who may move the branch."""

    async def advance(self, tip: str, commit: str) -> str:
        """Push the commit, unless the branch has moved meanwhile."""
        if await self._remote.push(Change(self._reference, commit, tip)):
            await self._know(commit)
            return ""
        await self.look()
        return f"it moves at the remote {self._remote.shown}"

    async def _know(self, commit: str) -> None:
        """Remember the branch's commit; agents see it as the branch of the clone."""
        self._tip = commit
        with suppress(GitError):  # an agent may be at that branch: nothing depends on it
            await self._home.set_ref(self._reference, commit)
