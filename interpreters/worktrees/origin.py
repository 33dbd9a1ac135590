"""Which repository a run was begun in: continued in another one, it would find none of its claims.

A repository is known by two things: the git directory that its worktrees share, and the first commit of the branch that
the run began with. One that was moved is the same still if nothing is left at the old place and the fleet's name in it
belongs to the run (see ``tenure``); a copy or a clone beside the original is another one.
"""

from dataclasses import dataclass
from pathlib import Path

from lifefold.interpreters.worktrees.git import Git
from lifefold.interpreters.worktrees.pinned import repository_at
from lifefold.interpreters.worktrees.tenure import holder


@dataclass(frozen=True, slots=True)
class Origin:
    """The repository in which a run was begun: its git directory, and the id of its first commit."""

    directory: Path
    first_commit: str


async def origin_of(repository: Path, branch: str) -> Origin:
    """Return what a run that begins in ``repository`` on ``branch`` has to remember."""
    git = Git(repository, pins=repository_at(repository))
    first = await git.run("rev-list", "--max-parents=0", "--first-parent", f"refs/heads/{branch}", "--")
    return Origin(await git.common_directory(), first.text)


async def is_origin(origin: Origin, repository: Path, fleet: str, run: str) -> bool:
    """Tell whether ``repository`` is the one in which the run of the fleet was begun. Nothing is changed."""
    git = Git(repository, pins=repository_at(repository))
    directory = await git.common_directory()
    moved = not origin.directory.exists() and holder(directory, fleet) == run
    return (directory == origin.directory or moved) and bool(await git.commit_at(origin.first_commit))
