"""Finding a fleet's work that is not in the target branch."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from git_sandbox import before_git, commit, git, new_repository
from lifefold.interpreters.worktrees.claim_commit import CLAIM
from lifefold.interpreters.worktrees.unmerged_work import unmerged

SALVAGE = "refs/lifefold/fleet/salvage/"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository with a commit that is in no branch, named `lost`."""
    repository = new_repository(tmp_path / "repository")
    git(repository, "checkout", "--quiet", "--detach")
    commit(repository, work="of an agent\n")
    git(repository, "tag", "lost")
    git(repository, "checkout", "--quiet", "main")
    return repository


async def places(repository: Path, *references: str) -> Mapping[str, tuple[str, ...]]:
    """Return what is found if all these references name the one commit."""
    for each in references:
        git(repository, "update-ref", each, "lost")
    found = await unmerged(repository / ".git", "fleet", "main", repository.with_name("worktrees"))
    assert found.is_whole
    return found.places


@pytest.mark.anyio
@pytest.mark.parametrize("nameless", ["a/unclaimed", "a/lost", "a/unclaimed.0123"])
async def test_a_reference_that_names_no_task_hides_none_that_does(repository: Path, nameless: str) -> None:
    """Though it comes first, and is of the same commit."""
    found = await places(repository, f"{SALVAGE}{nameless}", f"{SALVAGE}earlier/T1-2")
    assert found == {"T1": (f"{SALVAGE}earlier/T1-2",)}


@pytest.mark.anyio
async def test_of_two_tasks_at_one_commit_none_is_lost(repository: Path) -> None:
    """But of a task each commit is named once, as a branch if it is one."""
    found = await places(
        repository, f"{SALVAGE}a/T1-1", f"{SALVAGE}b/T1-1", f"{SALVAGE}b/T2-1", "refs/heads/lifefold/fleet/T2/1"
    )
    assert found == {"T1": (f"{SALVAGE}a/T1-1",), "T2": ("lifefold/fleet/T2/1",)}


@pytest.mark.anyio
async def test_when_the_time_is_up_what_was_found_by_then_is_named(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And it is said that this is not all: here git never ends when it looks through a worktree."""
    branch, reference = "refs/heads/lifefold/fleet/T2/1", f"{SALVAGE}a/T1-1"
    git(repository, "update-ref", reference, "lost")
    worktree = repository.with_name("worktrees") / "a"
    git(repository, "worktree", "add", "--quiet", "--detach", str(worktree))
    git(worktree, "symbolic-ref", CLAIM, branch)
    (worktree / "new").touch()
    whole = await unmerged(repository / ".git", "fleet", "main", worktree.parent)
    assert (whole.places, whole.is_whole) == ({"T1": (reference,), "T2": (str(worktree),)}, True)
    os.mkfifo(worktree.parent / "never")
    path = before_git(repository.parent, f'case " $* " in *" status "*) exec cat {worktree.parent}/never ;; esac')
    monkeypatch.setenv("PATH", path)
    part = await unmerged(repository / ".git", "fleet", "main", worktree.parent)
    assert (part.places, part.is_whole) == ({"T1": (reference,)}, False)
