"""Replaced commits are not believed, and files that an agent hides from git are not missed."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from git_sandbox import GitScene, git, names, write
from lifefold.interpreters.worktrees.errors import InTheWayError, WorkplaceError
from lifefold.interpreters.worktrees.worktrees import GitWorkplace

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("no_configuration")]

AT_ONCE_S = 60
"""Far less than git is given for a command, and far more than these take."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def two_at_work(scene: GitScene) -> None:
    """Give two agents a claim each, and let each write a file that is called as its task."""
    for agent, task in (("a", "T1"), ("b", "T2")):
        await scene.workplace.check_out(agent, task, 1)
        write(scene.place(agent), **{task: "work"})


# -- commits that are given out for others


def _replaced(scene: GitScene, commit: str, instead: str) -> None:
    git(scene.place(), "replace", commit, instead)


def _grafted(scene: GitScene, commit: str, instead: str) -> None:
    parents = scene.git("rev-parse", f"{instead}^@").split()
    info = scene.repository / ".git" / "info"
    info.mkdir(exist_ok=True)
    (info / "grafts").write_text(" ".join((commit, *parents)) + "\n")


@pytest.mark.parametrize("disguise", [_replaced, _grafted], ids=["replaced", "grafted"])
async def test_a_commit_that_is_given_out_for_a_merge_closes_nothing(
    scene: GitScene, disguise: Callable[[GitScene, str, str], None]
) -> None:
    """An agent can have git show a commit of the branch as the merge of another task's work."""
    await two_at_work(scene)
    tip = await scene.merge("a", "T1", 1, "do")
    result = await scene.park("b", "T2", 1, "do")
    tree = scene.git("rev-parse", f"{tip}^{{tree}}")
    forged = git(scene.place(), "commit-tree", tree, "-p", f"{tip}^1", "-p", result, "-m", "forged")
    disguise(scene, tip, forged)
    merged = await scene.merge("b", "T2", 1, "do")
    assert merged not in {tip, ""}
    assert (scene.repository / "T2").read_text() == "work"


async def test_the_commit_that_was_verified_is_merged_and_not_what_replaces_it(scene: GitScene) -> None:
    """``git replace`` gives a commit other files under the same name."""
    await two_at_work(scene)
    result = await scene.park("b", "T2", 1, "do")
    write(scene.place(), unverified="u")
    git(scene.place(), "add", "--all")
    forged = git(scene.place(), "commit-tree", git(scene.place(), "write-tree"), "-p", f"{result}^", "-m", "forged")
    _replaced(scene, result, forged)
    assert await scene.merge("b", "T2", 1, "do")
    assert {"T2"} == {"T1", "T2", "unverified"} & names(scene.repository)


# -- files that git was told not to look at


@pytest.mark.parametrize("told", ["--assume-unchanged", "--skip-worktree"])
async def test_a_change_that_git_was_told_not_to_look_at_is_work(scene: GitScene, told: str) -> None:
    """It was there when the work was verified, so it is merged with it."""
    await scene.workplace.check_out("a", "T1", 1)
    git(scene.place(), "update-index", told, "other", "shared")
    write(scene.place(), other="changed")
    assert await scene.workplace.differs("a", "T1", 1)
    await scene.merge("a", "T1", 1, "do")
    assert (scene.repository / "other").read_text() == "changed"
    assert scene.is_clean()


@pytest.mark.parametrize("told", ["--assume-unchanged", "--skip-worktree"])
async def test_a_change_that_git_was_told_not_to_look_at_is_gone_from_the_next_claim(
    scene: GitScene, told: str
) -> None:
    """It is kept as salvage, as any other."""
    await scene.workplace.check_out("a", "T1", 1)
    git(scene.place(), "update-index", told, "other")
    write(scene.place(), other="changed")
    await scene.again().check_out("a", "T2", 1)
    assert (scene.place() / "other").read_text() == "as it was\n"
    assert scene.git("show", f"{scene.salvaged()['a/T1-1']}:other") == "changed"


