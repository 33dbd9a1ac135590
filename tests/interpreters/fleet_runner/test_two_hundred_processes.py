"""Two hundred short-lived real processes through one fleet: nothing is lost, nothing is done twice, nothing stays."""

from pathlib import Path

import pytest

from fleet_sandbox import Sandbox

TASKS = tuple(f"plain-{number}" for number in range(200))


@pytest.mark.campaign
@pytest.mark.parametrize("repository", [True, False], ids=["merged into one branch", "in plain folders"])
def test_two_hundred_short_sessions_lose_and_double_no_task(tmp_path: Path, *, repository: bool) -> None:
    """Twenty agents: every task has one session, is closed by one claim, and, in a repository, is merged once."""
    sandbox = Sandbox(tmp_path).prepare(*TASKS, agents=20, repository=repository)
    assert "200 of 200 tasks closed" in sandbox.run()
    assert {task: sandbox.sessions(task) for task in TASKS} == dict.fromkeys(TASKS, 1)
    assert [task["attempts"] for task in sandbox.json("tasks")] == [1] * len(TASKS)
    assert sandbox.processes() == []
    if repository:
        subjects = sandbox.merges()
        assert len(subjects) == len(set(subjects)) == len(TASKS)
