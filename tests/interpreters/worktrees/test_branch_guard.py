"""The target branch when it is moved from outside: the user may move it, an agent may not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from back_ends import in_turn
from git_sandbox import GitScene, commit, git, write
from lifefold.interpreters.worktrees.branch_guard import NAME, MovedError
from lifefold.interpreters.worktrees.errors import InTheWayError

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("no_configuration")]
anyio_backend = in_turn


async def begun(scene: GitScene) -> str:
    """Merge once, and let an agent have work; return where lifefold has left the branch."""
    await scene.workplace.check_out("a", "T0", 1)
    write(scene.place(), first="f")
    left = await scene.merge("a", "T0", 1, "first")
    await scene.workplace.check_out("a", "T1", 1)
    write(scene.place(), done="d")
    return left


def on_branch(scene: GitScene) -> None:
    """Let the agent check the branch out beside the user, and commit there."""
    git(scene.place(), "checkout", "--quiet", "--ignore-other-worktrees", "main")
    commit(scene.place(), "unverified")


def by_reference(scene: GitScene) -> None:
    """Let the agent move the branch to a commit of its own."""
    commit(scene.place(), "unverified")
    git(scene.place(), "update-ref", "refs/heads/main", "HEAD")


def without_reflogs(scene: GitScene) -> None:
    """Let the agent do the same, and leave no reflog of the user's checkout."""
    by_reference(scene)
    git(scene.place(), "reflog", "expire", "--expire=now", "--all")
    (scene.repository / ".git" / "logs" / "HEAD").unlink()


def by_forged_reflog(scene: GitScene) -> None:
    """Let the agent do the same, and write into the reflog that the user has done it in his checkout."""
    left = scene.git("rev-parse", "main")
    by_reference(scene)
    line = f"{left} {scene.git('rev-parse', 'main')} user <user@example.org> 1800000000 +0000\tcommit: mine\n"
    with (scene.repository / ".git" / "logs" / "HEAD").open("a") as reflog:
        reflog.write(line)


def back(scene: GitScene) -> None:
    """Let the agent take what was merged out of the branch."""
    git(scene.place(), "update-ref", "refs/heads/main", "main~1")


MOVES = [on_branch, by_reference, without_reflogs, by_forged_reflog, back]


@pytest.mark.parametrize("move", MOVES)
async def test_nothing_is_merged_into_a_branch_that_an_agent_has_moved(scene: GitScene, move: object) -> None:
    """It is said where lifefold left it, and what is new; new work begins from there; set back, the merge is done."""
    left = await begun(scene)
    assert callable(move)
    move(scene)
    found = scene.git("rev-parse", "main")
    with pytest.raises(MovedError, match=f"moved from {left[:12]} to {found[:12]}.*update-ref.*{left}") as raised:
        await scene.merge("a", "T1", 1, "do")
    assert raised.value.found == found
    if move in {on_branch, by_reference}:
        assert "unverified, by user, made by agent a on lifefold/fleet/T1/1" in raised.value.what
    assert scene.git("rev-parse", "main") == found
    assert await scene.again().displaced(found) == str(raised.value)
    await scene.again().check_out("b", "T2", 1)
    assert scene.git("rev-parse", "refs/lifefold/fleet/base/T2/1") == left
    scene.git("update-ref", "refs/heads/main", left)
    assert await scene.again().displaced(found) == ""
    assert await scene.merge("a", "T1", 1, "do")
    assert scene.merges()[:2] == ["Merge T1: do", "Merge T0: first"]
    assert scene.is_clean()


@pytest.mark.parametrize("move", [on_branch, by_reference])
async def test_what_the_operator_accepts_is_merged_into_and_his_checkout_follows(scene: GitScene, move: object) -> None:
    """What he has not committed stays; the next agent's move is not accepted with it."""
    await begun(scene)
    assert callable(move)
    move(scene)
    write(scene.repository, other="mine\n")
    found = scene.git("rev-parse", "main")
    await scene.merge("a", "T1", 1, "do", accepted=found)
    assert (scene.repository / "done").exists()
    assert scene.git("status", "--porcelain") == " M other"
    await scene.workplace.check_out("b", "T2", 1)
    write(scene.place("b"), more="m")
    commit(scene.place("b"), "again")
    git(scene.place("b"), "update-ref", "refs/heads/main", "HEAD")
    with pytest.raises(MovedError, match="agent b on lifefold/fleet/T2/1"):
        await scene.merge("b", "T2", 1, "do", accepted=found)


def expired(scene: GitScene) -> None:
    """Let the agent expire all reflogs."""
    git(scene.place(), "reflog", "expire", "--expire=now", "--all")


def deleted(scene: GitScene) -> None:
    """Let the agent delete the reflogs of its worktree and of its branch."""
    for name in ("logs/HEAD", "logs/refs/heads/lifefold/fleet/T1/1"):
        Path(git(scene.place(), "rev-parse", "--path-format=absolute", "--git-path", name)).unlink(missing_ok=True)


def deleted_before_another_commit(scene: GitScene) -> None:
    """Let the agent delete it, and commit again."""
    deleted(scene)
    commit(scene.place(), "later", later="l")


@pytest.mark.parametrize("removes", [expired, deleted, deleted_before_another_commit])
async def test_an_agent_without_a_reflog_is_not_taken_for_the_user(
    scene: GitScene, removes: Callable[[GitScene], None]
) -> None:
    """The user has another branch checked out. No agent is blamed, and nothing is merged before the user has looked."""
    left = await begun(scene)
    scene.git("checkout", "--quiet", "-b", "elsewhere")
    by_reference(scene)
    removes(scene)
    found = scene.git("rev-parse", "main")
    with pytest.raises(MovedError) as raised:
        await scene.merge("a", "T1", 1, "do")
    assert "unverified, by user; it is not known by whom, because the reflog of the worktree of a was removed" in str(
        raised.value
    )
    assert "made by" not in str(raised.value)
    assert (await scene.again().displaced(found)) == str(raised.value)
    scene.git("update-ref", "refs/heads/main", left)
    assert await scene.merge("a", "T1", 1, "do")


