"""Objects of git that an agent has damaged: the error names the repair, and other tasks are not affected."""

from pathlib import Path

import pytest

from back_ends import in_turn
from git_sandbox import GitScene, commit, write
from lifefold.interpreters.worktrees.errors import GitError, InTheWayError

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("no_configuration")]
anyio_backend = in_turn


def damage(scene: GitScene, revision: str) -> Path:
    """Overwrite the file of an object, and return it."""
    name = scene.git("rev-parse", revision)
    file = scene.repository / ".git" / "objects" / name[:2] / name[2:]
    file.chmod(0o644)
    file.write_bytes(b"damaged")
    return file


async def test_a_merge_that_needs_a_damaged_object_names_its_repair_and_succeeds_after_it(scene: GitScene) -> None:
    """It is retried, because the work is done."""
    await scene.workplace.check_out("a", "T1", 1)
    commit(scene.place(), work="w")
    file = damage(scene, "lifefold/fleet/T1/1:work")
    with pytest.raises(InTheWayError, match="is damaged") as found:
        await scene.merge("a", "T1", 1, "do")
    assert f"rm '{file}'" in str(found.value)
    file.unlink()
    scene.git("hash-object", "-w", str(scene.place() / "work"))
    assert await scene.merge("a", "T1", 1, "do")


async def test_a_worktree_whose_commit_is_damaged_gives_way_to_a_new_one(scene: GitScene) -> None:
    """The next task begins there, and the remains are kept aside."""
    await scene.workplace.check_out("a", "T1", 1)
    commit(scene.place(), work="w")
    damage(scene, "lifefold/fleet/T1/1")
    with pytest.raises(GitError, match="is damaged"):
        await scene.workplace.differs("a", "T1", 1)
    await scene.workplace.check_out("a", "T2", 1)
    write(scene.place(), more="m")
    assert await scene.merge("a", "T2", 1, "go on")
    assert [each.read_text() for each in (scene.root / ".aside").glob("*/work")] == ["w"]
