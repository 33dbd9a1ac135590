"""Ready branches: the verified work of a task on a branch named after it, for a pull request.

The branch is ``lifefold-ready/FLEET/TASK``. If another branch has that name, such as a user's or that of an earlier
run, the number 2 or a higher one is added. Such a branch is never moved. A branch at the claim's commit is the result
of an interrupted try, so a repetition makes no second one.
"""

from itertools import count
from typing import Final

from lifefold.interpreters.worktrees.claim_commit import Claim
from lifefold.interpreters.worktrees.errors import GitError, InTheWayError
from lifefold.interpreters.worktrees.git import Git, path_name

_ALL: Final = "refs/heads/lifefold-ready"


def ready_branches_of(fleet: str) -> str:
    """Return the prefix of the references to the ready branches of a fleet."""
    return f"{_ALL}/{path_name(fleet)}/"


async def make_ready(home: Git, claim: Claim, result: str) -> str:
    """Return the short name of the branch at ``result``, made if there is none; empty if the work changes nothing.

    Raises InTheWayError while a branch has the name of a folder of these branches.
    """
    if await home.tree_of(result) == await home.tree_of(claim.base):
        return ""
    folder = ready_branches_of(claim.fleet)
    for name in (_ALL, folder.removesuffix("/")):
        if await home.commit_at(name):
            what = f"A branch has the name that ready branches begin with, {name}"
            raise InTheWayError(what, home.folder, "Rename it; then it is done again.")
    for number in count(1):
        name = f"{folder}{path_name(claim.task)}{f'-{number}' if number > 1 else ''}"
        if await _is_at(home, name, result):
            return name.removeprefix("refs/heads/")
    raise AssertionError


async def _is_at(home: Git, name: str, result: str) -> bool:
    """Make the branch unless its name is taken; tell whether it is at the commit."""
    if not await home.references(name, f"{name}/"):
        try:
            await home.set_ref(name, result, expected="")
        except GitError:
            if not await home.references(name, f"{name}/"):
                raise
    return await home.commit_at(name) == result
