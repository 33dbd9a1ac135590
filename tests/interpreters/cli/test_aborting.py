"""``lifefold abort``: what is taken, who is said to be reached by it, what is refused and why."""

from pathlib import Path

import pytest

from fleet_log import FleetLog, folded, said
from lifefold.core.fleet import AgentPlan, TaskPlan
from lifefold.core.fleet.board import fleet_task
from lifefold.core.lifecycles import task
from lifefold.core.policy.abort import AbortPolicy, AbortScope
from lifefold.interpreters.cli.app import main

T1 = TaskPlan("T1", "do it", max_retries=1, most_subtasks=2)
AGENTS = tuple(AgentPlan(name) for name in ("ann", "bob"))
CONTAINED = AbortPolicy()


class Told:
    """Gives commands, and returns what was printed."""

    def __init__(self, log: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.log, self._capsys = log, capsys

    def __call__(self, words: str, code: int = 0) -> str:
        assert main(["abort", *words.split(), "--db", str(self.log)]) == code
        printed = self._capsys.readouterr()
        return printed.out + printed.err

    def state(self, name: str) -> str:
        """Return the state of a task."""
        return str(folded(self.log).record("board", f"task:{name}").state)


@pytest.fixture
def tell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Told:
    return Told(tmp_path / "fleet.db", capsys)


def family(log: Path, aborts: AbortPolicy | None = CONTAINED) -> FleetLog:
    """Begin a log in which a task was split, and both parts have a worker."""
    of = FleetLog(log, T1, agents=AGENTS, aborts=aborts).claimed("T1")
    of.happens("board", "task:T1", fleet_task.Split(1, (fleet_task.Subtask("a"), fleet_task.Subtask("b"))))
    return of.claimed("T1+1", "bob").claimed("T1+2", "ann")


def test_an_agent_says_with_its_environment_that_a_tool_was_aborted(
    tell: Told, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Task, claim and log are known to its session; it is in the log, and no task is affected."""
    family(tell.log)
    for name, value in (("TASK", "T1+1"), ("TOKEN", "1-"), ("DB", str(tell.log))):
        monkeypatch.setenv(f"LIFEFOLD_{name}", value)
    assert main(["abort", "--scope", "tool", "--tool", "tests", "--because", "too slow"]) == 0
    assert "T1+1: recorded; the session goes on, and no other task is affected" in capsys.readouterr().out
    assert [(each.entity, each.event) for each in said(tell.log)] == [
        ("task:T1+1", fleet_task.ToolAborted(1, "tests", "too slow", ""))
    ]
    assert [tell.state(name) for name in ("T1+1", "T1+2")] == ["IN_PROGRESS"] * 2


@pytest.mark.parametrize(
    ("policy", "words", "ends"),
    [
        (AbortPolicy(tool_to_sibling=True), "T1+1 --scope tool --tool x --token 1", ["T1+2"]),
        (AbortPolicy(), "T1+1 --scope sibling", ["T1+2"]),
        (AbortPolicy(sibling_to_session=True), "T1+1 --scope sibling", ["T1", "T1+1", "T1+2"]),
        (AbortPolicy(), "T1 --scope session", ["T1", "T1+1", "T1+2"]),
        (AbortPolicy(), "T1+1 --scope session", ["T1+1"]),
    ],
)
def test_the_announced_tasks_are_the_aborted_ones(tell: Told, policy: AbortPolicy, words: str, ends: list[str]) -> None:
    """By the same formulas as on the board (E36, E37)."""
    family(tell.log, policy)
    assert f"aborted: {' '.join(ends)}; the next run acts on it\n" in tell(words)
    assert [name for name in ("T1", "T1+1", "T1+2") if tell.state(name) == "CANCELLED"] == ends


def test_an_abort_that_reaches_no_task_says_so(tell: Told) -> None:
    """The siblings are over already."""
    of = family(tell.log)
    of.happens("board", "task:T1+2", task.Cancelled("no"))
    assert "T1+1: no task is left to abort" in tell("T1+1 --scope sibling --because enough")
    assert said(tell.log)[-1].event == fleet_task.AbortWanted(AbortScope.SIBLING, "enough")


def test_what_cannot_be_aborted_is_refused_with_what_can_be_done(tell: Told) -> None:
    """And nothing is written."""
    of = family(tell.log)
    of.happens("board", "task:T1+2", task.Completed(1))
    assert "T1: refused: it is not a part of a task" in tell("T1 --scope sibling", 2)
    assert "T1: refused: it is waiting for its parts: only the agent" in tell("T1 --scope tool --tool x --token 1", 2)
    assert "claim 7 of it is over; bob has it now, under claim 1" in tell("T1+1 --scope tool --tool x --token 7", 2)
    assert "T1+2: refused: it is done, not merged: its work is done" in tell("T1+2 --scope session", 2)
    of.happens("board", "task:T1+2", task.Verified(1))
    assert "T1+2: refused: it is closed: nothing" in tell("T1+2 --scope sibling", 2)
    assert "there is no task 'T9'" in tell("T9 --scope session", 2)
    assert said(tell.log) == []


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("--scope session", "LIFEFOLD_TASK"),
        ("T1 --scope tool --tool x", "LIFEFOLD_TOKEN"),
        ("T1 --scope tool --tool x --token one", "the token of a claim"),
        ("T1 --scope tool --token 1", "--tool must have 1 to"),
        ("T1 --scope session --tool x", "--tool is for --scope tool"),
        ("T1 --scope sibling --token 1", "--token is for --scope tool"),
    ],
)
def test_what_does_not_go_together_is_bad_input(tell: Told, words: str, complaint: str) -> None:
    """Before anything is looked up."""
    family(tell.log)
    assert complaint in tell(words, 2)


def test_a_fleet_that_does_not_ask_for_aborts_says_what_there_is_instead(tell: Told) -> None:
    """The table is named, and ``cancel``."""
    family(tell.log, None)
    printed = tell("T1 --scope session", 2)
    assert "the fleet file has no table [fleet.aborts]; lifefold cancel T1 --db" in printed
    assert "ends it, with its parts" in printed


@pytest.mark.parametrize(
    ("meaning", "fate"),
    [
        ('{"fleet": {}}', None),
        ('{"fleet": {"aborts": {}}}', fleet_task.Fate()),
        ('{"fleet": {"aborts": {"tool_to_sibling": true}}}', fleet_task.Fate(AbortPolicy(tool_to_sibling=True))),
    ],
)
def test_a_task_that_is_added_is_aborted_as_the_fleet_file_says(
    tell: Told, meaning: str, fate: fleet_task.Fate | None
) -> None:
    """Whatever is on the board already."""
    FleetLog(tell.log, T1, agents=AGENTS, meaning=meaning)
    assert main(["task", "add", "--id", "T2", "--prompt", "x", "--db", str(tell.log)]) == 0
    assert folded(tell.log).record("board", "task:T2").fate == fate