async def test_a_place_of_which_an_agent_has_hidden_a_part_is_whole_for_the_next_claim(scene: GitScene) -> None:
    """A sparse checkout of an agent's own is no change of its task's, and does not outlast its claim."""
    await scene.workplace.check_out("a", "T1", 1)
    git(scene.place(), "sparse-checkout", "set", "--no-cone", "/shared")
    write(scene.place(), done="d")
    assert "other" not in names(scene.place())
    await scene.merge("a", "T1", 1, "do")
    assert {"done", "shared", "other"} <= names(scene.repository)
    await scene.again().check_out("a", "T2", 1)
    assert {"done", "shared", "other"} <= names(scene.place())


async def test_a_sparse_checkout_of_the_users_is_that_of_the_places(scene: GitScene) -> None:
    """What the user does not check out, no agent gets, and no merge takes away."""
    scene.git("sparse-checkout", "set", "--no-cone", "/shared")
    await scene.workplace.check_out("a", "T1", 1)
    assert names(scene.place()) == {".git", "shared"}
    await scene.workplace.check_out("a", "T2", 1)
    assert names(scene.place()) == {".git", "shared"}
    write(scene.place(), done="d")
    await scene.merge("a", "T2", 1, "do")
    assert set(scene.git("ls-tree", "--name-only", "main").split()) == {".gitignore", "done", "other", "shared"}
    assert not (scene.root / ".aside").exists()


# -- pipes where git reads


@pytest.mark.parametrize("name", [".gitignore", ".gitattributes", "sub/.gitignore", "sub/.gitattributes"])
async def test_a_pipe_in_place_of_rules_keeps_no_git_waiting(scene: GitScene, name: str) -> None:
    """Git would wait for a writer. The claim fails at once, and the next one gets a new worktree."""
    await scene.workplace.check_out("a", "T1", 1)
    pipe = scene.place() / name
    pipe.parent.mkdir(exist_ok=True)
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    write(pipe.parent, done="d")
    with anyio.fail_after(AT_ONCE_S):
        with pytest.raises(WorkplaceError, match="taken away or damaged"):
            await scene.merge("a", "T1", 1, "do")
        await scene.again().check_out("a", "T1", 2)
    assert names(scene.place()) == {".git", ".gitignore", "shared", "other"}


@pytest.mark.parametrize("name", ["HEAD", "index", "commondir", "logs", "logs/HEAD", "refs", "info", "config.worktree"])
async def test_a_pipe_in_the_git_directory_of_a_place_keeps_no_git_waiting(scene: GitScene, name: str) -> None:
    """Nor does it keep the places of others, or a merge, waiting."""
    await two_at_work(scene)
    git(scene.place(), "config", "extensions.worktreeConfig", "true")
    pipe = Path(git(scene.place(), "rev-parse", "--absolute-git-dir")) / name
    with suppress(FileNotFoundError):
        (shutil.rmtree if pipe.is_dir() else os.unlink)(pipe)
    os.mkfifo(pipe)
    with anyio.fail_after(AT_ONCE_S):
        with pytest.raises(WorkplaceError, match="taken away or damaged"):
            await scene.merge("a", "T1", 1, "do")
        assert await scene.merge("b", "T2", 1, "do")
        await scene.again().check_out("a", "T1", 2)
        write(scene.place(), T1="again")
        assert await scene.merge("a", "T1", 2, "do")
    assert {"T1", "T2"} <= names(scene.repository)


READ_BY_ALL = ("HEAD", "config", "packed-refs", "info/exclude", "info/attributes", "objects/info/alternates")


