"""A working tree after an interrupted fast-forward: changes by lifefold are repaired, changes by the user stay.

A family is a path in which two commits differ in some way. Each way is tried with every possible file after git was
killed, and with changes of the user, against each commit as the present one and with either index.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest

from back_ends import in_turn
from git_sandbox import git, new_repository
from lifefold.interpreters.worktrees.git import Git
from lifefold.interpreters.worktrees.repair import restore

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("no_configuration")]
anyio_backend = in_turn

MINE = "the user's own\n"
OLD, NEW = "what was there before\n" * 40, "what the agent has made of it\n" * 40


def nothing(_path: Path) -> None:
    """There is nothing."""


def file(text: str, mode: int = 0o644) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)

    return make


def link(to: str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.symlink_to(to)

    return make


def folder(text: str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        file(text)(path / "deep" / "er")

    return make


WAYS = {
    "changed": (file(OLD), file(NEW)),
    "added": (nothing, file(NEW)),
    "deleted": (file(OLD), nothing),
    "made-executable": (file(OLD), file(OLD, 0o755)),
    "linked": (file(OLD), link("shared")),
    "unlinked": (link("shared"), file(NEW)),
    "linked-elsewhere": (link("shared"), link("other")),
    "linked-to-a-folder": (folder(OLD), link("..")),
    "made-a-folder": (file(OLD), folder(NEW)),
    "made-a-file": (folder(OLD), file(NEW)),
    "emptied": (file(OLD), file("")),
}


def emptied(path: Path) -> None:
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        shutil.rmtree(path)


def half_written(path: Path) -> None:
    """Leave the beginning of what git writes, or a folder in which nothing is yet."""
    if path.is_dir() and not path.is_symlink():
        (path / "deep" / "er").write_text("")
    elif path.is_file() and not path.is_symlink():
        path.write_bytes(path.read_bytes()[:100])


def users(path: Path) -> None:
    """Let the user write something there."""
    if path.is_dir() and not path.is_symlink():
        (path / "deep" / "er").write_text(MINE)
    else:
        path.unlink(missing_ok=True)
        path.write_text(MINE)


STATES = ("old", "new", "nothing", "half", "user")


def left_by_a_cut_off_git(path: Path, way: str, state: str) -> None:
    """Bring a path, which is as in the old commit, to a state in which git may have been killed."""
    if state == "old":
        return
    emptied(path)
    if state != "nothing":
        WAYS[way][1](path)
    if state == "half":
        half_written(path)
    if state == "user":
        users(path)


def seen(path: Path) -> Iterator[tuple[str, str, int]]:
    """Yield everything that is at a path: name, content, mode."""
    if path.is_symlink():
        yield path.name, str(path.readlink()), 0
    elif path.is_file():
        yield path.name, path.read_text(), path.stat().st_mode & 0o111
    elif path.is_dir():
        for each in sorted(path.iterdir()):
            yield from ((f"{path.name}/{name}", text, mode) for name, text, mode in seen(each))


@pytest.fixture
def scene(tmp_path: Path) -> tuple[Path, str, str]:
    """Return a repository, and its old and its new commit; it is as in the old one."""
    home = new_repository(tmp_path / "repository")
    commits: list[str] = []
    for side in (0, 1):
        for way, state in product(WAYS, STATES):
            emptied(home / f"{way} {state}")
            WAYS[way][side](home / f"{way} {state}")
        git(home, "add", "--all")
        git(home, "commit", "--quiet", "-m", "it")
        commits.append(git(home, "rev-parse", "HEAD"))
    git(home, "checkout", "--quiet", "--detach", commits[0])
    return home, commits[0], commits[1]


@pytest.mark.parametrize("index", ["old", "new"])
@pytest.mark.parametrize("head", ["old", "new"])
async def test_whatever_git_has_left_is_as_in_the_present_commit_and_what_the_user_has_made_stays(
    scene: tuple[Path, str, str], head: str, index: str
) -> None:
    """Every way in which two commits differ, with all that may be there: a table without gaps."""
    home, old, new = scene
    (home / "untouched").write_text(MINE)
    for way, state in product(WAYS, STATES):
        left_by_a_cut_off_git(home / f"{way} {state}", way, state)
    git(home, "read-tree", {"old": old, "new": new}[index])
    git(home, "update-ref", "--no-deref", "HEAD", {"old": old, "new": new}[head])
    before = {way: list(seen(home / f"{way} user")) for way in WAYS}
    left = await restore(Git(home), old, new, git(home, "rev-parse", "HEAD"), home / ".git" / "index")
    for way, state in product(WAYS, STATES):
        path, expected = home / f"{way} {state}", home.parent / "expected"
        emptied(expected)
        WAYS[way][head == "new"](expected)
        if state == "user":
            assert list(seen(path)) == before[way], way
        else:
            assert [rest for _, *rest in seen(path)] == [rest for _, *rest in seen(expected)], (way, state)
    named = {path.split("/")[0] for path in left}
    assert named <= {f"{way} user" for way in WAYS}
    assert {f"{way} user" for way in WAYS if way not in {"deleted", "linked-to-a-folder"}} <= named
    dirty = {line[3:].strip('"').split("/")[0] for line in git(home, "status", "--porcelain").splitlines()}
    assert dirty == {"untouched"} | {f"{way} user" for way in WAYS}
    assert (home / "untouched").read_text() == MINE


async def test_a_repair_that_was_cut_off_is_done_again(scene: tuple[Path, str, str]) -> None:
    """It finds beginnings of what it has written itself."""
    home, old, new = scene
    for way, state in product(WAYS, STATES):
        if WAYS[way][0] is not nothing:
            half_written(home / f"{way} {state}")
    await restore(Git(home), old, new, old, home / ".git" / "index")
    assert git(home, "status", "--porcelain") == ""


async def test_what_a_filter_writes_is_known_for_what_it_is(tmp_path: Path) -> None:
    """What is in a file need not be what is in the commit: line ends, and programs of the user's."""
    home = new_repository(tmp_path / "repository")
    git(home, "config", "filter.loud.smudge", "tr a-z A-Z")
    git(home, "config", "filter.loud.clean", "tr A-Z a-z")
    (home / ".gitattributes").write_text("*.loud filter=loud\n*.crlf eol=crlf\n")
    commits: list[str] = []
    for text in ("old\n", "new\n" * 50):
        for name in ("a.loud", "b.loud", "a.crlf", "b.crlf"):
            (home / name).write_text(text)
        git(home, "add", "--all")
        git(home, "commit", "--quiet", "-m", text.strip())
        commits.append(git(home, "rev-parse", "HEAD"))
    git(home, "rm", "--quiet", "-r", "--cached", ".")
    git(home, "reset", "--quiet", "--hard")
    assert (home / "a.loud").read_bytes() == b"NEW\n" * 50
    assert (home / "a.crlf").read_bytes() == b"new\r\n" * 50
    for name in ("a.loud", "a.crlf"):
        os.truncate(home / name, 21)
    git(home, "reset", "--quiet", "--soft", commits[0])
    old, new = commits
    assert await restore(Git(home), old, new, old, home / ".git" / "index") == ()
    assert git(home, "status", "--porcelain") == ""
    assert (home / "b.loud").read_bytes() == b"OLD\n"
    assert (home / "b.crlf").read_bytes() == b"old\r\n"


