"""No configuration of an agent, and no file at the path of its worktree, redirects a git of the fleet."""

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from git_sandbox import GitScene, attempt, commit, git, names, new_repository, write
from lifefold.interpreters.worktrees.errors import WorkplaceError
from lifefold.interpreters.worktrees.pinned import repository_at, worktree_at
from lifefold.interpreters.worktrees.worktrees import GitWorkplace

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("no_configuration")]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def at_work(scene: GitScene, **files: str) -> Path:
    """Give the agent a claim, let it write files, and return its place."""
    await scene.workplace.check_out("a", "T1", 1)
    write(scene.place(), **files)
    return scene.place()


def configured(scene: GitScene, key: str, value: str) -> None:
    """Let an agent set something that all worktrees share."""
    git(scene.place(), "config", key, value)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder of the user's, with a file that is not to be touched."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    write(folder, precious="p")
    return folder


def untouched(elsewhere: Path, *more: str) -> bool:
    return names(elsewhere) == {"precious", *more} and (elsewhere / "precious").read_text() == "p"


# -- the configuration


async def test_merges_write_into_the_users_tree_and_not_where_core_worktree_says(
    scene: GitScene, elsewhere: Path
) -> None:
    """Also for a restarted runner; the folder that the agent named is not touched."""
    await at_work(scene, done="d")
    configured(scene, "core.worktree", str(elsewhere))
    assert await scene.merge("a", "T1", 1, "do")
    await scene.again().check_out("a", "T2", 1)
    write(scene.place(), more="m")
    assert await scene.merge("a", "T2", 1, "do")
    assert untouched(elsewhere)
    assert {"done", "more"} <= names(scene.repository)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("core.bare", "true"),
        ("branch.main.mergeOptions", "--squash"),
        ("commit.gpgSign", "true"),
        ("merge.ff", "false"),
        ("merge.verbosity", "7"),
        ("pull.twohead", "none"),
        ("commit.cleanup", "none"),
        ("core.preferSymlinkRefs", "true"),
        ("diff.orderFile", "none"),
        ("status.showUntrackedFiles", "no"),
        ("alias.merge", "!false"),
    ],
)
async def test_work_is_merged_whatever_an_agent_configures(scene: GitScene, key: str, value: str) -> None:
    """The branch has the work, and the user's tree follows."""
    await at_work(scene, done="d")
    configured(scene, key, value)
    commit_made = await scene.merge("a", "T1", 1, "do")
    git(scene.place(), "config", "--unset", key)
    assert commit_made == scene.git("rev-parse", "main")
    assert (scene.repository / "done").read_text() == "d"
    assert scene.is_clean()


async def test_a_worktree_that_says_of_itself_where_it_is_is_not_believed(scene: GitScene, elsewhere: Path) -> None:
    """``extensions.worktreeConfig`` gives each worktree a configuration of its own."""
    await at_work(scene, done="d")
    configured(scene, "extensions.worktreeConfig", "true")
    git(scene.place(), "config", "--worktree", "core.worktree", str(elsewhere))
    assert await scene.merge("a", "T1", 1, "do")
    assert untouched(elsewhere)
    assert (scene.repository / "done").exists()


PROGRAMS = ("core.fsmonitor", "gpg.program", "core.sshCommand", "core.editor", "core.pager", "diff.external")


async def test_no_program_is_run_that_an_agent_names_in_the_configuration(scene: GitScene, tmp_path: Path) -> None:
    """Nor a hook: what an agent leaves is not to be run after its end."""
    await at_work(scene, done="d")
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    for key in PROGRAMS:
        configured(scene, key, str(trap))
    for hook in ("post-checkout", "post-index-change", "pre-merge-commit", "post-merge", "reference-transaction"):
        (scene.repository / ".git" / "hooks").mkdir(exist_ok=True)
        shutil.copy(trap, scene.repository / ".git" / "hooks" / hook)
    assert await scene.merge("a", "T1", 1, "do", place=scene.workplace)
    await scene.workplace.check_out("a", "T2", 1)
    await scene.workplace.clear()
    assert not (tmp_path / "sprung").exists()


