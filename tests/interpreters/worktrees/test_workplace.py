"""The workplaces of agents: a clean one for each claim, nothing is lost, and all work is merged once.

A crash is simulated before every git command of an operation that writes: the operation is interrupted there, and
repeated by a workplace that knows nothing of the first one.
"""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
import pytest

from back_ends import in_turn
from git_faults import Cut, Faults
from git_sandbox import GitScene, attempt, commit, git, names, new_repository, write
from lifefold.interpreters.fleet_runner.retry_until import patiently
from lifefold.interpreters.worktrees import index_lock, target_branch
from lifefold.interpreters.worktrees.errors import GitError, InTheWayError, LockedError, MergeConflict, WorkplaceError
from lifefold.interpreters.worktrees.git import Git, Way
from lifefold.interpreters.worktrees.workplace import FolderWorkplace, Workplace
from lifefold.interpreters.worktrees.worktrees import GitWorkplace

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("no_configuration")]

ODD_NAMES = ("with space", "line\nbreak", "ünïcödé-日本", "-dash", 'quo"te', "tab\there", "glob*[a]")


anyio_backend = in_turn


def untold(_why: str) -> None:
    """Tell no operator what is waited for."""


on_both_back_ends = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
"""For what runs side by side; each other test runs on one of them."""


def test_both_workplaces_keep_the_protocol(tmp_path: Path) -> None:
    """A runner can use either."""
    places: list[Workplace] = [FolderWorkplace(tmp_path), GitWorkplace(tmp_path, tmp_path, "f", "main")]
    assert all(place.folder("a", "T").is_absolute() for place in places)


# -- folders without a repository


@pytest.mark.parametrize("inner", ["", "x/y"])
def test_folders_within_a_repository_are_refused_with_advice(scene: GitScene, inner: str) -> None:
    """Agents that commit there would do so on the user's branch; both ways out are named, and nothing is made."""
    folder = scene.repository / inner / "folders"
    with pytest.raises(WorkplaceError) as raised:
        FolderWorkplace.open(folder)
    assert raised.value.where == scene.repository
    assert f'repository = "{scene.repository}"' in raised.value.remedy
    assert "--db" in raised.value.remedy
    assert not folder.exists()


async def test_folders_beside_a_repository_are_taken(scene: GitScene) -> None:
    """No branch of the user's is above them."""
    place = FolderWorkplace.open(scene.root)
    await place.check_out("a", "T1", 1)
    assert names(place.folder("a", "T1")) == set()


@pytest.mark.parametrize("target", ["elsewhere", "folders/T1"], ids=["link", "loop"])
async def test_a_tasks_folder_that_was_replaced_by_a_link_is_made_again(tmp_path: Path, target: str) -> None:
    """The link is moved aside, and what it points to is left alone."""
    (tmp_path / "elsewhere").mkdir()
    write(tmp_path / "elsewhere", precious="p")
    place = FolderWorkplace(tmp_path / "folders")
    await place.check_out("a", "T1", 1)
    place.folder("a", "T1").rmdir()
    place.folder("a", "T1").symlink_to(tmp_path / target)
    await place.prepare("a")
    await place.check_out("a", "T1", 2)
    assert not place.folder("a", "T1").is_symlink()
    assert names(place.folder("a", "T1")) == set()
    assert names(tmp_path / "elsewhere") == {"precious"}


async def test_a_tasks_folder_keeps_its_files_between_attempts(tmp_path: Path) -> None:
    """A folder that is one is left as it is."""
    place = FolderWorkplace(tmp_path)
    await place.check_out("a", "T1", 1)
    write(place.folder("a", "T1"), kept="k")
    await place.check_out("b", "T1", 2)
    assert names(place.folder("b", "T1")) == {"kept"}


# -- which repositories can be worked with


async def test_a_run_works_on_the_branch_that_is_checked_out(scene: GitScene) -> None:
    """The branch is found, also from a folder within the repository."""
    scene.git("checkout", "--quiet", "-b", "feature/x")
    (scene.repository / "inner").mkdir()
    found = await GitWorkplace.open(scene.repository / "inner", scene.root, "fleet")
    assert found.branch == "feature/x"
    await found.check_out("a", "T1", 1)
    assert (scene.place() / "shared").exists()


def _nothing(folder: Path) -> None:
    assert not folder.exists()


def _plain(folder: Path) -> None:
    folder.mkdir()


def _bare(folder: Path) -> None:
    folder.mkdir()
    git(folder, "init", "--quiet", "--bare")


def _empty(folder: Path) -> None:
    folder.mkdir()
    git(folder, "init", "--quiet")


def _detached(folder: Path) -> None:
    git(new_repository(folder), "checkout", "--quiet", "--detach")


def _merging(folder: Path) -> None:
    new_repository(folder)
    git(folder, "checkout", "--quiet", "-b", "side")
    commit(folder, shared="theirs")
    git(folder, "checkout", "--quiet", "main")
    commit(folder, shared="ours")
    attempt(folder, "merge", "--quiet", "side")


def _rebasing(folder: Path) -> None:
    _merging(folder)
    git(folder, "merge", "--abort")
    attempt(folder, "rebase", "side")


def _occupied(folder: Path) -> None:
    git(new_repository(folder), "branch", "lifefold")


