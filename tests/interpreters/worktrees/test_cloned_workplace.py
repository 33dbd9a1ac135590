"""The worktrees of hosts that share a git remote and no disk: what one host has done, another one goes on with."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import anyio
import pytest

from git_faults import Faults
from git_sandbox import git, names, write
from lifefold.interpreters.worktrees import remote_files
from lifefold.interpreters.worktrees.cloned_workplace import ClonedWorkplace
from lifefold.interpreters.worktrees.errors import InTheWayError, MergeConflict, WorkplaceError
from lifefold.interpreters.worktrees.remote import Change, OtherHostError, RefusedPushError, RemoteAwayError
from remote_sandbox import RemoteSandbox, hosts

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def sandbox(tmp_path: Path) -> RemoteSandbox:
    return RemoteSandbox(tmp_path)


async def worked(host: ClonedWorkplace, agent: str, task: str, epoch: int = 1, **files: str) -> None:
    """Check a task out, and write files as a session does."""
    await host.check_out(agent, task, epoch)
    write(host.folder(agent, task), **files)


async def merged(host: ClonedWorkplace, agent: str, task: str, result: str = "", epoch: int = 1) -> str:
    """Merge the work of a claim as a fleet does: the log has the commit first."""
    found = result or await host.park(agent, task, epoch, f"Do {task}")
    return await host.merge(agent, task, epoch, f"Do {task}", result=found)


async def test_the_work_of_two_hosts_is_merged_at_the_remote(sandbox: RemoteSandbox) -> None:
    """Each host has a clone of its own; the second merge is upon the first one."""
    async with hosts(sandbox, "one", "two") as (one, two):
        await worked(one, "a", "T1", first="1\n")
        await worked(two, "b", "T2", second="2\n")
        assert await merged(one, "a", "T1")
        last = await merged(two, "b", "T2")
        assert sandbox.tip() == last
        assert sandbox.merges() == ["Merge T2: Do T2", "Merge T1: Do T1"]
        assert {"first", "second"} <= sandbox.files()
        assert sandbox.is_sound()


async def test_new_work_begins_at_the_present_tip_of_the_remote(sandbox: RemoteSandbox) -> None:
    """A commit of another person is in the next worktree, also at a host whose clone is older."""
    async with hosts(sandbox, "one") as (one,):
        await worked(one, "a", "T1", first="1\n")
        sandbox.push(theirs="x\n")
        await merged(one, "a", "T1")
        await one.check_out("a", "T2", 1)
        assert {"theirs", "first"} <= names(one.folder("a", "T2"))


async def test_a_repeated_merge_answers_the_same(sandbox: RemoteSandbox) -> None:
    """The host that merged may be lost before its report; another one finds the merge at the remote."""
    async with hosts(sandbox, "one", "two") as (one, two):
        await worked(one, "a", "T1", first="1\n")
        result = await one.park("a", "T1", 1, "Do T1")
        commit = await merged(one, "a", "T1", result)
        sandbox.push(theirs="x\n")
        assert await merged(two, "a", "T1", result) == commit
        assert await merged(one, "a", "T1", result) == commit
        assert sandbox.merges() == ["Merge T1: Do T1"]


async def test_finished_work_of_a_lost_host_is_verified_and_merged_by_another_one(sandbox: RemoteSandbox) -> None:
    """The files are there as the session left them: committed, changed, new and removed ones."""
    async with hosts(sandbox, "one", "two") as (one, two):
        await worked(one, "a", "T1", shared="changed\n", new="n\n")
        (one.folder("a", "T1") / "other").unlink()
        git(one.folder("a", "T1"), "commit", "--quiet", "--message=by the agent", "shared")
        await one.keep("a", "T1", 1)
        await two.enter("a", "T1", 1)
        there = two.folder("a", "T1")
        assert names(there) - {".git"} == {".gitignore", "shared", "new"}
        assert git(there, "log", "-1", "--format=%s") == "by the agent"
        assert await two.differs("a", "T1", 1)
        assert await merged(two, "a", "T1")
        assert sandbox.files() == {".gitignore", "shared", "new"}


async def test_files_of_a_verification_come_with_the_work(sandbox: RemoteSandbox) -> None:
    """A later keeping replaces an earlier one; without a change nothing is pushed."""
    async with hosts(sandbox, "one", "two") as (one, two):
        await worked(one, "a", "T1", new="n\n")
        await one.keep("a", "T1", 1)
        before = sandbox.git("for-each-ref")
        await one.keep("a", "T1", 1)
        assert sandbox.git("for-each-ref") == before
        write(one.folder("a", "T1"), report="r\n")
        await one.keep("a", "T1", 1)
        await merged(two, "a", "T1")
        assert {"new", "report"} <= sandbox.files()


async def test_to_keep_changes_nothing_in_the_worktree(sandbox: RemoteSandbox) -> None:
    """A verification sees the worktree as the session left it."""
    async with hosts(sandbox, "one") as (one,):
        await worked(one, "a", "T1", shared="changed\n", new="n\n")
        there = one.folder("a", "T1")
        before = git(there, "status", "--porcelain"), git(there, "rev-parse", "HEAD")
        await one.keep("a", "T1", 1)
        assert (git(there, "status", "--porcelain"), git(there, "rev-parse", "HEAD")) == before


async def test_work_that_its_lost_host_has_not_pushed_is_lost(sandbox: RemoteSandbox) -> None:
    """The task is tried again: no other work passes for it."""
    async with hosts(sandbox, "one", "two") as (one, two):
        await worked(one, "a", "T1", first="1\n")
        await worked(two, "a", "T0", other="not this\n")
        with pytest.raises(WorkplaceError, match="The work of fleet/T1/1 was on a host that is lost"):
            await two.enter("a", "T1", 1)
        with pytest.raises(WorkplaceError, match="host that is lost"):
            await two.park("a", "T1", 1, "Do T1")


async def test_an_unresolved_merge_is_not_kept(sandbox: RemoteSandbox) -> None:
    """Its conflict would be gone in a commit."""
    async with hosts(sandbox, "one", "two") as (one, two):
        await worked(one, "a", "T1", shared="ours\n")
        there = one.folder("a", "T1")
        git(there, "commit", "--quiet", "--all", "--message=ours")
        git(there, "switch", "--quiet", "--detach", "HEAD^")
        write(there, shared="theirs\n")
        git(there, "commit", "--quiet", "--all", "--message=theirs")
        theirs = git(there, "rev-parse", "HEAD")
        git(there, "switch", "--quiet", "lifefold/fleet/T1/1")
        with pytest.raises(Exception, match="returned non-zero"):
            git(there, "merge", theirs)
        await one.keep("a", "T1", 1)
        with pytest.raises(WorkplaceError, match="host that is lost"):
            await two.enter("a", "T1", 1)


async def test_approved_work_is_merged_by_any_host(sandbox: RemoteSandbox) -> None:
    """Another agent on another host has never seen the claim; or it verifies the work again."""
    async with hosts(sandbox, "one", "two", "three") as (one, two, three):
        await worked(one, "a", "T1", first="1\n")
        result = await one.park("a", "T1", 1, "Do T1")
        await three.check_out("c", "T1", 2, (1, result))
        assert (three.folder("c", "T1") / "first").is_file()
        assert await two.merge("b", "T1", 1, "Do T1", result=result) == sandbox.tip()
        assert "first" in sandbox.files()


async def test_a_resumed_agent_finds_its_changes_on_another_host(sandbox: RemoteSandbox) -> None:
    """They are those of its last claim of the task, and not of another agent's later one."""
    async with hosts(sandbox, "one", "two") as (one, two):
        for agent, epoch in (("a", 1), ("b", 2)):
            await worked(one, agent, "T1", epoch, **{f"by-{agent}": "x\n"})
            await one.keep(agent, "T1", epoch)
        await two.check_out("a", "T1", 3, resumes=True)
        assert names(two.folder("a", "T1")) - {".git"} == {".gitignore", "shared", "other", "by-a"}
        await two.check_out("b", "T1", 4)
        assert "by-b" not in names(two.folder("b", "T1"))


