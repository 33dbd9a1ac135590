"""Whether a claim has changes: the work of a session that has died."""

from pathlib import Path

import pytest

from git_sandbox import GitScene, commit, git, write
from lifefold.interpreters.worktrees.errors import WorkplaceError
from lifefold.interpreters.worktrees.workplace import FolderWorkplace

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("no_configuration")]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def differs(scene: GitScene) -> bool:
    """Return what is found, twice: asked again by the next runner it is the same."""
    found = await scene.workplace.differs("a", "T1", 1)
    assert await scene.again().differs("a", "T1", 1) is found
    return found


@pytest.mark.parametrize("committed", [True, False], ids=["committed", "not committed"])
async def test_what_was_changed_is_a_difference_committed_or_not(scene: GitScene, committed: object) -> None:
    """Also a file that git does not know yet."""
    await scene.workplace.check_out("a", "T1", 1)
    assert not await differs(scene)
    (commit if committed else write)(scene.place(), done="d")
    before = git(scene.place(), "status", "--porcelain")
    assert await differs(scene)
    assert git(scene.place(), "status", "--porcelain") == before


async def test_commits_that_come_to_nothing_are_no_difference(scene: GitScene) -> None:
    """An empty difference is never done (E40)."""
    await scene.workplace.check_out("a", "T1", 1)
    commit(scene.place(), done="d")
    git(scene.place(), "rm", "--quiet", "done")
    git(scene.place(), "-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "--quiet", "-m", "undone")
    assert not await differs(scene)


async def test_what_others_have_merged_meanwhile_is_no_difference(scene: GitScene) -> None:
    """It is held against where the claim began, not against the branch as it is."""
    await scene.workplace.check_out("a", "T1", 1)
    commit(scene.repository, other="o")
    assert not await differs(scene)


async def test_differences_of_another_claims_worktree_are_unknown(scene: GitScene) -> None:
    """What is in it is not this one's."""
    await scene.workplace.check_out("a", "T1", 1)
    await scene.workplace.check_out("a", "T2", 1)
    write(scene.place(), done="d")
    with pytest.raises(WorkplaceError, match="has been taken away"):
        await scene.workplace.differs("a", "T1", 1)


async def test_in_plain_folders_nothing_is_known_to_differ(tmp_path: Path) -> None:
    """They are kept between attempts, and no claim begins anywhere."""
    place = FolderWorkplace(tmp_path)
    await place.check_out("a", "T1", 1)
    write(place.folder("a", "T1"), done="d")
    assert not await place.differs("a", "T1", 1)
