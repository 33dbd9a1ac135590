"""An interrupted fast-forward in the user's checkout is repaired, and nothing is lost.

A filter stops git while it writes a file, so that kills come at chosen points of its work: real runners, real
gits, real kills.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO

import anyio
import pytest

from back_ends import in_turn
from git_sandbox import GitScene, commit, git, write
from lifefold.interpreters.fleet_runner.retry_until import patiently
from lifefold.interpreters.processes import identify
from lifefold.interpreters.worktrees.errors import InTheWayError
from lifefold.interpreters.worktrees.fast_forward import FOLDER, Forward
from lifefold.interpreters.worktrees.git import Git
from lifefold.interpreters.worktrees.pinned import repository_at
from lifefold.interpreters.worktrees.worktrees import GitWorkplace
from session_scripts import must_die
from slow_git import Slow, runner

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("no_configuration")]
anyio_backend = in_turn

FILES = 40
"""So many files are changed on either side of the one at which git waits."""

LATE = pytest.mark.campaign
"""The short form kills each at one point, and all of them at every point."""


async def begun(scene: GitScene, folder: Path, name: str) -> Slow:
    """Let an agent change much, among it the file ``name``; return what stops git when it comes to that."""
    slow = Slow(scene, folder, name)
    many = {f"{letter}{number}": "old\n" * 99 for letter in "bs" for number in range(FILES)}
    commit(scene.repository, **many, gone="g")
    (folder / "quick").touch()
    await scene.workplace.check_out("a", "T1", 1)
    (folder / "quick").unlink()
    place = scene.place()
    write(
        place,
        **dict.fromkeys([*many, name, *(f"{letter}new{number}" for letter in "cz" for number in range(9))], "n\n"),
    )
    (place / "gone").unlink()
    (place / "shared").chmod(0o755)
    (place / "other").unlink()
    (place / "other").symlink_to("shared")
    return slow


async def merged(scene: GitScene) -> str:
    """Merge as the next runner does: again, as long as it has to wait."""
    merge = partial(scene.merge, "a", "T1", 1, "do")
    return await patiently(merge, (InTheWayError,), lambda _: None, pause=partial(anyio.sleep, 0.05))


def is_as_merged(scene: GitScene) -> None:
    """Check that all of it is there, and nothing else."""
    assert scene.merges() == ["Merge T1: do"]
    assert scene.is_clean()
    assert (scene.repository / "other").is_symlink()
    assert not (scene.repository / "gone").exists()
    left = [*(scene.repository / ".git").glob("index.*"), *(scene.repository / ".git" / FOLDER).iterdir()]
    assert left == []


@pytest.mark.parametrize(
    ("name", "who"),
    [
        ("aa", "both"),
        ("mm", "both"),
        ("zz", "both"),
        ("mm", "runner"),
        ("mm", "git"),
        *(pytest.param(name, who, marks=LATE) for name in ("aa", "zz") for who in ("runner", "git")),
    ],
)
async def test_a_fast_forward_that_is_killed_is_made_good(scene: GitScene, tmp_path: Path, name: str, who: str) -> None:
    """The runner, git, or both are killed: the next merge finds no changes of the user's, and is the only one."""
    slow = await begun(scene, tmp_path, name)
    with runner(scene, "merge", "a", "T1", "1", "do") as process:
        left = await slow.begun.pid()
        if who != "git":
            process.send_signal(signal.SIGKILL)
            process.wait()
        if who == "runner":
            slow.let_go()
        else:
            (tmp_path / "quick").touch()
            os.killpg(os.getpgid(left.pid), signal.SIGKILL)
        if who == "git":
            assert process.wait() == 0
    assert await merged(scene)
    await must_die(left)
    is_as_merged(scene)


async def test_a_fast_forward_whose_runner_alone_is_killed_ends_without_another_runner(
    scene: GitScene, tmp_path: Path
) -> None:
    """Git shows its progress to no process any more, and goes on: files, index and branch are as merged."""
    slow = await begun(scene, tmp_path, "mm")
    with runner(scene, "merge", "a", "T1", "1", "do") as process:
        left = await slow.begun.pid()
        shell = identify(os.getpgid(left.pid))
        assert shell is not None
        process.send_signal(signal.SIGKILL)
    slow.let_go()
    await must_die(left)
    await must_die(shell)
    assert scene.merges() == ["Merge T1: do"]
    assert scene.is_clean()
    assert not (scene.repository / ".git" / "index.lock").exists()


