"""What an operator's machine has of the work at a git remote: brought, named as at the remote, and removed there."""

from pathlib import Path

import pytest

from git_sandbox import write
from lifefold.interpreters.worktrees.cloned_workplace import ClonedWorkplace
from lifefold.interpreters.worktrees.mirror import Mirror
from lifefold.interpreters.worktrees.remote import RefusedPushError
from remote_sandbox import FLEET, RUN, RemoteSandbox, hosts

pytestmark = pytest.mark.anyio

PREFIX = f"refs/lifefold/{FLEET}/{RUN}/"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def sandbox(tmp_path: Path) -> RemoteSandbox:
    return RemoteSandbox(tmp_path)


@pytest.fixture
def mirror(sandbox: RemoteSandbox, tmp_path: Path) -> Mirror:
    return Mirror(str(sandbox.url), tmp_path / "mirror.git", FLEET, RUN, "main")


async def kept(host: ClonedWorkplace, task: str, **files: str) -> None:
    """Work at a task, and keep the files as at the end of a session."""
    await host.check_out("a", task, 1)
    write(host.folder("a", task), **files)
    await host.keep("a", task, 1)


async def merged(host: ClonedWorkplace, task: str, **files: str) -> None:
    await kept(host, task, **files)
    await host.merge("a", task, 1, task, result=await host.park("a", task, 1, task))


async def test_unmerged_work_is_found_without_what_is_merged_or_changes_nothing(
    sandbox: RemoteSandbox, mirror: Mirror
) -> None:
    """The commit to be merged stands for the files of its claim. What the remote no longer has is forgotten."""
    async with hosts(sandbox, "one") as (host,):
        await merged(host, "T1", first="1\n")
        await kept(host, "T2")
        await kept(host, "T3", third="3\n")
        await kept(host, "T/4", fourth="4\n")
        result = await host.park("a", "T/4", 1, "T/4")
    found = await mirror.unmerged(limit_ms=60_000)
    assert found.why == ""
    assert found.places == {"T3": (f"{PREFIX}work/T3/1",), "T%2F4": (f"{PREFIX}result/T%2F4/1",)}
    sandbox.git("update-ref", "refs/heads/main", result)
    sandbox.git("update-ref", "-d", f"{PREFIX}work/T3/1")
    assert (await mirror.unmerged(limit_ms=60_000)).places == {}


async def test_a_slow_remote_is_not_waited_for(sandbox: RemoteSandbox, mirror: Mirror) -> None:
    """The answer says that it is not whole."""
    found = await mirror.unmerged(limit_ms=0)
    assert found.places == {}
    assert found.why == f"the remote {sandbox.url} has not sent all work within 0 ms"


async def test_only_the_references_of_this_log_are_removed(sandbox: RemoteSandbox, mirror: Mirror) -> None:
    """Unmerged work stays unless that is asked for. States of sessions are no work."""
    async with hosts(sandbox, "one") as (host,):
        await merged(host, "T1", first="1\n")
        await kept(host, "T2", second="2\n")
        write(host.folder("a", "T2"), state="s\n")
        await host.keep_state("T2", 1, host.folder("a", "T2") / "state")
    tip, other = sandbox.tip(), f"refs/lifefold/{FLEET}/ffff/work/T1/1"
    sandbox.git("update-ref", other, tip)
    stays = {f"{PREFIX}base/T2/1", f"{PREFIX}work/T2/1"}
    assert set((await mirror.left()).unmerged or {}) == stays
    assert set((await mirror.remove(unmerged=False)).unmerged or {}) == stays
    assert set(sandbox.git("for-each-ref", "--format=%(refname)", "refs/lifefold/").split()) == {*stays, other}
    assert (await mirror.remove(unmerged=True)).unmerged == {}
    assert sandbox.git("for-each-ref", "--format=%(refname)").split() == ["refs/heads/main", other]
    assert sandbox.tip() == tip


async def test_work_on_a_ready_branch_is_not_lost_with_its_references(sandbox: RemoteSandbox, mirror: Mirror) -> None:
    """Once the branch is gone, the references are the only copy."""
    async with hosts(sandbox, "one") as (host,):
        await kept(host, "T1", first="1\n")
        ready = await host.make_ready("T1", 1, await host.park("a", "T1", 1, "T1"))
    assert (await mirror.left()).unmerged == {}
    sandbox.git("update-ref", "-d", f"refs/heads/{ready}")
    assert f"{PREFIX}result/T1/1" in ((await mirror.left()).unmerged or {})


async def test_a_reference_that_has_moved_is_not_deleted(sandbox: RemoteSandbox, mirror: Mirror) -> None:
    """Another process has gone on with it. One that is gone already is no error."""
    async with hosts(sandbox, "one") as (host,):
        await kept(host, "T1", first="1\n")
    name, gone = f"{PREFIX}work/T1/1", f"{PREFIX}work/T2/1"
    await mirror.begin()
    await mirror.remote.delete({name: sandbox.tip(), gone: sandbox.tip()})
    assert name in await mirror.remote.values(name)


async def test_a_remote_that_refuses_the_removal_is_quoted(sandbox: RemoteSandbox, mirror: Mirror) -> None:
    """With the words of its hook."""
    async with hosts(sandbox, "one") as (host,):
        await kept(host, "T1", first="1\n")
    sandbox.hook("pre-receive", "echo nothing is deleted here >&2", "exit 1")
    with pytest.raises(RefusedPushError, match="nothing is deleted here"):
        await mirror.remove(unmerged=True)
