"""``clean``: what a fleet that is over has left is removed, and no work that is not merged without a word about it."""

import os
from pathlib import Path

import pytest

from fleet_ground import Ground


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def _references(ground: Ground) -> list[str]:
    """Return the references of the repository but its branch ``main``."""
    every = ground.git("for-each-ref", "--format=%(refname)").splitlines()
    return [each for each in every if each != "refs/heads/main"]


def _worktrees(ground: Ground) -> int:
    """Return the number of linked worktrees."""
    return len(ground.git("worktree", "list").splitlines()) - 1


def _with_a_failure(ground: Ground) -> Ground:
    """Run a fleet with one task that is merged, and one whose work fails its verification."""
    ground.prepare("plain-1", "plain-2").demand("plain-2", "max_retries = 0")
    ground.settle('["test", "-s", "plain-2.txt"]', '["test", "-s", "wrong"]').run(code=1)
    assert _worktrees(ground) == 1
    return ground


def test_a_fleet_that_is_over_leaves_nothing_but_unmerged_work(ground: Ground) -> None:
    """It is asked before; without a terminal and ``--yes`` nothing is removed. The merged work is in the branch."""
    _with_a_failure(ground)
    before = _references(ground)
    asked = ground.call("clean", str(ground.fleet), code=2)
    assert "fleet ground, which is over:" in asked.stdout
    assert f"the log {ground.log}, " in asked.stdout
    assert "1 worktree, " in asked.stdout
    assert "lifefold/ground/plain-1/1" in asked.stdout
    assert "stays as salvage: files in a worktree that are not committed" in asked.stdout
    assert "needs --yes; nothing has changed" in asked.stderr
    assert (ground.log.exists(), _worktrees(ground), _references(ground)) == (True, 1, before)
    said = ground.call("clean", str(ground.fleet), "--yes").stdout
    (salvage,) = _references(ground)
    assert salvage.startswith("refs/lifefold/ground/salvage/")
    assert f"removed: {ground.log}; {salvage} stays\n" in said
    assert ground.git("show", f"{salvage}:plain-2.txt").startswith("Write plain-2.txt")
    assert ground.git("show", "main:plain-1.txt").startswith("Write plain-1.txt")
    assert _worktrees(ground) == 0
    assert [each.name for each in ground.log.parent.iterdir()] == [".gitignore"]


def test_unmerged_work_is_removed_if_that_is_asked_for(ground: Ground) -> None:
    """But a branch that the user has checked out elsewhere stays. A new run begins from the start."""
    _with_a_failure(ground)
    ground.git("worktree", "add", "--quiet", str(ground.folder / "mine"), "lifefold/ground/plain-1/1")
    said = ground.call("clean", "--unmerged", "--yes").stdout
    assert "stays, because another checkout has it: lifefold/ground/plain-1/1\n" in said
    assert _references(ground) == ["refs/heads/lifefold/ground/plain-1/1"]
    assert (ground.folder / "mine" / "plain-1.txt").exists()
    assert _worktrees(ground) == 1
    ground.git("worktree", "remove", str(ground.folder / "mine"))
    ground.settle('["test", "-s", "wrong"]', '["test", "-s", "plain-2.txt"]')
    assert "2 of 2 tasks closed" in ground.run()


def test_nothing_is_removed_of_a_fleet_that_lives(ground: Ground) -> None:
    """With a runner, and without one while tasks are open."""
    ground.prepare("plain-1", gates=("plain-1",))
    with ground.running() as run, ground.at_gate("plain-1"):
        assert "a runner is at work with it" in ground.call("clean", "--yes", code=2).stderr
        run.process.kill()
    ground.kill_all()
    assert "its fleet is not over" in ground.call("clean", "--yes", code=2).stderr
    assert "1 of 1 tasks closed" in ground.run()


def test_without_a_repository_the_folders_of_the_tasks_stay(ground: Ground) -> None:
    """They have the only copy of the work."""
    ground.prepare("plain-1", repository=False).run()
    work = ground.log.with_name("ground.db.files") / "worktrees" / "plain-1" / "plain-1.txt"
    assert work.exists()
    assert f"stays (see --unmerged): {work.parent.parent}, " in ground.call("clean", "--yes").stdout
    assert work.exists()
    assert not ground.log.exists()


def test_the_earlier_runs_are_removed_with_the_latest(ground: Ground) -> None:
    """An earlier log alone is not: a later one continues it."""
    _with_a_failure(ground)
    ground.settle('["test", "-s", "wrong"]', '["test", "-s", "plain-2.txt"]')
    ground.call("run", str(ground.fleet), "--again", "--no-live")
    refused = ground.call("clean", str(ground.log), "--yes", code=2)
    assert "ground.run-2.db continues" in refused.stderr
    assert ground.call("clean", "--unmerged", "--yes").stdout.count("removed: ") == 2
    assert [each.name for each in ground.log.parent.iterdir()] == [".gitignore"]
    assert _references(ground) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everywhere")
def test_an_agent_that_has_closed_its_folders_is_cleaned_up_after(ground: Ground) -> None:
    """The owner of the files may open them again."""
    ground.prepare("plain-1").run()
    folder = ground.log.with_name("ground.db.files") / "sessions"
    folder.chmod(0)
    ground.call("clean", "--yes")
    assert not folder.parent.exists()
