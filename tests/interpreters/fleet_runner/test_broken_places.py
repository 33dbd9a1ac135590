"""Agents that break the place they work in, or the shim that watches them: their task has failed, the fleet goes on."""

import os
from pathlib import Path
from typing import Final

import pytest

from fleet_sandbox import Sandbox
from git_sandbox import new_repository

BEGINS: Final = """
import os, pathlib, shutil, signal, subprocess, sys, time
task, attempt = os.environ["LIFEFOLD_TASK"], int(os.environ["LIFEFOLD_ATTEMPT"])
folder, place = pathlib.Path(os.environ["COUNTS"]).parent, pathlib.Path.cwd()
with open(folder / "counts" / task, "a") as file:
    file.write("once\\n")
again = "failed" in pathlib.Path(sys.argv[1]).read_text()
pathlib.Path(task + ".txt").write_text("done")
if again or not task.startswith("bad"):
    sys.exit()
"""

LOOP: Final = "shutil.rmtree(place); os.symlink(place, place)"
LINK: Final = """
victim = folder / "victim"
shutil.copy(".git", victim / ".git")
shutil.rmtree(place); os.symlink(victim, place)
"""
BARE: Final = 'subprocess.run(["git", "config", "core.bare", "true"], check=True)'
HIDES: Final = """
rules = folder / "repo" / ".git" / "info" / "exclude"
rules.parent.mkdir(exist_ok=True)
rules.write_text("*.txt\\n")
"""
PIPE: Final = """
config = folder / "repo" / ".git" / "config"
config.rename(folder / "config")
os.mkfifo(config)
"""
SESSION: Final = """
session = pathlib.Path(os.environ["LIFEFOLD_HEARTBEAT"]).parent
session.rename(session.with_name("moved"))
"""
FILE_OF_SESSION: Final = SESSION + 'session.write_text("x")'
LINK_OF_SESSION: Final = SESSION + "session.symlink_to(session)"
FILE_OF_START: Final = SESSION + 'session.mkdir(); (session / "start-1").write_text("x")'
STOPS: Final = "os.kill(os.getppid(), signal.SIGSTOP)"
STOPS_AND_HANGS: Final = 'os.kill(os.getppid(), signal.SIGSTOP); open(folder / "stopped", "w").close(); time.sleep(600)'


def new(folder: Path) -> Path:
    """Make a folder."""
    folder.mkdir()
    return folder


def prepared(folder: Path, breaks: str, *tasks: str, timeout: str = "60s") -> Sandbox:
    """Return a fleet of one agent, which breaks something at its first session with a task called bad."""
    sandbox = Sandbox(folder).prepare(*tasks, timeout=timeout)
    (folder / "agent.py").write_text(BEGINS + breaks)
    (folder / "victim").mkdir()
    (folder / "victim" / "precious").write_text("p")
    return sandbox


@pytest.mark.parametrize("breaks", [LOOP, LINK], ids=["loop", "link"])
def test_a_place_that_was_replaced_by_a_link_costs_its_task_one_attempt(tmp_path: Path, breaks: str) -> None:
    """The next attempt has a new place, what the link points to is untouched, and nothing is left behind."""
    sandbox = prepared(tmp_path, breaks, "bad-1", "plain-1")
    told = sandbox.run()
    assert "2 of 2 tasks closed" in told
    assert (sandbox.sessions("bad-1"), sandbox.sessions("plain-1")) == (2, 1)
    assert {path.name for path in (tmp_path / "victim").iterdir()} - {".git"} == {"precious"}
    assert sandbox.git("show", "main:bad-1.txt") == "done"
    assert len(sandbox.git("worktree", "list").splitlines()) == 1


@pytest.mark.parametrize("breaks", [FILE_OF_SESSION, LINK_OF_SESSION, FILE_OF_START], ids=["file", "link", "start"])
def test_a_session_folder_that_was_replaced_costs_its_task_one_attempt(tmp_path: Path, breaks: str) -> None:
    """The fleet goes on, and ``why`` names the path."""
    sandbox = prepared(tmp_path, breaks, "bad-1", "plain-1")
    assert "2 of 2 tasks closed" in sandbox.run()
    assert (sandbox.sessions("bad-1"), sandbox.sessions("plain-1")) == (2, 1)
    session = f"{sandbox.log}.files/sessions/agent/0001"
    assert f"failed: {session}" in sandbox.call("why", "bad-1").stdout


