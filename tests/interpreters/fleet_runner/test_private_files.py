"""Only the user of a run may read its files, unless that user opens them."""

import os
import stat
from collections.abc import Generator
from pathlib import Path

import pytest

from fleet_sandbox import Sandbox
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.processes.private import open_private, write_whole


@pytest.fixture
def sandbox(tmp_path: Path) -> Generator[Sandbox]:
    """A place for runs under a umask that forbids nothing."""
    before = os.umask(0)
    try:
        made = Sandbox(tmp_path)
        yield made
        made.kill_all()
    finally:
        os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    """The permissions of everything that lifefold itself has written in a folder."""
    found = {path: path.lstat() for path in folder.rglob("*") if "worktrees" not in path.parts}
    return {
        str(path.relative_to(folder)): stat.S_IMODE(of.st_mode)
        for path, of in found.items()
        if not stat.S_ISLNK(of.st_mode) and path.name != ".gitignore"
    }


def test_all_that_a_run_leaves_is_for_its_user_alone(sandbox: Sandbox) -> None:
    """The log and what is beside it, sessions, prompts, outputs, verifications: whatever the umask."""
    sandbox.prepare("crash-1")
    with sandbox.running() as run:
        run.until("SessionStarted")
        beside = modes(sandbox.log.parent)
        run.rest()
    assert {"sandbox.db", "sandbox.db-wal", "sandbox.db-shm", "sandbox.db.lock", "sandbox.db.files"} <= beside.keys()
    assert stat.S_IMODE(sandbox.log.parent.stat().st_mode) == 0o700
    found = beside | modes(sandbox.log.parent)
    assert {name: oct(mode) for name, mode in found.items() if mode & 0o077} == {}
    assert any(name.endswith("output.log") for name in found)
    assert any(name.endswith("prompt.txt") for name in found)


def test_what_its_user_opens_stays_open_and_all_others_are_warned_of(sandbox: Sandbox) -> None:
    """An operator may share a log with a group; a log that every user may read is told of at each run."""
    sandbox.prepare("plain-1")
    assert "may read it" not in sandbox.call("run", str(sandbox.fleet), "--transitions").stderr
    lock = sandbox.log.with_name("sandbox.db.lock")
    sandbox.log.parent.chmod(0o770)
    sandbox.log.chmod(0o660)
    assert "may read it" not in sandbox.call("run", str(sandbox.fleet), "--transitions").stderr
    assert [stat.S_IMODE(path.stat().st_mode) for path in (sandbox.log, lock)] == [0o660, 0o640]
    sandbox.log.parent.chmod(0o755)
    sandbox.log.chmod(0o644)
    last = sandbox.call("run", str(sandbox.fleet), "--transitions").stderr
    assert f"warning: {sandbox.log}: every user of this machine may read it" in last
    assert stat.S_IMODE(sandbox.log.stat().st_mode) == 0o644


@pytest.mark.parametrize("target", ["pipe", "precious", "nothing"])
def test_a_link_where_a_runner_writes_its_own_files_is_replaced(tmp_path: Path, target: str) -> None:
    """An agent can put one there; the runner neither waits for a reader of a pipe nor writes into another file."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "precious").write_text("p")
    for name in ("prompt.txt.new", "prompt.txt", "refused.jsonl"):
        (tmp_path / name).symlink_to(target)
    write_whole(tmp_path / "prompt.txt", "asked")
    with open_private(tmp_path / "refused.jsonl", "a") as file:
        file.write("refused")
    assert (tmp_path / "prompt.txt").read_text() == "asked"
    assert (tmp_path / "refused.jsonl").read_text() == "refused"
    assert (tmp_path / "precious").read_text() == "p"
    assert not (tmp_path / "nothing").exists()


def test_a_folder_that_an_agent_makes_beside_its_starts_is_no_start(tmp_path: Path) -> None:
    """The last start is found by its number, and a name without one ends no run."""
    folder = FleetFolder(tmp_path / "x.db")
    starts = folder.session("agent", 1)
    assert folder.last_start("agent", 1) == starts / "start-1"
    for name in ("start-2", "start-10", "start-x", "start-", "start-11-1"):
        (starts / name).mkdir(parents=True)
    assert folder.last_start("agent", 1) == starts / "start-10"