async def test_a_host_that_takes_a_claim_over_replaces_what_the_lost_one_kept(sandbox: RemoteSandbox) -> None:
    """The remote has the value of the lost host, which the other one does not expect at first."""
    async with hosts(sandbox, "one", "two", "three") as (one, two, three):
        await worked(one, "a", "T1", first="1\n")
        await one.keep("a", "T1", 1)
        await two.enter("a", "T1", 1)
        write(two.folder("a", "T1"), second="2\n")
        await two.keep("a", "T1", 1)
        await three.enter("a", "T1", 1)
        assert {"first", "second"} <= names(three.folder("a", "T1"))


async def test_the_state_that_a_session_keeps_is_at_the_next_host_to_the_byte(sandbox: RemoteSandbox) -> None:
    """A host that has it brings the later one; a state that was removed is removed there, too."""
    one_s, two_s = sandbox.folder / "s1" / "T1-1.json", sandbox.folder / "s2" / "T1-1.json"
    async with hosts(sandbox, "one", "two") as (one, two):
        await two.bring_state("T1", 1, two_s)
        assert not two_s.exists()
        one_s.parent.mkdir()
        for content in (b"\xff{}\n\n", b"{}"):
            one_s.write_bytes(content)
            await one.keep_state("T1", 1, one_s)
            await two.bring_state("T1", 1, two_s)
            assert two_s.read_bytes() == content
        two_s.write_bytes(b"later")
        await two.bring_state("T1", 1, two_s)
        assert two_s.read_bytes() == b"later"
        two_s.unlink()
        await two.keep_state("T1", 1, two_s)
        await one.bring_state("T1", 1, one_s)
        assert not one_s.exists()


