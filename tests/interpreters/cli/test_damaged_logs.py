"""A log that cannot be used is named by every command, with what is wrong: exit code 2, one message, no traceback."""

import os
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from fleet_sandbox import Sandbox
from lifefold.interpreters.cli.app import main
from lifefold.interpreters.store import SqliteStore

COMMANDS: Final = {
    "run": "run {fleet} --no-live",
    "again": "run {fleet} --no-live --again",
    "status": "status",
    "tasks": "tasks",
    "log": "log",
    "why": "why plain-1",
    "output": "output plain-1",
    "diff": "diff plain-1",
    "show": "show plain-1",
    "send": "send all hello",
    "pause": "pause",
    "resume": "resume",
    "release": "release agent",
    "stop": "stop agent",
    "approve": "approve",
    "reject": "reject plain-1 --reason no",
    "cancel": "cancel plain-1",
    "retry": "retry plain-1",
    "add": "task add --id T9 --prompt more",
    "budget": "budget",
    "trust": "trust agent --promote --reason good",
    "finish": "finish",
    "abort": "abort plain-1 --scope session",
}
"""Every command that opens a log."""

Damage = Callable[[Path], None]


def statement(text: str) -> Damage:
    """Return what does this to a log, as any program that writes SQLite files could."""

    def do(log: Path) -> None:
        with closing(sqlite3.connect(log, isolation_level=None)) as connection:
            connection.executescript(text)

    return do


def written(log: Path, text: str) -> None:
    log.write_text(text)


def a_folder(log: Path) -> None:
    log.unlink()
    log.mkdir()


def a_pipe(log: Path) -> None:
    log.unlink()
    os.mkfifo(log)