async def test_an_agent_that_forges_the_reflog_of_the_user_and_removes_its_own_is_not_taken_for_the_user(
    scene: GitScene,
) -> None:
    """The index of the user has not moved with the branch."""
    await begun(scene)
    by_forged_reflog(scene)
    deleted(scene)
    with pytest.raises(MovedError, match="it is not known by whom"):
        await scene.merge("a", "T1", 1, "do")


async def test_the_user_commits_although_an_agent_has_no_reflog(scene: GitScene) -> None:
    """In the checkout the user's index tells; without reflogs in the configuration lifefold makes those of agents."""
    scene.git("config", "core.logAllRefUpdates", "false")
    await begun(scene)
    scene.git("checkout", "--quiet", "-b", "elsewhere")
    commit(scene.repository, users="u")
    scene.git("branch", "--force", "main", "elsewhere")
    await scene.merge("a", "T1", 1, "do")
    scene.git("checkout", "--quiet", "main")
    await scene.workplace.check_out("a", "T2", 1)
    write(scene.place(), more="m")
    commit(scene.repository, again="a")
    deleted(scene)
    assert await scene.merge("a", "T2", 1, "do")


async def test_what_the_user_has_changed_there_is_named_when_his_checkout_follows(scene: GitScene) -> None:
    """A file of his that the accepted commit has, too, is kept."""
    await begun(scene)
    by_reference(scene)
    write(scene.repository, done="mine")
    found = scene.git("rev-parse", "main")
    with pytest.raises(InTheWayError, match=r"but for .*: done"):
        await scene.merge("a", "T1", 1, "do", accepted=found)
    assert await scene.merge("a", "T1", 1, "do", accepted=found) == ""
    assert (scene.repository / "done").read_text() == "mine"


async def test_the_user_commits_and_moves_the_branch_as_he_likes(scene: GitScene) -> None:
    """In his checkout, on another branch, in another worktree, by a merge of an agent's branch, back and forth."""
    left = await begun(scene)
    commit(scene.repository, users="u")
    assert await scene.merge("a", "T1", 1, "do")
    scene.git("reset", "--quiet", "--hard", left)
    scene.git("merge", "--quiet", "--no-ff", "-m", "by hand", "lifefold/fleet/T1/1")
    await scene.workplace.check_out("a", "T2", 1)
    write(scene.place(), two="2")
    await scene.park("a", "T2", 1, "do")
    scene.git("merge", "--quiet", "lifefold/fleet/T2/1")
    assert await scene.merge("a", "T2", 1, "do") == ""
    scene.git("checkout", "--quiet", "-b", "elsewhere")
    commit(scene.repository, more="m")
    scene.git("branch", "--force", "main", "elsewhere")
    await scene.workplace.check_out("a", "T3", 1)
    write(scene.place(), three="3")
    assert await scene.merge("a", "T3", 1, "do")
    second = scene.root.parent / "second"
    scene.git("worktree", "add", "--quiet", str(second), "main")
    commit(second, again="a")
    await scene.workplace.check_out("a", "T4", 1)
    write(scene.place(), four="4")
    assert await scene.merge("a", "T4", 1, "do")


async def test_an_agent_that_takes_up_a_commit_of_the_users_has_not_made_it(scene: GitScene) -> None:
    """Its worktree is fast-forwarded to what the user has put on the branch, who has another one checked out."""
    await begun(scene)
    scene.git("checkout", "--quiet", "-b", "elsewhere")
    commit(scene.repository, users="u")
    scene.git("branch", "--force", "main", "elsewhere")
    git(scene.place(), "merge", "--quiet", "--ff-only", "main")
    assert await scene.merge("a", "T1", 1, "do")
    assert scene.git("show", "main:users") == "u"


async def test_a_runner_that_was_killed_while_it_moved_the_branch_knows_its_own_commit(scene: GitScene) -> None:
    """Both ends of the move are written down before it begins."""
    await begun(scene)
    merged = await scene.merge("a", "T1", 1, "do")
    file = scene.root / NAME
    file.write_text(f"{scene.git('rev-parse', 'main~1')}\n{merged}\n")
    (scene.repository / ".git" / "logs" / "HEAD").unlink()
    assert await scene.merge("a", "T1", 1, "do") == merged


async def test_a_message_that_names_another_claim_closes_nothing(scene: GitScene) -> None:
    """Also if the agent has made the reference to the other claim's result, too."""
    for agent, task in (("a", "T1"), ("b", "T2")):
        await scene.workplace.check_out(agent, task, 1)
        write(scene.place(agent), **{task: "work"})
    place = scene.place("a")
    git(place, "checkout", "--quiet", "-b", "side")
    commit(place, "side", side="s")
    git(place, "checkout", "--quiet", "-")
    commit(place, "own", own="o")
    git(place, "merge", "--quiet", "--no-ff", "-m", "m\n\nLifefold-Claim: fleet/T2/1", "side")
    git(place, "update-ref", "refs/lifefold/fleet/result/T2/1", "side")
    assert await scene.merge("a", "T1", 1, "do")
    assert await scene.merge("b", "T2", 1, "do")
    assert scene.git("show", "main:T2") == "work"
