"""What the command line says is true, and in the words of people: where work goes, why things end, what to do."""

import re
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from fleet_ground import Ground
from lifefold.interpreters.fleet_runner import Verdict


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def test_a_run_says_into_which_branch_of_which_repository_it_merges(ground: Ground) -> None:
    """Also if the fleet file names a folder in it; a fleet without one says nothing."""
    ground.prepare("plain-1")
    (ground.folder / "repo" / "sub").mkdir()
    ground.fleet.write_text(ground.fleet.read_text().replace('"repo"', '"repo/sub"'))
    assert f"work is merged into the branch main of {ground.folder.resolve() / 'repo'}\n" in ground.run()


def test_warnings_come_when_a_log_begins_and_not_again(ground: Ground) -> None:
    """They are about the fleet file, which does not change."""
    ground.prepare("plain-1", repository=False)
    ground.fleet.write_text(ground.fleet.read_text().replace('session_timeout = "60s"', ""))
    assert "warning: " in ground.call("run", str(ground.fleet), "--no-live").stderr
    assert ground.call("run", str(ground.fleet), "--no-live").stderr == ""


def test_an_agent_that_has_nothing_left_to_do_is_not_said_to_be_stopped_by_anybody(ground: Ground) -> None:
    """The text says why; the JSON has the event."""
    ground.prepare("plain-1", repository=False)
    assert "no work is left" in ground.run()
    said = ground.call("log").stdout
    assert "Stopped          no work is left" in " ".join(said.splitlines())
    assert "OperatorStop" not in said
    assert "Assigned: plain-1, claim 1" in said
    assert re.search(r"Completed: epoch 1$", said, re.MULTILINE)
    assert not re.search("took_ms|silent", said)  # nobody wants to know the one, and the other is as it should be
    assert "Brief(" not in said
    assert any(event["metadata"]["event"] == "OperatorStop" for event in ground.json("log"))
    status = ground.call("status").stdout
    assert ("no work is left" in status, "Stop:" in status) == (True, False)


def test_a_failed_task_is_not_followed_by_agents_that_have_no_work(ground: Ground) -> None:
    """That they have stopped is no news."""
    ground.prepare("plain-1", repository=False)
    ground.fleet.write_text(ground.fleet.read_text().replace('["test", "-s", "plain-1.txt"]', '["false"]'))
    ground.fleet.write_text(ground.fleet.read_text() + "max_retries = 0\n")
    said = ground.run(code=1)
    assert "plain-1: FAILED" in said
    assert "has stopped" not in said


def test_why_an_agent_has_stopped_by_its_errors_is_said_as_long_as_it_is_down(ground: Ground) -> None:
    """By ``run``, once, also by a later one; by ``status``, to people and to programs, whether or not it is over."""
    ground.prepare("plain-1", repository=False)
    failing = 'command = ["sh", "-c", "echo no api key; exit 7"]\nmax_total_errors = 1'
    ground.fleet.write_text(re.sub("command = .*", failing, ground.fleet.read_text()))
    why = "agent has stopped: 1 error in all (max_total_errors = 1); the last was exit status 7: no api key"
    for _ in range(2):
        said = ground.run(code=1)
        assert f"\n  {why}\n" in said
        assert said.rpartition(" tasks closed")[2].count("max_total_errors") == 1
    assert f"\n! {why}\n" in ground.call("status").stdout
    assert ground.json("status")["agents"][0]["stopped_by"] == why.removeprefix("agent has stopped: ")


@pytest.mark.parametrize(("number", "reason"), [(signal.SIGINT, "user_interrupt"), (signal.SIGTERM, "shutdown_signal")])
def test_who_leaves_is_told_what_is_going_on_and_how_to_go_on(
    ground: Ground, number: signal.Signals, reason: str
) -> None:
    """The command is no longer than it has to be, and no message is said to have come. The journal says why."""
    ground.prepare("slow-1", repository=False, gates=["slow-1"])
    with ground.running() as run, ground.at_gate("slow-1"):
        run.until("IN_PROGRESS")
        run.signal(number)
        said = run.until("Interrupting") + run.rest()
    assert "asked to leave" in said
    assert "UrgentMessage" not in said
    assert said.endswith(f"run {ground.fleet}\n")
    assert run.process.returncode == Verdict.LEFT
    (interrupted,) = [each for each in ground.json("log") if each["metadata"]["event"] == "UrgentMessage"]
    assert interrupted["abort_reason"] == reason