@pytest.mark.parametrize(
    ("make", "what", "remedy"),
    [
        (_nothing, "No such file", ""),
        (_plain, "no repository", "git init"),
        (_bare, "bare", "clone"),
        (_empty, "no commit", "first commit"),
        (_detached, "No branch", "Check out the branch"),
        (_merging, "A merge is not finished", "git merge --continue"),
        (_rebasing, "A rebase is not finished", "git rebase --continue"),
        (_occupied, "refs/heads/lifefold", "Rename"),
    ],
    ids=["missing", "plain", "bare", "empty", "detached", "merging", "rebasing", "occupied"],
)
async def test_an_unfit_repository_is_refused_with_advice(
    tmp_path: Path, make: Callable[[Path], None], what: str, remedy: str
) -> None:
    """The error says what is wrong, where, and what to do."""
    make(tmp_path / "given")
    with pytest.raises(WorkplaceError) as raised:
        await GitWorkplace.open(tmp_path / "given", tmp_path / "work", "fleet")
    assert what in raised.value.what
    assert remedy in raised.value.remedy
    assert "given" in str(raised.value)


async def test_a_git_that_is_too_old_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The version that is needed is named."""
    old = tmp_path / "bin" / "git"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho git version 2.30.2\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(old.parent), prepend=os.pathsep)
    with pytest.raises(WorkplaceError, match=r"2\.30\.2 is too old .* Install git 2\.38 or newer"):
        await GitWorkplace.open(tmp_path, tmp_path / "work", "fleet")


async def test_a_branch_that_was_deleted_meanwhile_is_missed_by_name(scene: GitScene) -> None:
    """A continued run says which branch it wants, instead of working on another one."""
    scene.git("branch", "-m", "main", "renamed")
    with pytest.raises(WorkplaceError, match="main does not exist any more"):
        await scene.workplace.prepare("a")


# -- a clean place


async def test_a_claim_gets_the_fleets_branch_as_it_is(scene: GitScene) -> None:
    """The place holds what was merged last, on a branch of the claim's own, and the user's tree is as it was."""
    tip = commit(scene.repository, new="file")
    await scene.workplace.check_out("a", "T1", 1)
    assert (scene.place() / "new").read_text() == "file"
    assert git(scene.place(), "symbolic-ref", "HEAD") == "refs/heads/lifefold/fleet/T1/1"
    assert git(scene.place(), "rev-parse", "HEAD") == tip
    assert scene.is_clean()


async def test_a_check_out_performed_again_keeps_the_work(scene: GitScene) -> None:
    """A repetition after a crash finds the claim's worktree as the agent has left it."""
    await scene.workplace.check_out("a", "T1", 1)
    write(scene.place(), begun="work")
    await scene.again().prepare("a")
    await scene.again().check_out("a", "T1", 1)
    assert (scene.place() / "begun").read_text() == "work"
    assert scene.salvaged() == {}


async def test_what_an_earlier_claim_left_is_kept_and_gone_from_the_place(scene: GitScene) -> None:
    """Changes, untracked files and commits are in the salvage; ignored files stay, they are caches."""
    await scene.workplace.check_out("a", "T1", 1)
    commit(scene.place(), committed="c")
    write(scene.place(), shared="changed", untracked="u")
    (scene.place() / "other").unlink()
    (scene.place() / "cache").mkdir()
    write(scene.place() / "cache", kept="k")
    await scene.workplace.check_out("a", "T2", 1)
    (name, salvage), *more = scene.salvaged().items()
    assert (name, more) == ("a/T1-1", [])
    assert scene.git("show", f"{salvage}:committed", f"{salvage}:shared", f"{salvage}:untracked") == "cchangedu"
    assert "other" not in scene.git("ls-tree", "--name-only", salvage).splitlines()
    assert names(scene.place()) == {".git", ".gitignore", "cache", "other", "shared"}
    assert (scene.place() / "cache" / "kept").read_text() == "k"
    assert git(scene.place(), "status", "--porcelain") == ""


async def test_a_check_out_can_be_cut_off_at_any_command(scene: GitScene, faults: Faults) -> None:
    """Performed again, it leaves a clean place and one salvage with everything that was there."""
    await scene.workplace.check_out("a", "T0", 1)
    cut = 0
    for cut in range(100):
        (scene.place() / "left").write_text("behind")
        ended = await faults.crash(partial(scene.workplace.check_out, "a", f"T{cut + 1}", 1), after=cut)
        await scene.again().check_out("a", f"T{cut + 1}", 1)
        assert set(scene.salvaged()) == {f"a/T{number}-1" for number in range(cut + 1)}
        assert scene.git("show", f"refs/lifefold/fleet/salvage/a/T{cut}-1:left") == "behind"
        assert git(scene.place(), "symbolic-ref", "HEAD") == f"refs/heads/lifefold/fleet/T{cut + 1}/1"
        assert not (scene.place() / "left").exists()
        if ended:
            break
    assert 5 < cut < 99


async def test_an_agent_that_resumes_its_conversation_finds_its_changes_again(scene: GitScene) -> None:
    """They are on the present target branch, not committed, also after the agent was at another task."""
    await scene.workplace.check_out("a", "T1", 1)
    commit(scene.place(), committed="c")
    write(scene.place(), shared="changed", untracked="u")
    (scene.place() / "other").unlink()
    await scene.workplace.check_out("a", "T2", 1)
    write(scene.place(), done="d")
    await scene.merge("a", "T2", 1, "do")
    await scene.workplace.check_out("a", "T1", 2, resumes=True)
    found = {name: (scene.place() / name).read_text() for name in ("committed", "shared", "untracked", "done")}
    assert found == {"committed": "c", "shared": "changed", "untracked": "u", "done": "d"}
    assert not (scene.place() / "other").exists()
    assert git(scene.place(), "rev-parse", "HEAD") == scene.git("rev-parse", "HEAD")
    await scene.merge("a", "T1", 2, "do")
    assert scene.git("show", "HEAD:committed", "HEAD:shared", "HEAD:untracked") == "cchangedu"


