"""Whether a fleet can work with a repository, before anything is begun in it."""

import re
from pathlib import Path

from lifefold.interpreters.worktrees.errors import WorkplaceError
from lifefold.interpreters.worktrees.git import Git
from lifefold.interpreters.worktrees.pinned import repository_at

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
    wrong = await contradiction(repository)
    if wrong is not None:
        raise wrong
    if kind.text == "true":
        raise WorkplaceError("The repository is bare", repository, "Name a clone of it that has a working tree.")
    where = await home.run("rev-parse", "--absolute-git-dir", "--show-toplevel")
    directory, top = (Path(line) for line in where.text.splitlines())
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


async def contradiction(repository: Path) -> WorkplaceError | None:
    """Return what a repository's configuration says against its folders, and how that is undone; None if nothing.

    An agent may have set it. The runner's git does not go by it, but the user's does.
    """
    pins = repository_at(repository)
    if pins is None:
        return None
    asked = ("rev-parse", "--is-bare-repository", "--show-toplevel")
    answer = await Git(pins.folder).run(*asked, accept=range(256))
    is_bare, _, top = answer.text.partition("\n")
    if is_bare == "true" and pins.directory.name == ".git":
        what, remedy = "it is bare (core.bare)", "git config core.bare false"
    elif answer.status == 0 and Path(top) != pins.folder:
        what, remedy = f"its working tree is {top} (core.worktree)", "git config --unset core.worktree"
    else:
        return None
    return WorkplaceError(
        f"The repository's configuration says that {what}", pins.folder, f"If an agent has set that: {remedy}"
    )


async def _see_that_git_is_new_enough(repository: Path) -> None:
    version = (await Git(repository).run("version")).text
    found = re.search(r"(\d+)\.(\d+)", version)
    if found is None or (int(found[1]), int(found[2])) < OLDEST_GIT:
        oldest = ".".join(map(str, OLDEST_GIT))
        raise WorkplaceError(f"{version} is too old", repository, f"Install git {oldest} or newer.")


def _unfinished_in(git_directory: Path) -> str:
    return next((operation for name, operation in UNFINISHED.items() if (git_directory / name).exists()), "")
