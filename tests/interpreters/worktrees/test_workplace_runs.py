"""Workplaces across runs: a run waits for the git of a killed runner, and a fleet's name belongs to one run."""

import os
import signal
from pathlib import Path

import pytest

from back_ends import in_turn
from git_sandbox import GitScene, commit, git, write
from lifefold.interpreters.processes.identity import identify
from lifefold.interpreters.worktrees import locks
from lifefold.interpreters.worktrees.errors import InTheWayError, WorkplaceError
from lifefold.interpreters.worktrees.worktrees import GitWorkplace
from session_scripts import Bell, must_die
from slow_git import Slow, killed_in_git

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("no_configuration")]
anyio_backend = in_turn


@pytest.fixture
def slow(scene: GitScene, tmp_path: Path) -> Slow:
    return Slow(scene, tmp_path)


@pytest.mark.parametrize("operation", [("prepare", "a"), ("check_out", "a", "T1", "1")], ids=["prepare", "check_out"])
async def test_no_runner_works_beside_a_git_that_a_killed_runner_has_left(
    scene: GitScene, slow: Slow, monkeypatch: pytest.MonkeyPatch, operation: tuple[str, ...]
) -> None:
    """The next runner waits for it, names it, and then finds a sound worktree that is not removed."""
    left = await killed_in_git(scene, slow, *operation)
    with monkeypatch.context() as patch:
        patch.setattr(locks, "LIMIT_MS", 1)
        with pytest.raises(InTheWayError, match=f"still at work here: .*process {left.pid}"):
            await scene.workplace.check_out("a", "T1", 1)
    slow.let_go()
    await must_die(left)
    await scene.workplace.check_out("a", "T1", 1)
    write(scene.place(), done="d")
    assert await scene.merge("a", "T1", 1, "do")
    assert not (scene.root / ".aside").exists()


async def test_a_merge_waits_for_that_of_a_killed_runner(
    scene: GitScene, slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fast-forward in the user's working tree that is not over is not begun a second time."""
    (scene.root.parent / "quick").touch()
    for agent, task in (("a", "T1"), ("b", "T2")):
        await scene.workplace.check_out(agent, task, 1)
        write(scene.place(agent), **{task: "done", "slow": f"by {agent}" if agent == "a" else "s"})
    (scene.root.parent / "quick").unlink()
    left = await killed_in_git(scene, slow, "merge", "a", "T1", "1", "do")
    with monkeypatch.context() as patch:
        patch.setattr(locks, "LIMIT_MS", 1)
        with pytest.raises(InTheWayError, match="still at work here"):
            await scene.merge("b", "T2", 1, "do")
    slow.let_go()
    await must_die(left)
    assert await scene.merge("b", "T2", 1, "do")
    assert await scene.merge("a", "T1", 1, "do")
    assert scene.merges() == ["Merge T2: do", "Merge T1: do"]
    assert scene.is_clean()


async def test_what_a_git_leaves_in_the_background_keeps_no_lock_of_a_living_runner(
    scene: GitScene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A filter that became a daemon has the lock's descriptor, but not the lock."""
    bell, apart = Bell(tmp_path / "bell"), Bell(tmp_path / "apart")
    commit(scene.repository, slow="s", **{".gitattributes": "slow filter=demon\n"})
    daemon = f"setsid sh -c 'echo > {apart}; echo $$ > {bell}; exec sleep 1000' < /dev/null > /dev/null 2>&1 &"
    scene.git("config", "filter.demon.smudge", f"{daemon} read -r _ < {apart}; cat")
    await scene.workplace.prepare("a")
    found = await bell.pid()
    try:
        monkeypatch.setattr(locks, "LIMIT_MS", 1)
        await scene.again().prepare("a")
        assert identify(found.pid) == found
    finally:
        os.kill(found.pid, signal.SIGKILL)


# -- one run for a name


async def test_a_second_run_of_a_fleet_is_refused_while_the_first_works(scene: GitScene) -> None:
    """It is told which log the first has, changes nothing, and may begin when the first has gone."""
    first = await GitWorkplace.open(scene.repository, scene.root, "fleet")
    await first.take_over("first", Path("/some/log.db"))
    await first.check_out("a", "T1", 1)
    before = scene.git("for-each-ref")
    with pytest.raises(WorkplaceError, match=r"'fleet' is at work in this repository, with the log /some/log\.db"):
        await GitWorkplace.open(scene.repository, scene.root.parent / "other", "fleet")
    (await GitWorkplace.open(scene.repository, scene.root.parent / "other", "another")).close()
    assert scene.git("for-each-ref") == before
    first.close()
    (await GitWorkplace.open(scene.repository, scene.root.parent / "other", "fleet")).close()


async def test_a_run_cannot_go_on_after_another_has_taken_over_its_name(scene: GitScene) -> None:
    """Its claims' references are the other one's now; who has not been replaced goes on."""
    for run in ("first", "second"):
        workplace = await GitWorkplace.open(scene.repository, scene.root, "fleet")
        await workplace.take_over(run, Path(f"/some/{run}.db"))
        workplace.close()
    again = await GitWorkplace.open(scene.repository, scene.root, "fleet", "main")
    await again.go_on("second")
    with pytest.raises(WorkplaceError, match=r"Another run has taken over .* /some/second\.db"):
        await again.go_on("first")
    again.close()


async def test_opening_a_workplace_leaves_every_reference_as_it_is(scene: GitScene) -> None:
    """Whether the run can begin is not certain yet; what an earlier one has left goes aside when it does."""
    await scene.workplace.check_out("a", "T1", 1)
    left = commit(scene.place(), left="l")
    before = scene.git("for-each-ref")
    again = await GitWorkplace.open(scene.repository, scene.root, "fleet")
    assert scene.git("for-each-ref") == before
    await again.take_over("second", scene.root / "log")
    assert scene.salvaged() == {"earlier/T1-1": left}
    assert git(scene.repository, "branch", "--list", "lifefold/*") == ""
    again.close()