async def test_changes_that_conflict_with_what_was_merged_since_are_not_brought_back(scene: GitScene) -> None:
    """The agent does them anew on the present target branch; they stay in the salvage."""
    await scene.workplace.check_out("a", "T1", 1)
    write(scene.place(), shared="mine")
    await scene.workplace.check_out("b", "T2", 1)
    write(scene.place("b"), shared="theirs")
    await scene.merge("b", "T2", 1, "do")
    await scene.workplace.check_out("a", "T1", 2, resumes=True)
    assert (scene.place() / "shared").read_text() == "theirs"
    assert git(scene.place(), "status", "--porcelain") == ""
    assert list(scene.salvaged()) == ["a/T1-1"]


async def test_a_resumption_can_be_cut_off_at_any_command(scene: GitScene, faults: Faults) -> None:
    """Performed again, the agent finds its changes once."""
    cut = 0
    for cut in range(100):
        await scene.workplace.check_out("a", f"T{cut}", 1)
        write(scene.place(), left="behind")
        ended = await faults.crash(partial(scene.workplace.check_out, "a", f"T{cut}", 2, resumes=True), after=cut)
        await scene.again().check_out("a", f"T{cut}", 2, resumes=True)
        assert (scene.place() / "left").read_text() == "behind"
        assert git(scene.place(), "symbolic-ref", "HEAD") == f"refs/heads/lifefold/fleet/T{cut}/2"
        if ended:
            break
    assert 5 < cut < 99


async def test_work_that_was_merged_is_not_salvaged(scene: GitScene) -> None:
    """Salvage is what would otherwise be lost, nothing else."""
    await scene.workplace.check_out("a", "T1", 1)
    write(scene.place(), done="d")
    await scene.merge("a", "T1", 1, "do")
    await scene.workplace.check_out("a", "T2", 1)
    assert scene.salvaged() == {}
    assert (scene.place() / "done").exists()


async def test_the_next_claim_of_a_task_does_not_see_the_last_ones_work(scene: GitScene) -> None:
    """An attempt that failed is out of the way, and can be looked up."""
    await scene.workplace.check_out("a", "T1", 1)
    write(scene.place(), wrong="w")
    await scene.workplace.check_out("a", "T1", 2)
    assert not (scene.place() / "wrong").exists()
    assert list(scene.salvaged()) == ["a/T1-1"]


async def test_salvage_never_moves_a_branch_of_the_users(scene: GitScene) -> None:
    """An agent that switched to one has not got our commit put on it."""
    scene.git("branch", "mine")
    await scene.workplace.check_out("a", "T1", 1)
    git(scene.place(), "checkout", "--quiet", "mine")
    write(scene.place(), left="l")
    await scene.workplace.check_out("a", "T2", 1)
    assert scene.git("rev-parse", "mine") == scene.git("rev-parse", "main")
    assert list(scene.salvaged()) == ["a/T1-1"]


async def test_a_rebase_that_an_agent_left_half_done_is_over(scene: GitScene) -> None:
    """The next agent does not go on with it by accident."""
    await scene.workplace.check_out("a", "T1", 1)
    commit(scene.place(), shared="mine")
    git(scene.place(), "branch", "--quiet", "aside")
    git(scene.place(), "reset", "--quiet", "--hard", "main")
    commit(scene.place(), shared="other")
    attempt(scene.place(), "rebase", "aside")
    assert "rebase in progress" in git(scene.place(), "status")
    await scene.workplace.check_out("a", "T2", 1)
    assert "rebase" not in git(scene.place(), "status")
    assert (scene.place() / "shared").read_text() == "1\n2\n3\n"


async def test_a_repository_within_the_worktree_is_moved_aside_whole(scene: GitScene) -> None:
    """Git cannot keep it, so it is kept as files, and the next claim gets a new worktree."""
    await scene.workplace.check_out("a", "T1", 1)
    new_repository(scene.place() / "inner")
    await scene.workplace.check_out("a", "T2", 1)
    assert not (scene.place() / "inner").exists()
    assert (scene.root / ".aside" / "a-1" / "inner" / "shared").exists()
    assert not (scene.root / ".aside" / "a-1" / ".git").exists()
    assert git(scene.place(), "status", "--porcelain") == ""


# -- a damaged place


def _deleted(scene: GitScene) -> None:
    scene.place().rename(scene.root.parent / "elsewhere")


def _deleted_and_locked(scene: GitScene) -> None:
    scene.git("worktree", "lock", str(scene.place()))
    _deleted(scene)


def _deleted_and_pruned(scene: GitScene) -> None:
    _deleted(scene)
    scene.git("worktree", "prune")


def _without_link(scene: GitScene) -> None:
    (scene.place() / ".git").unlink()


def _broken_head(scene: GitScene) -> None:
    Path(git(scene.place(), "rev-parse", "--absolute-git-dir"), "HEAD").write_text("")


def _broken_index(scene: GitScene) -> None:
    Path(git(scene.place(), "rev-parse", "--absolute-git-dir"), "index").write_text("no index")


def _file_instead(scene: GitScene) -> None:
    _deleted(scene)
    scene.place().write_text("in the way")


def _stale_lock(scene: GitScene) -> None:
    Path(git(scene.place(), "rev-parse", "--absolute-git-dir"), "index.lock").write_text("")


@pytest.mark.parametrize(
    "damage",
    [
        _deleted,
        _deleted_and_locked,
        _deleted_and_pruned,
        _without_link,
        _broken_head,
        _broken_index,
        _file_instead,
        _stale_lock,
    ],
)
async def test_a_damaged_worktree_is_repaired(scene: GitScene, damage: Callable[[GitScene], None]) -> None:
    """The next claim gets a clean place, whatever has happened to the last one's."""
    await scene.workplace.check_out("a", "T1", 1)
    damage(scene)
    await scene.again().prepare("a")
    await scene.again().check_out("a", "T2", 1)
    write(scene.place(), done="d")
    assert await scene.merge("a", "T2", 1, "do")
    assert (scene.repository / "done").exists()


