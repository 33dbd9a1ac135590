"""Ready branches: the verified work of a task on a branch named after it, for a pull request.

The branch is ``lifefold-ready/FLEET/TASK``. If another branch has that name, such as a user's or that of an earlier
run, the number 2 or a higher one is added. Such a branch is never moved. A branch at the claim's commit is the result
of an interrupted try, so a repetition makes no second one.
"""

from itertools import count
from typing import Final, Protocol

from lifefold.interpreters.worktrees.claim_commit import Claim
from lifefold.interpreters.worktrees.errors import GitError, InTheWayError
from lifefold.interpreters.worktrees.git import Git, path_name
from lifefold.interpreters.worktrees.remote import Change, Remote

_ALL: Final = "refs/heads/lifefold-ready"


class Branches(Protocol):
    """The branches of a repository, by their full names."""

    async def at(self, name: str) -> str:
        """Return the commit of a branch; empty without one."""
        ...

    async def make(self, name: str, commit: str) -> None:
        """Make a branch, unless its name is taken, also by a folder of branches."""
        ...


class LocalBranches:
    """The branches of the repository ``home``."""

    def __init__(self, home: Git) -> None:
        self._home: Final = home

    async def at(self, name: str) -> str:
        """Return the commit of a branch; empty without one."""
        return await self._home.commit_at(name)

    async def make(self, name: str, commit: str) -> None:
        """Make a branch, unless its name is taken."""
        if not await self._is_taken(name):
            try:
                await self._home.set_ref(name, commit, expected="")
            except GitError:
                if not await self._is_taken(name):
                    raise

    async def _is_taken(self, name: str) -> bool:
        return bool(await self._home.references(name, f"{name}/"))


class RemoteBranches:
    """The branches of a remote."""

    def __init__(self, remote: Remote) -> None:
        self._remote: Final = remote

    async def at(self, name: str) -> str:
        """Return the commit of a branch; empty without one."""
        return (await self._remote.values(name)).get(name, "")

    async def make(self, name: str, commit: str) -> None:
        """Make a branch, unless its name is taken."""
        if not await self._remote.values(name, f"{name}/*"):
            await self._remote.push(Change(name, commit, ""))


def ready_branches_of(fleet: str) -> str:
    """Return the prefix of the references to the ready branches of a fleet."""
    return f"{_ALL}/{path_name(fleet)}/"


async def make_ready(home: Git, branches: Branches, claim: Claim, result: str) -> str:
    """Return the short name of the branch at ``result``, made if there is none; empty if the work changes nothing.

    Raises InTheWayError while a branch has the name of a folder of these branches.
    """
    if await home.tree_of(result) == await home.tree_of(claim.base):
        return ""
    folder = ready_branches_of(claim.fleet)
    for name in (_ALL, folder.removesuffix("/")):
        if await branches.at(name):
            what = f"A branch has the name that ready branches begin with, {name}"
            raise InTheWayError(what, home.folder, "Rename it; then it is done again.")
    for number in count(1):
        name = f"{folder}{path_name(claim.task)}{f'-{number}' if number > 1 else ''}"
        await branches.make(name, result)
        if await branches.at(name) == result:
            return name.removeprefix("refs/heads/")
    raise AssertionError