async def test_no_program_is_run_to_fetch_what_an_agent_says_is_missing(scene: GitScene, tmp_path: Path) -> None:
    """A partial clone asks a remote for what it lacks, and a remote can be a command."""
    await at_work(scene)
    remote = {"url": f"ext::touch {tmp_path}/sprung", "promisor": "true", "partialclonefilter": "blob:none"}
    for key, value in remote.items():
        configured(scene, f"remote.trap.{key}", value)
    configured(scene, "core.repositoryFormatVersion", "1")
    configured(scene, "extensions.partialClone", "trap")
    configured(scene, "protocol.ext.allow", "always")
    reference = scene.repository / ".git" / "refs" / "heads" / "lifefold" / "fleet" / "T2" / "1"
    reference.parent.mkdir()
    reference.write_text("1" * 40 + "\n")
    with suppress(WorkplaceError):
        await scene.workplace.check_out("a", "T2", 1)
    assert not (tmp_path / "sprung").exists()
    attempt(scene.place(), "cat-file", "-e", "2" * 40)
    assert (tmp_path / "sprung").exists()


async def test_a_new_run_refuses_a_working_tree_that_the_configuration_places_elsewhere(
    scene: GitScene, elsewhere: Path
) -> None:
    """An agent of an earlier run may have set it; the error says what to do, and that helps."""
    scene.git("config", "core.worktree", str(elsewhere))
    with pytest.raises(WorkplaceError, match=r"git config --unset core\.worktree"):
        await GitWorkplace.open(scene.repository, scene.root, "fleet")
    git(scene.repository, "config", "--unset", "core.worktree")
    (await GitWorkplace.open(scene.repository, scene.root, "fleet")).close()


async def test_a_new_run_says_how_a_working_tree_becomes_one_again(scene: GitScene) -> None:
    """``core.bare`` is wrong of a repository that has files beside its git directory."""
    scene.git("config", "core.bare", "true")
    with pytest.raises(WorkplaceError, match=r"git config core\.bare false"):
        await GitWorkplace.open(scene.repository, scene.root, "fleet")


# -- rules that hide work


async def test_a_rule_that_an_agent_writes_hides_no_work(scene: GitScene, tmp_path: Path) -> None:
    """Neither in ``info/exclude`` nor in a file that ``core.excludesFile`` names, for this claim and for later ones."""
    await at_work(scene, one="1")
    (scene.repository / ".git" / "info").mkdir(exist_ok=True)
    (scene.repository / ".git" / "info" / "exclude").write_text("*\n")
    (tmp_path / "rules").write_text("*\n")
    configured(scene, "core.excludesFile", str(tmp_path / "rules"))
    (scene.place() / "deep").mkdir()
    write(scene.place() / "deep", two="2")
    assert await scene.workplace.differs("a", "T1", 1)
    assert await scene.merge("a", "T1", 1, "do")
    assert scene.git("show", "main:one", "main:deep/two") == "12"
    await scene.workplace.check_out("a", "T2", 1)
    write(scene.place(), left="behind")
    await scene.workplace.check_out("a", "T3", 1)
    assert scene.git("show", "refs/lifefold/fleet/salvage/a/T2-1:left") == "behind"
    assert not (scene.place() / "left").exists()


async def test_more_files_than_one_command_takes_are_work_too(scene: GitScene) -> None:
    """A hidden folder of many files is committed as a whole, whatever the files are called."""
    await at_work(scene)
    (scene.repository / ".git" / "info").mkdir(exist_ok=True)
    (scene.repository / ".git" / "info" / "exclude").write_text("many/\n")
    (scene.place() / "many").mkdir()
    for number in range(450):
        (scene.place() / "many" / f"-{number} *\n").touch()
    assert await scene.merge("a", "T1", 1, "do", place=scene.workplace)
    listed = scene.git("ls-tree", "-z", "--name-only", "main:many")
    assert listed.count("\0") == 450