async def test_a_root_within_the_repository_is_told_from_it(scene: GitScene) -> None:
    """A folder that is no worktree is not taken for one because a repository lies above it."""
    scene.root = scene.repository / "cache"
    scene.workplace = scene.again()
    scene.place().mkdir(parents=True)
    await scene.workplace.check_out("a", "T1", 1)
    assert git(scene.place(), "rev-parse", "--show-toplevel") == str(scene.place())
    assert git(scene.repository, "symbolic-ref", "HEAD") == "refs/heads/main"


async def test_commits_of_a_deleted_worktree_are_kept(scene: GitScene) -> None:
    """Also those on no branch, and the same claim goes on with its branch."""
    await scene.workplace.check_out("a", "T1", 1)
    commit(scene.place(), on_branch="b")
    git(scene.place(), "checkout", "--quiet", "--detach")
    lost = commit(scene.place(), on_none="n")
    _deleted(scene)
    await scene.again().check_out("a", "T1", 1)
    assert scene.salvaged() == {"a/lost": lost}
    assert (scene.place() / "on_branch").exists()


@on_both_back_ends
async def test_places_of_many_agents_are_made_at_the_same_time(scene: GitScene) -> None:
    """Each has its own."""
    async with anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(scene.workplace.check_out, f"a{number}", f"T{number}", 1)
    for number in range(5):
        branch = git(scene.place(f"a{number}"), "symbolic-ref", "HEAD")
        assert branch == f"refs/heads/lifefold/fleet/T{number}/1"


async def test_names_of_any_kind_make_places_of_their_own(scene: GitScene) -> None:
    """Spaces, slashes, dots and messages of any script in the names of fleets, agents and tasks."""
    odd = ("a b/c", "..", "", "x.lock", "ü~^:?*[\\@{", "-", "A\nB", "a%20b", "v1.2")
    place = GitWorkplace(scene.repository, scene.root, "a fleet/of.", "main")
    assert len({place.folder(name, "T") for name in odd}) == len(odd)
    assert {place.folder(name, "T").parent for name in odd} == {scene.root}
    for number, name in enumerate(odd[:5]):
        await place.check_out("ag ent/1", name, 1)
        write(place.folder("ag ent/1", name), **{f"f{number}": name})
        assert await scene.merge("ag ent/1", name, 1, name, place=place) == scene.git("rev-parse", "main")


async def test_a_new_run_of_a_fleet_does_not_take_up_an_earlier_ones_claims(scene: GitScene) -> None:
    """Tasks and claims are numbered alike in both: work that was left is kept apart, and nothing counts as merged."""
    await scene.workplace.check_out("a", "T1", 1)
    write(scene.place(), first="f")
    merged = await scene.merge("a", "T1", 1, "do")
    await scene.workplace.check_out("b", "T2", 1)
    left = commit(scene.place("b"), left="l")
    again = await GitWorkplace.open(scene.repository, scene.root, "fleet")
    await again.take_over("second", scene.root / "log")
    assert scene.salvaged() == {"earlier/T2-1": left}
    await again.check_out("b", "T2", 1)
    assert not (scene.place("b") / "left").exists()
    await again.check_out("a", "T1", 1)
    assert await scene.merge("a", "T1", 1, "do", place=again) == ""
    await again.check_out("a", "T1", 2)
    write(scene.place(), second="s")
    assert await scene.merge("a", "T1", 2, "do", place=again) not in {"", merged}


# -- the way home


async def test_work_is_merged_by_a_merge_commit(scene: GitScene) -> None:
    """Its parents are the fleet's branch and the work; both commits name the task, the claim and the agent."""
    before = scene.git("rev-parse", "main")
    await scene.workplace.check_out("a", "T1", 3)
    write(scene.place(), done="d")
    merged = await scene.merge("a", "T1", 3, "Write\n it")
    assert scene.git("rev-parse", "main") == merged
    trailers = "Lifefold-Task: T1\nLifefold-Claim: fleet/T1/3\nLifefold-Agent: a\n"
    assert scene.git("log", "-1", "--format=%B", merged) == f"Merge T1: Write it\n\n{trailers}"
    assert scene.git("rev-parse", f"{merged}^1") == before
    assert scene.git("log", "-1", "--format=%B", f"{merged}^2") == f"T1: Write it\n\n{trailers}"
    assert scene.git("rev-parse", f"{merged}^2^") == before


@pytest.mark.parametrize("configured", [True, False])
async def test_commits_have_the_configured_author_or_lifefold(scene: GitScene, *, configured: bool) -> None:
    """No identity is invented from the host's name, and none is needed."""
    if configured:
        scene.git("config", "user.name", "The Team")
        scene.git("config", "user.email", "team@example.org")
    await scene.workplace.check_out("a", "T1", 1)
    write(scene.place(), done="d")
    merged = await scene.merge("a", "T1", 1, "do")
    expected = "The Team <team@example.org>" if configured else "lifefold <lifefold@localhost>"
    for each in (merged, f"{merged}^2"):
        assert scene.git("log", "-1", "--format=%an <%ae>%n%cn <%ce>", each) == f"{expected}\n{expected}"


