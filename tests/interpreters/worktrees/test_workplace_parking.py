"""Work that waits for approval is kept as it was verified, and any free worker merges it."""

from functools import partial
from pathlib import Path

import pytest

from git_faults import Faults
from git_sandbox import GitScene, attempt, commit, git, new_repository, write
from lifefold.interpreters.worktrees.errors import MergeConflict, WorkplaceError
from lifefold.interpreters.worktrees.workplace import FolderWorkplace

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("no_configuration")]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def parked(scene: GitScene, agent: str = "a", task: str = "T1", **files: str) -> None:
    """Let an agent do a task, and keep what it has done."""
    await scene.workplace.check_out(agent, task, 1)
    write(scene.place(agent), **(files or {"done": "d"}))
    await scene.park(agent, task, 1, f"do {task}")


async def test_parked_work_is_not_in_the_branch_before_it_is_merged(scene: GitScene) -> None:
    """The branch and the user's files stay as they are."""
    before = scene.git("rev-parse", "main")
    await parked(scene)
    assert scene.git("rev-parse", "main") == before
    assert scene.is_clean()
    assert not (scene.repository / "done").exists()


@pytest.mark.parametrize("agent", ["a", "b"])
async def test_parked_work_is_merged_by_any_worker(scene: GitScene, agent: str) -> None:
    """From what was recorded: under the title and the claim that has done it; each commit names its own agent."""
    await parked(scene)
    merged = await scene.merge(agent, "T1", 1, "do T1")
    assert scene.git("rev-parse", "main") == merged
    assert scene.merges() == ["Merge T1: do T1"]
    assert "Lifefold-Claim: fleet/T1/1" in scene.git("log", "-1", "--format=%B", "main")
    by = "--format=%(trailers:key=Lifefold-Agent,valueonly)"
    assert [scene.git("log", "-1", by, each).strip() for each in ("main", "main^2")] == [agent, "a"]
    assert (scene.repository / "done").read_text() == "d"


@pytest.mark.parametrize("agent", ["a", "b"])
async def test_parked_work_is_merged_although_its_place_was_given_to_another_task(scene: GitScene, agent: str) -> None:
    """The merging worker keeps the files of its own worktree; work of others was merged meanwhile."""
    await parked(scene)
    await scene.workplace.check_out("a", "T2", 1)
    write(scene.place(), other="changed")
    assert await scene.merge("a", "T2", 1, "do T2")
    await scene.workplace.check_out(agent, "T3", 1)
    write(scene.place(agent), begun="b")
    assert await scene.merge(agent, "T1", 1, "do T1")
    assert scene.merges() == ["Merge T1: do T1", "Merge T2: do T2"]
    assert (scene.repository / "done").read_text() == "d"
    assert (scene.place(agent) / "begun").exists()
    assert not (scene.repository / "begun").exists()


@pytest.mark.parametrize("agent", ["a", "b"])
async def test_kept_work_is_checked_out_for_another_claim_and_is_the_same_work(scene: GitScene, agent: str) -> None:
    """Also by another agent, after other merges, and under the base of the claim that has done it.

    Parked again it is the same commit, if a verification has changed nothing, and is merged as that.
    """
    await parked(scene)
    kept = scene.git("rev-parse", "refs/lifefold/fleet/result/T1/1")
    await scene.workplace.check_out(agent, "T2", 1)
    write(scene.place(agent), more="o")
    assert await scene.merge(agent, "T2", 1, "do T2")
    await scene.workplace.check_out(agent, "T1", 2, (1, kept))
    assert (scene.place(agent) / "done").read_text() == "d"
    assert not (scene.place(agent) / "more").exists()
    base = scene.git("rev-parse", "refs/lifefold/fleet/base/T1/1")
    assert scene.git("rev-parse", "refs/lifefold/fleet/base/T1/2") == base
    assert await scene.workplace.park(agent, "T1", 2, "do T1") == kept
    assert await scene.merge(agent, "T1", 2, "do T1")
    assert scene.git("show", "main:done", "main:more") == "do"


@pytest.mark.parametrize("lost", ["the base", "the commit"])
async def test_kept_work_that_is_lost_is_reported(scene: GitScene, lost: str) -> None:
    """The claim does not begin with other work in its place."""
    await parked(scene)
    kept = scene.git("rev-parse", "refs/lifefold/fleet/result/T1/1")
    if lost == "the base":
        scene.git("update-ref", "-d", "refs/lifefold/fleet/base/T1/1")
    with pytest.raises(WorkplaceError, match=r"The kept work of fleet/T1/1 is lost"):
        await scene.workplace.check_out("b", "T1", 2, (1, kept if lost == "the base" else kept[::-1]))


async def test_a_check_out_of_kept_work_can_be_cut_off_at_any_command(scene: GitScene, faults: Faults) -> None:
    """Performed again, the worktree has the kept work."""
    await parked(scene)
    kept = scene.git("rev-parse", "refs/lifefold/fleet/result/T1/1")
    epoch = 1
    for epoch in range(2, 100):
        cut_off = partial(scene.workplace.check_out, "b", "T1", epoch, (1, kept))
        ended = await faults.crash(cut_off, after=epoch - 2)
        await scene.again().check_out("b", "T1", epoch, (1, kept))
        assert git(scene.place("b"), "rev-parse", "HEAD") == kept
        assert (scene.place("b") / "done").read_text() == "d"
        if ended:
            break
    assert 5 < epoch < 99


