"""Whether a fleet can work with a repository, before anything is begun in it."""

import re
from pathlib import Path

from lifefold.interpreters.body.errors import WorkplaceError
from lifefold.interpreters.body.git import Git
from lifefold.interpreters.body.pinned import repository_at

OLDEST_GIT = (2, 38)
"""The first version that can merge without a working tree (``git merge-tree --write-tree``)."""

UNFINISHED = {
    "MERGE_HEAD": "merge",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
}
"""What lies in a git directory while an operation is unfinished."""


async def survey(repository: Path) -> tuple[Path, str]:
    """Return the top of a repository's working tree and the short name of the branch that is checked out in it.

    Raises WorkplaceError if a fleet cannot work with it, and says what to do.
    """
    await _see_that_git_is_new_enough(repository)
    home = Git(repository)
    kind = await home.run("rev-parse", "--is-bare-repository", accept=range(256))
    if kind.status != 0:
        what = f"Git finds no repository: {kind.stderr.removeprefix('fatal: ')}"
        raise WorkplaceError(what, repository, "Name a git repository, or make one: git init, and a first commit.")
    pins = repository_at(repository)
    if kind.text == "true":
        if pins is not None and pins.directory.name == ".git":
            remedy = "Its configuration says so, and it has a working tree: git config core.bare false"
        else:
            remedy = "Name a clone of it that has a working tree."
        raise WorkplaceError("The repository is bare", repository, remedy)
    where = await home.run("rev-parse", "--absolute-git-dir", "--show-toplevel")
    directory, top = (Path(line) for line in where.text.splitlines())
    if pins is not None and pins.folder != top:
        what = f"The repository's configuration says that its working tree is {top} (core.worktree)"
        remedy = "If you did not mean that, an agent may have set it: git config --unset core.worktree"
        raise WorkplaceError(what, pins.folder, remedy)
    if not await home.commit_at("HEAD"):
        raise WorkplaceError("The repository has no commit", top, "Make a first commit; the agents start from it.")
    operation = _unfinished_in(directory)
    if operation:
        remedy = f"Finish it: git {operation} --continue, or --abort."
        raise WorkplaceError(f"A {operation} is not finished", top, remedy)
    branch = await home.target_of("HEAD")
    if not branch:
        raise WorkplaceError("No branch is checked out", top, "Check out the branch that work is to be merged into.")
    return top, branch.removeprefix("refs/heads/")


async def _see_that_git_is_new_enough(repository: Path) -> None:
    version = (await Git(repository).run("version")).text
    found = re.search(r"(\d+)\.(\d+)", version)
    if found is None or (int(found[1]), int(found[2])) < OLDEST_GIT:
        oldest = ".".join(map(str, OLDEST_GIT))
        raise WorkplaceError(f"{version} is too old", repository, f"Install git {oldest} or newer.")


def _unfinished_in(git_directory: Path) -> str:
    return next((operation for name, operation in UNFINISHED.items() if (git_directory / name).exists()), "")
