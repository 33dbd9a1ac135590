"""The flight recorder on the command line: replay, verify, fork, diff, log and check, of fleets and own systems."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path

import anyio
import pytest

from examples import paced
from fleet_log import FleetLog
from lifefold.core.fleet import TaskPlan
from lifefold.interpreters.cli.app import main
from lifefold.interpreters.engine import Decision, Ledger
from lifefold.interpreters.rules import rules_version
from lifefold.interpreters.store import Batch, SqliteStore
from lifefold.interpreters.store.postgres import PostgresStore, read_address
from lobby import ALLOWED, RUN, Pushed, system, written
from postgres_server import PostgresServer

OWN = "lobby:system"


@pytest.fixture
def door(tmp_path: Path) -> Path:
    """Return the log of the usual run, whose sixth entry breaks a property."""
    return written(tmp_path / "door.db", rules=rules_version(system))


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """Return the log of a fleet in which a task has failed."""
    path = tmp_path / "fleet.db"
    FleetLog(path, TaskPlan("T1", "write it", max_retries=0)).failed("T1")
    return path


def test_replay_shows_the_entities_and_the_entries_around(door: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The entry, the next one, and the state of every entity with its fields that differ from the usual ones."""
    assert main(["replay", OWN, str(door), "--at", "3"]) == 0
    said = capsys.readouterr().out
    assert f"{door} after entry 3 of 7" in said
    assert "this entry: lobby door: Turned; Open → Locked" in said
    assert "the next:   lobby door: Turned; Locked → Closed, 1s later" in said
    assert said.splitlines()[5].split() == ["lobby", "door", "Locked", "0s", "-", "turns", "1"]


