"""The repository in which a run began: a run that continued in another one would find none of its claims.

A repository is identified by the git directory of its worktrees, and by the first commit of the run's branch. A moved
repository is still the same if its old path is empty and the fleet's name in it belongs to the run (see ``tenure``). A
copy or a clone beside the original is another repository.
"""

from dataclasses import dataclass
from pathlib import Path

from lifefold.interpreters.worktrees.git import Git
from lifefold.interpreters.worktrees.pinned import repository_at
from lifefold.interpreters.worktrees.tenure import holder


@dataclass(frozen=True, slots=True)
class Origin:
    """The repository in which a run began: its git directory, and the id of its first commit."""

    directory: Path
    first_commit: str


async def origin_of(repository: Path, branch: str) -> Origin:
    """Return the origin of a run that begins in ``repository`` on ``branch``."""
    git = Git(repository, pins=repository_at(repository))
    first = await git.run("rev-list", "--max-parents=0", "--first-parent", f"refs/heads/{branch}", "--")
    return Origin(await git.common_directory(), first.text)


async def is_origin(origin: Origin, repository: Path, fleet: str, run: str) -> bool:
    """Tell whether the run of the fleet began in ``repository``. Nothing is changed."""
    git = Git(repository, pins=repository_at(repository))
    directory = await git.common_directory()
    moved = not origin.directory.exists() and holder(directory, fleet)[0] == run
    return (directory == origin.directory or moved) and bool(await git.commit_at(origin.first_commit))
