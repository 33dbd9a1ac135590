"""What a run does with the user's repository as such: which one it may go on in, and what it leaves there."""

import shutil
from pathlib import Path

import pytest

from fleet_ground import Ground


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def ended(ground: Ground, *tasks: str) -> Path:
    """Run a fleet to its end in a repository that can be exchanged: what its file names is a link to it."""
    ground.prepare(*tasks)
    link, repository = ground.folder / "repo", ground.folder / "first"
    link.rename(repository)
    link.symlink_to(repository)
    ground.run()
    link.unlink()
    return repository


def enter(ground: Ground, repository: Path) -> None:
    """Let another repository be the one that the fleet's file names."""
    (ground.folder / "repo").symlink_to(repository)


@pytest.mark.parametrize("kind", ["clone", "stranger"])
def test_a_log_that_was_begun_in_another_repository_is_refused(ground: Ground, kind: str) -> None:
    """Exit code 2, both are named, and neither the log nor the repository is changed."""
    first = ended(ground, "plain-1")
    before = ground.json("log")
    other = ground.folder / "other"
    other.mkdir()
    enter(ground, other)
    if kind == "clone":
        ground.git("clone", "--quiet", str(first), ".")
    else:
        ground.git("init", "--quiet", "--initial-branch=main")
        ground.git("-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "--allow-empty", "-qm", "other")
    references = ground.git("for-each-ref")
    refused = ground.call("run", str(ground.fleet), "--no-live", code=2).stderr
    assert f"began in another repository than {other}, in that of {first}/.git with the first commit" in refused
    assert ground.git("for-each-ref") == references
    assert not (other / ".git" / "lifefold").exists()
    assert ground.json("log") == before


def test_another_history_at_the_same_place_is_another_repository(ground: Ground) -> None:
    """It is known by its first commit, too."""
    first = ended(ground, "plain-1")
    first.rename(ground.folder / "old")
    first.mkdir()
    enter(ground, first)
    ground.git("init", "--quiet", "--initial-branch=main")
    ground.git("-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "--allow-empty", "-qm", "other")
    assert "another repository" in ground.call("run", str(ground.fleet), "--no-live", code=2).stderr


def test_a_repository_that_was_moved_is_the_same(ground: Ground) -> None:
    """Nothing is at its old place, and the fleet's name in it belongs to the run."""
    moved = ended(ground, "plain-1").rename(ground.folder / "moved")
    enter(ground, moved)
    assert "1 of 1 tasks closed" in ground.run()


def worktrees(ground: Ground) -> int:
    """Return how many worktrees of agents the repository has."""
    return len(ground.git("worktree", "list").splitlines()) - 1


def test_a_fleet_that_has_closed_all_tasks_leaves_branches_and_no_worktree(ground: Ground) -> None:
    """The user's repository has no more registered worktrees than before."""
    ground.prepare("plain-1", "crash-1", agents=2)
    ground.run()
    assert worktrees(ground) == 0
    assert not list((ground.folder / ".lifefold" / "ground.db.files" / "worktrees").glob("agent-*"))
    branches = ground.git("for-each-ref", "--format=%(refname:lstrip=4)", "refs/heads/lifefold").split()
    assert {branch.partition("/")[0] for branch in branches} == {"plain-1", "crash-1"}


def test_a_last_clean_up_that_was_cut_off_is_finished_by_the_next_run(ground: Ground) -> None:
    """What is left of it is a registration without a folder: only the fleet's own is removed."""
    ground.prepare("plain-1")
    ground.run()
    own = ground.folder / ".lifefold" / "ground.db.files" / "worktrees" / "agent"
    for place in (own, ground.folder / "mine"):
        ground.git("worktree", "add", "--quiet", "--detach", str(place))
        shutil.rmtree(place)
    assert worktrees(ground) == 2
    ground.run()
    assert worktrees(ground) == 1
    assert str(ground.folder / "mine") in ground.git("worktree", "list")


def test_a_fleet_with_a_task_that_is_not_closed_keeps_its_worktrees(ground: Ground) -> None:
    """What went wrong can be looked at where it did."""
    ground.prepare("plain-1")
    broken = '\n[[tasks]]\nid = "bad"\nprompt = "x"\nverify = [["false"]]\nmax_retries = 0\n'
    ground.fleet.write_text(ground.fleet.read_text() + broken)
    ground.run(code=1)
    assert worktrees(ground) == 1
    assert (ground.folder / ".lifefold" / "ground.db.files" / "worktrees" / "agent" / "bad.txt").exists()