def test_replay_shows_what_is_not_usual_in_a_record_and_cuts_long_values(
    fleet: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line for each entity fits a page: no usual values, no names of types, and the beginning of a long text."""
    assert main(["replay", str(fleet)]) == 0
    said = capsys.readouterr().out
    (session,) = (line for line in said.splitlines() if line.split()[:2] == ["worker/ann", "session"])
    assert "name 'ann'" in session
    assert "Limits(" not in said
    (task,) = (line for line in said.splitlines() if "task:T1" in line and line.startswith("board"))
    assert len(task) < 300
    assert "RetryPolicy(" not in task


def test_replay_of_a_fleet_has_messages_in_flight_and_is_json_too(
    fleet: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The board has told the worker of its task, and no entry has received it."""
    assert main(["replay", str(fleet), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["entity"] for each in found["entities"] if each["state"] == "FAILED"] == ["task:T1"]
    assert {each["receiver"] for each in found["in_flight"]} == {"worker/ann"}
    assert main(["replay", str(fleet)]) == 0
    said = capsys.readouterr().out
    assert "in flight: board tells worker/ann" in said
    assert "status --at" in said


def test_verify_allows_a_sound_run(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 0, and what was compared."""
    assert main(["verify", str(fleet)]) == 0
    said = capsys.readouterr().out
    assert said.splitlines()[-1].startswith("this run was allowed under certificate fleet-")
    assert "anchor      the one outside of the log fits" in said


def test_the_chain_alone_needs_no_system(door: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run that breaks a property is as it was written; a changed entry is found all the same."""
    assert main(["verify", str(door), "--chain"]) == 0
    said = capsys.readouterr().out
    assert said.endswith("the log is as it was written\n")
    assert "properties" not in said
    with closing(sqlite3.connect(door)) as connection:
        connection.execute("UPDATE entries SET at_ms = at_ms + 1 WHERE position = 3")
        connection.commit()
    assert main(["verify", "--db", str(door), "--chain"]) == 1
    assert "not allowed: entry 3 (lobby, version 3)" in capsys.readouterr().out
    assert main(["verify", str(door), "--chain", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["intact"], found["fault"]["kind"], found["fault"]["seq"]) == (False, "chain", 3)
    assert main(["verify", str(door), "--chain", "--certificate", "x"]) == 2
    assert "a chain needs no rules" in capsys.readouterr().err


def test_the_chain_alone_is_compared_with_the_anchor(door: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An anchor that cannot be read is a fault, as in the whole audit."""
    door.with_name(f"{door.name}.anchor").write_text("nonsense")
    assert main(["verify", str(door), "--chain"]) == 1
    assert "not allowed: the log: " in capsys.readouterr().out


def test_verify_names_the_first_entry_that_was_not_allowed(door: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1, the entry, and the property that it breaks."""
    assert main(["verify", OWN, str(door)]) == 1
    said = capsys.readouterr().out
    assert "not allowed: entry 6 (lobby, version 6): door: turned at most twice: not so of door" in said
    assert said.endswith(f" fork {OWN} {door} --at 5 --pytest test_incident.py\n")
    assert main(["verify", OWN, str(door), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["allowed"], found["fault"]["kind"], found["fault"]["seq"]) == (False, "property", 6)


def test_verify_compares_an_anchor_that_was_kept_elsewhere(
    door: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The anchor of another run contradicts the log; a file that is no anchor is bad input."""
    other = written(tmp_path / "other.db", (*ALLOWED, Pushed()))
    assert main(["verify", OWN, str(door), "--anchor", f"{other}.anchor"]) == 1
    assert "is another one than the anchor outside of the log names" in capsys.readouterr().out
    assert main(["verify", OWN, str(door), "--anchor", str(door)]) == 2
    assert "is no anchor of a log" in capsys.readouterr().err


def test_verify_asks_certificates_for_the_present_rules(
    fleet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A certificate of other code is no proof of this run."""
    intake = tmp_path / "intake.json"
    assert main(["check", "intake", "--certificate", str(intake)]) == 0
    assert main(["verify", str(fleet), "--certificate", str(intake)]) == 0
    assert "certificate intake: proves" in capsys.readouterr().out


def test_fork_finds_the_next_step_that_breaks_a_property_and_writes_it_as_a_test(
    door: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The shortest trace from the state after the entry; the test fails as long as the rules allow it."""
    test = tmp_path / "test_incident.py"
    assert main(["fork", OWN, str(door), "--at", "5", "--pytest", str(test)]) == 1
    said = capsys.readouterr().out
    assert "door: turned at most twice: broken" in said
    assert "1. lobby door: operator says Turned()" in said
    assert 'run.command(Turned(), "lobby", "door")' in test.read_text()


def test_fork_within_bounds_says_what_it_has_searched(door: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From the second entry two steps break nothing."""
    assert main(["fork", OWN, str(door), "--at", "2", "--steps", "2", "--commands", "2"]) == 0
    said = capsys.readouterr().out
    assert "states within 2 steps, with at most 2 operator commands" in said
    assert "properties of states and steps hold there" in said


def test_fork_gives_recorded_inputs_again(door: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The recorded run breaks the property again, and as a test it fails."""
    test = tmp_path / "test_recorded.py"
    assert main(["fork", OWN, str(door), "--at", "5", "--recorded", "--pytest", str(test)]) == 1
    said = capsys.readouterr().out
    assert "2 recorded inputs are given again" in said
    assert "✗ door: turned at most twice" in said
    assert "Fails with the rules that have written it" in test.read_text()


def test_a_fork_of_a_fleet_is_a_passing_test(fleet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run on which every property holds becomes a test that passes, with the whole state in it."""
    test = tmp_path / "test_run.py"
    assert main(["fork", str(fleet), "--at", "3", "--without-crash", "--pytest", str(test), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["broken"] == []
    ran = subprocess.run([sys.executable, "-m", "pytest", "-q", "-n", "0", test], cwd=tmp_path, check=False)
    assert ran.returncode == 0


def test_fork_writes_a_log_of_its_own(door: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``--write`` has the entries until there, and no file is overwritten."""
    path = tmp_path / "fork.db"
    assert main(["fork", OWN, str(door), "--at", "4", "--write", str(path)]) == 0
    with SqliteStore.peek(path) as store:
        assert len(anyio.run(store.read)) == 4
    assert main(["fork", OWN, str(door), "--at", "4", "--write", str(path)]) == 2
    assert "is there already" in capsys.readouterr().err


@pytest.mark.cluster
def test_fork_writes_a_log_on_a_server(
    door: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The address is accepted as a path is, and a log that is there is not overwritten."""
    monkeypatch.setenv("XDG_STATE_HOME", str(door.parent / "state"))
    words = ["fork", OWN, str(door), "--at", "4", "--write", address := postgres.new_log()]
    assert main(words) == 0
    assert f"written: {address}" in capsys.readouterr().out
    with PostgresStore.peek(read_address(address)) as store:
        assert len(anyio.run(store.read)) == 4
    assert main(words) == 2
    assert "is there already" in capsys.readouterr().err


def test_diff_of_two_logs_shows_where_they_part(door: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first entry that differs, and the difference of the states in a table."""
    other = written(tmp_path / "other.db", (*RUN[:2], Pushed()))
    assert main(["diff", OWN, str(door), str(other)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "lobby parts at its entry 3:"
    assert lines[3].split() == ["ENTITY", "FIELD", "door.db", "other.db"]
    assert ["door", "turns", "1", "0"] in [line.split() for line in lines]
    assert main(["diff", OWN, str(door), str(door)]) == 0
    assert "record the same run" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["diff", "a.db", "b.db", "--stat"], "--stat means nothing for two logs"),
        (["diff", "a.db", "b.db", "c.db", "d.db"], "accepted: [MODULE:SYSTEM] LOG LOG"),
        (["verify", "lobby:nothing", "a.db"], "module 'lobby' has no attribute 'nothing'"),
        (["verify", "lobby:system"], "name its log, too"),
        (["replay", "none.db"], "there is no such log"),
        (["log", "lobby:system", "DOOR", "--task", "T1"], "--task is for the log of a fleet"),
        (["verify", "lobby:system", "FLEET"], "is no log of lobby:system"),
        (["verify", "DOOR"], "name its own system before it"),
    ],
    ids=str,
)
def test_unusable_words_are_bad_input(
    door: Path, fleet: Path, words: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, and what is accepted."""
    typed = [{"DOOR": str(door), "FLEET": str(fleet)}.get(word, word) for word in words]
    assert main(typed) == 2
    assert why in capsys.readouterr().err


def test_log_of_an_own_system_has_all_formats(door: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Lines, a table with positions, JSON, and a sequence diagram."""
    assert main(["log", OWN, str(door), "--at", "3"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert main(["log", OWN, str(door), "--format", "table"]) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[0].split() == ["POSITION", "TIME", "ENTITY", "STATE", "INPUT", "CAUSE", "BY"]
    assert table[3].split()[0] == "3"
    assert main(["log", OWN, str(door), "--format", "json"]) == 0
    assert [each["seq"] for each in json.loads(capsys.readouterr().out)] == [1, 2, 3, 4, 5, 6, 7]
    assert main(["log", OWN, str(door), "--format", "sequence"]) == 0
    assert capsys.readouterr().out.startswith("sequenceDiagram\n    participant p0 as me")


def test_a_diagram_has_the_first_inputs_and_with_all_every_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--format sequence`` leaves later inputs out and counts them, unless ``--all`` is given."""
    long = written(tmp_path / "long.db", (RUN[0], *(RUN[1], Pushed()) * 40))
    assert main(["log", OWN, str(long), "--format", "sequence"]) == 0
    assert "… 21 more inputs" in capsys.readouterr().out
    assert main(["log", OWN, str(long), "--format", "sequence", "--all"]) == 0
    said = capsys.readouterr().out
    assert "more input" not in said
    assert ": 81. Pushed" in said


def test_check_searches_from_the_state_of_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The search begins where the log ends, within the given bounds."""
    path = written(tmp_path / "door.db", ALLOWED)
    assert main(["check", OWN, str(path), "--commands", "1"]) == 1
    assert "door: turned at most twice: broken" in capsys.readouterr().out
    assert main(["check", OWN, str(path), "--certificate", str(tmp_path / "c.json")]) == 2
    assert "a certificate is of the states from an opening" in capsys.readouterr().err


def test_the_log_of_an_example_is_read_by_its_own_system(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A fleet with an added state is replayed, verified and told by the system of the example."""
    path = tmp_path / "paced.db"
    ledger = Ledger(paced.resting, rules=rules_version(paced.resting))
    decisions = [ledger.decide(name, envelope) for name, envelope in paced.fleet[1]]
    entries = [each.entry for each in decisions if isinstance(each, Decision)]
    with SqliteStore.create(path, {}) as store:
        anyio.run(partial(store.append, Batch(entries)))
    own = "examples.paced:resting"
    for words in (["verify", own, str(path)], ["replay", own, str(path)], ["log", own, str(path)]):
        assert main(words) == 0
    said = capsys.readouterr().out
    assert "this run was allowed" in said
    assert "task:T1" in said
    assert main(["fork", "examples.paced:fleet", str(path), "--steps", "1"]) == 0
