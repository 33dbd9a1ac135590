"""Commands inside a session of a fleet: those that a session may give, and those of operators only."""

from pathlib import Path

import pytest

from commands_run import run_command
from fleet_log import FleetLog, folded, said
from lifefold.core.fleet import TaskPlan
from lifefold.core.fleet.board import fleet_task
from lifefold.core.policy.abort import AbortPolicy
from lifefold.interpreters.cli.app import main
from lifefold.interpreters.cli.grammar import parser

KEY = "0123456789abcdef" * 4
T1 = TaskPlan("T1", "do it", most_subtasks=4)

OPERATORS = (
    "approve", "approve --all --yes", "approve T1", "reject T1 --reason no", "reject --plan --reason no",
    "cancel T1", "retry T1",
    "pause", "resume", "release ann", "stop", "stop --kill", "send ann hello", "trust ann --promote --reason good",
    "budget --add-usd 5", "finish",
    "budget --task T1 --add-sessions 1", "task add --id T2 --prompt x",
    "abort T1 --scope session", "abort --scope sibling", "branch --accept", "plan fleet.toml --accept",
    "answer ann/Q1 yes", "attach ann", "approve ann/Q1", "reject ann/Q1", "edit T1 --priority 1 --yes",
    "brain fleet.toml --server x:1", "host fleet.toml --server x:1",
)  # fmt: skip
"""All commands that act, but those of a session."""

READS = ("status", "hosts", "tasks", "log", "why T1", "budget", "machines", "table session")
SESSIONS = {"split", "abort", "mcp"}
OTHERS = {
    "run",
    "demo",
    "init",
    "doctor",
    "schema",
    "unit",
    "check",
    "simulate",
    "diagram",
    "clean",
    "completion",
    "copy",
    "move",
    "serve",
    "show",
    "diff",
    "fleets",
    "watch",
    "output",
    "replay",
    "verify",
    "fork",
    "export",
    "import",
    "upgrade",
}


@pytest.fixture
def log(tmp_path: Path) -> FleetLog:
    """A log in which ann works at a task."""
    made = FleetLog(tmp_path / "fleet.db", T1, key=KEY, aborts=AbortPolicy())
    return made.claimed("T1")


