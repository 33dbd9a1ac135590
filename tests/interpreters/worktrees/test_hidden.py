"""Ignored files of a worktree that changed in the present session, and flags of the index that hide changes."""

import os
from pathlib import Path

import pytest

from git_sandbox import GitScene, git, write
from lifefold.interpreters.worktrees import hidden
from lifefold.interpreters.worktrees.hidden import changed_ns, changed_since

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("no_configuration")]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def made(folder: Path, *names: str) -> int:
    """Make files; return when the last of them was made."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("made")
    return changed_ns(folder / names[-1]) or 0


def test_what_was_changed_later_is_told_from_what_was_there(tmp_path: Path) -> None:
    """In folders, too; a file that was given an old time has been changed all the same."""
    before_ns = made(tmp_path, "old", "cache/old")
    since_ns = before_ns
    while since_ns == before_ns:  # the system's clock of files is coarse
        since_ns = made(tmp_path, "build/deep/new", "new")
    os.utime(tmp_path / "new", (0, 0))
    names = ("build/", "cache/", "new", "old")
    assert changed_since(tmp_path, names, before_ns + 1) == ("build/", "new")


def test_where_nothing_is_new_nothing_is_named(tmp_path: Path) -> None:
    """What is there was left by earlier claims."""
    later_ns = made(tmp_path, "sub/.gitignore", "sub/work", "other") + 10**18
    assert changed_since(tmp_path, ("gone", "other", "sub/"), later_ns) == ()


def test_each_new_thing_is_named_once(tmp_path: Path) -> None:
    """What lies in a folder that is named is named with it."""
    made(tmp_path, "sub/.gitignore", "sub/work", "other")
    names = ("other", "sub/", "sub/.gitignore", "sub/work")
    assert changed_since(tmp_path, names, 0) == ("other", "sub/")


def test_a_folder_with_more_than_can_be_looked_at_counts_as_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be."""
    later_ns = made(tmp_path, "cache/a", "cache/b", "cache/c", "other") + 10**18
    monkeypatch.setattr(hidden, "MOST_LOOKED_AT", 2)
    assert changed_since(tmp_path, ("cache/", "other"), later_ns) == ("cache/",)


async def test_a_claim_is_told_what_has_come_since_it_began(scene: GitScene) -> None:
    """What an earlier claim has left is not named."""
    await scene.workplace.check_out("a", "T1", 1)
    (scene.place() / "cache").mkdir()
    write(scene.place() / "cache", earlier="e")
    await scene.workplace.check_out("a", "T2", 1)
    assert await scene.workplace.ignored("a", "T2", 1) == ()
    (scene.place() / ".gitignore").write_text("cache/\n*.out\n")
    (scene.place() / "later.out").write_text("l")
    assert await scene.again().ignored("a", "T2", 1) == ("later.out",)


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
async def test_a_flag_of_the_index_hides_no_work(scene: GitScene, flag: str) -> None:
    """What was verified in the worktree is what is merged."""
    await scene.workplace.check_out("a", "T1", 1)
    git(scene.place(), "update-index", flag, "shared")
    write(scene.place(), shared="changed\n")
    assert await scene.workplace.differs("a", "T1", 1)
    await scene.merge("a", "T1", 1, "Change")
    assert scene.git("show", "main:shared") == "changed"


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
async def test_a_flag_of_the_index_keeps_nothing_for_the_next_claim(scene: GitScene, flag: str) -> None:
    """It begins with what the branch has; what was hidden is salvage."""
    await scene.workplace.check_out("a", "T1", 1)
    git(scene.place(), "update-index", flag, "shared")
    write(scene.place(), shared="hidden\n")
    await scene.workplace.check_out("a", "T2", 1)
    assert (scene.place() / "shared").read_text() == "1\n2\n3\n"
    (commit,) = scene.salvaged().values()
    assert scene.git("show", f"{commit}:shared") == "hidden"


async def test_a_sparse_checkout_is_left_sparse(scene: GitScene) -> None:
    """What git itself does not check out is not deleted by the work."""
    await scene.workplace.check_out("a", "T1", 1)
    git(scene.place(), "sparse-checkout", "set", "--no-cone", "shared", ".gitignore")
    write(scene.place(), shared="changed\n")
    await scene.merge("a", "T1", 1, "Change")
    assert (scene.git("show", "main:shared"), scene.git("show", "main:other")) == ("changed", "as it was")
