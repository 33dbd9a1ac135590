"""``lifefold log`` prints the newest part of a long log, and folds it from the nearest mark before it."""

import io
import shutil
import sqlite3
from contextlib import closing, redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from benchmarks import long_log
from lifefold.core.fleet import system
from lifefold.interpreters.cli import log_pages
from lifefold.interpreters.cli.app import main
from lifefold.interpreters.engine import Ledger, snapshots
from lifefold.interpreters.engine.snapshots import load
from lifefold.interpreters.store import SqliteStore, pasts
from lifefold.interpreters.store.past import log_at

ENTRIES, TASKS, DISTANCE = 420, 12, 90


@pytest.fixture(name="log", scope="module")
def _log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with some marks."""
    path = tmp_path_factory.mktemp("logs") / "fleet.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_log, "AGENTS", 3)
        patch.setattr(long_log, "ALIVE", 4)
        patch.setattr(long_log, "BATCH", 30)
        patch.setattr(snapshots, "EVERY", 40)
        patch.setattr(pasts, "EVERY_ENTRIES", DISTANCE)
        anyio.run(long_log.make, path, ENTRIES, TASKS)
    return path


def printed(log: Path, *words: str) -> tuple[list[str], str]:
    """Return the lines of the command, and what it says beside them."""
    out, said = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(said):
        assert main(["log", *words, "--db", str(log)]) == 0
    return out.getvalue().splitlines(), said.getvalue()


def test_a_past_is_read_by_the_nearest_mark_before_it(log: Path) -> None:
    """At each position the state is that of a fold of all entries before, and few entries are folded."""
    most = 0
    with SqliteStore.peek(log) as store:
        entries = anyio.run(store.read)
    folded = Ledger(system)
    for seq, _ in enumerate(folded.fold(entries), 1):
        if seq % 7 == 0:
            ledger = Ledger(system)
            with log_at(log, seq) as past:
                further = list(anyio.run(load, ledger, past).entries)
                for _again in ledger.fold(further):
                    pass
            assert ledger.aggregates == folded.aggregates
            assert (ledger.entries, ledger.last_ms) == (seq, folded.last_ms)
            most = max(most, len(further) if seq > DISTANCE * 2 else 0)
    assert 0 < most < DISTANCE * 2


@pytest.mark.parametrize("words", [(), ("--all",), ("--json",), ("--agent", "agent-001"), ("--task", "T0003")])
@pytest.mark.parametrize("number", [1, 20, 75])
def test_the_last_lines_are_those_of_the_whole_log(log: Path, words: tuple[str, ...], number: int) -> None:
    """Attempts, actors and causes are counted and named as by a fold from the first entry."""
    every, _ = printed(log, *words, "--last", "0")
    found, said = printed(log, *words, "--last", str(number))
    if "--json" in words:
        assert found[1:] == every[len(every) - len(found) + 1 :]
        return
    assert found == every[len(every) - len(found) :]
    assert len(found) >= min(number, len(every))
    assert ("--last 0 prints all" in said) is (len(found) < len(every))


def test_the_newest_part_does_not_read_the_log_before_it(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It begins at a position near the end; a filter that leaves few lines moves it back."""
    begins: list[int] = []
    made = log_pages.begun

    def noted(store: SqliteStore, seq: int) -> log_pages.Begun:
        begins.append(seq)
        return made(store, seq)

    monkeypatch.setattr(log_pages, "begun", noted)
    printed(log, "--last", "10")
    assert begins == [ENTRIES - 20]
    begins.clear()
    printed(log, "--last", "40", "--task", "T0001")
    assert begins == sorted(begins, reverse=True)
    assert begins[-1] == 0


def test_the_lines_since_a_time_are_folded_from_there(log: Path) -> None:
    """Entries of that very time are among them."""
    with SqliteStore.peek(log) as store:
        at_ms = store.time_of(200)
        assert at_ms is not None
        first = store.position_at(at_ms - 1) + 1
    when = datetime.fromtimestamp(at_ms / 1_000, UTC).isoformat()
    every, _ = printed(log, "--all", "--last", "0")
    found, said = printed(log, "--all", "--since", when)
    assert 0 < len(found) < len(every)
    assert found == every[len(every) - len(found) :]
    assert first <= 200
    assert not said


def test_a_position_and_a_number_of_lines_go_together(log: Path) -> None:
    """The lines before a position are the last ones of that past."""
    past, _ = printed(log, "--at", "150", "--last", "0")
    assert printed(log, "--at", "150", "--last", "12")[0] == past[-12:]


@pytest.mark.parametrize("words", [("--since", "1h"), ("--format", "table"), ("--format", "sequence")])
def test_a_number_of_lines_is_refused_where_it_has_no_meaning(
    log: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """The message names both options."""
    assert main(["log", "--last", "3", *words, "--db", str(log)]) == 2
    assert f"--last and {words[0]}" in capsys.readouterr().err


def test_a_damaged_mark_is_not_used(log: Path, tmp_path: Path) -> None:
    """The past is folded from the first entry then."""
    copy = tmp_path / "copy.db"
    shutil.copy(log, copy)
    with closing(sqlite3.connect(copy)) as connection:
        connection.execute("UPDATE pasts SET data = CAST('{}' AS BLOB)")
        connection.commit()
    with log_at(copy, 300) as past:
        ledger = Ledger(system)
        assert len(list(anyio.run(load, ledger, past).entries)) == 300
