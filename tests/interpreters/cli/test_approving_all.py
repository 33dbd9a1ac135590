"""``approve --all`` and ``stop`` without names: what is shown, what is asked, and what is refused unasked."""

from pathlib import Path

import pytest

from asking_log import LEAVE, WORDS, at_work
from fleet_log import FleetLog, folded
from lifefold.core.fleet import AgentPlan, TaskPlan
from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.worker import desired_state
from lifefold.core.lifecycles import task
from lifefold.interpreters.cli import confirming
from printed_commands import tell

T1 = TaskPlan("T1", "do it", needs_approval=True)
T2 = TaskPlan("T2", "do that")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "fleet.db"


def at_a_terminal(monkeypatch: pytest.MonkeyPatch, answer: str) -> list[str]:
    """Let an operator answer every question so; return the questions as they are asked."""
    asked: list[str] = []

    def answered(question: str) -> str:
        asked.append(question)
        return answer

    monkeypatch.setattr(confirming, "has_terminal", lambda: True)
    monkeypatch.setattr("builtins.input", answered)
    return asked


def state(log: Path, name: str) -> str:
    """Return the state of a task."""
    return str(folded(log).record("board", f"task:{name}").state)


def done(log: Path) -> None:
    """Write a log in which the work of T1 waits for an approval."""
    FleetLog(log, T1, T2).claimed("T1").happens("board", "task:T1", task.Completed(1), fleet_task.Parked(1))


def test_all_finished_work_is_approved_after_a_yes(
    log: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits is shown first; after another answer nothing has changed."""
    done(log)
    asked = at_a_terminal(monkeypatch, "n")
    assert "the work of T1" in tell(log, capsys, "approve", "--all", code=2)
    assert state(log, "T1") == "PENDING_APPROVAL"
    at_a_terminal(monkeypatch, "y")
    assert "T1: approved: it is merged next" in tell(log, capsys, "approve", "--all")
    assert state(log, "T1") == "DONE"
    assert asked == ["approve it? [y/N] "]
    assert tell(log, capsys, "approve", "--all") == "nothing waits for your approval\n"


def test_a_plan_and_permissions_are_approved_and_questions_stay(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A question in words has no approval; the command says that it still waits."""
    FleetLog(log, T1, T2, approve_plan=True)
    assert "plan: approved: agents get its tasks" in tell(log, capsys, "approve", "--all", "--yes")
    assert [state(log, name) for name in ("T1", "T2")] == ["OPEN", "OPEN"]
    asking = at_work(tmp_path / "asking.db", LEAVE, WORDS).path
    printed = tell(asking, capsys, "approve", "--all", "--yes")
    assert "ann/Q1: approved" in printed
    assert "not approved: ann/Q2 needs an answer in words" in printed


def test_without_a_terminal_all_needs_yes(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A script says that it means it; names and ``--all`` contradict each other."""
    done(log)
    assert "without a terminal, this command needs --yes" in tell(log, capsys, "approve", "--all", code=2)
    assert "not both" in tell(log, capsys, "approve", "T1", "--all", code=2)
    assert "--yes answers the question of --all" in tell(log, capsys, "approve", "--yes", code=2)
    assert "1 to" in tell(log, capsys, "approve", "--all", "--reason", " ", code=2)
    assert state(log, "T1") == "PENDING_APPROVAL"


@pytest.mark.parametrize("mode", [(), ("--drain",), ("--kill",)], ids=["grace", "drain", "kill"])
def test_stop_without_names_asks_with_the_names_of_all_agents(
    log: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, mode: tuple[str, ...]
) -> None:
    """A stop is final. Without a terminal it is refused, unless it names agents or says ``--all`` or ``--yes``."""
    FleetLog(log, T1, agents=(AgentPlan("ann"), AgentPlan("bob")))
    assert "needs the names of agents, or --all" in tell(log, capsys, "stop", *mode, code=2)
    assert "not both" in tell(log, capsys, "stop", "ann", "--all", *mode, code=2)
    asked = at_a_terminal(monkeypatch, "")
    assert "nothing has changed" in tell(log, capsys, "stop", *mode, code=2)
    assert asked == ["stop all 2 agents (ann and bob), for good? [y/N] "]
    assert folded(log).record("worker/ann", "desired_state") == desired_state.DesiredState()
    at_a_terminal(monkeypatch, "yes")
    assert len(tell(log, capsys, "stop", *mode).splitlines()) == 2


@pytest.mark.parametrize("option", ["--all", "--yes"])
def test_stop_of_all_agents_asks_nothing_when_told_so(
    log: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    """For scripts."""
    FleetLog(log, T1, agents=(AgentPlan("ann"), AgentPlan("bob")))
    assert tell(log, capsys, "stop", option).count("stops for good") == 2
