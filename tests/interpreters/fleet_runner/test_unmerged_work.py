"""What a fleet that has ended did not merge is named, where it lies: a branch, salvage, a worktree."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fleet_sandbox import Sandbox
from git_sandbox import before_git
from lifefold.interpreters.worktrees.unmerged_work import LOOK_MS


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    """Return a fleet whose only task makes a file, and is verified in vain."""
    sandbox = Sandbox(tmp_path).prepare("plain-1").demand("plain-1", "max_retries = 1")
    sandbox.fleet.write_text(sandbox.fleet.read_text().replace('["test", "-s", "plain-1.txt"]', '["test", "-f", "x"]'))
    return sandbox


def test_work_that_was_not_merged_is_named_where_it_lies(sandbox: Sandbox) -> None:
    """By the run's summary, by `status`, by `why`: what git has, and what the last attempt has not committed."""
    summary = sandbox.run(code=1)
    salvage = "refs/lifefold/sandbox/salvage/agent/plain-1-1"
    worktree = sandbox.log.with_name("sandbox.db.files") / "worktrees" / "agent"
    said = f"unmerged work of plain-1 is in {salvage} and {worktree}"
    assert f"\n  {said}\n" in summary
    assert f"\n! {said}\n" in sandbox.call("status").stdout
    assert f"\nU{said[1:]}.\n" in sandbox.call("why", "plain-1").stdout
    assert sandbox.json("status")["unmerged"] == {"plain-1": [salvage, str(worktree)]}
    assert sandbox.json("why", "plain-1")["unmerged"] == [salvage, str(worktree)]
    assert sandbox.git("show", f"{salvage}:plain-1.txt")
    assert (worktree / "plain-1.txt").exists()


def test_of_a_repository_that_is_gone_nothing_is_said(sandbox: Sandbox) -> None:
    """And nothing fails."""
    sandbox.run(code=1)
    (sandbox.folder / "repo").rename(sandbox.folder / "elsewhere")
    assert sandbox.json("status")["unmerged"] == {}


def test_what_is_merged_is_not_left(tmp_path: Path) -> None:
    """Nor is anything said of a fleet without a repository."""
    sandbox = Sandbox(tmp_path).prepare("plain-1")
    assert "not merged" not in sandbox.run()
    assert sandbox.json("status")["unmerged"] == {}


def test_git_is_not_asked_when_all_is_closed(tmp_path: Path) -> None:
    """It may take long."""
    sandbox = Sandbox(tmp_path).prepare("plain-1")
    asked = tmp_path / "asked"
    path = before_git(tmp_path, f'echo "$*" >> {asked}')
    sandbox.run(PATH=path)
    assert "--no-merged" not in asked.read_text()
    asked.unlink()
    sandbox.call("status", PATH=path)
    sandbox.call("status", "--json", PATH=path)
    sandbox.call("why", "plain-1", PATH=path)
    sandbox.call("why", "plain-1", "--json", PATH=path)
    assert not asked.exists()


def test_a_git_that_takes_long_is_not_waited_for(sandbox: Sandbox) -> None:
    """It is said in a line that it was not looked everywhere; programs find it with the doubts."""
    os.mkfifo(sandbox.folder / "never")
    path = before_git(sandbox.folder, f'case " $* " in *" --no-merged"*) exec cat {sandbox.folder}/never ;; esac')
    said = f"the search for unmerged work is incomplete: git took longer than {LOOK_MS:,} ms"
    assert f"\n  {said}\n" in sandbox.run(code=1, PATH=path)

    def answer(words: str) -> str:
        return sandbox.call(*words.split(), PATH=path).stdout

    asked = ["status", "why plain-1", "status --json", "why plain-1 --json"]
    with ThreadPoolExecutor() as pool:  # all of them wait
        status, why, *found = pool.map(answer, asked)
    assert status.count(f"\n! {said}\n") == 1
    assert f"\nT{said[1:]}.\n" in why
    unmerged = [(each["unmerged"], each["doubts"]) for each in map(json.loads, found)]
    assert unmerged == [({}, [said]), ([], [said])]
