"""The user's repository: the log belongs to one, and a run leaves only its branches and worktrees there."""

import shutil
from pathlib import Path

import pytest

from fleet_sandbox import Sandbox


def ended(sandbox: Sandbox, *tasks: str) -> Path:
    """Run a fleet to its end in a repository that can be exchanged: what its file names is a link to it."""
    sandbox.prepare(*tasks)
    link, repository = sandbox.folder / "repo", sandbox.folder / "first"
    link.rename(repository)
    link.symlink_to(repository)
    sandbox.run()
    link.unlink()
    return repository


def enter(sandbox: Sandbox, repository: Path) -> None:
    """Let another repository be the one that the fleet's file names."""
    (sandbox.folder / "repo").symlink_to(repository)


@pytest.mark.parametrize("kind", ["clone", "stranger"])
def test_a_log_that_was_begun_in_another_repository_is_refused(sandbox: Sandbox, kind: str) -> None:
    """Exit code 2, both are named, and neither the log nor the repository is changed."""
    first = ended(sandbox, "plain-1")
    before = sandbox.json("log")
    other = sandbox.folder / "other"
    other.mkdir()
    enter(sandbox, other)
    if kind == "clone":
        sandbox.git("clone", "--quiet", str(first), ".")
    else:
        sandbox.git("init", "--quiet", "--initial-branch=main")
        sandbox.git("-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "--allow-empty", "-qm", "other")
    references = sandbox.git("for-each-ref")
    refused = sandbox.call("run", str(sandbox.fleet), "--transitions", code=2).stderr
    assert f"began in another repository than {other}, in that of {first}/.git with the first commit" in refused
    assert sandbox.git("for-each-ref") == references
    assert not (other / ".git" / "lifefold").exists()
    assert sandbox.json("log") == before


def test_another_history_at_the_same_place_is_another_repository(sandbox: Sandbox) -> None:
    """It is known by its first commit, too."""
    first = ended(sandbox, "plain-1")
    first.rename(sandbox.folder / "old")
    first.mkdir()
    enter(sandbox, first)
    sandbox.git("init", "--quiet", "--initial-branch=main")
    sandbox.git("-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "--allow-empty", "-qm", "other")
    assert "another repository" in sandbox.call("run", str(sandbox.fleet), "--transitions", code=2).stderr


def test_a_repository_that_was_moved_is_the_same(sandbox: Sandbox) -> None:
    """Nothing is at its old place, and the fleet's name in it belongs to the run."""
    moved = ended(sandbox, "plain-1").rename(sandbox.folder / "moved")
    enter(sandbox, moved)
    assert "1 of 1 tasks closed" in sandbox.run()


def worktrees(sandbox: Sandbox) -> int:
    """Return how many worktrees of agents the repository has."""
    return len(sandbox.git("worktree", "list").splitlines()) - 1


def test_a_fleet_that_has_closed_all_tasks_leaves_branches_and_no_worktree(sandbox: Sandbox) -> None:
    """The user's repository has no more registered worktrees than before."""
    sandbox.prepare("plain-1", "crash-1", agents=2)
    sandbox.run()
    assert worktrees(sandbox) == 0
    assert not list((sandbox.folder / ".lifefold" / "sandbox.db.files" / "worktrees").glob("agent-*"))
    branches = sandbox.git("for-each-ref", "--format=%(refname:lstrip=4)", "refs/heads/lifefold").split()
    assert {branch.partition("/")[0] for branch in branches} == {"plain-1", "crash-1"}


def test_a_last_clean_up_that_was_cut_off_is_finished_by_the_next_run(sandbox: Sandbox) -> None:
    """What is left of it is a registration without a folder: only the fleet's own is removed."""
    sandbox.prepare("plain-1")
    sandbox.run()
    own = sandbox.folder / ".lifefold" / "sandbox.db.files" / "worktrees" / "agent"
    for place in (own, sandbox.folder / "mine"):
        sandbox.git("worktree", "add", "--quiet", "--detach", str(place))
        shutil.rmtree(place)
    assert worktrees(sandbox) == 2
    sandbox.run()
    assert worktrees(sandbox) == 1
    assert str(sandbox.folder / "mine") in sandbox.git("worktree", "list")


def test_a_fleet_with_a_task_that_is_not_closed_keeps_its_worktrees(sandbox: Sandbox) -> None:
    """What went wrong can be looked at where it did."""
    sandbox.prepare("plain-1")
    broken = '\n[[tasks]]\nid = "bad"\nprompt = "x"\nverify = [["false"]]\nmax_retries = 0\n'
    sandbox.fleet.write_text(sandbox.fleet.read_text() + broken)
    sandbox.run(code=1)
    assert worktrees(sandbox) == 1
    assert (sandbox.folder / ".lifefold" / "sandbox.db.files" / "worktrees" / "agent" / "bad.txt").exists()