def test_a_second_stop_says_that_the_first_was_final(ground: Ground) -> None:
    """Whoever asks again learns that it is done."""
    ground.prepare("plain-1", repository=False)
    ground.run()
    assert "agent: has stopped already, and for good\n" in ground.call("stop", "--all", code=2).stdout
    assert "for good" in ground.call("send", "agent", "hello?", code=2).stdout


def test_a_damaged_log_is_not_called_safe(ground: Ground) -> None:
    """It says what can be done."""
    ground.prepare("plain-1", repository=False)
    ground.run()
    with closing(sqlite3.connect(ground.log)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(ground.log.read_bytes())
    data[4_096:] = b"\xa5" * (len(data) - 4_096)
    ground.log.write_bytes(data)
    said = ground.call("status", code=2).stderr
    assert "the log is damaged" in said
    assert "put a copy of it back" in said
    assert "safe" not in said


@pytest.mark.parametrize("trouble", ["bare", "no commit", "no branch", "none"])
def test_a_repository_that_cannot_be_used_is_named_with_its_place_in_the_file(ground: Ground, trouble: str) -> None:
    """File, line and key, besides what is wrong and what to do."""
    ground.prepare("plain-1")
    if trouble == "bare":
        ground.git("config", "core.bare", "true")
    elif trouble == "no commit":
        ground.git("checkout", "--quiet", "--orphan", "other")
    elif trouble == "no branch":
        ground.git("checkout", "--quiet", "--detach")
    else:
        (ground.folder / "repo" / ".git").rename(ground.folder / "gone")
    said = ground.call("run", str(ground.fleet), code=2).stderr
    assert said.startswith(f"lifefold: {ground.fleet}:4: fleet.repository: ")


def test_a_log_is_made_in_a_folder_that_is_there_and_in_no_other(ground: Ground) -> None:
    """A slip of the pen makes no folders; a folder and an empty file are no logs, and called what they are."""
    ground.prepare("plain-1", repository=False)
    folder, empty = ground.folder / "folder", ground.folder / "empty.db"
    folder.mkdir()
    empty.touch()
    places = {
        ground.folder / "nowhere" / "x.db": "nowhere is not a folder",
        folder: "is a folder, not a log",
        empty: "is not a lifefold log (it is empty)",
    }
    for place, words in places.items():
        assert words in ground.call("run", str(ground.fleet), "--db", str(place), code=2).stderr
    assert not (ground.folder / "nowhere").exists()


@pytest.mark.parametrize(("reason", "said"), [("", "by "), ("not needed", "by an operator: not needed")])
def test_a_session_that_ends_by_a_cancellation_is_said_to_end_by_that(ground: Ground, reason: str, said: str) -> None:
    """The event in the log is one for all interruptions; the JSON has it."""
    ground.prepare("hang-1", repository=False)
    with ground.running() as run:
        run.until("session", "-> Running")
        ground.call("cancel", "hang-1", *(["--reason", reason] if reason else []))
        told = run.until("Running -> Interrupting")
        run.rest()
    assert f"hang-1 was cancelled {said}" in told
    assert "UrgentMessage" not in ground.call("log").stdout
    assert any(each["metadata"]["event"] == "UrgentMessage" for each in ground.json("log"))


def test_a_message_in_the_prompt_of_a_running_session_is_not_said_to_wait(ground: Ground) -> None:
    """One that has come later is."""
    ground.prepare("slow-1", repository=False)
    (ground.folder / "agent.py").write_text("import time; print('at work', flush=True); time.sleep(600)")
    with ground.running() as run:
        run.until("session", "-> Running")
        ground.call("send", "agent", "first")
        run.until("Interrupting -> BuildingPrompt")
        run.until("session", "-> Running")
        assert ", 1 message in its prompt " in ground.call("status").stdout
        ground.call("send", "agent", "second", "--no-interrupt")
        assert ", 1 message in its prompt, 1 message waiting " in ground.call("status").stdout
        ground.call("stop", "--kill", "--all")
        run.rest()