@pytest.fixture
def session(log: FleetLog, monkeypatch: pytest.MonkeyPatch) -> str:
    """The environment of ann's session; return its token."""
    token = f"1-{folded(log.path).record('board', 'task:T1').token}"
    for name, value in (("AGENT", "ann"), ("TASK", "T1"), ("TOKEN", token), ("DB", str(log.path))):
        monkeypatch.setenv(f"LIFEFOLD_{name}", value)
    return token


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize("words", OPERATORS)
def test_what_an_operator_decides_no_session_does(
    log: FleetLog, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    """Exit code 2, with why, and what a session may say; nothing is written."""
    assert main([*words.split(), "--db", str(log.path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("lifefold: this is a session of ann at T1 (its environment says so), and ")
    assert error.endswith("a session may give lifefold split and lifefold abort --scope tool, for its own task\n")
    assert said(log.path) == []


@pytest.mark.parametrize("mark", ["LIFEFOLD_SHIM", "LIFEFOLD_AGENT", "LIFEFOLD_TASK", "LIFEFOLD_TOKEN"])
def test_any_variable_of_a_session_is_enough(
    log: FleetLog, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], mark: str
) -> None:
    """Verification commands have the shim's alone."""
    monkeypatch.setenv(mark, "x")
    assert main(["cancel", "T1", "--db", str(log.path)]) == 2
    assert "is for an operator" in capsys.readouterr().err


@pytest.mark.usefixtures("session")
def test_a_session_does_not_serve_the_desk(log: FleetLog, capsys: pytest.CaptureFixture[str]) -> None:
    """Its pages give the commands of operators."""
    assert main(["serve", str(log.path)]) == 2
    assert "serve is for an operator" in capsys.readouterr().err


@pytest.mark.usefixtures("session")
def test_a_session_does_not_clean(log: FleetLog, capsys: pytest.CaptureFixture[str]) -> None:
    """Also another fleet's log is none of its business."""
    assert main(["clean", str(log.path), "--yes"]) == 2
    assert "clean is for an operator" in capsys.readouterr().err


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize("words", [["copy", "{log}", "copy.db"], ["move", "{log}", "--to", "file"]])
def test_a_session_does_not_take_a_log_elsewhere(
    log: FleetLog, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert main([each.format(log=log.path) for each in words]) == 2
    assert f"{words[0]} is for an operator" in capsys.readouterr().err


@pytest.mark.usefixtures("session")
def test_a_session_does_not_run_its_own_fleet(log: FleetLog, tmp_path: Path) -> None:
    """Also when its runner has gone; what it is at would be its own child."""
    fleet = tmp_path / "fleet.toml"
    fleet.write_text(
        '[fleet]\nname = "fleet"\n[[agents]]\nname = "ann"\ncommand = ["true", "{prompt}"]\nsession_timeout = "1m"\n'
        '[[tasks]]\nid = "T1"\nprompt = "x"\n'
    )
    done = run_command(tmp_path, "run", str(fleet), "--db", str(log.path), timeout_s=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert "run, of its own fleet, is for an operator" in done.stderr


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize("words", READS)
def test_a_session_may_look(log: FleetLog, capsys: pytest.CaptureFixture[str], words: str) -> None:
    """Nothing that only reads is refused."""
    named = [] if words.startswith(("machines", "table")) else ["--db", str(log.path)]
    assert main([*words.split(), *named]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("session")
def test_a_session_may_ask_what_an_upgrade_means_and_records_none(
    log: FleetLog, capsys: pytest.CaptureFixture[str]
) -> None:
    """The change of rules is an operator's decision."""
    assert main(["upgrade", str(log.path), "--dry-run"]) == 0
    capsys.readouterr()
    assert main(["upgrade", str(log.path)]) == 2
    assert "upgrade" in capsys.readouterr().err


def test_every_command_is_one_of_these() -> None:
    """A new one that acts has to be said here whose it is."""
    covered = {words.split()[0] for words in (*OPERATORS, *READS)}
    assert covered | SESSIONS | OTHERS == set(parser().get_default("known"))


@pytest.mark.parametrize("command", [["split", "--part", "a"], ["abort", "--scope", "tool", "--tool", "x"]])
@pytest.mark.parametrize("forged", ["1", "1-", "1-00", "1-0123456789abcdef0123456789abcdef"])
def test_a_number_is_no_token(
    log: FleetLog, session: str, capsys: pytest.CaptureFixture[str], command: list[str], forged: str
) -> None:
    """Who guesses the number of a claim has proved nothing; who shows its token has."""
    assert main([*command, "--token", forged]) == 2
    assert "this is not the token of its claim" in capsys.readouterr().out
    assert main([*command, "--token", session]) == 0
    assert len(said(log.path)) == 1


@pytest.mark.usefixtures("session")
def test_what_a_session_says_has_no_secret(
    log: FleetLog, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It becomes the prompt of other agents, and the log has many readers."""
    monkeypatch.setenv("AN_API_KEY", "sk-0123456789")
    monkeypatch.setenv("HARMLESS", "plain-words")
    monkeypatch.setenv("LIFEFOLD_REDACT", "HARM*")
    text = "use sk-0123456789 and plain-words"
    assert main(["abort", "--scope", "tool", "--tool", "curl sk-0123456789", "--because", text]) == 0
    assert main(["split", "--part", text]) == 0
    events = [each.event for each in said(log.path)]
    assert {each.actor for each in said(log.path)} == {"session:ann"}, "the log does not say that an operator did it"
    assert isinstance(events[0], fleet_task.ToolAborted)
    assert isinstance(events[1], fleet_task.Split)
    hidden = "use [redacted AN_API_KEY] and [redacted HARMLESS]"
    assert (events[0].tool, events[0].reason) == ("curl [redacted AN_API_KEY]", hidden)
    assert [each.prompt for each in events[1].tasks] == [hidden]
    assert capsys.readouterr().err == ""
