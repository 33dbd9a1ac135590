"""The command of a notifier that a killed runner has left: the next runner ends it, and no other process."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import msgspec
import pytest

from fleet_sandbox import Sandbox
from lifefold.interpreters.processes import identify, is_alive
from lifefold.interpreters.processes.left_command import CommandRecord

HANGS = """
import os, pathlib, time

here = pathlib.Path(__file__)
with here.with_name("began").open("a") as file:
    file.write(f"{os.getpid()}\\n")
if here.with_name("hangs").exists():
    time.sleep(600)
"""


def sleeper(*words: str) -> "subprocess.Popen[bytes]":
    """Start a process that lasts, as the leader of a group; it says when it is ready."""
    script = f"import signal, time; {'; '.join(words)}; print(flush=True); time.sleep(600)"
    process = subprocess.Popen(
        [sys.executable, "-c", script], start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    with process.stdout as ready:
        ready.readline()
    return process


@pytest.mark.parametrize("word", ["pass", "signal.signal(signal.SIGTERM, signal.SIG_IGN)"])
def test_a_recorded_command_is_ended_also_one_that_ignores_the_request(tmp_path: Path, word: str) -> None:
    process, file = sleeper(word), tmp_path / "deliveries" / "a.json"
    record = CommandRecord(file)
    record.write(process.pid)
    anyio.run(record.end_left_over)
    assert process.wait() == -(signal.SIGTERM if word == "pass" else signal.SIGKILL)
    assert not file.exists()


def test_a_runner_that_leaves_during_the_grace_leaves_the_record_for_the_next_one(tmp_path: Path) -> None:
    """The command has ignored the request, and the runner was told to leave before it could kill it."""
    process, file = sleeper("signal.signal(signal.SIGTERM, signal.SIG_IGN)"), tmp_path / "a.json"
    record = CommandRecord(file)
    record.write(process.pid)

    async def left_early() -> None:
        with anyio.move_on_after(0.2):
            await record.end_left_over()

    try:
        anyio.run(left_early)
        assert (process.poll(), file.exists()) == (None, True)
        anyio.run(record.end_left_over)
        assert process.wait() == -signal.SIGKILL
        assert not file.exists()
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("change", [{"start_time": 1}, {"boot_id": "another"}])
def test_a_later_process_with_the_same_number_is_not_signalled(tmp_path: Path, change: dict[str, object]) -> None:
    process, file = sleeper("pass"), tmp_path / "a.json"
    try:
        record = CommandRecord(file)
        record.write(process.pid)
        file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
        anyio.run(record.end_left_over)
        assert process.poll() is None
        assert not file.exists()
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("text", ["", "{", "null", "[]"])
def test_a_record_that_cannot_be_read_signals_no_process(tmp_path: Path, text: str) -> None:
    file = tmp_path / "a.json"
    file.write_text(text)
    anyio.run(CommandRecord(file).end_left_over)
    assert not file.exists()


def test_a_place_without_a_record_has_nothing_to_end(tmp_path: Path) -> None:
    anyio.run(CommandRecord(tmp_path / "a.json").end_left_over)
    assert list(tmp_path.iterdir()) == []


def test_a_record_that_cannot_be_written_harms_no_command(tmp_path: Path) -> None:
    (tmp_path / "deliveries").write_text("no folder")
    CommandRecord(tmp_path / "deliveries" / "a.json").write(os.getpid())
    assert (tmp_path / "deliveries").read_text() == "no folder"


def test_the_next_runner_ends_the_command_that_a_killed_runner_has_left(tmp_path: Path) -> None:
    """And delivers the notification again. No record is left at the end."""
    (tmp_path / "teller.py").write_text(HANGS)
    (tmp_path / "hangs").touch()
    sandbox = Sandbox(tmp_path).prepare("plain-1")
    command = json.dumps([sys.executable, "{fleet_dir}/teller.py"])
    sandbox.fleet.write_text(
        f'{sandbox.fleet.read_text()}\n[[notify]]\non = "closed"\nrun = {command}\ntimeout = "10m"\n'
    )
    began, record = tmp_path / "began", sandbox.log.with_name("sandbox.db.files") / "deliveries" / "notify-1.json"
    with sandbox.running() as run:
        while not (began.exists() and began.read_text().endswith("\n")):
            pass
        run.signal(signal.SIGKILL)
        run.rest()
    left = identify(int(began.read_text()))
    assert left is not None
    assert msgspec.json.decode(record.read_bytes(), type=type(left)) == left
    (tmp_path / "hangs").unlink()
    sandbox.run()
    assert not is_alive(left)
    assert len(began.read_text().splitlines()) == 2
    assert not record.exists()
