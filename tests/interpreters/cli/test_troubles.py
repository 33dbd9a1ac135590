"""What a user sees when something around the command line is not as it should be: exit codes, and no traceback."""

import os
import resource
import shutil
import sqlite3
import subprocess
from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest

import kiln
from commands_run import LIFEFOLD
from fleet_log import FleetLog
from fleet_sandbox import HANG_S, Sandbox
from lifefold.core.fleet import TaskPlan
from lifefold.core.kernel import Reaction, Refusal, alone
from lifefold.core.lifecycles import session
from lifefold.interpreters.cli.app import main
from lifefold.interpreters.engine import Decision, Ledger, WallClock
from lifefold.interpreters.fleet_file import load
from lifefold.interpreters.fleet_runner import Runner, Verdict
from lifefold.interpreters.store import Batch, SqliteStore, reading

HOUR_MS = 3_600_000


@contextmanager
def kept_busy(log: Path) -> Generator[None]:
    """Keep a log from being written to, as a backup or a shell might."""
    with closing(sqlite3.connect(log, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


@pytest.mark.parametrize(
    "words", [["send", "all", "hi"], ["stop", "--all"], ["cancel", "T1"]], ids=lambda words: words[0]
)
def test_a_command_that_cannot_write_to_a_busy_log_says_so(
    tmp_path: Path, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 3, which program is to be waited for, and what to do; afterwards it works."""
    log = tmp_path / "fleet.db"
    FleetLog(log, TaskPlan("T1", "x"))
    monkeypatch.setattr(reading, "BUSY_TIMEOUT_S", 0.05)
    with kept_busy(log):
        assert main([*words, "--db", str(log)]) == 3
        said = capsys.readouterr().err
        assert f"{log}: another program keeps the log busy" in said
        assert "give the command again" in said
    assert main([*words, "--db", str(log)]) == 0


UNPRIVILEGED = [] if os.geteuid() else ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--"]
"""Has a command run under the permissions of files, also for the user to whom they mean nothing."""

under_permissions = pytest.mark.skipif(
    shutil.which((UNPRIVILEGED or ["sh"])[0]) is None, reason="root is allowed everything"
)


@under_permissions
@pytest.mark.parametrize(
    ("mode", "words", "complaint"),
    [
        (0o400, "stop --all", "may be read, and not written"),
        (0o400, "run", "may be read, and not written"),
        (0o000, "status", "permission denied"),
    ],
)
def test_a_log_that_is_not_for_this_user_is_named_with_what_to_do(
    sandbox: Sandbox, mode: int, words: str, complaint: str
) -> None:
    """Exit code 2, in one line, and nothing has changed; who may read it is shown all that is in it."""
    log = FleetLog(sandbox.folder / "fleet.db", TaskPlan("T1", "x")).path
    sandbox.prepare("plain-1", repository=False)
    if words == "run":
        log = sandbox.log
        sandbox.run()
    log.chmod(mode)
    command = [*words.split(), *([str(sandbox.fleet)] if words == "run" else []), "--db", str(log)]
    call = partial(subprocess.run, check=False, capture_output=True, text=True, timeout=HANG_S)
    done = call([*UNPRIVILEGED, *LIFEFOLD, *command])
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert done.stderr.startswith(f"lifefold: {log}: {complaint}")
    assert "give the command as the owner of the file" in done.stderr
    if mode:
        assert call([*UNPRIVILEGED, *LIFEFOLD, "status", "--db", str(log)]).returncode == 0


@under_permissions
def test_a_folder_of_logs_that_is_not_for_this_user_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    """It is named, with what to do; exit code 2."""
    folder = tmp_path / ".lifefold"
    folder.mkdir()
    FleetLog(folder / "fleet.db", TaskPlan("T1", "x"))
    folder.chmod(0o000)
    command = [*UNPRIVILEGED, *LIFEFOLD, "status"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=HANG_S, cwd=tmp_path)
    folder.chmod(0o700)
    assert done.returncode == 2
    assert done.stderr.startswith("lifefold: .lifefold: permission denied; give the command as the owner of the file")


@under_permissions
def test_a_user_who_may_write_a_log_may_act_on_it_although_another_made_the_lock(tmp_path: Path) -> None:
    """The log's file alone decides: users of a group need no right to write the lock beside it."""
    log = FleetLog(tmp_path / "fleet.db", TaskPlan("T1", "x")).path
    log.with_name("fleet.db.lock").chmod(0o444)
    command = [*UNPRIVILEGED, *LIFEFOLD, "cancel", "T1", "--db", str(log)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=HANG_S)
    assert (done.returncode, done.stdout, done.stderr) == (0, "T1: cancelled; the next run acts on it\n", "")


@under_permissions
def test_a_log_is_shared_by_opening_it_and_its_folder_stays_private(sandbox: Sandbox) -> None:
    """Another user of the group sees the fleet and acts on it; what sessions have printed is not theirs to read."""
    sandbox.prepare("plain-1", repository=False)
    sandbox.run()
    sandbox.log.with_name("sandbox.db.files").chmod(0o000)
    call = partial(subprocess.run, check=False, capture_output=True, text=True, timeout=HANG_S)
    for words in ("status", "why plain-1"):
        done = call([*UNPRIVILEGED, *LIFEFOLD, *words.split(), "--db", str(sandbox.log)])
        assert (done.returncode, done.stderr) == (0, ""), words
    done = call([*UNPRIVILEGED, *LIFEFOLD, "cancel", "plain-1", "--db", str(sandbox.log)])
    assert "plain-1: refused: it is closed" in done.stdout
    sandbox.log.with_name("sandbox.db.files").chmod(0o700)


def test_a_runner_waits_for_a_program_that_keeps_its_log_busy(sandbox: Sandbox) -> None:
    """A backup that takes long is told of and waited for; nothing is lost, no agent is stopped."""
    sandbox.prepare("plain-1", repository=False, gates=["plain-1"])
    with sandbox.running() as run, ExitStack() as backup:
        with sandbox.at_gate("plain-1"):
            run.until("SessionStarted")
            backup.enter_context(kept_busy(sandbox.log))
        run.until("! log:", "another program keeps the log busy")
        backup.close()
        assert "1 of 1 tasks closed" in run.rest()
    assert sandbox.sessions("plain-1") == 1


def test_a_log_that_ends_in_the_future_is_gone_on_with_at_once(sandbox: Sandbox) -> None:
    """The machine's clock was set back between two runs: no run waits until it has caught up."""
    sandbox.prepare("crash-1", repository=False)

    async def run_until_it_cools_down() -> None:
        clock = WallClock()
        clock.not_before(clock.now_ms() + HOUR_MS)
        runner = await Runner.open(load(sandbox.fleet), sandbox.log, clock=clock)
        async with anyio.create_task_group() as tasks:

            def crash(_aggregate: str, outcome: Reaction | Refusal) -> None:
                for transition in outcome.transitions if isinstance(outcome, Reaction) else ():
                    if transition.entered is session.State.COOLING_DOWN:
                        tasks.cancel_scope.cancel()

            runner.observers.append(crash)
            tasks.start_soon(runner.run)
        runner.close()

    anyio.run(run_until_it_cools_down)
    assert "1 of 1 tasks closed" in sandbox.run()


def test_output_that_cannot_be_written_is_an_error_and_no_traceback(sandbox: Sandbox) -> None:
    """A full disk behind a redirection."""
    sandbox.prepare("plain-1", repository=False)
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*LIFEFOLD, "table", "session"], check=False, stdout=full, stderr=subprocess.PIPE, text=True, timeout=HANG_S
        )
    assert done.returncode == 3
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


def test_text_that_the_encoding_has_no_characters_for_is_printed_with_escapes(sandbox: Sandbox) -> None:
    """A terminal that knows ASCII only stops no fleet and no command."""
    sandbox.prepare(repository=False)
    broken = (
        '\n[[tasks]]\nid = "bad"\nprompt = "x"\nverify = [["sh", "-c", "echo f\\u00fcr; false"]]\nmax_retries = 1\n'
    )
    sandbox.fleet.write_text(sandbox.fleet.read_text() + broken)
    assert "f\\xfcr" in sandbox.run(code=1, PYTHONIOENCODING="ascii")
    assert "f\\xfcr" in sandbox.call("tasks", PYTHONIOENCODING="ascii").stdout


def test_a_message_that_is_no_text_is_bad_input(sandbox: Sandbox) -> None:
    """Bytes of another encoding, as a terminal that is set up wrongly sends them."""
    sandbox.prepare("plain-1", repository=False)
    sandbox.run()
    assert "UTF-8" in sandbox.call("send", "all", "caf\udce9", code=2).stderr


def test_a_command_whose_output_is_closed_does_its_work(sandbox: Sandbox) -> None:
    """``lifefold status >&-`` asks for the exit code alone."""
    sandbox.prepare("plain-1", repository=False)
    sandbox.run()
    silently = ["sh", "-c", 'exec "$@" >&-', "sh"]
    done = subprocess.run(
        [*silently, *LIFEFOLD, "status"], check=False, stderr=subprocess.PIPE, cwd=sandbox.folder, timeout=HANG_S
    )
    assert (done.returncode, done.stderr) == (0, b"")


async def log_of_a_kiln(path: Path) -> None:
    """Write a log of a machine that is no fleet's."""
    system, opening = alone(kiln.kiln)
    decision = Ledger(system).decide("kiln", opening["kiln"])
    assert isinstance(decision, Decision)
    with SqliteStore.create(path, {}) as store:
        await store.append(Batch((decision.entry,)))


@pytest.mark.parametrize("command", ["log", "tasks", "status"])
def test_a_log_of_another_system_is_bad_input(tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It is not damaged, nor of another version: it is said whose it is, and how it is read."""
    anyio.run(log_of_a_kiln, tmp_path / "kiln.db")
    assert main([command, "--db", str(tmp_path / "kiln.db")]) == 2
    said = capsys.readouterr().err
    assert "this is not the log of a fleet; its aggregates are 'kiln'; name its own system before it" in said
    assert "lifefold log MODULE:SYSTEM LOG, see docs/flight-recorder.md" in said
    assert "cannot read" not in said


def test_a_log_that_cannot_be_written_any_more_ends_the_run_in_two_lines_and_the_next_goes_on(tmp_path: Path) -> None:
    """As on a full disk: what happened, what to do, no traceback; nothing is done twice."""
    sandbox = Sandbox(tmp_path).prepare("plain-1", gates=["plain-1"])
    with sandbox.running() as run:
        with sandbox.at_gate("plain-1"):
            resource.prlimit(run.process.pid, resource.RLIMIT_FSIZE, (0, 0))
        told = run.rest()
        assert run.process.returncode == 3
    complaint = told[told.index("lifefold: ") :].splitlines()
    assert [line[:30] for line in complaint] == [f"lifefold: {sandbox.log}"[:30], "The run has ended. When that i"]
    assert "nothing of this was acknowledged" in complaint[0]
    assert "give the same command again" in complaint[1]
    sandbox.wait_for_all()
    assert "1 of 1 tasks closed" in sandbox.run()
    assert sandbox.sessions("plain-1") == 1


def test_a_run_whose_end_cannot_be_told_in_full_ends_with_its_own_exit_code(tmp_path: Path) -> None:
    """As when an operator has written into the log meanwhile: the work is merged, and what is missing is said."""
    sandbox = Sandbox(tmp_path).prepare("plain-1", gates=["plain-1"])
    with sandbox.running() as run:
        with sandbox.at_gate("plain-1"):
            run.until("SessionStarted")
            with closing(sqlite3.connect(sandbox.log, timeout=HANG_S)) as other, other:
                other.execute("INSERT INTO meta VALUES ('note', 'of an operator')")
        told = run.rest()
    assert run.process.returncode == Verdict.ALL_CLOSED
    assert "1 of 1 tasks closed" in told
    assert f"lifefold: {sandbox.log}: the log is damaged" in told
    assert "The run has ended." in told
