"""What an operator's machine has of the work at a git remote: brought, named as at the remote, and removed there."""

from collections.abc import Callable
from pathlib import Path

import pytest

from git_sandbox import write
from lifefold.interpreters.worktrees.cloned_workplace import ClonedWorkplace
from lifefold.interpreters.worktrees.errors import InTheWayError
from lifefold.interpreters.worktrees.locks import holding
from lifefold.interpreters.worktrees.mirror import LOCK, Mirror
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


async def test_one_command_at_a_time_brings_work_into_a_mirror(
    sandbox: RemoteSandbox, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others wait, such as pages and a command; as long as for the slowest remote."""
    async with holding(mirror.folder / LOCK):
        found = await mirror.unmerged(limit_ms=100)
        assert found.why == f"the remote {sandbox.url} has not sent all work within 100 ms"
        monkeypatch.setattr("lifefold.interpreters.worktrees.mirror.FETCH_MS", 0)
        with pytest.raises(InTheWayError, match="is still at work here"):
            await mirror.bring()
    await mirror.bring()
    assert await mirror.remote.values("refs/heads/main") == {"refs/heads/main": sandbox.tip()}


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
    left = await mirror.left()
    assert set(left.unmerged or {}) == stays
    assert set((await mirror.remove(left, unmerged=False)).unmerged or {}) == stays
    assert set(sandbox.git("for-each-ref", "--format=%(refname)", "refs/lifefold/").split()) == {*stays, other}
    assert (await mirror.remove(await mirror.left(), unmerged=True)).unmerged == {}
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


class Overtaken(Mirror):
    """A mirror whose remote changes as soon as its references are brought."""

    overtake: Callable[[], None]

    async def bring(self, task: str = "") -> None:
        await super().bring(task)
        self.overtake()


async def test_what_the_remote_gets_while_it_is_read_counts_as_unmerged(sandbox: RemoteSandbox, tmp_path: Path) -> None:
    """That is a reference that appears, one that moves, and one of an unknown kind. The base of such work stays too."""
    async with hosts(sandbox, "one") as (host,):
        await merged(host, "T1", first="1\n")
        await merged(host, "T2", second="2\n")
        await merged(host, "T3", third="3\n")
        await kept(host, "T4", fourth="4\n")
    work, moved = sandbox.git("rev-parse", f"{PREFIX}work/T4/1"), f"{PREFIX}result/T1/1"
    late, unknown, deep = f"{PREFIX}work/T3/2", f"{PREFIX}note/T2/1", f"{PREFIX}work/T2/1/more"
    sandbox.git("update-ref", "-d", f"{PREFIX}work/T2/1")
    sandbox.git("update-ref", unknown, work)
    sandbox.git("update-ref", deep, work)

    def overtake() -> None:
        sandbox.git("update-ref", late, work)
        sandbox.git("update-ref", moved, work)

    mirror = Overtaken(str(sandbox.url), tmp_path / "mirror.git", FLEET, RUN, "main")
    mirror.overtake = overtake
    left = await mirror.left()
    of_moved = {f"{PREFIX}{kind}/T1/1" for kind in ("base", "work", "result")}
    of_unknown = {f"{PREFIX}{kind}/T2/1" for kind in ("base", "note", "result")}
    open_work = {f"{PREFIX}{kind}/T4/1" for kind in ("base", "work")}
    assert set(left.unmerged or {}) == {late, deep} | of_moved | of_unknown | open_work
    assert set(left.merged or {}) == {f"{PREFIX}{kind}/T3/1" for kind in ("base", "work", "result")}


async def test_only_what_was_found_is_removed(sandbox: RemoteSandbox, mirror: Mirror) -> None:
    """What appears or moves after that stays, even if the removal of unmerged work is asked for."""
    async with hosts(sandbox, "one") as (host,):
        await merged(host, "T1", first="1\n")
        await kept(host, "T2", second="2\n")
    left, late, moved = await mirror.left(), f"{PREFIX}work/T3/1", f"{PREFIX}work/T1/1"
    for name in (late, moved):
        sandbox.git("update-ref", name, f"{PREFIX}work/T2/1")
    assert set((await mirror.remove(left, unmerged=True)).unmerged or {}) == {late, moved}


async def test_a_remote_that_refuses_the_removal_is_quoted(sandbox: RemoteSandbox, mirror: Mirror) -> None:
    """With the words of its hook."""
    async with hosts(sandbox, "one") as (host,):
        await kept(host, "T1", first="1\n")
    sandbox.hook("pre-receive", "echo nothing is deleted here >&2", "exit 1")
    with pytest.raises(RefusedPushError, match="nothing is deleted here"):
        await mirror.remove(await mirror.left(), unmerged=True)
