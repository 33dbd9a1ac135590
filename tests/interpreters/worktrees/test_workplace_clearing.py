"""Clearing the workplace of an ended fleet: nothing of value is removed, and nothing of other programs."""

import shutil

import pytest

from back_ends import in_turn
from git_faults import Faults
from git_sandbox import GitScene, commit, git, new_repository, write
from lifefold.interpreters.worktrees.errors import InTheWayError
from lifefold.interpreters.worktrees.locks import holding

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("no_configuration")]
anyio_backend = in_turn


def registered(scene: GitScene) -> list[str]:
    """Return the names of the repository's linked worktrees."""
    paths = [line for line in scene.git("worktree", "list", "--porcelain").splitlines() if line.startswith("worktree ")]
    return sorted(path.rpartition("/")[2] for path in paths[1:])


async def test_clearing_removes_the_agents_worktrees_and_keeps_the_branches(scene: GitScene) -> None:
    """What is merged is in the fleet's branch; caches go with the worktree."""
    await scene.workplace.prepare("b/c")
    await scene.workplace.check_out("a", "T1", 1)
    write(scene.place(), done="d")
    (scene.place() / "cache").mkdir()
    write(scene.place() / "cache", big="b")
    await scene.merge("a", "T1", 1, "do")
    await scene.workplace.clear()
    assert registered(scene) == []
    assert not scene.place().exists()
    assert scene.git("branch", "--list", "--format=%(refname:short)", "lifefold/*") == "lifefold/fleet/T1/1"
    assert scene.merges() == ["Merge T1: do"]
    assert scene.salvaged() == {}
    assert scene.is_clean()


async def test_what_was_not_merged_is_kept_as_salvage(scene: GitScene) -> None:
    """Commits of an attempt that failed, and what it did not commit."""
    await scene.workplace.check_out("a", "T1", 1)
    commit(scene.place(), first="1")
    write(scene.place(), second="2")
    await scene.workplace.clear()
    assert registered(scene) == []
    (kept,) = scene.salvaged().values()
    assert scene.git("show", f"{kept}:first") == "1"
    assert scene.git("show", f"{kept}:second") == "2"


async def test_a_worktree_with_a_repository_within_stays(scene: GitScene) -> None:
    """Git cannot keep it, so it is not removed; the others are."""
    await scene.workplace.prepare("b")
    await scene.workplace.check_out("a", "T1", 1)
    inner = new_repository(scene.place() / "inner")
    await scene.workplace.clear()
    assert registered(scene) == ["a"]
    assert git(inner, "log", "--format=%s") == "first"


async def test_worktrees_of_others_stay(scene: GitScene) -> None:
    """Of the user, and of a fleet with another log."""
    scene.git("worktree", "add", "--quiet", str(scene.root.parent / "mine"))
    scene.git("worktree", "add", "--quiet", "--detach", str(scene.root / "deeper" / "still"))
    await scene.workplace.prepare("a")
    await scene.workplace.clear()
    assert registered(scene) == ["mine", "still"]


async def test_clearing_again_and_working_again_is_possible(scene: GitScene) -> None:
    """Also if a user has removed a worktree by hand."""
    await scene.workplace.prepare("a")
    shutil.rmtree(scene.place())
    await scene.workplace.clear()
    await scene.workplace.clear()
    await scene.workplace.check_out("a", "T1", 1)
    write(scene.place(), done="d")
    assert await scene.merge("a", "T1", 1, "do")


async def test_a_worktree_in_which_a_git_is_at_work_is_not_removed(
    scene: GitScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller gets an error, and the worktree is unchanged."""
    await scene.workplace.check_out("a", "T1", 1)
    write(scene.place(), done="d")
    monkeypatch.setattr("lifefold.interpreters.worktrees.locks.LIMIT_MS", 1)
    async with holding(scene.root / ".locks" / "a"):
        with pytest.raises(InTheWayError, match="still at work here"):
            await scene.again().clear()
    assert (scene.place() / "done").exists()


async def test_a_clearing_that_was_cut_off_is_finished_by_the_next_one(scene: GitScene, faults: Faults) -> None:
    """At whichever command a runner dies: no worktree stays registered, none of its files stays, all work is kept."""
    ended, cut = False, 0
    while not ended:
        for agent in ("a", "b"):
            await scene.workplace.check_out(agent, f"T{cut}{agent}", 1)
            write(scene.place(agent), left=f"{cut}")
        ended = await faults.crash(scene.workplace.clear, after=cut)
        await scene.again().clear()
        assert registered(scene) == []
        assert {path.name for path in scene.root.iterdir() if path.is_dir()} <= {".locks"}
        assert {f"{agent}/T{cut}{agent}-1" for agent in ("a", "b")} <= set(scene.salvaged())
        cut += 1
    assert cut > 4


async def test_a_worktree_of_which_only_the_registration_is_left_is_forgotten(scene: GitScene) -> None:
    """What was committed there and nowhere else is kept; entries of others stay, also broken ones."""
    await scene.workplace.check_out("a", "T1", 1)
    git(scene.place(), "checkout", "--quiet", "--detach")
    head = commit(scene.place(), only="here")
    scene.git("worktree", "add", "--quiet", "--detach", str(scene.root.parent / "mine"))
    shutil.rmtree(scene.root.parent / "mine")
    shutil.rmtree(scene.place())
    await scene.workplace.clear()
    assert registered(scene) == ["mine"]
    assert list(scene.salvaged().values()) == [head]