async def test_what_the_user_ignored_when_the_run_began_is_no_work(scene: GitScene, tmp_path: Path) -> None:
    """By the repository's list and the one for all of them; a new run goes by the rules of its own time."""
    (scene.repository / ".git" / "info").mkdir(exist_ok=True)
    (scene.repository / ".git" / "info" / "exclude").write_text("*.log\n")
    (tmp_path / "rules").write_text("*.swp\n")
    scene.git("config", "core.excludesFile", str(tmp_path / "rules"))
    place = await at_work(scene, done="d")
    write(place, **{"x.log": "l", "x.swp": "s"})
    (place / "cache").mkdir()
    write(place / "cache", big="b")
    assert await scene.merge("a", "T1", 1, "do", place=scene.workplace)
    assert names(scene.repository) == {".git", ".gitignore", "shared", "other", "done"}
    (scene.repository / ".git" / "info" / "exclude").write_text("*.tmp\n")
    await scene.workplace.take_over("two", tmp_path / "log")
    await scene.workplace.check_out("a", "T2", 1)
    write(place, **{"x.tmp": "t"})
    assert not await scene.workplace.differs("a", "T2", 1)
    write(place, **{"y.log": "l"})
    assert await scene.merge("a", "T2", 1, "do", place=scene.workplace)
    assert names(scene.repository) == {".git", ".gitignore", "shared", "other", "done", "y.log"}


async def test_rules_without_an_end_are_none(scene: GitScene) -> None:
    """A device that is named as a list of rules is not read."""
    scene.git("config", "core.excludesFile", "/dev/zero")
    await at_work(scene)
    assert (scene.root / ".excludes").read_bytes() == b"\n"


async def test_a_users_file_that_is_ignored_is_not_overwritten_by_a_merge(scene: GitScene) -> None:
    """To git an ignored file is one that may go, and an agent can ignore all of them; the merge waits instead."""
    await at_work(scene, notes="the agent's")
    write(scene.repository, notes="the user's")
    (scene.repository / ".git" / "info").mkdir(exist_ok=True)
    (scene.repository / ".git" / "info" / "exclude").write_text("notes\n")
    with pytest.raises(WorkplaceError, match="notes"):
        await scene.merge("a", "T1", 1, "do", place=scene.workplace)
    assert (scene.repository / "notes").read_text() == "the user's"
    (scene.repository / "notes").unlink()
    assert await scene.merge("a", "T1", 1, "do", place=scene.workplace)


# -- places that an agent has replaced


def _link(place: Path, elsewhere: Path) -> None:
    place.rename(place.with_name("moved"))
    place.symlink_to(elsewhere)


def _linked_with_git(place: Path, elsewhere: Path) -> None:
    shutil.copy(place / ".git", elsewhere / ".git")
    _link(place, elsewhere)


def _loop(place: Path, _elsewhere: Path) -> None:
    shutil.rmtree(place)
    place.symlink_to(place)


def _loop_of_two(place: Path, _elsewhere: Path) -> None:
    shutil.rmtree(place)
    place.symlink_to(place.with_name("other"))
    place.with_name("other").symlink_to(place)


def _file(place: Path, _elsewhere: Path) -> None:
    shutil.rmtree(place)
    place.write_text("a file")


def _pipe(place: Path, _elsewhere: Path) -> None:
    (place / ".git").unlink()
    os.mkfifo(place / ".git")


def _another_repository(place: Path, elsewhere: Path) -> None:
    git(elsewhere, "init", "--quiet", "--initial-branch=main", "--template=")
    (place / ".git").write_text(f"gitdir: {elsewhere}/.git\n")


def _nonsense(place: Path, _elsewhere: Path) -> None:
    (place / ".git").write_bytes(b"gitdir: \0\n")


def _linked_index(place: Path, elsewhere: Path) -> None:
    directory = Path(git(place, "rev-parse", "--absolute-git-dir"))
    (directory / "index").unlink()
    (directory / "index").symlink_to(elsewhere / "precious")


def _root(place: Path, elsewhere: Path) -> None:
    place.parent.rename(place.parent.with_name("moved"))
    place.parent.symlink_to(elsewhere)


@pytest.mark.parametrize(
    "displace",
    [
        _link,
        _linked_with_git,
        _loop,
        _loop_of_two,
        _file,
        _pipe,
        _another_repository,
        _nonsense,
        _linked_index,
        _root,
    ],
    ids=lambda displace: displace.__name__.strip("_"),
)
async def test_a_worktree_that_an_agent_has_replaced_is_made_again(
    scene: GitScene, elsewhere: Path, displace: Callable[[Path, Path], None]
) -> None:
    """Its task has failed, its next one gets a clean place, the fleet goes on, and nothing outside is touched."""
    place = await at_work(scene, done="d")
    displace(place, elsewhere)
    with pytest.raises(WorkplaceError, match="taken away"):
        await scene.merge("a", "T1", 1, "do")
    await scene.again().prepare("a")
    await scene.again().check_out("a", "T1", 2)
    assert names(scene.place()) == {".git", ".gitignore", "shared", "other"}
    write(scene.place(), done="again")
    assert await scene.merge("a", "T1", 2, "do")
    assert (scene.repository / "done").read_text() == "again"
    assert untouched(elsewhere, *(names(elsewhere) & {".git"}))
    await scene.again().clear()
    assert untouched(elsewhere, *(names(elsewhere) & {".git"}))


