"""``--at``: every reading command shows the fleet as it was, by a position, a time, or a duration before now."""

import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from fleet_log import FleetLog
from lifefold.core.fleet import TaskPlan
from lifefold.interpreters.cli import logs
from lifefold.interpreters.cli.app import main
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.joining import as_options
from lifefold.interpreters.cli.positions import position
from lifefold.interpreters.store import SqliteStore
from lifefold.interpreters.store.past import UnknownPosition, log_at
from lobby import ALLOWED, BEGIN_MS, written


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """Return a log in which T1 was put on the board, claimed, and has failed."""
    path = tmp_path / "fleet.db"
    FleetLog(path, TaskPlan("T1", "write it", max_retries=0)).failed("T1")
    return path


def newest(path: Path) -> int:
    """Return the number of entries of a log."""
    with SqliteStore.peek(path) as store:
        return store.position_at(1 << 60)


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Give a command, which must succeed, and return what it has printed."""
    assert main(words) == 0
    return capsys.readouterr().out


def test_status_and_tasks_are_those_of_the_position(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before the claim the task is not begun; now it has failed."""
    begun = newest(fleet) - 3
    assert "as it was after entry" in said(capsys, "status", "--db", str(fleet), "--at", str(begun))
    then = said(capsys, "tasks", "--db", str(fleet), "--at", str(begun), "--json")
    now = said(capsys, "tasks", "--db", str(fleet), "--json")
    assert (json.loads(then)[0]["state"], json.loads(now)[0]["state"]) == ("OPEN", "FAILED")


def test_the_status_of_the_past_says_nothing_of_a_runner_or_a_process(
    fleet: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Evidence is of today, so the past has none."""
    found = json.loads(said(capsys, "status", "--db", str(fleet), "--at", "2", "--json"))
    assert (found["runner"], found["at"]["seq"]) == ("unknown", 2)
    assert [each["process"] for each in found["agents"]] == [None]


@pytest.mark.parametrize("words", [("why", "T1"), ("show", "T1"), ("show", "ann")], ids=" ".join)
def test_pages_of_the_past_are_of_then_and_offer_no_command(
    fleet: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """A command acts on the present, so a page of the past offers none."""
    then = said(capsys, *words, "--db", str(fleet), "--at", "2")
    assert "as it was after entry 2" in then
    assert "lifefold retry" not in then
    assert "FAILED" not in then


def test_the_log_of_the_past_ends_at_the_position(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The story and the table have no later entry."""
    assert "failed" in said(capsys, "log", "--db", str(fleet))
    assert "failed" not in said(capsys, "log", "--db", str(fleet), "--at", "2")
    rows = said(capsys, "log", "--db", str(fleet), "--at", "2", "--format", "table").splitlines()
    assert {row.split()[0] for row in rows[1:] if not row.startswith(" ")} == {"1", "2"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0", "has the positions 1 to 5"),
        ("6", "has the positions 1 to 5"),
        ("soon", "accepted: the position of an entry, as 120; a time, as 2026-11-20T09:30"),
        ("2001-01-01", "begins later, at"),
    ],
)
def test_a_moment_that_a_log_does_not_have_is_bad_input(
    tmp_path: Path, text: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message has what was found and what is accepted, and the exit code is 2."""
    path = written(tmp_path / "door.db", ALLOWED)
    assert main(["replay", "lobby:system", str(path), "--at", text]) == 2
    assert why in capsys.readouterr().err


def test_a_time_is_the_newest_entry_that_is_not_later(tmp_path: Path) -> None:
    """A time between two entries is the earlier one, and a time after all is the newest."""
    with SqliteStore.peek(written(tmp_path / "door.db", ALLOWED)) as store:
        then = datetime.fromtimestamp((BEGIN_MS + 2_500) / 1_000, UTC)
        assert position(store, then.isoformat(), BEGIN_MS) == 3
        assert position(store, "2199-01-01", BEGIN_MS) == 5
        assert position(store, "-2s", BEGIN_MS + 4_000) == 3
        assert position(store, "2s", BEGIN_MS + 4_000) == 3
        with pytest.raises(BadInput, match="begins later"):
            position(store, "-1h", BEGIN_MS)


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        (["status", "--at", "-5m"], ["status", "--at=-5m"]),
        (["log", "--since", "-10m", "--at", "7"], ["log", "--since=-10m", "--at", "7"]),
        (["send", "ann", "-5m"], ["send", "ann", "-5m"]),
        (["status", "--at", "--json"], ["status", "--at", "--json"]),
    ],
)
def test_a_duration_with_a_hyphen_is_the_value_of_its_option(typed: Sequence[str], read: list[str]) -> None:
    """A word that only looks like an option is the value of ``--at`` and ``--since``, and of nothing else."""
    assert as_options(typed) == read


@pytest.mark.parametrize("words", [("log",), ("output", "ann")], ids=" ".join)
def test_the_past_is_not_followed(fleet: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """``--follow`` and ``--at`` exclude each other."""
    assert main([*words, "--db", str(fleet), "--at", "2", "--follow"]) == 2
    assert "the past does not go on" in capsys.readouterr().err


def test_a_past_store_has_no_later_entry_and_no_writer(tmp_path: Path) -> None:
    """All ways to read end at the position, also while a runner writes."""
    path = written(tmp_path / "door.db", ALLOWED)
    with SqliteStore.open(path), log_at(path, 3) as store:
        assert [each.version for each in anyio.run(store.read)] == [1, 2, 3]
        assert [each.version for each in anyio.run(store.read, "lobby", 1)] == [2, 3]
        assert [each.version for each in anyio.run(store.read_on, 2)] == [3]
        assert anyio.run(store.read_on, 4) == []
        assert not store.is_written()
        assert logs.now_ms(store) == BEGIN_MS + 2_000
    with pytest.raises(UnknownPosition, match="has no position 9"):
        log_at(path, 9)


def test_the_time_of_the_present_is_that_of_the_clock(tmp_path: Path) -> None:
    """Only the past has the time of its last entry."""
    with SqliteStore.peek(written(tmp_path / "door.db", ALLOWED)) as store:
        assert abs(logs.now_ms(store) - time.time_ns() // 1_000_000) < 60_000
        assert logs.then(store) == ""
