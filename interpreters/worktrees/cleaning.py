"""What a fleet that is over has left in a repository, and its removal: worktrees, branches, salvage.

Work that is not in the target branch stays, unless its removal is asked for. A branch that a checkout outside the fleet
has as its own always stays.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from os.path import realpath
from pathlib import Path
from typing import Final

from lifefold.interpreters.worktrees.branch_guard import NAME as LEFT_BRANCH
from lifefold.interpreters.worktrees.errors import GitError
from lifefold.interpreters.worktrees.excludes import RULES
from lifefold.interpreters.worktrees.git import Git, path_name
from lifefold.interpreters.worktrees.ready_branches import ready_branches_of
from lifefold.interpreters.worktrees.tenure import holder
from lifefold.interpreters.worktrees.worktrees import GitWorkplace

_NO_WORK: Final = frozenset({".lock", ".locks", ".gone", RULES, LEFT_BRANCH})
"""What a fleet keeps for itself beside its worktrees. Any other file there can be the only copy of some work."""


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a fleet in a repository.

    ``home`` is the git directory that the worktrees share, ``root`` the folder of the worktrees, ``run`` the run of the
    log.
    """

    home: Path
    root: Path
    fleet: str
    branch: str
    run: str

    @property
    def real_root(self) -> Path:
        """The folder of the worktrees without links, as git lists it."""
        return Path(realpath(self.root))


@dataclass(frozen=True, slots=True)
class Left:
    """What is there: worktrees, references with their commits to merged and unmerged work, and branches in use."""

    worktrees: tuple[Path, ...] = ()
    merged: Mapping[str, str] | None = None
    unmerged: Mapping[str, str] | None = None
    in_use: tuple[str, ...] = ()


async def left_of(place: Place) -> Left:
    """Return what a run has left. References belong to the run that holds the fleet's name. Raises GitError."""
    git = Git(place.home)
    known = await git.worktrees()
    own = tuple(Path(each["worktree"]) for each in known[1:] if Path(each["worktree"]).parent == place.real_root)
    if holder(place.home, place.fleet)[0] != place.run:
        return Left(own)
    name = path_name(place.fleet)
    branches, results = f"refs/heads/lifefold/{name}/", f"refs/lifefold/{name}/result/"
    every = await _references(git, branches, f"refs/lifefold/{name}/")
    used = {each.get("branch", "") for each in known if Path(each["worktree"]) not in own}
    unmerged = await _unmerged(git, place.branch, branches, f"refs/lifefold/{name}/salvage/")
    on_results = await _unmerged(git, place.branch, results)
    unmerged |= {each: commit for each, commit in on_results.items() if commit not in unmerged.values()}
    in_use = tuple(sorted(used & every.keys()))
    ready = {*(await _references(git, ready_branches_of(place.fleet))).values()}
    kept = {each: commit for each, commit in unmerged.items() if each not in in_use and commit not in ready}
    gone = {each: commit for each, commit in every.items() if each not in {*kept, *in_use}}
    return Left(own, gone, kept, in_use)


def beside_worktrees(root: Path, worktrees: Collection[Path] = ()) -> tuple[Path, ...]:
    """Return what is in the folder of the worktrees beside these worktrees, and can be the only copy of some work.

    It is what was moved aside, and what git has never known, or knows no longer.
    """
    if not root.is_dir():
        return ()
    names = {each.name for each in worktrees} | _NO_WORK
    return tuple(sorted(each for each in root.iterdir() if each.name not in names))


async def _references(git: Git, *selection: str) -> dict[str, str]:
    lines = (await git.run("for-each-ref", "--format=%(refname) %(objectname)", *selection)).text.splitlines()
    return {name: commit for name, _, commit in (line.partition(" ") for line in lines)}


async def _unmerged(git: Git, branch: str, *selection: str) -> dict[str, str]:
    """Return the references to commits that are not in a branch; all of them if there is no such branch."""
    merged = f"--no-merged=refs/heads/{branch}"
    try:
        return await _references(git, merged, *selection)
    except GitError:
        return await _references(git, *selection)


async def remove(place: Place, *, unmerged: bool) -> Left:
    """Remove what a run has left, and return what stays. Raises WorkplaceError if another run of the fleet is at work.

    Uncommitted files in a worktree become salvage first. Without ``unmerged`` they stay as that, and a worktree that
    git cannot save stays whole.
    """
    git = Git(place.home)
    top = Path((await git.worktrees())[0]["worktree"])
    workplace = await GitWorkplace.open(top, place.root, place.fleet, place.branch)
    try:
        await workplace.clear()
        left = await left_of(place)
        for worktree in left.worktrees if unmerged else ():
            await git.run("worktree", "remove", "--force", "--force", str(worktree))
        gone = {**(left.merged or {}), **((left.unmerged or {}) if unmerged else {})}
        for name, commit in gone.items():
            # One that has moved since is an error, and stays. One that leads to another reference leaves that alone.
            await git.run("update-ref", "--no-deref", "-d", name, commit)
        return await left_of(place)
    finally:
        workplace.close()
