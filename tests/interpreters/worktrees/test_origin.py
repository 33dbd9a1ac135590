"""The recorded origin of a run, and the repositories that match it."""

import shutil

import pytest

from git_sandbox import GitScene, commit, git, names
from lifefold.interpreters.worktrees.origin import Origin, is_origin, origin_of
from lifefold.interpreters.worktrees.tenure import Tenure

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("no_configuration")]


async def begun(scene: GitScene) -> Origin:
    """Let a run begin."""
    tenure = Tenure(scene.repository / ".git", "fleet")
    tenure.begin("run", scene.root / "log.db")
    tenure.close()
    return await origin_of(scene.repository, "main")


async def test_a_repository_is_known_by_its_place_and_its_first_commit(scene: GitScene) -> None:
    """Later commits change nothing, nor does the folder or the worktree from which one looks."""
    first = scene.git("rev-parse", "HEAD")
    origin = await begun(scene)
    assert origin == Origin(scene.repository / ".git", first)
    commit(scene.repository, more="m")
    (scene.repository / "inner").mkdir()
    scene.git("worktree", "add", "--quiet", str(scene.root / "other"))
    for folder in (scene.repository, scene.repository / "inner", scene.root / "other"):
        assert await is_origin(origin, folder, "fleet", "run")


async def test_a_clone_and_a_copy_are_other_repositories(scene: GitScene) -> None:
    """They have the same commits, and the copy even says that the fleet's name belongs to the run."""
    origin = await begun(scene)
    git(scene.root.parent, "clone", "--quiet", str(scene.repository), "clone")
    shutil.copytree(scene.repository, scene.root.parent / "copy")
    for name in ("clone", "copy"):
        assert not await is_origin(origin, scene.root.parent / name, "fleet", "run")


@pytest.mark.parametrize(("run", "same"), [("run", True), ("another", False)])
async def test_a_repository_that_was_moved_is_known_by_its_run(scene: GitScene, run: str, *, same: bool) -> None:
    """It has taken along what says to whom the fleet's name belongs."""
    origin = await begun(scene)
    moved = scene.repository.rename(scene.root.parent / "moved")
    assert await is_origin(origin, moved, "fleet", run) is same


async def test_a_clone_that_has_taken_the_place_of_nothing_is_not_the_one_that_was_moved(scene: GitScene) -> None:
    """In it the fleet's name belongs to no run, and looking does not change that."""
    origin = await begun(scene)
    clone = scene.root.parent / "clone"
    git(scene.root.parent, "clone", "--quiet", str(scene.repository), str(clone))
    scene.repository.rename(scene.root.parent / "moved")
    assert not await is_origin(origin, clone, "fleet", "run")
    assert "lifefold" not in names(clone / ".git")
