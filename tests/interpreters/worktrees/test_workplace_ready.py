"""Verified work on a ready branch: made once, at the verified commit, through crashes and taken names."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from git_faults import Faults
from git_sandbox import GitScene, write
from lifefold.interpreters.worktrees.errors import InTheWayError, WorkplaceError
from lifefold.interpreters.worktrees.workplace import FolderWorkplace

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("no_configuration")]

READY = "lifefold-ready/fleet/T1"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def parked(scene: GitScene, task: str = "T1", epoch: int = 1, **files: str) -> str:
    """Let an agent do a task, and return its verified commit."""
    await scene.workplace.check_out("a", task, epoch)
    write(scene.place(), **(files or {"done": "d"}))
    return await scene.park("a", task, epoch, f"do {task}")


def ready(scene: GitScene) -> dict[str, str]:
    """Return the ready branches with their commits."""
    listed = scene.git("for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", "refs/heads/lifefold-ready")
    return dict(line.split(" ") for line in listed.splitlines())


async def test_a_ready_branch_has_the_verified_commit_and_nothing_is_merged(scene: GitScene) -> None:
    """Its commit has the subject and the trailers of the claim; the target branch and the user's files stay."""
    before = scene.git("rev-parse", "main")
    result = await parked(scene)
    assert await scene.workplace.make_ready("T1", 1, result) == READY
    assert ready(scene) == {READY: result}
    said = scene.git("log", "-1", "--format=%B", READY).split("\n")
    assert said[0] == "T1: do T1"
    assert {"Lifefold-Task: T1", "Lifefold-Claim: fleet/T1/1", "Lifefold-Agent: a"} <= {*said}
    assert scene.git("diff", "--name-only", "main", READY) == "done"
    assert scene.git("rev-parse", "main") == before
    assert scene.is_clean()


async def test_a_ready_branch_can_be_cut_off_at_any_command(scene: GitScene, faults: Faults) -> None:
    """A repetition finds the branch at the claim's commit, and makes no second one."""
    result = await parked(scene)
    after = 0
    while not await faults.crash(partial(scene.again().make_ready, "T1", 1, result), after=after):
        after += 1
    assert after > 0
    assert await scene.again().make_ready("T1", 1, result) == READY
    assert ready(scene) == {READY: result}


def taken(scene: GitScene) -> None:
    """Let the user have a branch of that name."""
    scene.git("branch", READY, "main")


def taken_twice(scene: GitScene) -> None:
    """Let the user have a branch of that name, and one of the next name."""
    taken(scene)
    scene.git("branch", f"{READY}-2", "main")


def taken_below(scene: GitScene) -> None:
    """Let the user have a branch for which git needs that name as a folder."""
    scene.git("branch", f"{READY}/more", "main")


@pytest.mark.parametrize(
    ("take", "name"), [(taken, f"{READY}-2"), (taken_twice, f"{READY}-3"), (taken_below, f"{READY}-2")]
)
async def test_a_branch_of_the_user_is_never_moved(
    scene: GitScene, take: Callable[[GitScene], None], name: str
) -> None:
    """The ready branch has a number then, also if it is made again."""
    result = await parked(scene)
    take(scene)
    before = ready(scene)
    for _ in range(2):
        assert await scene.again().make_ready("T1", 1, result) == name
    assert ready(scene) == {**before, name: result}


async def test_a_branch_that_appears_at_the_last_moment_is_not_moved(scene: GitScene, faults: Faults) -> None:
    """The name is taken only if it is free."""
    result = await parked(scene)
    faults.before("update-ref", partial(taken, scene))
    assert await scene.workplace.make_ready("T1", 1, result) == f"{READY}-2"
    assert ready(scene) == {READY: scene.git("rev-parse", "main"), f"{READY}-2": result}


@pytest.mark.parametrize("name", ["lifefold-ready", "lifefold-ready/fleet"])
async def test_a_branch_with_the_name_of_the_folder_is_waited_for(scene: GitScene, name: str) -> None:
    """The work is done, so it waits until the user has renamed the branch."""
    result = await parked(scene)
    scene.git("branch", name, "main")
    with pytest.raises(InTheWayError, match=f"refs/heads/{name} .*Rename it"):
        await scene.workplace.make_ready("T1", 1, result)
    scene.git("branch", "--move", name, "mine")
    assert await scene.workplace.make_ready("T1", 1, result) == READY


async def test_work_without_a_change_has_no_ready_branch(scene: GitScene) -> None:
    """As nothing would be merged."""
    result = await parked(scene, other="as it was\n")
    assert await scene.workplace.make_ready("T1", 1, result) == ""
    assert ready(scene) == {}


async def test_ready_work_is_not_kept_as_salvage(scene: GitScene) -> None:
    """The next task begins at the target branch, and the ready branch outlives a new run of the fleet."""
    result = await parked(scene)
    await scene.workplace.make_ready("T1", 1, result)
    second = await parked(scene, "T2", more="m")
    assert scene.salvaged() == {}
    assert scene.git("diff", "--name-only", "main", second) == "more"
    await scene.again().take_over("another run", scene.root / "log")
    assert ready(scene) == {READY: result}
    assert [*scene.salvaged()] == ["earlier/T2-1"]


async def test_a_new_run_of_the_same_name_has_a_branch_of_its_own(scene: GitScene) -> None:
    """The branch of the earlier run is a branch of that name."""
    first = await parked(scene)
    await scene.workplace.make_ready("T1", 1, first)
    await scene.again().take_over("another run", scene.root / "log")
    second = await parked(scene, done="again")
    assert await scene.workplace.make_ready("T1", 1, second) == f"{READY}-2"
    assert ready(scene) == {READY: first, f"{READY}-2": second}


async def test_a_claim_that_was_never_checked_out_has_no_ready_branch(scene: GitScene) -> None:
    """That is an error of the log."""
    with pytest.raises(WorkplaceError, match="fleet/T1/1 was never checked out"):
        await scene.workplace.make_ready("T1", 1, scene.git("rev-parse", "main"))


async def test_plain_folders_have_no_branches(tmp_path: Path) -> None:
    """The work stays in the folder."""
    assert await FolderWorkplace(tmp_path).make_ready("T1", 1, "c0ffee") == ""
