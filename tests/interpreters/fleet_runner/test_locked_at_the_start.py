"""A log that another program holds locked when a run begins: the run waits for it, and says so."""

import signal
import sqlite3
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from fleet_ground import Ground

AS_A_WHOLE = "PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE"


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    """Return the ground of a fleet that a runner has left with a task to do."""
    ground = Ground(tmp_path)
    ground.prepare("plain-1", gates=["plain-1"])
    with ground.running() as run:
        run.until("plain-1", "IN_PROGRESS")
        with ground.at_gate("plain-1"):
            run.signal(signal.SIGINT)
            run.rest()
    yield ground
    ground.kill_all()


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
def test_a_run_waits_for_a_log_that_another_program_holds_locked(ground: Ground, statements: str) -> None:
    """It says once what it waits for, changes nothing meanwhile, and begins when the log is free."""
    with ExitStack() as lock:
        lock.enter_context(locked(ground.log, statements))
        with ground.running() as run:
            said = run.until("waiting until it is done")
            assert str(ground.log) in said
            assert "another program keeps the log busy" in said
            lock.close()
            text = run.rest()
    assert run.process.returncode == 0, text
    assert "the log is available; the run begins" in text
    assert "1 of 1 tasks closed" in text
    assert "waiting until it is done" not in text


def test_a_run_that_waits_for_a_locked_log_can_be_left(ground: Ground) -> None:
    """Ctrl-C ends it with 130, without a traceback."""
    with locked(ground.log, "BEGIN IMMEDIATE"), ground.running() as run:
        run.until("waiting until it is done")
        run.signal(signal.SIGINT)
        assert "Traceback" not in run.rest()
        assert run.process.returncode == 130


@pytest.mark.parametrize("words", [["status"], ["why", "plain-1"]], ids=lambda words: words[0])
def test_a_command_that_cannot_read_a_locked_log_says_so(ground: Ground, words: list[str]) -> None:
    """Exit code 3, which file is locked, and what to do; no traceback."""
    with locked(ground.log, AS_A_WHOLE):
        refused = ground.call(*words, code=3)
    assert f"{ground.log.name}: another program keeps the log busy" in refused.stderr
    assert "give the command again" in refused.stderr
    ground.call(*words)