@pytest.mark.parametrize("name", [*READ_BY_ALL, "refs/heads/main", "logs/HEAD", "../.gitattributes", "included"])
async def test_a_pipe_in_place_of_a_shared_file_is_named_and_keeps_no_git_waiting(scene: GitScene, name: str) -> None:
    """The merge waits for the operator, who puts the file back; then it succeeds."""
    await two_at_work(scene)
    shared = scene.repository / ".git"
    pipe, kept = shared / name, shared / "as-it-was"
    if name == "included":
        scene.git("config", "include.path", str(pipe))
    pipe.parent.mkdir(exist_ok=True)
    if pipe.exists():
        pipe.rename(kept)
    os.mkfifo(pipe)
    with anyio.fail_after(AT_ONCE_S):
        with pytest.raises(InTheWayError) as raised:
            await scene.merge("a", "T1", 1, "do")
    assert f"rm '{pipe.resolve()}'" in str(raised.value)
    pipe.unlink()
    if kept.exists():
        kept.rename(pipe)
    assert await scene.merge("a", "T1", 1, "do")
    assert await scene.merge("b", "T2", 1, "do")
    assert {"T1", "T2"} <= names(scene.repository)
    assert scene.is_clean()


# -- the fleet's own files, which agents can reach


def _folder(file: Path) -> None:
    file.mkdir()
    write(file, inner="i")


def _garbage(file: Path) -> None:
    file.write_bytes(b"\xff\x00garbage")


def _loop(file: Path) -> None:
    file.symlink_to(file)


OWN = (".left", ".excludes", ".lock", ".locks", ".locks/a", ".aside", ".gone")
SHARED = ("lifefold", "lifefold/fleet", "lifefold-forward", "lifefold-forward/fleet", "index.lifefold")


def _pairs() -> Iterator[Any]:
    """Yield each file with each disguise: every second pair always, the others in campaigns."""
    puts = {"folder": _folder, "garbage": _garbage, "loop": _loop, "pipe": os.mkfifo}
    for row, name in enumerate([*OWN, *SHARED]):
        for column, (disguise, put) in enumerate(puts.items()):
            later = pytest.mark.campaign if (row + column) % 2 else ()
            yield pytest.param(name, put, marks=later, id=f"{name}-{disguise}")


@pytest.mark.parametrize(("name", "put"), list(_pairs()))
async def test_what_stands_where_a_file_of_the_fleets_own_was_ends_no_run(
    scene: GitScene, name: str, put: Callable[[Path], None]
) -> None:
    """What is no such file is renamed, and never removed; the next run does the work."""
    await scene.workplace.check_out("a", "T1", 1)
    await scene.merge("a", "T1", 1, "do")
    file = scene.root / name if name in OWN else scene.repository / ".git" / name
    if file.is_dir():
        file.rename(file.with_name("as-it-was"))
    file.unlink(missing_ok=True)
    file.parent.mkdir(exist_ok=True)
    put(file)
    with anyio.fail_after(AT_ONCE_S):
        workplace = await GitWorkplace.open(scene.repository, scene.root, "fleet", "main")
        try:
            await workplace.go_on("run")
            await workplace.check_out("a", "T2", 1)
            write(scene.place(), done="d")
            result = await workplace.park("a", "T2", 1, "do")
            assert await workplace.merge("a", "T2", 1, "do", result=result)
            await workplace.clear()
        finally:
            workplace.close()
    assert (scene.repository / "done").read_text() == "d"
    assert scene.is_clean()


@pytest.mark.parametrize("put", [_folder, _loop, os.mkfifo], ids=["folder", "loop", "pipe"])
async def test_whatever_stands_where_gits_lock_is_made_is_described(
    scene: GitScene, put: Callable[[Path], None]
) -> None:
    """The merge waits, and says what stands there; nothing is removed."""
    await scene.workplace.check_out("a", "T1", 1)
    write(scene.place(), done="d")
    lock = scene.repository / ".git" / "index.lock"
    put(lock)
    with anyio.fail_after(AT_ONCE_S), pytest.raises(InTheWayError, match=f"rm .*'{lock}'"):
        await scene.merge("a", "T1", 1, "do")
    assert lock.name in names(lock.parent)
