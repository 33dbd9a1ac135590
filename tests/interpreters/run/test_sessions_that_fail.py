"""What is said of sessions that fail: how they ended, and the agent's own last words."""

import signal
from pathlib import Path

import pytest

from fleet_ground import Ground
from lifefold.core import session
from lifefold.interpreters.body import SessionExit, launch
from lifefold.interpreters.body.session_files import Outcome
from lifefold.interpreters.run.outcome import LINE_CHARS, outcome
from session_ground import Bell, script

FAILS = r"""
import os, pathlib, sys
prompt = pathlib.Path(sys.argv[1]).read_text()
if "failed" not in prompt:
    print("thinking", flush=True)
    sys.exit("\x1b[31moops\x07 no api key\x1b[0m\n")
pathlib.Path(os.environ["LIFEFOLD_TASK"] + ".txt").write_text(prompt)
"""


def exited(message: str = "exit status 1") -> SessionExit:
    return SessionExit(outcome="exited", at_ms=0, code=1, message=message)


def test_the_next_prompt_and_the_screen_have_the_last_line_of_what_a_failed_session_printed(tmp_path: Path) -> None:
    """Without what a terminal would take for a command."""
    ground = Ground(tmp_path).prepare("plain-1")
    (ground.folder / "agent.py").write_text(FAILS)
    assert "Error(exit status 1: oops no api key)" in ground.run()
    told = "An earlier attempt at this task failed: Error(exit status 1: oops no api key)"
    assert told in ground.git("show", "main:plain-1.txt")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("output", "said"),
    [
        (b"", "exit status 1"),
        (b"\n \n\x1b[0m\n", "exit status 1"),
        (b"first\nlast\t one\r\n\n", "exit status 1: last one"),
        (b"10%\r90%\rgave up", "exit status 1: gave up"),
        (b"\xff\x00 bytes", "exit status 1: \N{REPLACEMENT CHARACTER} bytes"),
        (b"x" * 100_000, f"exit status 1: {'x' * LINE_CHARS}…"),
        (b'no credit\n{"lifefold": {"cost_usd": 0.1}}\n', "exit status 1: no credit"),
    ],
    ids=["nothing", "blank", "white", "progress", "binary", "long", "cost"],
)
async def test_an_error_ends_with_one_short_printable_line(tmp_path: Path, output: bytes, said: str) -> None:
    """Whatever the agent wrote last."""
    (tmp_path / "output.log").write_bytes(output)
    assert await outcome(exited(), tmp_path) == session.Error(said)


@pytest.mark.anyio
async def test_an_output_that_cannot_be_read_makes_no_difference(tmp_path: Path) -> None:
    """Agents can reach it."""
    assert await outcome(exited(), tmp_path / "gone") == session.Error("exit status 1")
    (tmp_path / "output.log").mkdir()
    assert await outcome(exited(), tmp_path) == session.Error("exit status 1")


@pytest.mark.anyio
async def test_a_fifo_in_the_place_of_the_output_keeps_nobody(tmp_path: Path) -> None:
    """There is nothing to read, and nothing is waited for."""
    Bell(tmp_path / "output.log")
    assert await outcome(exited(), tmp_path) == session.Error("exit status 1")


@pytest.mark.anyio
async def test_only_errors_are_explained(tmp_path: Path) -> None:
    """A success is a success, and a time-out is one, whatever was printed."""
    (tmp_path / "output.log").write_bytes(b"nearly done\n")
    assert await outcome(SessionExit(outcome="exited", at_ms=0, code=0), tmp_path) == session.Success()
    assert await outcome(SessionExit(outcome="timeout", at_ms=0, signal=15), tmp_path) == session.Timeout()


@pytest.mark.anyio
async def test_a_session_that_was_deaf_is_said_to_have_been_killed(tmp_path: Path) -> None:
    """The word for it is not that of a signal from somewhere."""
    bell = Bell(tmp_path / "bell")
    process = await launch(tmp_path / "run", script(f"trap '' TERM; echo > {bell}; while :; do sleep 1000; done"))
    await bell.heard()
    await process.end(0)
    ended = await process.wait()
    assert ended.signal == signal.SIGKILL
    assert await outcome(ended, tmp_path / "run") == session.Error(
        "it was asked to end; it did not end on TERM; killed"
    )


@pytest.mark.parametrize(
    ("kind", "how", "called"),
    [
        ("python", "exited", session.Suspended()),
        ("python", "lease-expired", session.Suspended(asked=True)),
        ("python", "timeout", session.Timeout()),
        ("command", "exited", session.Error("exit status 75")),
    ],
)
@pytest.mark.anyio
async def test_only_a_cooperative_agent_whose_time_was_not_over_is_suspended_by_status_75(
    tmp_path: Path, kind: str, how: Outcome, called: session.Outcome
) -> None:
    """Our own cause wins (E39), and to any other command the number means nothing."""
    ended = SessionExit(outcome=how, at_ms=0, code=75, message="exit status 75")
    assert await outcome(ended, tmp_path, cooperative=kind == "python") == called
