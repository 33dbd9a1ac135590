"""The work of a fleet at a git remote, on the machine of an operator who has its log and its fleet file."""

import sys
from pathlib import Path

import anyio
import msgspec
import pytest

from desk_sandbox import talking
from lifefold.interpreters.fleet_runner.hosts import HOST, HostSaid
from lifefold.interpreters.store import peek_log
from moved_to_remote import AtRemote
from postgres_server import PostgresServer

TAKES = "from lifefold.interpreters.store.postgres import PostgresStore, read_address\n"


@pytest.fixture(name="there")
def _there(tmp_path: Path) -> AtRemote:
    """Return a fleet with one merged task, one that waits for an approval, and one that has failed."""
    sandbox = talking(tmp_path, "one", "asks", "fails-1").demand("asks", 'approval = "merge"')
    sandbox.call("run", str(sandbox.fleet), "--transitions", "--no-wait", code=4)
    return AtRemote(sandbox)


@pytest.fixture(name="over")
def _over(tmp_path: Path) -> AtRemote:
    """Return a fleet that is over, with one merged task, and one that has failed."""
    sandbox = talking(tmp_path, "one", "fails-1")
    sandbox.run(code=1)
    return AtRemote(sandbox)


def test_work_is_compared_as_on_one_machine(there: AtRemote) -> None:
    """Work that waits for an approval, merged work, and the files of a failed session, each with its place."""
    waits = there.sandbox.call("diff", "asks")
    name = f"{there.prefix}result/asks/1"
    assert waits.stderr.startswith("asks waits for your approval: commit ")
    assert f" of {name} against its base " in waits.stderr
    assert "+done by asks\n" in waits.stdout
    said = there.sandbox.call("diff", "one", "--verification").stdout
    assert "\nno output of a verification is on this machine; the host that has run it keeps it, in " in said
    assert there.sandbox.json("diff", "asks")["changes"]["branch"] == name
    merged = there.sandbox.json("diff", "one")
    assert (merged["changes"]["kind"], "+done by one\n" in merged["diff"]) == ("merge", True)
    failed = there.sandbox.call("diff", "fails-1")
    assert f"claim 1 of fails-1: the kept files at the remote, {there.prefix}work/fails-1/1 (" in failed.stderr
    assert "+begun by fails-1\n" in failed.stdout
    assert f"{there.prefix}work/fails-1/1" in there.sandbox.call("show", "fails-1").stdout
    assert "+begun by fails-1\n" in there.sandbox.call("diff", "fails-1", "--attempt", "1").stdout


def test_work_that_is_here_needs_no_remote(there: AtRemote) -> None:
    """The log names the commits of parked and merged work. For other work the remote has to answer."""
    before = there.sandbox.call("diff", "asks").stdout
    there.leave()
    assert there.sandbox.call("diff", "asks").stdout == before
    refused = there.sandbox.call("diff", "fails-1", code=2).stderr
    assert f"The remote {there.remote} does not answer git fetch: " in refused
    there.sandbox.fleet.unlink()
    refused = there.sandbox.call("diff", "asks", code=2).stderr
    assert f"is at its git remote, in {there.prefix}, and no fleet file of sandbox with remote in [cluster]" in refused


def test_work_of_a_log_that_has_moved_is_looked_for_here_and_then_at_the_remote(there: AtRemote) -> None:
    """The log has the repository in which it began. Both places are named if neither has the work."""
    there.begin_elsewhere()
    there.move()
    waits = there.sandbox.call("diff", "asks")
    assert f" of {there.prefix}result/asks/1 against its base " in waits.stderr
    there.leave()
    refused = there.sandbox.call("diff", "fails-1", code=2).stderr
    assert "no work of it is left: neither in a worktree nor on a branch; git cannot read the work" in refused
    assert f"The remote {there.remote} does not answer git fetch: " in refused


def test_a_local_fleet_never_asks_the_remote_in_its_file(there: AtRemote) -> None:
    """Without an engine in the file the fleet runs here, and the reason is that of the repository here."""
    there.begin_elsewhere()
    refused = there.sandbox.call("diff", "fails-1", code=2).stderr
    said = "fails-1 has failed, and no work of it is left: neither in a worktree nor on a branch"
    assert refused == f"lifefold: {said}; lifefold why fails-1 explains its state\n"
    assert not there.sandbox.log.with_name(f"{there.sandbox.log.name}.files").exists()


