"""The check that a fleet can work with a repository, before a run begins in it."""

import re
from pathlib import Path
from tempfile import TemporaryDirectory

from lifefold.interpreters.worktrees.errors import WorkplaceError
from lifefold.interpreters.worktrees.git import Git
from lifefold.interpreters.worktrees.pinned import repository_at
from lifefold.interpreters.worktrees.remote import Remote, RemoteAwayError

OLDEST_GIT = (2, 38)
"""The first version with a merge that needs no working tree (``git merge-tree --write-tree``)."""

UNFINISHED = {
    "MERGE_HEAD": "merge",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
}
"""The files and folders in a git directory while an operation is unfinished."""


async def survey(repository: Path) -> tuple[Path, str]:
    """Return the top of a repository's working tree, and the short name of its checked out branch.

    Raises WorkplaceError, with a remedy, if a fleet cannot work with the repository.
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
        raise WorkplaceError("No branch is checked out", top, "Check out the branch into which work is merged.")
    return top, branch.removeprefix("refs/heads/")


async def survey_remote(url: str, branch: str, source: Path) -> tuple[str, str]:
    """Return the address of a remote for a message, and the short name of its target branch.

    Without a ``branch`` it is the one that the remote's HEAD names. Raises WorkplaceError, with a remedy, if the remote
    does not answer or has no such branch; ``source`` is the file that names the remote.
    """
    await _see_that_git_is_new_enough(source.parent)
    with TemporaryDirectory(prefix="lifefold-remote-") as folder:
        remote = Remote(url, Path(folder), Path(folder) / "objects")
        await remote.begin()
        try:
            wanted = branch or (await remote.head()).removeprefix("refs/heads/")
            is_there = bool(wanted) and bool(await remote.values(f"refs/heads/{wanted}"))
        except RemoteAwayError as error:
            remedy = f"Correct its address, or this user's access: git ls-remote {remote.shown}"
            raise WorkplaceError(error.what, source, remedy) from error
    if not is_there:
        what = f"The remote {remote.shown} has {f'no branch {wanted}' if wanted else 'no branch at its HEAD'}"
        raise WorkplaceError(what, source, "Push one there, or name another one: branch in [cluster].")
    return remote.shown, wanted


async def contradiction(repository: Path) -> WorkplaceError | None:
    """Return how a repository's configuration contradicts its folders, with a remedy; None if it does not.

    An agent may have set it. The runner's git ignores such settings, but the user's git does not.
    """
    pins = repository_at(repository)
    if pins is None:
        return None
    query = ("rev-parse", "--is-bare-repository", "--show-toplevel")
    answer = await Git(pins.folder).run(*query, accept=range(256))
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
