"""A fleet whose output has no reader: the agents go on, and operator commands are taken."""

import os
import pty
import signal
import subprocess
import termios
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import IO

import pytest

from commands_run import LIFEFOLD
from fleet_sandbox import HANG_S, Sandbox
from lifefold.interpreters.fleet_runner import Verdict
from stuck_pipe import StuckPipe


@pytest.fixture
def pipe() -> Iterator[IO[str]]:
    """Return a pipe without a reader."""
    pipe = StuckPipe()
    yield pipe.stream
    pipe.close()


@contextmanager
def started(sandbox: Sandbox, output: IO[str] | int, *options: str) -> Generator["subprocess.Popen[bytes]"]:
    """Start the sandbox's fleet with all that it prints going there; it is killed at the latest in the end."""
    words = [*LIFEFOLD, "run", str(sandbox.fleet), *options]
    with subprocess.Popen(words, cwd=sandbox.folder, stdout=output, stderr=output, start_new_session=True) as runner:
        try:
            yield runner
        finally:
            runner.kill()


def test_a_pipe_without_a_reader_stops_no_agent(sandbox: Sandbox, pipe: IO[str]) -> None:
    """The fleet runs to its end and exits as if it had been read."""
    sandbox.prepare("plain-1", "crash-1", repository=False)
    with started(sandbox, pipe, "--transitions") as runner:
        assert runner.wait(HANG_S) == Verdict.ALL_CLOSED
    assert [task["state"] for task in sandbox.json("tasks")] == ["CLOSED"] * 2


def test_a_command_is_answered_although_the_output_is_not_read(sandbox: Sandbox, pipe: IO[str]) -> None:
    """Messages are answered, and Ctrl-C ends the sessions and the run."""
    sandbox.prepare("slow-1", repository=False, gates=["slow-1"])
    with started(sandbox, pipe, "--transitions") as runner, sandbox.at_gate("slow-1"):
        assert "accepted" in sandbox.call("send", "agent", "later", "--no-interrupt").stdout
        runner.send_signal(signal.SIGINT)
        assert runner.wait(HANG_S) == Verdict.LEFT
    assert sandbox.processes() == []


def test_a_terminal_that_was_stopped_with_ctrl_s_stops_no_agent(sandbox: Sandbox) -> None:
    """Nor does the live display wait for Ctrl-Q."""
    sandbox.prepare("plain-1", "crash-1", repository=False)
    outer, terminal = pty.openpty()
    termios.tcflow(terminal, termios.TCOOFF)
    with started(sandbox, terminal) as runner:
        assert runner.wait(HANG_S) == Verdict.ALL_CLOSED
    assert [task["state"] for task in sandbox.json("tasks")] == ["CLOSED"] * 2
    os.close(terminal)
    os.close(outer)


def test_a_live_display_draws_what_happens(sandbox: Sandbox) -> None:
    """On a terminal that is read: the agents, the tasks, and in the end the summary."""
    sandbox.prepare("plain-1", repository=False)
    outer, terminal = pty.openpty()
    with started(sandbox, terminal) as runner:
        os.close(terminal)
        seen = read_all(outer)
        assert runner.wait(HANG_S) == Verdict.ALL_CLOSED
    assert all(word in seen for word in ("AGENT", "agent", "plain-1:closed", "1/1 tasks closed", "1 of 1 tasks closed"))


def read_all(terminal: int) -> str:
    """Return what is written to a terminal until its last writer has gone."""
    seen = b""
    try:
        while more := os.read(terminal, 65_536):
            seen += more
    except OSError:  # how Linux reports that the other end is closed
        pass
    os.close(terminal)
    return seen.decode()


def test_a_live_display_leaves_the_terminal_as_it_was(sandbox: Sandbox) -> None:
    """After the end, and after a third Ctrl-C: on the usual screen, with a cursor."""
    sandbox.prepare("deaf-1", repository=False, timeout="2h", gates=["deaf-1"])
    outer, terminal = pty.openpty()
    with started(sandbox, terminal) as runner, sandbox.at_gate("deaf-1"):
        os.close(terminal)
        for _ in range(3):
            runner.send_signal(signal.SIGINT)
        seen = read_all(outer)
        assert runner.wait(HANG_S) == Verdict.LEFT
    assert seen.rindex("\x1b[?1049l") > seen.rindex("\x1b[?1049h")
    assert seen.rindex("\x1b[?25h") > seen.rindex("\x1b[?25l")
    sandbox.kill_all()
