"""The answers of operator commands to programs: one object of JSON for each name, and keys against repetition."""

import json
from pathlib import Path
from typing import Any

import pytest

from fleet_log import FleetLog, said
from lifefold.core.fleet import TaskPlan
from lifefold.interpreters.cli.app import main
from lifefold.interpreters.cli.grammar import parser
from lifefold.interpreters.store import SqliteStore

T1 = TaskPlan("T1", "do it", max_retries=0)
T2 = TaskPlan("T2", "do that")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "fleet.db"


def answers(log: Path, capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> list[dict[str, Any]]:
    """Give a command with ``--json``; return its answers."""
    assert main([*words, "--json", "--db", str(log)]) == code
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_each_name_has_its_answer_and_all_have_the_command_and_its_key(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Applied or refused, with the reason; the key is random without ``--key``."""
    FleetLog(log, T1, T2, approve_plan=True)
    answers(log, capsys, "approve", "T1")
    given = answers(log, capsys, "approve", "T1", "T2")
    assert [(each["command"], each["target"], each["outcome"]) for each in given] == [
        ("approve", "T1", "refused"),
        ("approve", "T2", "applied"),
    ]
    assert given[0]["reason"].startswith("it is not begun: it does not wait for an approval now")
    assert given[0]["key"] == given[1]["key"]
    assert len(given[0]["key"]) == 32
    assert said(log)[-1].key == f"{given[0]['key']}/0/T2"


def test_a_command_that_is_refused_as_a_whole_is_an_answer_without_a_target(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code and the standard error are the same as without ``--json``."""
    FleetLog(log, T1)
    assert main(["cancel", "T9", "--json", "--db", str(log)]) == 2
    printed = capsys.readouterr()
    (given,) = [json.loads(line) for line in printed.out.splitlines()]
    assert (given["command"], given["target"], given["outcome"]) == ("cancel", "", "refused")
    assert given["reason"] in printed.err


def test_a_log_accepts_a_key_once(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A program may repeat a command of which it has lost the answer; with or without JSON."""
    FleetLog(log, T1)
    first = answers(log, capsys, "send", "ann", "hello", "--key", "mine")
    again = answers(log, capsys, "send", "ann", "hello", "--key", "mine", code=2)
    assert [(each["outcome"], each["key"]) for each in (*first, *again)] == [("applied", "mine"), ("refused", "mine")]
    assert "mine/0/ann" in again[0]["reason"]
    assert main(["send", "ann", "hello", "--key", "mine", "--db", str(log)]) == 2
    assert len(said(log)) == 1


def _is_written(_store: SqliteStore) -> bool:
    return True


def test_without_an_answer_of_the_runner_a_command_is_sent(
    log: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays in the log, so it is accepted, and not yet applied."""
    FleetLog(log, T1)
    monkeypatch.setattr("lifefold.interpreters.cli.operator_commands.ANSWER_TIMEOUT_S", 0)
    monkeypatch.setattr(SqliteStore, "is_written", _is_written)
    (given,) = answers(log, capsys, "pause", "ann")
    assert (given["target"], given["outcome"]) == ("ann", "sent")


def test_sentences_beside_the_answers_are_no_json(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They go to the standard error."""
    FleetLog(log, T1)
    assert main(["approve", "--all", "--json", "--db", str(log)]) == 0
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "nothing waits for your approval\n")


ACTIONS = (
    ("approve", ""), ("reject", "T1"), ("answer", "ann/Q3 blue"), ("cancel", "T1"), ("abort", "T1 --scope session"),
    ("retry", "T1"), ("branch", "--accept"), ("send", "ann hello"), ("stop", "ann"), ("pause", ""), ("resume", ""),
    ("release", "ann"), ("trust", "ann --promote --reason good"), ("budget", "--add-usd 5"), ("finish", ""),
    ("task add", "--id T1 --prompt x"), ("edit", "T1 --priority 1"), ("attach", "ann"), ("plan", "x.toml --accept"),
)  # fmt: skip


@pytest.mark.parametrize(("name", "words"), ACTIONS)
def test_every_command_that_acts_answers_in_json_under_its_own_name(name: str, words: str) -> None:
    """A program reads the command from the answer."""
    found = parser().parse_args([*name.split(), *words.split(), "--json", "--key", "mine"])
    assert (found.answers, found.json, found.key) == (name, True, "mine")