SPARSE = {
    "cone": ("--cone", "in"),
    "cone-with-a-sparse-index": ("--cone", "--sparse-index", "in"),
    "patterns": ("--no-cone", "/in/"),
}


@pytest.mark.parametrize("present", ["old", "new"])
@pytest.mark.parametrize("options", SPARSE.values(), ids=SPARSE)
async def test_a_sparse_checkout_of_the_users_is_repaired_and_stays_sparse(
    tmp_path: Path, options: tuple[str, ...], present: str
) -> None:
    """Git was killed between two files; what is outside the sparse checkout is neither written nor missed."""
    repository = new_repository(tmp_path / "repository")
    for text in (OLD, NEW):
        for name in ("in/a", "in/b", "out/a", "out/b", f"out/only-{text[5:8]}", f"in/only-{text[5:8]}"):
            file(text)(repository / name)
        git(repository, "add", "--all")
        git(repository, "commit", "--quiet", "-m", "next")
    commits = {"old": git(repository, "rev-parse", "HEAD~1"), "new": git(repository, "rev-parse", "HEAD")}
    git(repository, "reset", "--quiet", "--hard", commits["old"])
    git(repository, "sparse-checkout", "set", *options)
    assert not (repository / "out").exists()
    file(NEW[:100])(repository / "in" / "a")
    git(repository, "update-ref", "refs/heads/main", commits[present])
    index = repository / ".git" / "index"
    assert await restore(Git(repository), commits["old"], commits["new"], commits[present], index) == ()
    assert git(repository, "status", "--porcelain") == ""
    assert (repository / "in" / "a").read_text() == {"old": OLD, "new": NEW}[present]
    assert not (repository / "out").exists()