async def test_a_state_that_is_too_large_is_refused(sandbox: RemoteSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is cut off."""
    monkeypatch.setattr(remote_files, "MOST_BYTES", 3)
    file = sandbox.folder / "state.json"
    async with hosts(sandbox, "one") as (one,):
        file.write_bytes(b"1234")
        with pytest.raises(WorkplaceError, match="has more than 3 bytes"):
            await one.keep_state("T1", 1, file)
        file.write_bytes(b"123")
        await one.keep_state("T1", 1, file)
        assert sandbox.git("show", "refs/lifefold/fleet/0123abcd/state/T1/1:file") == "123"


async def test_a_conflict_with_the_work_of_another_host_is_reported(sandbox: RemoteSandbox) -> None:
    """Nothing is pushed then; the work stays at the remote."""
    async with hosts(sandbox, "one", "two") as (one, two):
        await worked(one, "a", "T1", shared="one\n")
        await worked(two, "b", "T2", shared="two\n")
        tip = await merged(one, "a", "T1")
        with pytest.raises(MergeConflict, match="conflicts with what others have merged meanwhile, in shared"):
            await merged(two, "b", "T2")
        assert sandbox.tip() == tip
        result = sandbox.git("rev-parse", "refs/lifefold/fleet/0123abcd/result/T2/1")
        assert sandbox.git("show", f"{result}:shared") == "two"


async def test_a_push_that_stops_in_the_middle_and_comes_too_late_moves_nothing(sandbox: RemoteSandbox) -> None:
    """The remote has taken the push of one host, and not moved the branch yet; another host merges meanwhile."""
    async with hosts(sandbox, "one", "two") as (one, two):
        await worked(one, "a", "T1", first="1\n")
        result = await one.park("a", "T1", 1, "Do T1")
        begun, goes_on, found = sandbox.folder / "begun", sandbox.folder / "goes_on", list[str]()
        wait = f"while [ ! -e {goes_on} ]; do sleep 0.05; done"
        sandbox.hook("pre-receive", f"if mkdir {begun} 2> {sandbox.folder}/said; then {wait}; fi")

        async def late() -> None:
            found.append(await merged(one, "a", "T1", result))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(late)
            while not begun.exists():  # noqa: ASYNC110 - another process makes it
                await anyio.sleep(0.02)
            found.append(await merged(two, "b", "T1", result))
            goes_on.touch()
        assert found == [sandbox.tip()] * 2
        assert sandbox.merges() == ["Merge T1: Do T1"]
        assert sandbox.is_sound()


async def test_a_branch_that_others_move_is_merged_with_where_it_is(
    sandbox: RemoteSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another person pushes between the merge and its push: the merge is repeated upon that commit."""
    async with hosts(sandbox, "one") as (one,):
        await worked(one, "a", "T1", first="1\n")
        result = await one.park("a", "T1", 1, "Do T1")
        push, theirs = one.remote.push, list[str]()

        async def second(*changes: Change) -> bool:
            if not theirs:
                theirs.append(sandbox.push(theirs="x\n"))
            return await push(*changes)

        monkeypatch.setattr(one.remote, "push", second)
        commit = await merged(one, "a", "T1", result)
        assert sandbox.git("rev-parse", f"{commit}^1") == theirs[0]
        assert {"first", "theirs"} <= sandbox.files()


async def test_a_merge_can_be_cut_off_at_any_command_and_another_host_completes_it(
    sandbox: RemoteSandbox, faults: Faults
) -> None:
    """A host dies in any command after its session has ended: what the log has by then is enough, and counts once."""
    async with hosts(sandbox, "one", "two") as (one, two):
        after, is_whole = 0, False
        while not is_whole:
            task, log = f"T{after}", list[str]()
            await worked(one, "a", task, 1, **{task: "done\n"})
            await one.keep("a", task, 1)

            async def verified_and_merged(host: ClonedWorkplace, task: str, log: list[str]) -> str:
                await host.enter("a", task, 1)
                if not log:
                    log.append(await host.park("a", task, 1, f"Do {task}"))
                return await merged(host, "a", task, log[0])

            is_whole = await faults.crash(partial(verified_and_merged, one, task, log), after=after)
            commit = await verified_and_merged(two, task, log)
            assert sandbox.merges().count(f"Merge {task}: Do {task}") == 1
            assert sandbox.git("merge-base", "--is-ancestor", commit, "main") == ""
            assert task in sandbox.files()
            after += 1
        assert after > 5
        assert sandbox.is_sound()


async def test_merges_of_three_hosts_at_the_same_time_land_once_each(sandbox: RemoteSandbox) -> None:
    """Each push that comes second is repeated upon the first one."""
    async with hosts(sandbox, "one", "two", "three") as (one, two, three):
        work = [(host, agent, f"{name}-{agent}") for host, name in ((one, 1), (two, 2), (three, 3)) for agent in "ab"]
        for host, agent, task in work:
            await worked(host, agent, task, 1, **{task: "done\n"})
        async with anyio.create_task_group() as tasks:
            for host, agent, task in work:
                tasks.start_soon(merged, host, agent, task)
        assert sorted(sandbox.merges()) == sorted(f"Merge {task}: Do {task}" for _, _, task in work)
        assert {task for _, _, task in work} <= sandbox.files()


async def test_a_remote_that_is_away_delays_a_merge(sandbox: RemoteSandbox) -> None:
    """The error says that the operation is repeated; it succeeds when the remote is back."""
    async with hosts(sandbox, "one") as (one,):
        await worked(one, "a", "T1", first="1\n")
        result = await one.park("a", "T1", 1, "Do T1")
        away = sandbox.url.rename(sandbox.folder / "away")
        with pytest.raises(RemoteAwayError, match=r"does not answer git ls-remote: .*does not appear to be a git repo"):
            await merged(one, "a", "T1", result)
        away.rename(sandbox.url)
        assert await merged(one, "a", "T1", result) == sandbox.tip()


async def test_a_push_whose_answer_is_lost_counts(sandbox: RemoteSandbox) -> None:
    """The remote moves the branch, and the connection ends before its answer: the references tell."""
    async with hosts(sandbox, "one") as (one,):
        await worked(one, "a", "T1", first="1\n")
        result = await one.park("a", "T1", 1, "Do T1")
        sandbox.hook("post-receive", "kill -9 $PPID")
        assert await merged(one, "a", "T1", result) == sandbox.tip()
        assert sandbox.merges() == ["Merge T1: Do T1"]


async def test_a_refused_push_waits_with_the_words_of_the_remote(sandbox: RemoteSandbox) -> None:
    """A hook protects the branch; the work is merged once the hook allows it."""
    async with hosts(sandbox, "one") as (one,):
        await worked(one, "a", "T1", first="1\n")
        result, tip = await one.park("a", "T1", 1, "Do T1"), sandbox.tip()
        hook = sandbox.hook("pre-receive", "echo only by Ann", "exit 1")
        with pytest.raises(RefusedPushError, match=r"does not take refs/heads/main: .*remote: only by Ann"):
            await merged(one, "a", "T1", result)
        assert sandbox.tip() == tip
        hook.unlink()
        assert await merged(one, "a", "T1", result) == sandbox.tip()


async def test_a_missing_branch_delays_a_merge(sandbox: RemoteSandbox) -> None:
    """Another person has deleted it: it is to be pushed again."""
    async with hosts(sandbox, "one") as (one,):
        await worked(one, "a", "T1", first="1\n")
        sandbox.git("branch", "--move", "main", "elsewhere")
        with pytest.raises(InTheWayError, match=r"remote\.git has no branch main"):
            await merged(one, "a", "T1")
        sandbox.git("branch", "--move", "elsewhere", "main")
        assert await merged(one, "a", "T1") == sandbox.tip()


async def test_an_agent_that_moves_the_branch_of_the_clone_moves_nothing(sandbox: RemoteSandbox) -> None:
    """Neither does one that writes another address into the configuration of the clone."""
    async with hosts(sandbox, "one") as (one,):
        await worked(one, "a", "T1", first="1\n")
        there = one.folder("a", "T1")
        git(there, "config", f"url.{sandbox.folder}/elsewhere.insteadOf", str(sandbox.url))
        git(there, "commit", "--quiet", "--allow-empty", "--message=not verified")
        git(there, "update-ref", "refs/heads/main", "HEAD")
        git(there, "reset", "--quiet", "--soft", "HEAD^")
        commit = await merged(one, "a", "T1")
        assert sandbox.tip() == commit
        assert "not verified" not in sandbox.git("log", "--format=%s", "main")


async def test_a_restarted_host_goes_on_in_its_worktrees(sandbox: RemoteSandbox) -> None:
    """Its clone is there, so nothing is fetched that it has; two hosts of one name are refused."""
    async with hosts(sandbox, "one") as (one,):
        await worked(one, "a", "T1", first="1\n")
        with pytest.raises(WorkplaceError, match="A host of this name is at work here"):
            await sandbox.host("one")
    async with hosts(sandbox, "one") as (again,):
        await again.enter("a", "T1", 1)
        assert await merged(again, "a", "T1") == sandbox.tip()
        assert "first" in sandbox.files()


async def test_ready_branches_are_made_at_the_remote_once(sandbox: RemoteSandbox) -> None:
    """A taken name gets a number; a repetition finds the branch of the first try, also at another host."""
    async with hosts(sandbox, "one", "two") as (one, two):
        sandbox.git("branch", "lifefold-ready/fleet/T1", "main")
        await worked(one, "a", "T1", first="1\n")
        result = await one.park("a", "T1", 1, "Do T1")
        assert await one.make_ready("T1", 1, result) == "lifefold-ready/fleet/T1-2"
        assert await two.make_ready("T1", 1, result) == "lifefold-ready/fleet/T1-2"
        assert sandbox.git("rev-parse", "lifefold-ready/fleet/T1-2") == result
        assert sandbox.merges() == []


async def test_kept_work_that_the_remote_has_lost_fails_its_merge(sandbox: RemoteSandbox) -> None:
    """The references of the run were deleted there, and the host that had the work is gone."""
    async with hosts(sandbox, "one", "two") as (one, two):
        await worked(one, "a", "T1", first="1\n")
        result = await one.park("a", "T1", 1, "Do T1")
        sandbox.git("update-ref", "-d", "refs/lifefold/fleet/0123abcd/result/T1/1")
        with pytest.raises(WorkplaceError, match=r"does not have the work of fleet/T1/1, .* any more"):
            await merged(two, "b", "T1", result)


async def test_a_host_that_gets_a_claim_back_has_what_another_one_has_done(sandbox: RemoteSandbox) -> None:
    """It was cut off in the middle of a verification, and still has the worktree of the claim; also after a restart."""
    async with hosts(sandbox, "one", "two") as (one, two):
        await worked(one, "a", "T1", first="1\n")
        await one.keep("a", "T1", 1)
        write(one.folder("a", "T1"), half="verified\n")
        await two.enter("a", "T1", 1)
        write(two.folder("a", "T1"), second="2\n")
        await two.keep("a", "T1", 1)
        await one.enter("a", "T1", 1)
        assert names(one.folder("a", "T1")) >= {"first", "second"}
        write(one.folder("a", "T1"), third="3\n")
    async with hosts(sandbox, "one") as (one,):
        await one.enter("a", "T1", 1)
        assert await merged(one, "a", "T1") == sandbox.tip()
    assert sandbox.files() >= {"first", "second", "third"}
    assert "half" not in sandbox.files()


async def test_a_frozen_host_that_goes_on_replaces_nothing_of_the_next_one(
    sandbox: RemoteSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the files nor the commit to be merged: it freezes before its push, when it has read the references."""
    async with hosts(sandbox, "one", "two") as (one, two):
        await worked(one, "a", "T1", first="1\n")
        await one.keep("a", "T1", 1)
        put, results = one.remote.put, list[str]()

        async def late(commits: Mapping[str, str]) -> None:
            await two.enter("a", "T1", 1)
            write(two.folder("a", "T1"), second="2\n")
            await two.keep("a", "T1", 1)
            results.append(await two.park("a", "T1", 1, "Do T1"))
            await put(commits)

        monkeypatch.setattr(one.remote, "put", late)
        with pytest.raises(OtherHostError, match="Another host has gone on with this work: it has moved refs/lifefold"):
            await one.park("a", "T1", 1, "Do T1")
        monkeypatch.undo()
        write(one.folder("a", "T1"), partial="x\n")
        with pytest.raises(OtherHostError, match="work/T1/1"):
            await one.keep("a", "T1", 1)
        assert [sandbox.git("rev-parse", "refs/lifefold/fleet/0123abcd/result/T1/1")] == results
        assert "second" in sandbox.files("refs/lifefold/fleet/0123abcd/work/T1/1")


async def test_a_push_that_lands_after_it_has_failed_is_this_host_s_own(
    sandbox: RemoteSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next push replaces its value, and the worktree stays as it is."""
    async with hosts(sandbox, "one") as (one,):
        await worked(one, "a", "T1", first="1\n")
        push = one.remote.push

        async def landing(*changes: Change) -> bool:
            assert await push(*changes)
            raise RemoteAwayError("The remote does not answer", sandbox.url, "It is repeated.")

        monkeypatch.setattr(one.remote, "push", landing)
        with pytest.raises(RemoteAwayError):
            await one.keep("a", "T1", 1)
        monkeypatch.undo()
        write(one.folder("a", "T1"), second="2\n")
        await one.enter("a", "T1", 1)
        await one.keep("a", "T1", 1)
        assert {"first", "second"} <= sandbox.files("refs/lifefold/fleet/0123abcd/work/T1/1")


async def test_a_start_that_an_agent_has_deleted_deletes_nothing_at_the_remote(sandbox: RemoteSandbox) -> None:
    """The work cannot be kept then; the error names the reference."""
    async with hosts(sandbox, "one") as (one,):
        await worked(one, "a", "T1", first="1\n")
        await one.keep("a", "T1", 1)
        before = sandbox.git("for-each-ref")
        git(one.folder("a", "T1"), "update-ref", "-d", "refs/lifefold/fleet/base/T1/1")
        write(one.folder("a", "T1"), second="2\n")
        with pytest.raises(WorkplaceError, match=r"The reference to the start of fleet/T1/1 is gone, refs/lifefold/"):
            await one.keep("a", "T1", 1)
        assert sandbox.git("for-each-ref") == before


def test_a_change_without_a_new_commit_is_refused() -> None:
    """Git would delete the reference."""
    with pytest.raises(ValueError, match="refs/heads/main would be deleted"):
        Change("refs/heads/main", "", "0" * 40)


async def test_a_state_that_could_not_be_pushed_stays_after_a_restart(sandbox: RemoteSandbox) -> None:
    """The remote has an older one, which this host has pushed; a later one of another host replaces it."""
    one_s, two_s = sandbox.folder / "s1" / "T1-1.json", sandbox.folder / "s2" / "T1-1.json"
    one_s.parent.mkdir()
    async with hosts(sandbox, "one") as (one,):
        one_s.write_bytes(b"older")
        await one.keep_state("T1", 1, one_s)
    one_s.write_bytes(b"newer")
    async with hosts(sandbox, "one", "two") as (one, two):
        await one.bring_state("T1", 1, one_s)
        assert one_s.read_bytes() == b"newer"
        await two.bring_state("T1", 1, two_s)
        two_s.write_bytes(b"of two")
        await two.keep_state("T1", 1, two_s)
        await one.bring_state("T1", 1, one_s)
        assert one_s.read_bytes() == b"of two"