async def test_the_worktree_of_another_agent_is_not_taken_for_ones_own(scene: GitScene) -> None:
    """An agent whose ``.git`` names another one's gets a place of its own, and the other keeps its work."""
    await scene.workplace.check_out("b", "T2", 1)
    write(scene.place("b"), kept="k")
    await at_work(scene)
    shutil.copy(scene.place("b") / ".git", scene.place("a") / ".git")
    await scene.again().check_out("a", "T1", 2)
    write(scene.place(), done="d")
    assert await scene.merge("a", "T1", 2, "do", place=scene.workplace)
    assert await scene.merge("b", "T2", 1, "do", place=scene.workplace)
    assert {"done", "kept"} <= names(scene.repository)


async def test_a_replaced_folder_for_moved_files_is_made_again_too(scene: GitScene, elsewhere: Path) -> None:
    """Nothing is moved through a link that an agent has laid."""
    place = await at_work(scene)
    for name in (".aside", ".gone"):
        (scene.root / name).symlink_to(elsewhere)
    shutil.rmtree(place / ".git", ignore_errors=True)
    (place / ".git").unlink()
    await scene.again().check_out("a", "T1", 2)
    await scene.again().clear()
    assert untouched(elsewhere)


# -- what is found without git


def test_a_repository_is_found_from_within_as_git_finds_it(scene: GitScene, tmp_path: Path) -> None:
    """In its top, in a folder of it, in a worktree of it, in a submodule, by a link to it, and beside its directory."""
    inner = scene.repository / "x" / "y"
    inner.mkdir(parents=True)
    scene.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "linked"))
    module = new_repository(tmp_path / "module")
    scene.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(module), "sub")
    git(tmp_path, "init", "--quiet", f"--separate-git-dir={tmp_path / 'away'}", str(tmp_path / "apart"))
    (tmp_path / "link").symlink_to(scene.repository)
    for folder in (scene.repository, inner, tmp_path / "linked", scene.repository / "sub", tmp_path / "apart"):
        pins = repository_at(folder)
        assert pins is not None
        asked = ("--show-toplevel", "--absolute-git-dir", "--path-format=absolute", "--git-common-dir")
        assert git(folder, "rev-parse", *asked).splitlines() == [
            str(pins.folder),
            str(pins.directory),
            str(pins.common),
        ]
    assert repository_at(tmp_path / "link") == repository_at(scene.repository)
    assert repository_at(tmp_path) is None


def test_a_folder_called_git_is_no_repository(tmp_path: Path) -> None:
    """As git sees it: one has a HEAD."""
    (tmp_path / ".git").mkdir()
    assert repository_at(tmp_path) is None
    attempt(tmp_path, "rev-parse")


async def test_a_worktree_that_was_moved_is_sound_where_it_is(scene: GitScene) -> None:
    """A user may move a log with all that is beside it."""
    place = await at_work(scene)
    moved = place.rename(scene.root / "b")
    assert worktree_at(moved, scene.repository / ".git") is not None
    assert worktree_at(moved, scene.root) is None
    assert worktree_at(scene.root / "none", scene.repository / ".git") is None


async def test_a_merge_updates_the_users_worktree_of_the_target_branch(scene: GitScene, tmp_path: Path) -> None:
    """The branch that is checked out in a worktree of the user's own moves with its files."""
    scene.git("checkout", "--quiet", "--detach")
    scene.git("worktree", "add", "--quiet", str(tmp_path / "mine"), "main")
    await at_work(scene, done="d")
    assert await scene.merge("a", "T1", 1, "do", place=scene.workplace)
    assert (tmp_path / "mine" / "done").read_text() == "d"
    assert git(tmp_path / "mine", "status", "--porcelain") == ""
    assert commit(tmp_path / "mine", next="n") == scene.git("rev-parse", "main")
