"""What the command line says is true, and in the words of people: where work goes, why things end, what to do."""

import re
import signal
import sqlite3
from contextlib import closing

import pytest

from fleet_sandbox import Sandbox
from lifefold.interpreters.fleet_runner import Verdict


def test_a_run_says_into_which_branch_of_which_repository_it_merges(sandbox: Sandbox) -> None:
    """Also if the fleet file names a folder in it; a fleet without one says nothing."""
    sandbox.prepare("plain-1")
    (sandbox.folder / "repo" / "sub").mkdir()
    sandbox.fleet.write_text(sandbox.fleet.read_text().replace('"repo"', '"repo/sub"'))
    assert f"work is merged into the branch main of {sandbox.folder.resolve() / 'repo'}\n" in sandbox.run()


def test_warnings_come_when_a_log_begins_and_not_again(sandbox: Sandbox) -> None:
    """They are about the fleet file, which does not change."""
    sandbox.prepare("plain-1", repository=False)
    sandbox.fleet.write_text(sandbox.fleet.read_text().replace('session_timeout = "60s"', ""))
    assert "warning: " in sandbox.call("run", str(sandbox.fleet), "--transitions").stderr
    assert sandbox.call("run", str(sandbox.fleet), "--transitions").stderr == ""


def test_an_agent_without_work_left_is_not_reported_as_stopped_by_an_operator(sandbox: Sandbox) -> None:
    """The text says why; the JSON has the event."""
    sandbox.prepare("plain-1", repository=False)
    assert "no work is left" in sandbox.run()
    said = sandbox.call("log", "--all").stdout
    assert "Stopped          no work is left" in " ".join(said.splitlines())
    assert "OperatorStop" not in said
    assert "Assigned: plain-1, claim 1" in said
    assert re.search(r"Completed: epoch 1$", said, re.MULTILINE)
    assert not re.search("took_ms|silent", said)  # neither tells an operator anything
    assert "Brief(" not in said
    assert any(event["metadata"]["event"] == "OperatorStop" for event in sandbox.json("log"))
    status = sandbox.call("status").stdout
    assert ("no work is left" in status, "Stop:" in status) == (True, False)


def test_a_failed_task_is_not_followed_by_agents_that_have_no_work(sandbox: Sandbox) -> None:
    """That they have stopped is no news."""
    sandbox.prepare("plain-1", repository=False)
    sandbox.fleet.write_text(sandbox.fleet.read_text().replace('["test", "-s", "plain-1.txt"]', '["false"]'))
    sandbox.fleet.write_text(sandbox.fleet.read_text() + "max_retries = 0\n")
    said = sandbox.run(code=1)
    assert "plain-1: failed" in said
    assert "has stopped" not in said


def test_why_an_agent_has_stopped_by_its_errors_is_said_as_long_as_it_is_down(sandbox: Sandbox) -> None:
    """By ``run``, once, also by a later one; by ``status``, to people and to programs, whether or not it is over."""
    sandbox.prepare("plain-1", repository=False)
    failing = 'command = ["sh", "-c", "echo no api key; exit 7"]\nmax_total_errors = 1'
    sandbox.fleet.write_text(re.sub("command = .*", failing, sandbox.fleet.read_text()))
    why = "agent has stopped: 1 error in all (max_total_errors = 1); the last was exit status 7: no api key"
    for _ in range(2):
        said = sandbox.run(code=1)
        assert f"\n  {why}\n" in said
        assert said.rpartition(" tasks closed")[2].count("max_total_errors") == 1
    assert f"\n! {why}\n" in sandbox.call("status").stdout
    assert sandbox.json("status")["agents"][0]["stopped_by"] == why.removeprefix("agent has stopped: ")


@pytest.mark.parametrize(("number", "reason"), [(signal.SIGINT, "user_interrupt"), (signal.SIGTERM, "shutdown_signal")])
def test_a_shutdown_reports_what_still_runs_and_how_to_continue(
    sandbox: Sandbox, number: signal.Signals, reason: str
) -> None:
    """The command is no longer than it has to be, and no message is said to have come. The journal says why."""
    sandbox.prepare("slow-1", repository=False, gates=["slow-1"])
    with sandbox.running() as run, sandbox.at_gate("slow-1"):
        run.until("IN_PROGRESS")
        run.signal(number)
        said = run.until("Interrupting") + run.rest()
    assert "asked to leave" in said
    assert "UrgentMessage" not in said
    assert said.endswith(f"run {sandbox.fleet}\n")
    assert run.process.returncode == Verdict.LEFT
    (interrupted,) = [each for each in sandbox.json("log") if each["metadata"]["event"] == "UrgentMessage"]
    assert interrupted["abort_reason"] == reason


