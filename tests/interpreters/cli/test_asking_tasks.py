"""A task whose agent waits for an operator's answer is told apart from the other running ones."""

import json
from pathlib import Path

import pytest

from asking_log import LEAVE, WORDS, at_work
from lifefold.core.fleet.worker import desired_state
from lifefold.core.fleet.worker.question import REF, Answer, QuestionAnswered, Verdict
from lifefold.core.lifecycles import session
from lifefold.interpreters.cli.app import main


def test_tasks_and_status_show_that_an_agent_asks_until_it_is_answered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``tasks`` has it as the state with the names of the questions, ``status`` counts it, and JSON has the names."""
    log = at_work(tmp_path / "fleet.db", LEAVE, WORDS)

    def told(*words: str) -> str:
        main([*words, "--db", str(log.path)])
        return capsys.readouterr().out

    (_, line) = told("tasks").splitlines()
    assert line.split()[:3] == ["T1", "asking", "ann"]
    assert line.endswith("ann asks ann/Q1, ann/Q2")
    assert "0 of 1 tasks closed, 1 asking" in told("status")
    (task,) = json.loads(told("tasks", "--json"))
    assert task["asks"] == ["ann/Q1", "ann/Q2"]
    log.happens("worker/ann", REF, QuestionAnswered(1, Answer(Verdict.ALLOWED)))
    assert told("tasks").splitlines()[1].endswith("ann asks ann/Q2")
    log.happens("worker/ann", REF, QuestionAnswered(2, Answer(Verdict.ANSWERED, "red")))
    (_, line) = told("tasks").splitlines()
    assert line.split()[:3] == ["T1", "running", "ann"]
    assert "asks" not in line


def test_a_task_whose_session_was_interrupted_by_a_hold_is_not_called_running(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After Ctrl-C the session ends, and the agent is held with its task until the next run."""
    log = at_work(tmp_path / "fleet.db")
    log.happens("worker/ann", "desired_state", desired_state.HoldWanted())
    main(["tasks", "--db", str(log.path)])
    assert capsys.readouterr().out.splitlines()[1].split()[:3] == ["T1", "running", "ann"]
    log.reported("worker/ann", "session", session.SessionExited(session.Suspended(asked=True)))
    main(["tasks", "--db", str(log.path)])
    assert capsys.readouterr().out.splitlines()[1].split()[:3] == ["T1", "interrupted", "ann"]
    main(["status", "--db", str(log.path)])
    assert "0 of 1 tasks closed, 1 interrupted" in capsys.readouterr().out