def test_a_loop_that_an_agent_left_at_its_end_hinders_no_later_run(tmp_path: Path) -> None:
    """With no attempts left the fleet ends as one in which a task has failed, and can be run again."""
    sandbox = prepared(tmp_path, LOOP, "bad-1").demand("bad-1", "max_retries = 0")
    for _ in range(2):
        assert "0 of 1 tasks closed" in sandbox.run(code=1)
    assert "1 of 1 tasks closed" in sandbox.call("run", str(sandbox.fleet), "--transitions", "--again").stdout


def test_a_repository_that_an_agent_calls_bare_gets_the_work_all_the_same(tmp_path: Path) -> None:
    """The user's files follow, too; the user is told how to take the setting back, and a new run asks for that."""
    sandbox = prepared(tmp_path, BARE, "bad-1", "plain-1")
    assert "git config core.bare false" in sandbox.run()
    refused = sandbox.call("run", "fleet.toml", "--transitions", "--db", "new.db", code=2).stderr
    assert "git config core.bare false" in refused
    assert {"bad-1.txt", "plain-1.txt"} <= {path.name for path in (tmp_path / "repo").iterdir()}
    assert len(sandbox.merges()) == 2


def test_a_rule_that_an_agent_writes_to_hide_work_hides_none(tmp_path: Path) -> None:
    """The work of both tasks is merged, and the user is told that there is a new rule; of none there is no word."""
    sandbox = prepared(tmp_path, HIDES, "bad-1", "plain-1")
    assert "have hidden no work in it" in sandbox.run()
    assert {"bad-1.txt", "plain-1.txt"} <= {path.name for path in (tmp_path / "repo").iterdir()}
    assert "have hidden no work" not in prepared(new(tmp_path / "other"), HIDES, "plain-1").run()


def test_a_pipe_in_place_of_the_configuration_of_git_stops_the_merge_and_no_more(tmp_path: Path) -> None:
    """The runner names the pipe, and goes on when the operator has put the file back."""
    sandbox = prepared(tmp_path, PIPE, "bad-1", "plain-1")
    config = tmp_path / "repo" / ".git" / "config"
    with sandbox.running() as run:
        assert f"rm '{config}'" in run.until("waits to merge bad-1", "named pipe")
        config.unlink()
        (tmp_path / "config").rename(config)
        assert "2 of 2 tasks closed" in run.rest()
    assert len(sandbox.merges()) == 2
    assert sandbox.git("status", "--porcelain") == ""


def test_a_fleet_without_a_repository_within_one_is_refused(tmp_path: Path) -> None:
    """Exit code 2, with what to write, and nothing has changed; with a log that lies elsewhere it is run."""
    repository, elsewhere = tmp_path / "mine", tmp_path / "elsewhere"
    new_repository(repository)
    elsewhere.mkdir()
    sandbox = Sandbox(repository).prepare("plain-1", repository=False)
    refused = sandbox.call("run", str(sandbox.fleet), "--transitions", code=2).stderr
    assert f'repository = "{repository}"' in refused
    assert "--db" in refused
    assert not sandbox.log.exists()
    assert sandbox.sessions("plain-1") == 0
    sandbox.call("run", str(sandbox.fleet), "--transitions", "--db", str(elsewhere / "x.db"))
    assert sandbox.sessions("plain-1") == 1


def test_a_session_whose_shim_was_stopped_is_over_when_its_time_is(tmp_path: Path) -> None:
    """The runner wakes the shim, some time after the session's own limits; work that was done by then counts."""
    sandbox = prepared(tmp_path, STOPS, "bad-1", "plain-1", timeout="3s")
    told = sandbox.run()
    assert "2 of 2 tasks closed" in told
    assert "is not ended by its shim: the shim is woken" in told
    assert sandbox.sessions("bad-1") == 1
    assert sandbox.processes() == []


def test_an_agent_whose_shim_was_stopped_can_be_stopped(tmp_path: Path) -> None:
    """``lifefold stop`` is heard at once, and all is confirmed dead."""
    sandbox = prepared(tmp_path, STOPS_AND_HANGS, "bad-1", timeout="1h")
    os.mkfifo(tmp_path / "stopped")
    with sandbox.running() as run:
        (tmp_path / "stopped").read_bytes()
        sandbox.call("stop", "agent")
        run.rest()
    assert run.process.returncode == 1
    assert sandbox.processes() == []
