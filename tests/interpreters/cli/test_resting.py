"""The command that tries a resting account again, and what is shown of such an account."""

from pathlib import Path

import pytest

from fleet_log import FleetLog, folded
from lifefold.core.fleet import AgentPlan, TaskPlan
from lifefold.core.fleet.board import account
from lifefold.core.lifecycles import session
from printed_commands import tell

AGENTS = (AgentPlan("ann", account="claude"), AgentPlan("bob"))
TOLD = account.LimitReported(3_600_000, 3_600_000, "five_hour")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return the path of a log whose account rests, and whose agent waits for it."""
    path = tmp_path / "fleet.db"
    written = FleetLog(path, TaskPlan("T1", "do it"), agents=AGENTS)
    written.happens("board", "account:claude", TOLD).reported("worker/ann", "session", session.WorktreeReady())
    return path


def test_an_operator_tries_an_account_again(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Once; then it does not rest any more."""
    assert "claude: it is tried with one session" in tell(log, capsys, "resume", "--account", "claude")
    assert folded(log).record("board", "account:claude").state is account.State.PROBING
    assert "it does not rest" in tell(log, capsys, "resume", "--account", "claude", code=2)


def test_an_unknown_account_is_named_with_the_known_ones(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As unknown agents and tasks are."""
    assert "did you mean claude?" in tell(log, capsys, "resume", "--account", "claud", code=2)


def test_agents_and_an_account_are_not_resumed_together(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One command has one meaning."""
    assert "accepted: one of both" in tell(log, capsys, "resume", "ann", "--account", "claude", code=2)


def test_the_status_says_until_when_an_account_rests(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In a line of its own, and as the next step of its agents."""
    shown = tell(log, capsys, "status")
    assert "! account claude rests until" in shown
    assert "(five_hour limit); sooner:" in shown
    (ann,) = [line for line in shown.splitlines() if line.startswith("ann")]
    assert ann.endswith("resumes due")