def half(log: Path) -> None:
    log.write_bytes(log.read_bytes()[: log.stat().st_size // 2])


DAMAGES: Final[Mapping[str, tuple[Damage, str]]] = {
    "empty": (partial(written, text=""), "it is empty"),
    "a text": (partial(written, text="hello\n" * 1_000), "is not a lifefold log"),
    "a folder": (a_folder, "is a folder, not a log"),
    "a pipe": (a_pipe, "is no regular file"),
    "half of it": (half, "malformed"),
    "another program's": (statement("PRAGMA application_id = 5"), "another program"),
    "another version's": (statement("PRAGMA user_version = 99"), "has version 99"),
    "no meta table": (statement("DROP TABLE meta"), "the log is damaged"),
    "no entries table": (statement("DROP TABLE entries"), "the log is damaged"),
    "what was before it is no JSON": (
        statement("UPDATE meta SET value = '{' WHERE name = 'before'"),
        "its metadata is not as it was written",
    ),
    "what its file meant is no JSON": (
        statement("UPDATE meta SET value = '[5' WHERE name = 'meaning'"),
        "its metadata is not as it was written",
    ),
    "another fleet's name": (
        statement("UPDATE meta SET value = 'other' WHERE name = 'fleet'"),
        "its metadata is not as it was written",
    ),
    "no epoch": (statement("DELETE FROM meta WHERE name = 'epoch'"), "who writes to it"),
    "an epoch that cannot be counted": (
        statement("UPDATE meta SET value = '9223372036854775807' WHERE name = 'epoch'"),
        "who writes to it",
    ),
    "more performed than there is": (
        statement("UPDATE performed SET version = 999999"),
        "that no entry of it asks for",
    ),
    "performed no number": (statement("UPDATE performed SET version = 'x'"), "that no entry of it asks for"),
    "no anchor": (statement("DELETE FROM meta WHERE name = 'anchor'"), "how many entries"),
    "an anchor that is none": (statement("UPDATE meta SET value = 'x' WHERE name = 'anchor'"), "how many entries"),
    "an entry changed": (statement("UPDATE entries SET envelope = '{}' WHERE position = 2"), "entry 2 ("),
    "its outcome changed": (statement("UPDATE entries SET outcome = '{}' WHERE position = 2"), "entry 2 ("),
    "its time changed": (statement("UPDATE entries SET at_ms = at_ms + 1 WHERE position = 2"), "entry 2 ("),
    "its time no number": (statement("UPDATE entries SET at_ms = 'noon' WHERE position = 2"), "entry 2 ("),
    "its envelope no bytes": (statement("UPDATE entries SET envelope = 5 WHERE position = 2"), "entry 2 ("),
    "its link changed": (statement("UPDATE entries SET link = x'00' WHERE position = 2"), "entry 2 ("),
    "the last entry removed": (
        statement("DELETE FROM entries WHERE position = (SELECT MAX(position) FROM entries)"),
        "1 of its newest entries are missing",
    ),
    "all entries removed": (statement("DELETE FROM entries"), "newest entries are missing, from entry 1 on"),
    "an entry removed": (statement("DELETE FROM entries WHERE position = 1"), "entry 1 ("),
    "entries exchanged": (
        statement(
            "UPDATE entries SET position = -1 WHERE position = 1; UPDATE entries SET position = 1 WHERE position = 2;"
            "UPDATE entries SET position = 2 WHERE position = -1"
        ),
        "entry 1 (",
    ),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """Run a small fleet, whose log is then copied for each test."""
    sandbox = Sandbox(tmp_path_factory.mktemp("whole")).prepare("plain-1", agents=1, repository=False)
    sandbox.run()
    return sandbox


PATHS: Final = {".": "is a folder", "x" * 5_000: "cannot be the path of a log", "a/b.db": "a/b.db"}
"""What is no path of a log, and what is said of it."""


class Prepared(NamedTuple):
    """A fleet file, and a copy of its log."""

    folder: Path
    fleet: Path
    log: Path


@pytest.fixture
def prepared(tmp_path: Path, whole: Sandbox) -> Prepared:
    """Return a fleet file and a copy of its log."""
    log = tmp_path / "copy.db"
    shutil.copy(whole.log, log)
    with SqliteStore.open(log) as store:
        assert store.meta("fleet")
    return Prepared(tmp_path, whole.fleet, log)


USUAL: Final = ("status", "stop", "again")
"""Commands that read, write and run: these are tried with every damage, all others with some."""

TRIED: Final = [
    (damage, command)
    for row, damage in enumerate(DAMAGES)
    for column, command in enumerate(COMMANDS)
    if command in USUAL or (row + column) % 6 == 0
]


@pytest.mark.parametrize(("damage", "command"), TRIED)
def test_a_log_that_is_not_as_it_was_written_is_named_by_every_command(
    prepared: Prepared, damage: str, command: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """The file, the damage, and the first wrong entry. No entry is written; a run takes an epoch."""
    do, complaint = DAMAGES[damage]
    do(prepared.log)
    before = prepared.log.read_bytes() if prepared.log.is_file() else b""
    words = COMMANDS[command].format(fleet=prepared.fleet).split()
    assert main([*words, "--db", str(prepared.log)]) == 2
    out, err = capfd.readouterr()
    assert complaint in err
    assert str(prepared.log) in err
    assert "Traceback" not in out + err
    assert err.count("lifefold: ") == 1
    if command not in {"run", "again"}:
        assert (prepared.log.read_bytes() if prepared.log.is_file() else b"") == before


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("path", PATHS, ids=["folder", "long", "in a file"])
def test_a_path_that_can_be_no_log_is_bad_input(
    prepared: Prepared, command: str, path: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder, a name that no file system takes, a file in a folder that is none."""
    monkeypatch.chdir(prepared.folder)
    Path("a").write_text("a file")
    complaint = PATHS[path]
    words = COMMANDS[command].format(fleet=prepared.fleet).split()
    assert main([*words, "--db", path]) == 2
    out, err = capfd.readouterr()
    assert complaint in err
    assert "Traceback" not in out + err
    assert len(err) < 1_000


def test_what_stands_beside_a_log_keeps_no_command_waiting(
    prepared: Prepared, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe for a lock, operators' commands that are none, a file or a loop in place of the sessions' folder."""
    lock = prepared.log.with_name(f"{prepared.log.name}.lock")
    lock.unlink(missing_ok=True)
    os.mkfifo(lock)
    statement(
        "INSERT INTO posts (stream, envelope) VALUES (5, 7), ('board', x'00ff'), ('nothing', '{}');"
        "INSERT INTO posts (stream, envelope, answer) VALUES ('board', 7, 7)"
    )(prepared.log)
    monkeypatch.chdir(prepared.folder)
    files = prepared.log.with_name(f"{prepared.log.name}.files")
    for target in (prepared.fleet, files):  # a file, and a loop
        files.symlink_to(target)
        for words in ("status", "tasks", "why plain-1", "log"):
            assert main([*words.split(), "--db", str(prepared.log)]) == 0
        files.unlink()
    assert main(["retry", "plain-1", "--db", str(prepared.log)]) == 2
    assert "Traceback" not in "".join(capfd.readouterr())


def test_a_loop_of_links_in_place_of_the_usual_log_is_no_log(
    prepared: Prepared, capfd: pytest.CaptureFixture[str]
) -> None:
    """``status`` finds none there; ``plan`` says what a first run would do, as ``run`` begins a log in its place."""
    usual = prepared.folder / ".lifefold" / "sandbox.db"
    usual.parent.mkdir()
    usual.symlink_to(usual)
    assert main(["status", "--db", str(usual)]) == 2
    fleet = shutil.copy(prepared.fleet, prepared.folder / "fleet.toml")
    assert main(["plan", str(fleet)]) == 0
    assert main(["run", str(fleet), "--transitions"]) == 0
    assert usual.is_file()
    assert not usual.is_symlink()
    assert "Traceback" not in "".join(capfd.readouterr())
