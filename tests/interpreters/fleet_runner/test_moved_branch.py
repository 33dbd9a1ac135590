"""A fleet whose branch an agent moves: it says so, merges nothing, and goes on as the operator decides."""

from pathlib import Path

import pytest

from fleet_sandbox import Sandbox

MOVES = """
import subprocess
git = ("git", "-c", "user.name=agent", "-c", "user.email=a@localhost")
subprocess.run([*git, "add", "--all"], check=True)
subprocess.run([*git, "commit", "--quiet", "-m", "unverified"], check=True)
subprocess.run([*git, "update-ref", "refs/heads/main", "HEAD"], check=True)
"""


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    sandbox = Sandbox(tmp_path).prepare("plain-1")
    agent = sandbox.folder / "agent.py"
    agent.write_text(agent.read_text() + MOVES)
    return sandbox


def test_the_operator_accepts_the_branch_and_the_task_is_closed(sandbox: Sandbox) -> None:
    """Until then it is open, and the commit, the agent and both ways out are named."""
    with sandbox.running() as run:
        run.until("waits to merge plain-1", "was moved from", "unverified, by agent, made by agent", "branch --accept")
        assert sandbox.json("tasks")[0]["state"] == "DONE"
        assert "an agent has moved the target branch" in sandbox.call("why", "plain-1").stdout
        assert "accepted at" in sandbox.call("branch", "--accept", "--reason", "it is fine").stdout
        run.until("plain-1", "CLOSED")
        run.rest()
    assert sandbox.git("status", "--porcelain") == ""
    assert "nothing is accepted" in sandbox.call("branch", "--accept", code=2).stderr


def test_the_operator_sets_the_branch_back_and_the_work_is_merged(sandbox: Sandbox) -> None:
    """It is verified work by then: one merge of it, on top of where lifefold had left the branch."""
    with sandbox.running() as run:
        run.until("waits to merge plain-1", "was moved from")
        sandbox.git("update-ref", "refs/heads/main", "main~1")
        run.until("plain-1", "CLOSED")
        run.rest()
    assert sandbox.merges() == ["Merge plain-1: Write plain-1.txt"]
    assert sandbox.git("status", "--porcelain") == ""
