"""Fleets whose log is on a PostgreSQL server: crashes of the runner and of the server, moves, and the commands."""

import signal

import anyio
import pytest

from fleet_sandbox import Sandbox
from lifefold.interpreters.store import peek_log
from lifefold.interpreters.store.address import read_address
from lifefold.interpreters.store.pointer import address_of
from postgres_server import PostgresServer

pytestmark = pytest.mark.cluster

PLAIN = ("plain-1", "plain-2", "plain-3", "plain-4")
TOLD = "very-secret-word"


def must_be_done_once(sandbox: Sandbox, *tasks: str) -> None:
    """Assert that each task is closed, had one session and one merge, and that the log was allowed and has no gap."""
    assert {task: sandbox.sessions(task) for task in tasks} == dict.fromkeys(tasks, 1)
    assert len(sandbox.merges()) == len(set(sandbox.merges()))
    assert {each["state"] for each in sandbox.json("tasks")} == {"CLOSED"}
    assert "this run was allowed" in sandbox.call("verify").stdout
    assert sandbox.processes() == []
    with peek_log(sandbox.log) as store:
        versions: dict[str, list[int]] = {}
        for each in anyio.run(store.read):
            versions.setdefault(each.stream, []).append(each.version)
    assert all(found == list(range(1, len(found) + 1)) for found in versions.values())


@pytest.mark.parametrize("moment", ["SessionStarted", "DONE"])
def test_a_killed_runner_started_again_does_nothing_twice(
    sandbox: Sandbox, postgres: PostgresServer, moment: str
) -> None:
    """Three agents; the runner is killed, and the same command goes on. Then commands find the log without --db."""
    sandbox.prepare(*PLAIN, "crash-1", agents=3)
    url = postgres.new_log()
    with sandbox.running("--db", url) as run:
        run.until(moment)
        run.signal(signal.SIGKILL)
        run.rest()
    assert "5 of 5 tasks closed" in sandbox.call("run", str(sandbox.fleet), "--no-live", "--db", url).stdout
    assert address_of(sandbox.log) == read_address(url)
    must_be_done_once(sandbox, *PLAIN)


def test_a_run_goes_on_after_a_crash_of_the_server(sandbox: Sandbox, postgres: PostgresServer) -> None:
    sandbox.prepare(*PLAIN, agents=3)
    with sandbox.running("--db", postgres.new_log()) as run:
        run.until("SessionStarted")
        postgres.kill()
        postgres.start()
        assert "4 of 4 tasks closed" in run.rest()
    must_be_done_once(sandbox, *PLAIN)


def test_a_fleet_moves_to_a_server_and_back_and_goes_on_each_time(sandbox: Sandbox, postgres: PostgresServer) -> None:
    """The path of the log stays, so worktrees, outputs and sessions are found."""
    sandbox.prepare(*PLAIN, agents=1)
    for where in (postgres.new_log(), "file"):
        with sandbox.running() as run:
            run.until("CLOSED")
            run.signal(signal.SIGINT)
            run.rest()
        sandbox.call("move", "--to", where)
        assert (address_of(sandbox.log) is None) is (where == "file")
    assert "4 of 4 tasks closed" in sandbox.run()
    assert len(sandbox.merges()) == 4
    assert "this run was allowed" in sandbox.call("verify").stdout


def test_every_command_that_reads_or_acts_takes_an_address(sandbox: Sandbox, postgres: PostgresServer) -> None:
    """The password of the address is in no file and in no message."""
    sandbox.prepare("slow-1", "plain-1", gates=["slow-1"])
    url = postgres.new_log().replace("lifefold@", f"lifefold:{TOLD}@")
    with sandbox.running("--db", url) as run, sandbox.at_gate("slow-1"):
        run.signal(signal.SIGINT)
        run.rest()
    printed = [
        sandbox.call(*words, "--db", url, code=None)
        for words in (
            ("status",),
            ("tasks",),
            ("why", "plain-1"),
            ("show", "plain-1"),
            ("log",),
            ("output", "agent"),
            ("budget",),
            ("replay",),
            ("verify",),
            ("verify", "--chain"),
            ("export", "otel"),
            ("fork", "--at", "3", "--steps", "1"),
            ("send", "agent", "go on"),
            ("pause", "agent"),
            ("resume", "agent"),
            ("plan", str(sandbox.fleet)),
        )
    ]
    assert [each.returncode for each in printed] == [0] * len(printed), printed
    printed += [sandbox.call(command, url, code=0) for command in ("verify", "replay", "log", "upgrade")]
    printed += [
        sandbox.call("status", url, code=2),
        sandbox.call("status", "--db", url.replace("127.0.0.1", "127.0.0.1:1,127.0.0.1"), code=None),
        sandbox.call("status", "--db", url.replace(f":{postgres.port}", ":1"), code=3),
        sandbox.call("copy", url, str(sandbox.folder / "copy.db")),
        sandbox.call("verify", str(sandbox.folder / "copy.db"), "--chain"),
        sandbox.call("run", str(sandbox.fleet), "--db", url, "--no-live"),
        sandbox.call("clean", url, "--yes"),
        sandbox.call("status", "--db", url, code=2),
    ]
    assert not any(TOLD in each.stdout + each.stderr for each in printed)
    assert "there is no log" in printed[-1].stderr
    for file in sandbox.folder.rglob("*"):
        assert not file.is_file() or TOLD.encode() not in file.read_bytes(), file
