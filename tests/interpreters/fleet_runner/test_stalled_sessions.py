"""Sessions of real processes that hang, or move: the first are ended, and tried again; the others are left alone."""

import re
import sys
from pathlib import Path
from typing import Final

import pytest

from fleet_sandbox import Sandbox

AGENT: Final = r"""
import os, pathlib, signal, sys, time

task = os.environ["LIFEFOLD_TASK"]
behaviour, prompt = task.partition("-")[0], pathlib.Path(sys.argv[1]).read_text()
counts = pathlib.Path(os.environ["COUNTS"])
with (counts / task).open("a") as file:
    file.write(f"{os.environ['LIFEFOLD_AGENT']}\n")

def answer(*_):
    print("Press Ctrl-C again to exit", flush=True)

def leave(*_):
    print("I leave it", flush=True)
    raise InterruptedError

if "failed" not in prompt:
    if behaviour == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if behaviour == "wakes":
        signal.signal(signal.SIGINT, leave)
    if behaviour == "answers":
        signal.signal(signal.SIGINT, answer)
    try:
        if behaviour in {"hang", "deaf", "wakes", "dies", "answers"}:
            print("thinking", flush=True)
            time.sleep(600)
    except InterruptedError:
        (counts / f"{task}.interrupted").touch()
    for _ in range(20 if behaviour in {"talks", "beats"} else 0):
        if behaviour == "talks":
            print(".", end="", flush=True)
        else:
            os.utime(os.open(os.environ["LIFEFOLD_HEARTBEAT"], os.O_CREAT | os.O_WRONLY))
        time.sleep(0.2)
pathlib.Path(task + ".txt").write_text(prompt)
"""


def sandbox(folder: Path, *tasks: str, stall: str = 'stall_timeout = "2s"', agents: int = 1) -> Sandbox:
    """Return a fleet whose sessions are watched, and may be silent for two seconds."""
    of = Sandbox(folder).prepare(*tasks, agents=agents)
    (folder / "agent.py").write_text(AGENT)
    text = of.fleet.read_text()
    of.fleet.write_text(text.replace('session_timeout = "60s"\n', f"{stall}\n"))
    return of


def test_a_session_that_hangs_is_ended_as_stalled_and_the_next_prompt_says_so(tmp_path: Path) -> None:
    """Its process lives and prints nothing; one that ignores TERM is killed. No session_timeout is needed."""
    of = sandbox(tmp_path, "hang-1", "deaf-1", agents=2)
    told = of.run()
    for task in ("hang-1", "deaf-1"):
        assert of.sessions(task) == 2
        assert re.search(r"An earlier attempt at this task failed: silent for \d s", of.git("show", f"main:{task}.txt"))
    assert told.count("Running -> CoolingDown             Stalled") == 2
    said, _, summary = told.partition("tasks closed")
    assert said.count("has shown no sign of progress") >= 2
    assert "no sign of progress" not in summary
    assert of.processes() == []
    assert "Stalled" in of.call("log", "--all", "--db", str(of.log)).stdout


def test_a_session_that_prints_or_only_touches_its_heartbeat_file_is_left_alone(tmp_path: Path) -> None:
    """Both take twice as long as a silence may last."""
    of = sandbox(tmp_path, "talks-1", "beats-1", agents=2)
    told = of.run()
    assert (of.sessions("talks-1"), of.sessions("beats-1")) == (1, 1)
    assert "Stalled" not in told
    assert "no sign of progress" not in told


STEPS: Final = 'stall_timeout = "20s"\nstall_warn = "1s"\nstall_interrupt = "2s"'


def test_a_session_that_is_interrupted_in_its_silence_may_go_on(tmp_path: Path) -> None:
    """It hears SIGINT once, moves again, and its work counts."""
    of = sandbox(tmp_path, "wakes-1", stall=STEPS)
    told = of.run()
    assert (of.folder / "counts" / "wakes-1.interrupted").exists()
    assert of.sessions("wakes-1") == 1
    assert "Stalled" not in told


def test_a_session_that_ends_by_the_signal_has_failed_for_its_silence(tmp_path: Path) -> None:
    """The next one hears what the last one hung in."""
    of = sandbox(tmp_path, "dies-1", stall=STEPS)
    of.run()
    assert "(interrupted after 2 s of silence)" in of.git("show", "main:dies-1.txt")
    assert of.sessions("dies-1") == 2


def test_the_status_says_for_how_long_a_session_is_silent(tmp_path: Path) -> None:
    """For people, and for programs with the evidence beside what the log says."""
    of = sandbox(tmp_path, "hang-1", stall='stall_timeout = "600s"\nstall_warn = "1s"')
    with of.running() as run:
        run.until("no sign of progress")
        printed = of.call("status", "--db", str(of.log)).stdout
        assert re.search(r"◐ running, silent for \d+s", printed)
        assert re.search(r"agent is stuck: its session at hang-1 has shown no progress for \d+s", printed)
        (agent,) = of.json("status", "--db", str(of.log))["agents"]
        assert agent["stall_detector"] == "Warned"
        assert agent["silent_since_ms"] > 0
        assert agent["process"]["silent_ms"] >= 1_000
        of.kill_all()


@pytest.mark.parametrize("after", ["Started", "no sign of progress"], ids=["while it moves", "when it was warned of"])
def test_a_runner_that_is_killed_neither_forgets_the_silence_nor_takes_a_step_again(tmp_path: Path, after: str) -> None:
    """The shim goes on; the next runner finds the silence as it is, and ends it, once."""
    of = sandbox(tmp_path, "hang-1", stall='stall_timeout = "4s"\nstall_warn = "1s"')
    with of.running() as run:
        run.until(after)
        run.process.kill()
        run.rest()
    told = of.run()
    assert of.sessions("hang-1") == 2
    assert "Stalled" in told
    log = of.call("log", "--all", "--db", str(of.log)).stdout
    assert len(re.findall(r"Fresh -> Warned", log)) == 1
    assert len(re.findall(r"Warned -> Stalled", log)) == 1
    assert of.processes() == []
    assert sys.executable in of.fleet.read_text()