def test_the_status_names_unmerged_work_at_the_remote(there: AtRemote) -> None:
    """That of tasks that are not closed. A remote that is away is a doubt, and no error."""
    said = there.sandbox.json("status")
    assert said["unmerged"] == {
        "asks": [f"{there.prefix}result/asks/1"],
        "fails-1": [f"{there.prefix}work/fails-1/1"],
    }
    assert said["doubts"] == []
    assert (
        f"Unmerged work of fails-1 is in {there.prefix}work/fails-1/1." in there.sandbox.call("why", "fails-1").stdout
    )
    there.leave()
    said = there.sandbox.json("status")
    (doubt,) = said["doubts"]
    assert doubt.startswith(f"the search for unmerged work is incomplete: The remote {there.remote} does not answer")
    assert said["unmerged"] == {}


def test_the_references_of_merged_work_are_removed_at_the_remote(over: AtRemote) -> None:
    """Those of other work stay without ``--unmerged``, and nothing is removed while the remote is away."""
    sandbox, kept = over.sandbox, {"base/fails-1/1", "work/fails-1/1"}
    before = over.references()
    asked = sandbox.call("clean", code=2)
    assert f" references at {over.remote} in {over.prefix}\n" in asked.stdout
    said = f"stays at {over.remote} in {over.prefix}, because it is not merged into main (see --unmerged): "
    assert f"{said}base/fails-1/1 and work/fails-1/1\n" in asked.stdout
    assert over.references() == before > kept
    away = over.leave()
    assert "does not answer" in sandbox.call("clean", "--yes", code=2).stderr
    away.rename(over.remote)
    assert sandbox.log.exists()
    assert f"{over.prefix}work/fails-1/1" in sandbox.call("clean", "--yes").stdout
    assert over.references() == kept
    assert [each.name for each in sandbox.log.parent.iterdir()] == [".gitignore"]


def test_nothing_is_removed_while_a_host_is_at_work_with_the_log(over: AtRemote) -> None:
    """On whatever machine. One that is silent for its detection time is lost, and is in the way of nothing."""
    said = HostSaid("far.example", 1, 1, detection_ms=3_600_000, room=1)
    for name, detection_ms in (("lost", 0), ("one", 3_600_000)):
        word = msgspec.json.encode(msgspec.structs.replace(said, detection_ms=detection_ms)).decode()
        with peek_log(over.sandbox.log) as store:
            anyio.run(store.say, HOST + name, word)
    refused = over.sandbox.call("clean", "--yes", code=2).stderr
    assert "the host one on machine far.example is at work with it; end it first; nothing is removed" in refused
    with peek_log(over.sandbox.log) as store:
        anyio.run(store.dismiss, f"{HOST}one")
    over.sandbox.call("clean", "--yes")
    assert not over.sandbox.log.exists()


@pytest.mark.cluster
def test_nothing_here_is_removed_after_another_writer_has_taken_the_log(
    over: AtRemote, postgres: PostgresServer
) -> None:
    """It takes the log while the remote deletes references."""
    url = postgres.new_log()
    over.sandbox.call("move", "--to", url)
    hook = over.remote / "hooks" / "pre-receive"
    hook.write_text(f"#!{sys.executable}\n{TAKES}PostgresStore.open(read_address({url!r}), take_over=True).close()\n")
    hook.chmod(0o700)
    files = over.sandbox.log.with_name(f"{over.sandbox.log.name}.files")
    (files / "sessions").mkdir(parents=True)
    assert "has taken over from this one" in over.sandbox.call("clean", "--yes", code=None).stderr
    assert (files / "sessions").is_dir()
    assert '"fleet"' in over.sandbox.call("status", "--json").stdout


def test_all_references_are_removed_if_that_is_asked_for(over: AtRemote) -> None:
    """A remote that no fleet file names keeps them, and the command says where they are."""
    sandbox = over.sandbox
    text = sandbox.fleet.read_text()
    sandbox.fleet.write_text(text.partition("[cluster]")[0])
    assert (
        f"stays: the work of this fleet is at its git remote, in {over.prefix}" in sandbox.call("clean", code=2).stdout
    )
    sandbox.fleet.write_text(text)
    sandbox.call("clean", "--unmerged", "--yes")
    assert over.references() == set()


def test_an_output_that_is_on_another_machine_is_named(there: AtRemote) -> None:
    """The log has the end of the session."""
    said = there.sandbox.call("output", "fails-1").stdout.splitlines()
    where = "no output of this session is on this machine; the host that has run it keeps it, in sessions/agent/"
    assert said[1].startswith(f"elsewhere: {where}")
    assert said[2].startswith("end: failed: ")
    assert where in " ".join(there.sandbox.call("show", "fails-1").stdout.split())
    assert where in there.sandbox.call("output", "fails-1", "--raw").stderr