def test_a_second_stop_says_that_the_first_was_final(sandbox: Sandbox) -> None:
    """A second request is answered with its result."""
    sandbox.prepare("plain-1", repository=False)
    sandbox.run()
    assert "agent: has stopped already, and for good\n" in sandbox.call("stop", "--all", code=2).stdout
    assert "for good" in sandbox.call("send", "agent", "hello?", code=2).stdout


def test_a_damaged_log_is_not_called_safe(sandbox: Sandbox) -> None:
    """It says what can be done."""
    sandbox.prepare("plain-1", repository=False)
    sandbox.run()
    with closing(sqlite3.connect(sandbox.log)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(sandbox.log.read_bytes())
    data[4_096:] = b"\xa5" * (len(data) - 4_096)
    sandbox.log.write_bytes(data)
    said = sandbox.call("status", code=2).stderr
    assert "the log is damaged" in said
    assert "put a copy of it back" in said
    assert "safe" not in said


@pytest.mark.parametrize("trouble", ["bare", "no commit", "no branch", "none"])
def test_a_repository_that_cannot_be_used_is_named_with_its_place_in_the_file(sandbox: Sandbox, trouble: str) -> None:
    """File, line and key, besides what is wrong and what to do."""
    sandbox.prepare("plain-1")
    if trouble == "bare":
        sandbox.git("config", "core.bare", "true")
    elif trouble == "no commit":
        sandbox.git("checkout", "--quiet", "--orphan", "other")
    elif trouble == "no branch":
        sandbox.git("checkout", "--quiet", "--detach")
    else:
        (sandbox.folder / "repo" / ".git").rename(sandbox.folder / "gone")
    said = sandbox.call("run", str(sandbox.fleet), code=2).stderr
    assert said.startswith(f"lifefold: {sandbox.fleet}:4: fleet.repository: ")


def test_a_command_before_the_first_run_names_the_run_if_the_fleet_file_is_here(sandbox: Sandbox) -> None:
    """Nothing is wrong with the folder then; elsewhere the message names the other ways alone."""
    sandbox.prepare("plain-1", repository=False)
    run, elsewhere = "begins one; otherwise go to the folder", "; go to the folder of the fleet file, or name the log"
    assert sandbox.fleet.name == "fleet.toml"
    said = sandbox.call("status", code=2).stderr
    assert f"lifefold: there is no log in {sandbox.folder.resolve() / '.lifefold'}; " in said
    assert f" run fleet.toml {run}" in said
    sandbox.fleet.rename(sandbox.folder / "other.toml")
    assert elsewhere in sandbox.call("status", code=2).stderr


def test_a_log_is_made_in_a_folder_that_is_there_and_in_no_other(sandbox: Sandbox) -> None:
    """A slip of the pen makes no folders; a folder and an empty file are no logs, and called what they are."""
    sandbox.prepare("plain-1", repository=False)
    folder, empty = sandbox.folder / "folder", sandbox.folder / "empty.db"
    folder.mkdir()
    empty.touch()
    places = {
        sandbox.folder / "nowhere" / "x.db": "nowhere is not a folder",
        folder: "is a folder, not a log",
        empty: "is not a lifefold log (it is empty)",
    }
    for place, words in places.items():
        assert words in sandbox.call("run", str(sandbox.fleet), "--db", str(place), code=2).stderr
    assert not (sandbox.folder / "nowhere").exists()


@pytest.mark.parametrize(("reason", "said"), [("", "by "), ("not needed", "by an operator: not needed")])
def test_a_session_that_ends_by_a_cancellation_is_said_to_end_by_that(sandbox: Sandbox, reason: str, said: str) -> None:
    """The event in the log is one for all interruptions; the JSON has it."""
    sandbox.prepare("hang-1", repository=False)
    with sandbox.running() as run:
        run.until("session", "-> Running")
        sandbox.call("cancel", "hang-1", *(["--reason", reason] if reason else []))
        told = run.until("Running -> Interrupting")
        run.rest()
    assert f"hang-1 was cancelled {said}" in told
    assert "UrgentMessage" not in sandbox.call("log", "--all").stdout
    assert any(each["metadata"]["event"] == "UrgentMessage" for each in sandbox.json("log"))


def test_a_message_in_the_prompt_of_a_running_session_is_not_said_to_wait(sandbox: Sandbox) -> None:
    """One that has come later is."""
    sandbox.prepare("slow-1", repository=False)
    (sandbox.folder / "agent.py").write_text("import time; print('at work', flush=True); time.sleep(600)")
    with sandbox.running() as run:
        run.until("session", "-> Running")
        sandbox.call("send", "agent", "first")
        run.until("Interrupting -> BuildingPrompt")
        run.until("session", "-> Running")
        assert ", 1 message in its prompt " in sandbox.call("status").stdout
        sandbox.call("send", "agent", "second", "--no-interrupt")
        assert ", 1 message in its prompt, 1 message waiting " in sandbox.call("status").stdout
        sandbox.call("stop", "--kill", "--all")
        run.rest()
