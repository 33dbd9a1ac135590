"""A log that is deleted, moved, replaced or overwritten under a fleet: the fleet leaves, and nothing done is lost."""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fleet_sandbox import HANG_S, Sandbox
from lifefold.interpreters.store import SqliteStore

ENDS = ("", "-wal", "-shm", ".lock")


def deleted(log: Path) -> None:
    """Delete the log and all that SQLite keeps beside it."""
    for end in ENDS:
        log.with_name(log.name + end).unlink(missing_ok=True)


def folder_deleted(log: Path) -> None:
    """Delete the folder of the log, with the places of the agents' sessions."""
    shutil.rmtree(log.parent, ignore_errors=True)
    shutil.rmtree(log.parent, ignore_errors=True)  # what a session has written meanwhile


def without_wal(log: Path) -> None:
    """Delete what SQLite keeps beside the log, and leave the log."""
    log.with_name(log.name + "-wal").unlink()


def moved(log: Path) -> None:
    """Rename the log alone."""
    log.rename(log.with_name("elsewhere"))


def replaced_by_another_log(log: Path) -> None:
    """Put another log into its place, as ``mv`` does."""
    draft = log.with_name("draft")
    SqliteStore.create(draft, {"fleet": "another"}).close()
    draft.replace(log)


def replaced_by_text(log: Path) -> None:
    """Put a file into its place that is no log."""
    draft = log.with_name("draft")
    draft.write_text("notes of an operator")
    draft.replace(log)


def overwritten_by_another_log(log: Path) -> None:
    """Write another log into the file, as ``cat OTHER > LOG`` does."""
    draft = log.with_name("draft")
    SqliteStore.create(draft, {"fleet": "another"}).close()
    log.write_bytes(draft.read_bytes())
    draft.unlink()


def overwritten_by_text(log: Path) -> None:
    """Write a text into the file, in place."""
    log.write_text("notes of an operator")


def overwritten_in_part(log: Path) -> None:
    """Write over all but the first page of the file, as ``dd conv=notrunc`` does."""
    with log.open("r+b") as file:
        file.seek(4_096)
        file.write(b"n" * (log.stat().st_size - 4_096))


def emptied(log: Path) -> None:
    """Cut off all of the file."""
    os.truncate(log, 0)


REPLACED = [deleted, folder_deleted, without_wal, moved, replaced_by_another_log, replaced_by_text]
OVERWRITTEN = [overwritten_by_another_log, overwritten_by_text, overwritten_in_part, emptied]


@pytest.mark.parametrize("displace", [*REPLACED, *OVERWRITTEN])
def test_a_fleet_whose_log_is_displaced_leaves_and_goes_on_from_its_recovered_copy(
    sandbox: Sandbox, displace: Callable[[Path], None]
) -> None:
    """It exits with 3, its sessions have ended, and the command that it names does no task a second time."""
    sandbox.prepare("plain-1", "plain-2", gates=["plain-2"])
    with sandbox.running() as run:
        run.until("plain-1", "CLOSED")
        with sandbox.at_gate("plain-2"):
            displace(sandbox.log)
            text = run.rest()
        assert run.process.returncode == 3, text
    assert sandbox.processes() == []
    assert f"{sandbox.log.name}.recovered" in text
    command = next(line for line in text.splitlines() if line.startswith("to go on:")).partition(":")[2]
    assert command.strip().startswith("mv -n ")
    done = subprocess.run(
        ["/bin/sh", "-c", command], check=False, cwd=sandbox.folder, capture_output=True, text=True, timeout=HANG_S
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 of 2 tasks closed" in done.stdout
    assert sorted(sandbox.merges()) == ["Merge plain-1: Write plain-1.txt", "Merge plain-2: Write plain-2.txt"]
    assert sandbox.sessions("plain-1") == 1
    kept = [each.read_text() for each in sandbox.log.parent.glob("sandbox.db.other*") if 0 < each.stat().st_size < 100]
    assert kept == (["notes of an operator"] if displace in {replaced_by_text, overwritten_by_text} else [])


@pytest.mark.parametrize("displace", OVERWRITTEN[:2])
def test_an_overwritten_log_is_noticed_while_nothing_else_happens(
    sandbox: Sandbox, displace: Callable[[Path], None]
) -> None:
    """The run ends its session and does not wait for it: what it did would be lost."""
    sandbox.prepare("plain-1", gates=["plain-1"])
    with sandbox.running() as run:
        run.until("plain-1", "IN_PROGRESS")
        displace(sandbox.log)
        text = run.rest()
    assert run.process.returncode == 3, text
    assert "another program has overwritten the file" in text
    assert "to go on:" in text


def test_a_log_that_was_moved_is_whole_where_it_is_now(sandbox: Sandbox) -> None:
    """What SQLite had beside it is written into it, and the message says where it is."""
    sandbox.prepare("plain-1", "plain-2", gates=["plain-2"])
    with sandbox.running() as run:
        run.until("plain-1", "CLOSED")
        with sandbox.at_gate("plain-2"):
            moved(sandbox.log)
            text = run.rest()
    elsewhere = sandbox.log.with_name("elsewhere")
    assert f"moved to {elsewhere}" in text
    assert not list(sandbox.log.parent.glob("sandbox.db-*")), "what is left would be taken for a part of another log"
    (first,) = [each for each in sandbox.json("tasks", "--db", str(elsewhere)) if each["id"] == "plain-1"]
    assert first["state"] == "CLOSED"


def test_a_run_does_not_begin_again_beside_a_recovered_copy(sandbox: Sandbox) -> None:
    """Where the log is gone, and a copy of it is there, the same command would do all of it a second time."""
    sandbox.prepare("plain-1", "plain-2", gates=["plain-2"])
    with sandbox.running() as run:
        run.until("plain-1", "CLOSED")
        with sandbox.at_gate("plain-2"):
            deleted(sandbox.log)
            run.rest()
    refused = sandbox.call("run", str(sandbox.fleet), "--transitions", code=2)
    assert f"mv -n {sandbox.log}.recovered {sandbox.log}" in refused.stderr
    assert not sandbox.log.exists()


def test_a_displaced_log_is_noticed_although_no_entry_is_written(sandbox: Sandbox) -> None:
    """A fleet that only waits for its session looks as well, and a second interrupt still kills what runs."""
    sandbox.prepare("deaf-1")
    sandbox.settle('grace = "300ms"', 'grace = "1h"')
    with sandbox.running() as run:
        run.until("deaf-1", "IN_PROGRESS")
        deleted(sandbox.log)
        run.until("deleted")
        run.signal_again(signal.SIGINT)
        run.rest()
        assert run.process.returncode == 3
    assert sandbox.processes() == []