@pytest.mark.parametrize("program", ["mv", "rm"])
async def test_a_kill_after_git_is_through_is_made_good(
    scene: GitScene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    """The branch has moved, and the index is not in its place yet, or the lock not gone."""
    stand_in = tmp_path / "bin" / program
    stand_in.parent.mkdir()
    stand_in.write_text(
        f'#!/bin/sh\n[ -e {tmp_path}/once ] || {{ : > {tmp_path}/once; kill -9 0; }}\n/bin/{program} "$@"\n'
    )
    stand_in.chmod(0o700)
    await begun(scene, tmp_path, "mm")
    (tmp_path / "quick").touch()
    monkeypatch.setenv("PATH", f"{stand_in.parent}{os.pathsep}{os.environ['PATH']}")
    assert await scene.merge("a", "T1", 1, "do")
    assert (tmp_path / "once").exists()
    is_as_merged(scene)


async def test_what_the_user_edits_meanwhile_stays_and_is_named(scene: GitScene, tmp_path: Path) -> None:
    """A file that git has written, one that it has not come to, a new one: none is taken for lifefold's own."""
    slow = await begun(scene, tmp_path, "mm")
    with runner(scene, "merge", "a", "T1", "1", "do") as process:
        left = await slow.begun.pid()
        write(scene.repository, b1="mine\n", s1="mine\n", znew1="mine\n", elsewhere="mine\n")
        process.send_signal(signal.SIGKILL)
        os.killpg(os.getpgid(left.pid), signal.SIGKILL)
    (tmp_path / "quick").touch()
    await must_die(left)
    with pytest.raises(InTheWayError, match=r"is repaired, but for .*: b1, s1, znew1 "):
        await scene.merge("a", "T1", 1, "do")
    with pytest.raises(InTheWayError, match="in the way of a merge: b1, s1, znew1 "):
        await scene.merge("a", "T1", 1, "do")
    assert {(scene.repository / name).read_text() for name in ("b1", "s1", "znew1", "elsewhere")} == {"mine\n"}
    changed = [line[3:] for line in scene.git("status", "--porcelain").splitlines()]
    assert sorted(changed) == ["b1", "elsewhere", "s1", "znew1"]
    scene.git("stash", "--quiet", "--include-untracked")
    assert await merged(scene)
    is_as_merged(scene)
    assert scene.git("show", "stash@{0}:b1") == "mine"


async def test_a_run_with_another_log_waits_for_a_git_that_an_earlier_run_has_left(
    scene: GitScene, tmp_path: Path
) -> None:
    """Its places are elsewhere; what it waits for is the lock that the note names."""
    slow = await begun(scene, tmp_path, "mm")
    with runner(scene, "merge", "a", "T1", "1", "do") as process:
        left = await slow.begun.pid()
        process.send_signal(signal.SIGKILL)
    scene.log["T1", 1] = scene.git("rev-parse", "refs/lifefold/fleet/result/T1/1")
    other = GitWorkplace(scene.repository, tmp_path / "elsewhere", "fleet", "main")
    with pytest.raises(InTheWayError, match=rf"still at work here: .*process {left.pid}"):
        await scene.merge("a", "T1", 1, "do", place=other)
    slow.let_go()
    merge = partial(scene.merge, "a", "T1", 1, "do", place=other)
    assert await patiently(merge, (InTheWayError,), lambda _: None, pause=partial(anyio.sleep, 0.05))
    is_as_merged(scene)


async def test_what_the_user_does_with_a_torn_checkout_is_not_undone(scene: GitScene, tmp_path: Path) -> None:
    """He has removed the lock, put everything back as it was, and committed: the merge is made on top of that."""
    slow = await begun(scene, tmp_path, "mm")
    with runner(scene, "merge", "a", "T1", "1", "do") as process:
        left = await slow.begun.pid()
        process.send_signal(signal.SIGKILL)
        os.killpg(os.getpgid(left.pid), signal.SIGKILL)
    (tmp_path / "quick").touch()
    await must_die(left)
    (scene.repository / ".git" / "index.lock").unlink()
    scene.git("reset", "--quiet", "--hard")
    scene.git("clean", "--quiet", "--force", "-d")
    users = commit(scene.repository, users="u")
    assert await merged(scene)
    is_as_merged(scene)
    assert scene.git("rev-parse", "main^1") == users


@contextmanager
def at_work(program: str, folder: Path, file: IO[str] | None = None) -> Generator[int]:
    """Let a process be at work in a folder, with a file open; give its pid."""
    with subprocess.Popen([program, "1000"], cwd=folder, stdin=file) as process:
        try:
            yield process.pid
        finally:
            process.kill()


# -- locks that are not lifefold's


async def test_a_lock_that_is_not_provably_ours_stays_and_is_described_at_once(scene: GitScene, tmp_path: Path) -> None:
    """Also when a fast-forward of ours was cut off: whose it is, since when, who is at work, what to do."""
    slow = await begun(scene, tmp_path, "mm")
    with runner(scene, "merge", "a", "T1", "1", "do") as process:
        left = await slow.begun.pid()
        process.send_signal(signal.SIGKILL)
        os.killpg(os.getpgid(left.pid), signal.SIGKILL)
    (tmp_path / "quick").touch()
    await must_die(left)
    lock = scene.repository / ".git" / "index.lock"
    lock.unlink()
    lock.touch()
    os.utime(lock, (0, 0))
    with pytest.raises(InTheWayError, match=rf"{lock} exists since 19.*no git is at work.*rm '{lock}'"):
        await scene.merge("a", "T1", 1, "do")
    with lock.open() as file, at_work("sleep", scene.root, file) as holder:
        named = pytest.raises(InTheWayError, match=rf"at work there: .*process {holder} .sleep")
        with named:
            await scene.merge("a", "T1", 1, "do")
    assert lock.exists()
    lock.unlink()
    assert await merged(scene)
    is_as_merged(scene)


async def test_a_git_of_the_users_that_waits_for_him_is_named(scene: GitScene, tmp_path: Path) -> None:
    """One that has an editor open has its lock, and has closed the file."""
    name = shutil.which("sleep")
    assert name is not None
    (tmp_path / "git").symlink_to(name)
    (scene.repository / ".git" / "index.lock").touch()
    await scene.workplace.check_out("a", "T1", 1)
    write(scene.place(), done="d")
    with at_work(str(tmp_path / "git"), scene.repository) as user:
        named = pytest.raises(InTheWayError, match=rf"at work there: process {user} .git")
        with named:
            await scene.merge("a", "T1", 1, "do")


async def test_a_lock_on_the_branch_that_a_killed_git_has_left_is_known_by_the_commit_in_it(
    scene: GitScene, tmp_path: Path
) -> None:
    """It names the commit that only this merge has; any other lock stays."""
    await begun(scene, tmp_path, "mm")
    (tmp_path / "quick").touch()
    lock = scene.repository / ".git" / "refs" / "heads" / "main.lock"
    dies = f"for new; do :; done; echo $new > {lock}; rm {tmp_path}/bin/git; kill -9 0"
    hook = f'[ "$*" != "${{*#*--ff-only}}" ] && {{ {dies}; }}'
    stand_in = tmp_path / "bin" / "git"
    stand_in.parent.mkdir()
    real = shutil.which("git")
    stand_in.write_text(f'#!/bin/sh\n{hook}\nexec {real} "$@"\n')
    stand_in.chmod(0o700)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{stand_in.parent}{os.pathsep}{os.environ['PATH']}")
        assert await scene.merge("a", "T1", 1, "do")
    assert not lock.exists()
    is_as_merged(scene)
    await scene.workplace.check_out("a", "T2", 1)
    write(scene.place(), more="m")
    lock.write_text(f"{git(scene.repository, 'rev-parse', 'main')}\n")
    with pytest.raises(InTheWayError, match=f"main is locked: {lock} exists since"):
        await scene.merge("a", "T2", 1, "do")
    assert lock.exists()


async def test_an_interrupted_merge_is_not_forgotten_while_the_repository_has_no_head(scene: GitScene) -> None:
    """An agent can take HEAD away; the repair waits until the operator has put it back."""
    home = Git(scene.repository, pins=repository_at(scene.repository))
    forward = Forward(home, "fleet", scene.root / ".lock")
    note = scene.repository / ".git" / FOLDER / "fleet"
    head, kept = (scene.repository / ".git" / name for name in ("HEAD", "kept"))
    tip = scene.git("rev-parse", "main")
    head.rename(kept)
    with pytest.raises(InTheWayError, match="HEAD of the repository is missing"):
        await forward.catch_up(home, "refs/heads/main", tip, tip)
    assert note.exists()
    kept.rename(head)
    await forward.recover()
    assert not note.exists()
