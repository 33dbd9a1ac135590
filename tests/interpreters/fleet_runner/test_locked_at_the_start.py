"""A log that another program holds locked when a run begins: the run waits for it, and says so."""

import signal
import sqlite3
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from fleet_sandbox import Sandbox

AS_A_WHOLE = "PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE"


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    """Return the sandbox of a fleet that a runner has left with a task to do."""
    sandbox = Sandbox(tmp_path)
    sandbox.prepare("plain-1", gates=["plain-1"])
    with sandbox.running() as run:
        run.until("plain-1", "IN_PROGRESS")
        with sandbox.at_gate("plain-1"):
            run.signal(signal.SIGINT)
            run.rest()
    yield sandbox
    sandbox.kill_all()


@contextmanager
def locked(log: Path, statements: str) -> Generator[None]:
    """Keep a log locked."""
    with closing(sqlite3.connect(log, isolation_level=None)) as other:
        other.executescript(statements)
        yield
        other.execute("ROLLBACK")


@pytest.mark.parametrize(
    "statements",
    ["BEGIN IMMEDIATE", AS_A_WHOLE],
    ids=["to write", "as a whole"],
)
def test_a_run_waits_for_a_log_that_another_program_holds_locked(sandbox: Sandbox, statements: str) -> None:
    """It says once what it waits for, changes nothing meanwhile, and begins when the log is free."""
    with ExitStack() as lock:
        lock.enter_context(locked(sandbox.log, statements))
        with sandbox.running() as run:
            said = run.until("waiting until it is done")
            assert str(sandbox.log) in said
            assert "another program keeps the log busy" in said
            lock.close()
            text = run.rest()
    assert run.process.returncode == 0, text
    assert "the log is available; the run begins" in text
    assert "1 of 1 tasks closed" in text
    assert "waiting until it is done" not in text


def test_a_run_that_waits_for_a_locked_log_can_be_left(sandbox: Sandbox) -> None:
    """Ctrl-C ends it with 130, without a traceback."""
    with locked(sandbox.log, "BEGIN IMMEDIATE"), sandbox.running() as run:
        run.until("waiting until it is done")
        run.signal(signal.SIGINT)
        assert "Traceback" not in run.rest()
        assert run.process.returncode == 130


@pytest.mark.parametrize("words", [["status"], ["why", "plain-1"]], ids=lambda words: words[0])
def test_a_command_that_cannot_read_a_locked_log_says_so(sandbox: Sandbox, words: list[str]) -> None:
    """Exit code 3, which file is locked, and what to do; no traceback."""
    with locked(sandbox.log, AS_A_WHOLE):
        refused = sandbox.call(*words, code=3)
    assert f"{sandbox.log.name}: another program keeps the log busy" in refused.stderr
    assert "give the command again" in refused.stderr
    sandbox.call(*words)