async def test_what_is_written_after_the_parking_is_not_merged(scene: GitScene) -> None:
    """A person has agreed to what was parked. What a process of the agent's writes late is found in the salvage."""
    await parked(scene)
    write(scene.place(), late="l")
    assert await scene.merge("a", "T1", 1, "do")
    assert scene.git("ls-tree", "--name-only", "main", "late") == ""
    await scene.again().check_out("a", "T2", 1)
    assert scene.git("show", "refs/lifefold/fleet/salvage/a/T1-1:late") == "l"


@pytest.mark.parametrize("end", ["crash", pytest.param("cancel", marks=pytest.mark.campaign)])
async def test_a_parking_can_be_cut_off_at_any_command(scene: GitScene, faults: Faults, end: str) -> None:
    """Performed again, it keeps all of the work; and once more after it was done, it changes nothing."""
    cut_off, cut = (faults.crash if end == "crash" else faults.cancel), 0
    for cut in range(100):
        task = f"T{cut}"
        await scene.workplace.check_out("a", task, 1)
        commit(scene.place(), own=task)
        git(scene.place(), "checkout", "--quiet", "--detach")
        write(scene.place(), done=task)
        ended = await cut_off(partial(scene.park, "a", task, 1, "do"), after=cut)
        await scene.park("a", task, 1, "do", scene.again())
        kept = scene.git("rev-parse", f"refs/lifefold/fleet/result/{task}/1")
        assert await scene.park("a", task, 1, "do", scene.again()) == kept
        assert scene.git("show", f"{kept}:own", f"{kept}:done") == task * 2
        if ended:
            break
    assert 2 < cut < 99


@pytest.mark.campaign
async def test_a_merge_of_parked_work_can_be_performed_again(scene: GitScene, faults: Faults) -> None:
    """A runner dies at any command of it: the next one merges the work once, in any worktree."""
    cut = 0
    for cut in range(100):
        await parked(scene, task=f"T{cut}", **{f"done{cut}": "d"})
        ended = await faults.crash(partial(scene.merge, "b", f"T{cut}", 1, "do"), after=cut)
        merged = await scene.merge("c", f"T{cut}", 1, "do")
        assert scene.git("rev-parse", "main") == merged
        assert len(scene.merges()) == cut + 1
        if ended:
            break
    assert 2 < cut < 99


async def test_parked_work_that_does_not_fit_any_more_is_a_conflict(scene: GitScene) -> None:
    """It names the paths; the branch stays as it is, and the work on its own."""
    await parked(scene, shared="a\n2\n3\n")
    await parked(scene, "b", "T2", shared="b\n2\n3\n")
    first = await scene.merge("b", "T2", 1, "do")
    with pytest.raises(MergeConflict, match="shared"):
        await scene.merge("b", "T1", 1, "do")
    assert scene.git("rev-parse", "main") == first
    assert scene.git("show", "lifefold/fleet/T1/1:shared").startswith("a")


async def test_a_merge_that_the_agent_did_not_resolve_is_not_parked(scene: GitScene) -> None:
    """No approval is requested for work that can never be merged."""
    await scene.workplace.check_out("a", "T1", 1)
    commit(scene.place(), shared="a\n")
    git(scene.place(), "checkout", "--quiet", "-b", "side", "HEAD~")
    commit(scene.place(), shared="b\n")
    attempt(scene.place(), "merge", "--quiet", "lifefold/fleet/T1/1")
    with pytest.raises(MergeConflict, match="not resolved, in shared"):
        await scene.park("a", "T1", 1, "do")


async def test_a_repository_within_the_work_is_refused_at_the_parking(scene: GitScene) -> None:
    """Before anybody is asked, and again if it is tried again; when it is gone, the work is kept."""
    await scene.workplace.check_out("a", "T1", 1)
    new_repository(scene.place() / "inner")
    for _ in range(2):
        with pytest.raises(WorkplaceError, match="repositories of its own, inner"):
            await scene.park("a", "T1", 1, "do", scene.again())


async def test_what_was_taken_away_before_it_was_parked_is_an_error(scene: GitScene) -> None:
    """It is not taken for work at which nothing was to be done."""
    await scene.workplace.check_out("a", "T1", 1)
    write(scene.place(), done="d")
    await scene.workplace.check_out("a", "T2", 1)
    with pytest.raises(WorkplaceError, match="has been taken away"):
        await scene.park("a", "T1", 1, "do")


async def test_parked_work_survives_the_clearing_of_places(scene: GitScene) -> None:
    """A person may agree after a week."""
    await parked(scene)
    await scene.workplace.clear()
    assert await scene.merge("b", "T1", 1, "do")
    assert (scene.repository / "done").exists()


async def test_work_that_changed_nothing_is_parked_and_merged_as_nothing(scene: GitScene) -> None:
    """A task whose whole is only verified may have nothing of its own; meanwhile the branch has moved."""
    await scene.workplace.check_out("a", "T1", 1)
    await scene.park("a", "T1", 1, "do")
    moved = commit(scene.repository, other="changed")
    assert await scene.merge("b", "T1", 1, "do") == ""
    assert scene.git("rev-parse", "main") == moved


async def test_in_a_folder_what_is_parked_is_where_it_belongs(tmp_path: Path) -> None:
    """There is nothing to be merged, so nothing to be kept."""
    place = FolderWorkplace(tmp_path)
    await place.check_out("a", "T1", 1)
    write(place.folder("a", "T1"), done="d")
    await place.park("a", "T1", 1, "do")
    assert await place.merge("b", "T1", 1, "do", result="") == ""
    assert (place.folder("b", "T1") / "done").read_text() == "d"
