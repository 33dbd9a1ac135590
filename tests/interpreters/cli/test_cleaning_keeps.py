"""``clean``: it removes nothing that is the only copy of some work, and nothing that is not the fleet's own."""

import os
import shutil
from pathlib import Path

import pytest

from fleet_sandbox import Sandbox
from lifefold.interpreters.worktrees.aside import set_aside
from lifefold.interpreters.worktrees.cloned_workplace import HOST_LOCK
from lifefold.interpreters.worktrees.locks import open_lock, try_to_take
from terminal import Terminal


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


def _failed(sandbox: Sandbox) -> Path:
    """Run a fleet whose only task fails its verification; return its agent's worktree, which has the work."""
    sandbox.prepare("plain-1").demand("plain-1", "max_retries = 0")
    sandbox.settle('["test", "-s", "plain-1.txt"]', '["test", "-s", "wrong"]').run(code=1)
    (worktree,) = _worktrees(sandbox).glob("[!.]*")
    assert (worktree / "plain-1.txt").exists()
    return worktree


def _worktrees(sandbox: Sandbox) -> Path:
    return sandbox.log.with_name("sandbox.db.files") / "worktrees"


def test_a_worktree_that_was_moved_aside_stays_with_its_files(sandbox: Sandbox) -> None:
    """Git could not keep its files, so they are the only copy. ``--unmerged`` removes it."""
    worktree = _failed(sandbox)
    aside = _worktrees(sandbox) / ".aside"
    set_aside(worktree, aside)
    said = sandbox.call("clean", "--yes").stdout
    assert f"stays (see --unmerged): {_worktrees(sandbox)}, " in said
    assert [each.name for each in aside.glob("*/plain-1.txt")] == ["plain-1.txt"]
    assert not sandbox.log.exists()


def test_worktrees_of_a_repository_that_is_elsewhere_stay(sandbox: Sandbox) -> None:
    """The repository was moved or is not mounted, so files that are not committed cannot become salvage."""
    worktree = _failed(sandbox)
    (sandbox.folder / "repo").rename(sandbox.folder / "moved")
    assert f"stays (see --unmerged): {_worktrees(sandbox)}, " in sandbox.call("clean", "--yes").stdout
    assert (worktree / "plain-1.txt").exists()


def test_a_symbolic_reference_is_removed_and_its_target_stays(sandbox: Sandbox) -> None:
    """An agent can make one among the branches of its fleet that leads to a branch of the user."""
    _failed(sandbox)
    sandbox.git("branch", "mine")
    sandbox.git("symbolic-ref", "refs/heads/lifefold/sandbox/link", "refs/heads/mine")
    sandbox.call("clean", "--yes")
    references = sandbox.git("for-each-ref", "--format=%(refname)").split()
    assert "refs/heads/mine" in references
    assert "refs/heads/lifefold/sandbox/link" not in references


def test_a_result_that_is_on_no_branch_stays(sandbox: Sandbox) -> None:
    """The commit that was to be merged is work too, also if an agent has moved its branch away."""
    _failed(sandbox)
    work = sandbox.git("commit-tree", "-p", "main", "-m", "work", "main^{tree}").strip()
    result = "refs/lifefold/sandbox/result/plain-1/1"
    sandbox.git("update-ref", result, work)
    assert result in sandbox.call("clean", "--yes").stdout
    assert sandbox.git("rev-parse", result).strip() == work


def test_a_log_that_has_changed_when_the_operator_says_yes_stays(sandbox: Sandbox) -> None:
    """What is true at the question can be false at the answer, so the fleet is looked at again."""
    sandbox.prepare("plain-1", repository=False, gates=("plain-1",))
    with sandbox.running() as run, sandbox.at_gate("plain-1"):
        run.process.kill()
    sandbox.kill_all()
    living = sandbox.log.parent.rename(sandbox.folder / "living")
    sandbox.run()
    with Terminal(sandbox.folder, "clean", columns=400) as terminal:
        terminal.until("[y/N]")
        sandbox.log.parent.rename(sandbox.folder / "over")
        living.rename(sandbox.log.parent)
        terminal.press("y\n")
        assert "nothing is removed" in terminal.rest()
    assert sandbox.log.exists()


def test_a_copy_of_a_log_does_not_remove_what_its_original_has(sandbox: Sandbox) -> None:
    """Both are the same run, and only one of them may go on with its branches."""
    _failed(sandbox)
    before = sandbox.git("for-each-ref")
    copy = sandbox.folder / "copy.db"
    shutil.copyfile(sandbox.log, copy)
    refused = sandbox.call("clean", str(copy), "--unmerged", "--yes", code=2).stderr
    assert f"{sandbox.log} is a log of the same run" in refused
    assert sandbox.git("for-each-ref") == before
    assert copy.exists()


def test_clones_of_hosts_stay_with_what_they_have_not_pushed(sandbox: Sandbox) -> None:
    """Nothing at all is removed while a host is at work. ``--unmerged`` removes the clones."""
    sandbox.prepare("plain-1").run()
    hosts = sandbox.log.with_name("sandbox.db.files") / "hosts"
    clone = hosts / "0123abcd" / "one" / "clone"
    clone.mkdir(parents=True)
    (clone / "work").write_text("x" * 7)
    lock = open_lock(clone.parent / HOST_LOCK)
    try:
        assert try_to_take(lock)
        refused = sandbox.call("clean", "--yes", code=2).stderr
        assert f"{clone.parent}: a host is at work here; end it first; nothing is removed" in refused
    finally:
        os.close(lock)
    assert sandbox.log.exists()
    copy = shutil.copytree(sandbox.log.parent, sandbox.folder / "copy", ignore=shutil.ignore_patterns("control"))
    said = sandbox.call("clean", "--yes").stdout
    assert f"stays (see --unmerged): {hosts}, 7 bytes\n" in said
    assert f"; {hosts} stays\n" in said
    assert (clone / "work").exists()
    assert [each.name for each in hosts.parent.iterdir()] == ["hosts"]
    shutil.rmtree(sandbox.log.parent)
    copy.rename(sandbox.log.parent)
    said = sandbox.call("clean", "--unmerged", "--yes").stdout
    assert f"the clones of hosts in {hosts}, with what they have not pushed, 7 bytes\n" in said
    assert [each.name for each in sandbox.log.parent.iterdir()] == [".gitignore"]
