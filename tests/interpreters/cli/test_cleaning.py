"""``clean``: what a fleet that is over has left is removed, and no work that is not merged without a word about it."""

import json
import os
from pathlib import Path

import pytest

from fleet_sandbox import Sandbox


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


def _references(sandbox: Sandbox) -> list[str]:
    """Return the references of the repository but its branch ``main``."""
    every = sandbox.git("for-each-ref", "--format=%(refname)").splitlines()
    return [each for each in every if each != "refs/heads/main"]


def _worktrees(sandbox: Sandbox) -> int:
    """Return the number of linked worktrees."""
    return len(sandbox.git("worktree", "list").splitlines()) - 1


def _with_a_failure(sandbox: Sandbox) -> Sandbox:
    """Run a fleet with one task that is merged, and one whose work fails its verification."""
    sandbox.prepare("plain-1", "plain-2").demand("plain-2", "max_retries = 0")
    sandbox.settle('["test", "-s", "plain-2.txt"]', '["test", "-s", "wrong"]').run(code=1)
    assert _worktrees(sandbox) == 1
    return sandbox


def test_a_fleet_that_is_over_leaves_nothing_but_unmerged_work(sandbox: Sandbox) -> None:
    """It is asked before; without a terminal and ``--yes`` nothing is removed. The merged work is in the branch."""
    _with_a_failure(sandbox)
    before = _references(sandbox)
    asked = sandbox.call("clean", str(sandbox.fleet), code=2)
    assert "fleet sandbox, which is over:" in asked.stdout
    assert f"the log {sandbox.log}, " in asked.stdout
    assert "1 worktree, " in asked.stdout
    assert "lifefold/sandbox/plain-1/1" in asked.stdout
    assert "stays as salvage: files in a worktree that are not committed" in asked.stdout
    assert "needs --yes; nothing has changed" in asked.stderr
    assert (sandbox.log.exists(), _worktrees(sandbox), _references(sandbox)) == (True, 1, before)
    said = sandbox.call("clean", str(sandbox.fleet), "--yes").stdout
    (salvage,) = _references(sandbox)
    assert salvage.startswith("refs/lifefold/sandbox/salvage/")
    assert f"removed: {sandbox.log}; {salvage} stays\n" in said
    assert sandbox.git("show", f"{salvage}:plain-2.txt").startswith("Write plain-2.txt")
    assert sandbox.git("show", "main:plain-1.txt").startswith("Write plain-1.txt")
    assert _worktrees(sandbox) == 0
    assert [each.name for each in sandbox.log.parent.iterdir()] == [".gitignore"]


def test_unmerged_work_is_removed_if_that_is_asked_for(sandbox: Sandbox) -> None:
    """But a branch that the user has checked out elsewhere stays. A new run begins from the start."""
    _with_a_failure(sandbox)
    sandbox.git("worktree", "add", "--quiet", str(sandbox.folder / "mine"), "lifefold/sandbox/plain-1/1")
    said = sandbox.call("clean", "--unmerged", "--yes").stdout
    assert "stays, because another checkout has it: lifefold/sandbox/plain-1/1\n" in said
    assert _references(sandbox) == ["refs/heads/lifefold/sandbox/plain-1/1"]
    assert (sandbox.folder / "mine" / "plain-1.txt").exists()
    assert _worktrees(sandbox) == 1
    sandbox.git("worktree", "remove", str(sandbox.folder / "mine"))
    sandbox.settle('["test", "-s", "wrong"]', '["test", "-s", "plain-2.txt"]')
    assert "2 of 2 tasks closed" in sandbox.run()


def test_nothing_is_removed_of_a_fleet_that_lives(sandbox: Sandbox) -> None:
    """With a runner, and without one while tasks are open."""
    sandbox.prepare("plain-1", gates=("plain-1",))
    with sandbox.running() as run, sandbox.at_gate("plain-1"):
        assert "a runner is at work with it" in sandbox.call("clean", "--yes", code=2).stderr
        run.process.kill()
    sandbox.kill_all()
    assert "its fleet is not over" in sandbox.call("clean", "--yes", code=2).stderr
    assert "1 of 1 tasks closed" in sandbox.run()


def test_without_a_repository_the_folders_of_the_tasks_stay(sandbox: Sandbox) -> None:
    """They have the only copy of the work."""
    sandbox.prepare("plain-1", repository=False).run()
    work = sandbox.log.with_name("sandbox.db.files") / "worktrees" / "plain-1" / "plain-1.txt"
    assert work.exists()
    assert f"stays (see --unmerged): {work.parent.parent}, " in sandbox.call("clean", "--yes").stdout
    assert work.exists()
    assert not sandbox.log.exists()


def test_the_earlier_runs_are_removed_with_the_latest(sandbox: Sandbox) -> None:
    """An earlier log alone is not: a later one continues it."""
    _with_a_failure(sandbox)
    sandbox.settle('["test", "-s", "wrong"]', '["test", "-s", "plain-2.txt"]')
    sandbox.call("run", str(sandbox.fleet), "--again", "--transitions")
    refused = sandbox.call("clean", str(sandbox.log), "--yes", code=2)
    assert "sandbox.run-2.db continues" in refused.stderr
    said = sandbox.call("clean", "--unmerged", "--yes", "--json")
    answers = [json.loads(line) for line in said.stdout.splitlines()]
    assert [(each["command"], each["target"], each["outcome"], each["reason"]) for each in answers] == [
        ("clean", str(sandbox.log), "applied", "removed"),
        ("clean", str(sandbox.log.with_name("sandbox.run-2.db")), "applied", "removed"),
    ]
    assert "fleet sandbox, which is over:" in said.stderr
    assert [each.name for each in sandbox.log.parent.iterdir()] == [".gitignore"]
    assert _references(sandbox) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everywhere")
def test_an_agent_that_has_closed_its_folders_is_cleaned_up_after(sandbox: Sandbox) -> None:
    """The owner of the files may open them again."""
    sandbox.prepare("plain-1").run()
    folder = sandbox.log.with_name("sandbox.db.files") / "sessions"
    folder.chmod(0)
    sandbox.call("clean", "--yes")
    assert not folder.parent.exists()