async def test_how_the_user_has_set_up_git_does_not_matter(scene: GitScene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hooks, signing, editors, templates, odd settings and variables that point elsewhere change nothing."""
    for hook in (
        "pre-commit",
        "commit-msg",
        "post-checkout",
        "post-merge",
        "reference-transaction",
        "prepare-commit-msg",
    ):
        path = scene.repository / ".git" / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {scene.root.parent}/ran-{hook}\nexit 1\n")
        path.chmod(0o755)
    for setting in (
        "commit.gpgSign=true gpg.program=/nowhere core.editor=/nowhere commit.cleanup=strip grep.patternType=fixed"
        " merge.ff=false status.showUntrackedFiles=no log.showSignature=true core.safecrlf=true color.ui=always"
        " merge.verifySignatures=true user.useConfigOnly=true core.quotePath=true diff.external=/nowhere"
    ).split():
        scene.git("config", *setting.split("="))
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"):
        monkeypatch.setenv(name, "/nowhere")
    place = await GitWorkplace.open(scene.repository, scene.root, "fleet")
    await place.check_out("a", "T1", 1)
    (scene.place() / "done").write_bytes(b"mixed\r\nends\n")
    merged = await scene.merge("a", "T1", 1, "# Do it", place=place)
    assert await scene.merge("a", "T1", 1, "# Do it", place=place) == merged
    await place.check_out("a", "T2", 1)
    write(scene.place(), left="l")
    await place.check_out("a", "T3", 1)
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"):
        monkeypatch.delenv(name)
    assert scene.git("-c", "log.showSignature=false", "log", "-1", "--format=%s", f"{merged}^2") == "T1: # Do it"
    assert list(scene.salvaged()) == ["a/T2-1"]
    assert [path.name for path in scene.root.parent.glob("ran-*")] == []


async def test_nothing_changed_is_no_commit(scene: GitScene) -> None:
    """Neither for an untouched place, nor for commits that take each other back, nor for ignored files."""
    before = scene.git("rev-parse", "main")
    await scene.workplace.check_out("a", "T1", 1)
    assert await scene.merge("a", "T1", 1, "do") == ""
    commit(scene.place(), done="d")
    git(scene.place(), "revert", "--no-edit", "HEAD")
    (scene.place() / "cache").mkdir()
    write(scene.place() / "cache", file="c")
    assert await scene.merge("a", "T1", 1, "do") == ""
    assert scene.git("rev-parse", "main") == before


async def test_a_change_that_others_have_merged_already_is_no_commit(scene: GitScene) -> None:
    """Two agents that do the same do it once."""
    for agent, task in (("a", "T1"), ("b", "T2")):
        await scene.workplace.check_out(agent, task, 1)
        write(scene.place(agent), same="s")
    assert await scene.merge("a", "T1", 1, "do")
    assert await scene.merge("b", "T2", 1, "do") == ""


async def test_an_agents_own_commits_are_merged_with_its_uncommitted_changes(scene: GitScene) -> None:
    """Both are in the merge, and the agent's history is kept."""
    await scene.workplace.check_out("a", "T1", 1)
    own = commit(scene.place(), "by the agent", committed="c")
    write(scene.place(), uncommitted="u")
    merged = await scene.merge("a", "T1", 1, "do")
    assert scene.git("rev-parse", f"{merged}^2^") == own
    assert {"committed", "uncommitted"} <= names(scene.repository)


@pytest.mark.parametrize("switch", [("--detach",), ("-b", "own")], ids=["detached", "other-branch"])
async def test_an_agent_may_leave_its_branch(scene: GitScene, switch: tuple[str, ...]) -> None:
    """The contents of its folder are merged, since they were verified. The rest of its branch is salvage."""
    await scene.workplace.check_out("a", "T1", 1)
    left = commit(scene.place(), left="l")
    git(scene.place(), "checkout", "--quiet", *switch, "main")
    own = commit(scene.place(), committed="c")
    write(scene.place(), uncommitted="u")
    assert await scene.merge("a", "T1", 1, "do")
    assert {"committed", "uncommitted"} <= names(scene.repository)
    assert not (scene.repository / "left").exists()
    assert scene.salvaged() == {"a/T1-1": left}
    if switch[0] == "-b":
        assert scene.git("rev-parse", "own") == own


async def test_work_that_left_its_beginning_is_not_merged_and_not_lost(scene: GitScene) -> None:
    """HEAD on an unrelated history is no result; the reason tells the next attempt what to do."""
    await scene.workplace.check_out("a", "T1", 1)
    git(scene.place(), "checkout", "--quiet", "--orphan", "fresh")
    orphan = commit(scene.place(), fresh="f")
    with pytest.raises(WorkplaceError, match="HEAD has left the work"):
        await scene.merge("a", "T1", 1, "do")
    await scene.workplace.check_out("a", "T2", 1)
    assert scene.salvaged() == {"a/T1-1": orphan}
    assert scene.merges() == []


async def test_a_merge_that_the_agent_did_not_resolve_is_not_merged(scene: GitScene) -> None:
    """Conflict markers do not get into the fleet's branch."""
    await scene.workplace.check_out("a", "T1", 1)
    commit(scene.place(), shared="mine\n")
    commit(scene.repository, shared="yours\n")
    attempt(scene.place(), "merge", "main")
    with pytest.raises(MergeConflict, match="not resolved, in shared"):
        await scene.merge("a", "T1", 1, "do")
    await scene.workplace.check_out("a", "T2", 1)
    assert git(scene.place(), "status", "--porcelain") == ""


async def test_a_repository_within_the_work_is_refused_with_its_path(scene: GitScene) -> None:
    """A gitlink without a repository to follow does not get into the target branch."""
    await scene.workplace.check_out("a", "T1", 1)
    new_repository(scene.place() / "inner")
    with pytest.raises(WorkplaceError, match=r"repositories of its own, inner .* Remove their \.git"):
        await scene.merge("a", "T1", 1, "do")
    assert scene.merges() == []


async def test_files_of_every_kind_are_merged(scene: GitScene) -> None:
    """Binary, executable, linked, renamed, deleted, empty, and with any name that a file system takes."""
    folder = scene.place()
    await scene.workplace.check_out("a", "T1", 1)
    (folder / "binary").write_bytes(bytes(range(256)) * 100)
    (folder / "program").write_text("#!/bin/sh\n")
    (folder / "program").chmod(0o755)
    (folder / "link").symlink_to("program")
    (folder / "shared").rename(folder / "renamed")
    (folder / "other").unlink()
    (folder / "deep" / "er").mkdir(parents=True)
    for name in ODD_NAMES:
        (folder / "deep" / "er" / name).touch()
    (folder / "deep" / os.fsdecode(b"latin-\xe9")).write_text("l")
    assert await scene.merge("a", "T1", 1, "do")
    home = scene.repository
    assert (home / "binary").read_bytes() == bytes(range(256)) * 100
    assert os.access(home / "program", os.X_OK)
    assert (home / "link").readlink() == Path("program")
    assert (home / "renamed").read_text() == "1\n2\n3\n"
    assert not (home / "shared").exists()
    assert not (home / "other").exists()
    assert names(home / "deep" / "er") == set(ODD_NAMES)
    assert (home / "deep" / os.fsdecode(b"latin-\xe9")).exists()
    assert scene.is_clean()


# -- together


@on_both_back_ends
@pytest.mark.parametrize("processes", [False, True], ids=["one-process", "several"])
async def test_five_agents_merge_at_the_same_time(scene: GitScene, *, processes: bool) -> None:
    """All of it comes home, each claim in one merge, and the user's files follow."""
    merged: dict[str, str] = {}

    async def work(number: int) -> None:
        agent, task = f"a{number}", f"T{number}"
        place = scene.again() if processes else scene.workplace
        await place.check_out(agent, task, 1)
        write(scene.place(agent), **{f"file{number}": agent})
        merge = partial(scene.merge, agent, task, 1, f"do {number}", place=place)
        merged[task] = await patiently(merge, (InTheWayError,), untold, pause=anyio.lowlevel.checkpoint)

    async with anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(work, number)
    assert sorted(scene.merges()) == [f"Merge T{number}: do {number}" for number in range(5)]
    assert sorted(merged.values()) == sorted(scene.git("rev-list", "--merges", "main").splitlines())
    assert {f"file{number}" for number in range(5)} <= names(scene.repository)
    assert scene.is_clean()


@on_both_back_ends
async def test_the_same_merge_performed_twice_at_once_is_one(scene: GitScene) -> None:
    """Also two runners that both think it is theirs to do get the same commit."""
    await scene.workplace.check_out("a", "T1", 1)
    write(scene.place(), done="d")
    assert await scene.merge("a", "T1", 1, "do")
    found: list[str] = []

    async def merge() -> None:
        again = partial(scene.merge, "a", "T1", 1, "do")
        found.append(await patiently(again, (InTheWayError,), untold, pause=anyio.lowlevel.checkpoint))

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(merge)
    assert set(found) == {scene.git("rev-parse", "main")}


async def test_a_conflict_names_the_paths_and_changes_nothing(scene: GitScene) -> None:
    """The fleet's branch and the user's files stay as they are, the work stays on its branch, and others can merge."""
    for agent, task, text in (("a", "T1", "a\n2\n3\n"), ("b", "T2", "b\n2\n3\n"), ("c", "T3", "1\n2\nc\n")):
        await scene.workplace.check_out(agent, task, 1)
        write(scene.place(agent), shared=text)
    (scene.place("b") / "other").unlink()
    write(scene.place("a"), other="changed")
    first = await scene.merge("a", "T1", 1, "do")
    with pytest.raises(MergeConflict) as raised:
        await scene.merge("b", "T2", 1, "do")
    assert {"shared", "other"} <= set(raised.value.what.replace(",", "").split())
    assert raised.value.what.startswith("The work on lifefold/fleet/T2/1 conflicts with")
    assert "lifefold/fleet/T2/1" in raised.value.remedy
    assert scene.git("rev-parse", "main") == first
    assert scene.is_clean()
    assert scene.git("show", "lifefold/fleet/T2/1:shared").startswith("b")
    assert await scene.merge("c", "T3", 1, "do")
    assert (scene.repository / "shared").read_text() == "a\n2\nc\n"


async def test_a_branch_that_moves_meanwhile_is_merged_into_as_it_is_then(scene: GitScene, faults: Faults) -> None:
    """The user's commit, made between our merge and its publication, stays in the history."""
    await scene.workplace.check_out("a", "T1", 1)
    write(scene.place(), done="d")
    faults.before("commit-tree", lambda: commit(scene.repository, users="u"))
    merged = await scene.merge("a", "T1", 1, "do")
    assert scene.git("log", "-1", "--format=%s", f"{merged}^1") == "by the user"
    assert {"done", "users"} <= names(scene.repository)
    scene.git("checkout", "--quiet", "-b", "elsewhere")
    await scene.workplace.check_out("a", "T2", 1)
    write(scene.place(), more="m")
    old = scene.git("rev-parse", "main")
    other = scene.git("commit-tree", f"{old}^{{tree}}", "-p", old, "-m", "pushed")
    faults.before("update-ref", lambda: None)
    faults.before("commit-tree", lambda: faults.before("update-ref", lambda: scene.git("branch", "-f", "main", other)))
    merged = await scene.merge("a", "T2", 1, "do")
    assert scene.git("rev-parse", "main") == merged
    assert scene.git("rev-parse", f"{merged}^1") == other


async def test_a_branch_that_moves_all_the_time_is_given_up(
    scene: GitScene, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of repetitions has a limit, and the work can be merged later."""
    monkeypatch.setattr(target_branch, "MERGE_ROUNDS", 3)

    def interfere() -> None:
        commit(scene.repository)
        faults.before("commit-tree", interfere)

    await scene.workplace.check_out("a", "T1", 1)
    write(scene.place(), done="d")
    faults.before("commit-tree", interfere)
    with pytest.raises(InTheWayError, match="main could not be advanced"):
        await scene.merge("a", "T1", 1, "do")
    faults.before("commit-tree", lambda: None)
    assert await scene.merge("a", "T1", 1, "do")


async def test_a_git_of_the_users_that_is_just_working_is_waited_for(
    scene: GitScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """His lock is never removed; when it goes, the merge goes on."""
    lock, take = scene.repository / ".git" / "index.lock", index_lock.take

    def refused_once(this: Path, note: Path) -> bool:
        taken = take(this, note)
        if not taken:
            lock.unlink()
        return taken

    monkeypatch.setattr(index_lock, "take", refused_once)
    await scene.workplace.check_out("a", "T1", 1)
    write(scene.place(), done="d")
    lock.touch()
    assert await scene.merge("a", "T1", 1, "do")
    assert not lock.exists()


@pytest.mark.parametrize(
    "name", ["heads/lifefold/fleet/T1/1", "lifefold/fleet/base/T1/1", "lifefold/fleet/result/T1/1"]
)
async def test_a_lock_of_the_dead_on_a_fleets_own_reference_does_not_last(scene: GitScene, name: str) -> None:
    """A machine that went down in the middle of a git command leaves no work to be done by hand."""
    lock = scene.repository / ".git" / "refs" / f"{name}.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    await scene.workplace.check_out("a", "T1", 1)
    commit(scene.place(), done="d")
    assert await scene.merge("a", "T1", 1, "do")
    assert not lock.exists()


# -- exactly once


@pytest.mark.parametrize(
    ("end", "elsewhere"),
    [("crash", False), ("cancel", True)],
    ids=["crash-branch-checked-out", "cancel-branch-not-checked-out"],
)
async def test_a_merge_can_be_cut_off_at_any_command(
    scene: GitScene, faults: Faults, end: str, *, elsewhere: bool
) -> None:
    """Performed again, it returns the one merge there is, with all of the work in it."""
    cut_off = faults.crash if end == "crash" else faults.cancel
    if elsewhere:
        scene.git("checkout", "--quiet", "-b", "elsewhere")
    cut = 0
    for cut in range(100):
        task = f"T{cut}"
        await scene.workplace.check_out("a", task, 1)
        commit(scene.place(), own=task)
        git(scene.place(), "checkout", "--quiet", "--detach")
        write(scene.place(), done=task)
        ended = await cut_off(partial(scene.merge, "a", task, 1, "do"), after=cut)
        merged = await scene.merge("a", task, 1, "do")
        assert scene.git("rev-parse", "main") == merged
        assert scene.merges() == [f"Merge T{number}: do" for number in range(cut, -1, -1)]
        assert scene.git("show", "main:own", "main:done") == task * 2
        assert scene.is_clean()
        if ended:
            break
    assert 5 < cut < 99


async def test_a_merge_performed_again_finds_its_commit_among_later_ones(scene: GitScene) -> None:
    """Also when the agent is at another task, the user has committed, and other claims have similar numbers."""
    found: dict[int, str] = {}
    for epoch in (10, 1):
        await scene.workplace.check_out("a", "T1", epoch)
        write(scene.place(), **{f"f{epoch}": "f"})
        found[epoch] = await scene.merge("a", "T1", epoch, "do")
    commit(scene.repository, users="u")
    await scene.workplace.check_out("a", "T2", 1)
    write(scene.place(), begun="b")
    assert {epoch: await scene.merge("a", "T1", epoch, "do") for epoch in (10, 1)} == found
    assert (scene.place() / "begun").exists()


async def test_what_is_written_after_the_merge_does_not_undo_or_repeat_it(scene: GitScene) -> None:
    """A process of the agent's that writes late finds its work in the salvage."""
    await scene.workplace.check_out("a", "T1", 1)
    write(scene.place(), done="d")
    merged = await scene.merge("a", "T1", 1, "do")
    write(scene.place(), late="l")
    assert await scene.merge("a", "T1", 1, "do") == merged
    await scene.again().check_out("a", "T2", 1)
    assert scene.git("show", "refs/lifefold/fleet/salvage/a/T1-1:late") == "l"


async def test_a_worktree_that_was_taken_away_is_no_empty_result(scene: GitScene) -> None:
    """The verified work is gone: that is an error, not a task without changes."""
    await scene.workplace.check_out("a", "T1", 1)
    write(scene.place(), done="d")
    _deleted(scene)
    with pytest.raises(WorkplaceError, match="has been taken away"):
        await scene.merge("a", "T1", 1, "do")


async def test_a_result_that_was_recorded_needs_no_worktree(scene: GitScene, faults: Faults) -> None:
    """Once everything is committed, the merge can be finished even if the worktree is deleted."""
    await scene.workplace.check_out("a", "T1", 1)
    write(scene.place(), done="d")

    def crash() -> None:
        raise Cut

    faults.before("merge-tree", crash)
    with pytest.raises(Cut):
        await scene.merge("a", "T1", 1, "do")
    _deleted(scene)
    assert await scene.merge("a", "T1", 1, "do")
    assert (scene.repository / "done").exists()


async def test_only_what_was_checked_out_can_be_merged(scene: GitScene) -> None:
    """A claim that is not known is an error, not an empty result."""
    with pytest.raises(WorkplaceError, match="fleet/T1/1 was never checked out"):
        await scene.workplace.merge("a", "T1", 1, "do", result="HEAD")


# -- the user's own work


async def test_the_users_uncommitted_work_survives_a_merge(scene: GitScene) -> None:
    """Staged, changed and untracked files of his stay as they are, beside what was merged."""
    await scene.workplace.check_out("a", "T1", 1)
    write(scene.place(), shared="merged\n")
    write(scene.repository, other="mine\n", untracked="mine too", staged="s")
    scene.git("add", "staged")
    assert await scene.merge("a", "T1", 1, "do")
    assert (scene.repository / "shared").read_text() == "merged\n"
    assert (scene.repository / "other").read_text() == "mine\n"
    assert sorted(scene.git("status", "--porcelain").splitlines()) == [" M other", "?? untracked", "A  staged"]


@pytest.mark.parametrize("name", ["shared", "new file"], ids=["changed", "untracked"])
async def test_the_users_work_in_the_way_stops_a_merge_before_it_does_anything(scene: GitScene, name: str) -> None:
    """The file is named, nothing of his is overwritten, and once it is out of the way the merge is done."""
    await scene.workplace.check_out("a", "T1", 1)
    (scene.place() / name).write_text("the agent's\n")
    (scene.repository / name).write_text("the user's\n")
    before = scene.git("rev-parse", "main")
    with pytest.raises(InTheWayError, match=f"in the way of a merge: {name} .*stash"):
        await scene.merge("a", "T1", 1, "do")
    assert (scene.repository / name).read_text() == "the user's\n"
    assert scene.git("rev-parse", "main") == before
    scene.git("stash", "--quiet", "--include-untracked")
    assert await scene.merge("a", "T1", 1, "do")
    assert (scene.repository / name).read_text() == "the agent's\n"


async def test_what_the_user_has_begun_and_not_ended_is_waited_for(scene: GitScene) -> None:
    """A merge of his own that is not concluded is in the way, as his changes are; it is no fault of the work."""
    scene.git("checkout", "--quiet", "-b", "side")
    commit(scene.repository, other="theirs\n")
    scene.git("checkout", "--quiet", "main")
    await scene.workplace.check_out("a", "T1", 1)
    commit(scene.repository, other="ours\n")
    write(scene.place(), done="d")
    attempt(scene.repository, "merge", "side")
    with pytest.raises(InTheWayError):
        await scene.merge("a", "T1", 1, "do")
    scene.git("merge", "--abort")
    assert await scene.merge("a", "T1", 1, "do")


async def test_a_lock_of_the_users_is_told_from_a_fault_of_the_work(scene: GitScene) -> None:
    """Where another git holds a lock for longer than ours waits, the operation can be performed again."""
    await scene.workplace.check_out("a", "T1", 1)
    write(scene.place(), done="d")
    lock = scene.repository / ".git" / "worktrees" / "a" / "index.lock"
    lock.touch()
    with pytest.raises(LockedError) as raised:
        await Git(scene.place()).commit_all("in vain")
    assert isinstance(raised.value, InTheWayError)
    assert await scene.merge("a", "T1", 1, "do")


@pytest.mark.parametrize(("number", "passes"), [(9, True), (15, True), (11, False)])
async def test_a_git_that_was_ended_from_outside_is_told_from_a_fault_of_the_work(number: int, passes: bool) -> None:  # noqa: FBT001
    """Such as by the kernel for want of memory. A git that has crashed by itself would crash again."""
    with pytest.raises(GitError, match=f"it was ended by signal {number}") as raised:
        await Git(Path.cwd()).run("rev-parse", "HEAD", way=Way(within=("sh", "-c", f"kill -{number} $$")))
    assert raised.value.was_killed
    assert isinstance(raised.value, InTheWayError) is passes


async def test_a_user_on_another_branch_is_left_alone(scene: GitScene) -> None:
    """The fleet's branch advances; his branch, index and files do not, even in the middle of a merge of his."""
    await scene.workplace.check_out("a", "T1", 1)
    write(scene.place(), shared="merged\n")
    scene.git("checkout", "--quiet", "-b", "mine")
    write(scene.repository, shared="the user's\n")
    scene.git("add", "shared")
    merged = await scene.merge("a", "T1", 1, "do")
    assert scene.git("rev-parse", "main") == merged
    assert scene.git("status", "--porcelain") == "M  shared"
    assert (scene.repository / "shared").read_text() == "the user's\n"


async def test_a_branch_checked_out_in_another_worktree_of_the_users_advances_there(scene: GitScene) -> None:
    """Wherever he has it checked out, his files follow."""
    scene.git("checkout", "--quiet", "-b", "mine")
    scene.git("worktree", "add", "--quiet", str(scene.root.parent / "second"), "main")
    await scene.workplace.check_out("a", "T1", 1)
    write(scene.place(), done="d")
    assert await scene.merge("a", "T1", 1, "do")
    assert (scene.root.parent / "second" / "done").exists()
    assert git(scene.root.parent / "second", "status", "--porcelain") == ""
    assert not (scene.repository / "done").exists()


# -- plain folders


async def test_a_task_has_one_folder_that_every_attempt_finds(tmp_path: Path) -> None:
    """Without a repository, work stays where it was done; names cannot lead out of the root."""
    place = FolderWorkplace(tmp_path / "root")
    await place.prepare("a")
    await place.check_out("a", "../T 1", 1)
    folder = place.folder("a", "../T 1")
    assert folder.parent == tmp_path / "root"
    write(folder, done="d")
    assert await place.merge("a", "../T 1", 1, "do", result="") == ""
    await place.check_out("b", "../T 1", 2)
    assert (place.folder("b", "../T 1") / "done").read_text() == "d"
