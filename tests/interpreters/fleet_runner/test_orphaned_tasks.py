"""Real sessions that die at work: what they have left is merged if it is proven, and tried again if it is not."""

import os
from pathlib import Path
from typing import Final

import pytest

from fleet_sandbox import Sandbox

AGENT: Final = r"""
import os, pathlib, signal, subprocess, sys, time

task = os.environ["LIFEFOLD_TASK"]
how, what, _ = task.split("-")
prompt = pathlib.Path(sys.argv[1]).read_text()
with (pathlib.Path(os.environ["COUNTS"]) / task).open("a") as file:
    file.write(f"{os.environ['LIFEFOLD_AGENT']} 1\n")
first = "failed" not in prompt

def die():
    if how == "exits":
        sys.exit("I crash")
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "hangs":
        time.sleep(600)

if first and what == "nothing":
    die()
if first and what == "half":
    pathlib.Path("half.txt").write_text("only this")
    die()
pathlib.Path(task + ".txt").write_text(prompt)
if what == "committed":
    subprocess.run(["git", "add", "--all"], check=True)
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-qm", "mine"], check=True)
if first or what != "half":
    die()
"""


def sandbox(folder: Path, *tasks: str, policy: str = "verify", timeout: str = "60s") -> Sandbox:
    """Return a fleet of such agents."""
    of = Sandbox(folder).prepare(*tasks, timeout=timeout).demand("", f'orphaned = "{policy}"')
    (folder / "agent.py").write_text(AGENT)
    return of


def told(of: Sandbox, command: str, *more: str) -> str:
    """Return what a command says, on one line."""
    return " ".join(of.call(command, *more, "--db", str(of.log)).stdout.split())


@pytest.mark.parametrize("task", ["exits-committed-1", "exits-whole-1", "killed-committed-1"])
def test_work_that_is_proven_is_merged_although_its_session_has_died(tmp_path: Path, task: str) -> None:
    """The session did all of it, committed or not, and crashed: it is not done a second time."""
    of = sandbox(tmp_path, task)
    of.run()
    assert of.sessions(task) == 1
    assert of.git("show", f"main:{task}.txt") == f"Write {task}.txt"
    assert len(of.merges()) == 1
    why = told(of, "why", task)
    assert f"{task} is closed" in why
    assert "its session has died" in why
    assert "the work of the dead session counts" in why
    log = told(of, "log", "--all")
    assert "IN_PROGRESS -> ORPHANED" in log
    assert "ORPHANED -> DONE" in log


def test_a_session_that_hangs_when_its_work_is_done_is_ended_and_the_work_is_merged(tmp_path: Path) -> None:
    """It took longer than it may; nothing of it is alive when its work is looked at."""
    of = sandbox(tmp_path, "hangs-whole-1", timeout="2s")
    of.run()
    assert of.sessions("hangs-whole-1") == 1
    assert len(of.merges()) == 1
    assert of.processes() == []


def test_work_that_is_half_done_is_tried_again_with_what_was_wrong(tmp_path: Path) -> None:
    """The verification says no; the next session hears of the crash, and of what its work lacked."""
    of = sandbox(tmp_path, "exits-half-1")
    of.run()
    assert of.sessions("exits-half-1") == 2
    prompt = of.git("show", "main:exits-half-1.txt")
    assert "I crash" in prompt or "exit status 1" in prompt
    assert "what it has left is not enough: The command `test -s exits-half-1.txt` exited with status 1" in prompt
    assert "half.txt" not in of.git("ls-tree", "--name-only", "main")
    assert "ORPHANED -> FAILED" in told(of, "log", "--all")


def test_a_runner_that_is_killed_while_an_orphan_is_verified_verifies_it_again(tmp_path: Path) -> None:
    """What the session has left is still there, and nothing of it is forgotten."""
    task = "exits-whole-1"
    of = sandbox(tmp_path, task)
    gate, asked = tmp_path / "gate", tmp_path / "asked"
    os.mkfifo(asked)
    text = of.fleet.read_text()
    wait = f'["sh", "-c", "test -e {gate} || (echo > {asked}; sleep 600)"]'
    of.fleet.write_text(text.replace(f'["test", "-s", "{task}.txt"]', wait))
    with of.running() as run:
        asked.read_text()
        run.process.kill()
        run.rest()
    gate.touch()
    of.run()
    assert of.sessions(task) == 1
    assert len(of.merges()) == 1
    assert of.processes() == []
