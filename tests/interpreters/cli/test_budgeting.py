"""The guarantee: ``lifefold budget`` shows how budgets stand, and lets more be spent; what was blocked goes on."""

import json
from pathlib import Path

import pytest

from fleet_log import FleetLog, folded
from lifefold.core.fleet import AgentPlan, Budget, TaskPlan
from lifefold.core.fleet.board import worker_slot
from lifefold.core.kernel import replace
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.budget.amounts import Amounts, Caps
from printed_commands import tell

AGENTS = (AgentPlan("ann", caps=Caps(sessions=9)), AgentPlan("bob"))
TASKS = (TaskPlan("T1", "one"), TaskPlan("T2", "two", caps=Caps(microusd=3_000_000)))
BUDGET = Budget(Caps(sessions=1), Amounts(microusd=1_000_000, sessions=1))


@pytest.fixture
def spent(tmp_path: Path) -> Path:
    """Return the log of a fleet whose only session has been spent: T1 is closed, T2 is blocked."""
    log = FleetLog(tmp_path / "fleet.db", *TASKS, agents=AGENTS, budget=BUDGET).claimed("T1")
    log.happens("board", "task:T1", task.Completed(1), task.Verified(1, "c0ffee"))
    log.happens("board", "worker_slot:ann", worker_slot.WorkWanted(Amounts(sessions=1)))
    return log.path


def test_budgets_are_shown_as_text(spent: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The fleet's first; what is spent says so, and with which command it goes on."""
    rows = [line.split("  ") for line in tell(spent, capsys, "budget").splitlines()]
    shown = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert shown == [
        ["WHOSE", "SPENT", "SET ASIDE", "A CLAIM IS GIVEN", "NEXT"],
        ["fleet", "1 of 1 session", "0 sessions", "1 session", "spent; lifefold budget --add-..."],
        ["agent ann", "1 of 9 sessions", "0 sessions", "1 session", "-"],
        ["task T2", "0.00 of 3.00 USD", "0.00 USD", "1.00 USD", "-"],
    ]


def test_how_budgets_stand_is_shown_for_programs(spent: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the smallest units."""
    fleet, agent, money = json.loads(tell(spent, capsys, "budget", "--json"))
    assert (fleet["whose"], fleet["resource"], fleet["cap"], fleet["spent"], fleet["is_spent"]) == (
        "fleet",
        "sessions",
        1,
        1,
        True,
    )
    assert (agent["name"], agent["is_spent"]) == ("ann", False)
    assert (money["name"], money["resource"], money["cap"], money["share"]) == ("T2", "microusd", 3_000_000, 1_000_000)


def test_what_is_blocked_for_want_of_money_waits_for_a_person(spent: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``status`` says so as long as anybody is there, and a retry is refused with what helps instead."""
    assert "the fleet's budget is spent: 1 of 1 session" in tell(spent, capsys, "tasks")
    assert "lifefold budget" in tell(spent, capsys, "retry", "T2", code=2)
    assert "the fleet's budget is spent: 1 of 1 session" in tell(spent, capsys, "why", "T2")


def test_a_person_lets_more_be_spent_and_what_was_blocked_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At any time, with no runner at work; with who and why in the log."""
    log = FleetLog(tmp_path / "fleet.db", *TASKS, agents=AGENTS, budget=BUDGET).claimed("T1")
    log.happens("board", "task:T1", task.Completed(1), task.Verified(1, "c0ffee"))
    log.happens("board", "worker_slot:ann", worker_slot.WorkWanted(Amounts(sessions=1)))
    assert "! T2: the fleet's budget is spent: 1 of 1 session: lifefold budget --add-sessions 1" in tell(
        log.path, capsys, "status"
    )
    assert "budget" in tell(log.path, capsys, "why", "T2").splitlines()[-2]
    assert "  spent; lifefold budget --add-...\n" in tell(log.path, capsys, "budget")
    assert "fleet: raised" in tell(log.path, capsys, "budget", "--add-sessions", "2", "--reason", "more is left")
    assert folded(log.path).record("board", "task:T2").state == "CLAIMED"
    assert "more is left" in tell(log.path, capsys, "log")
    assert "task/T2: raised" in tell(log.path, capsys, "budget", "--task", "T2", "--add-usd", "1.5")
    assert "1.00" in tell(log.path, capsys, "budget")


@pytest.mark.parametrize(
    ("words", "essentials"),
    [
        ("--add-usd 1", "its usd is not limited"),
        ("--agent bob --add-sessions 1", "it has no budget; accepted: agent/ann, fleet, task/T2"),
        ("--agent nope --add-sessions 1", "there is no agent 'nope'; accepted: agent/ann, fleet, task/T2"),
        ("--agent ann --task T2 --add-usd 1", "name an agent or a task, not both"),
        ("--add-usd nan", '--add-usd: found "nan"; accepted: an amount in US dollars from 0.01'),
        ("--add-usd -3", '--add-usd: found "-3"; accepted: an amount in US dollars from 0.01'),
        ("--add-sessions 0", '--add-sessions: found "0"; accepted: an integer from 1'),
        ("--add-time soon", '--add-time: found "soon"'),
        ("--agent ann", "give the amount to add"),
    ],
)
def test_what_cannot_be_raised_is_refused(
    spent: Path, capsys: pytest.CaptureFixture[str], words: str, essentials: str
) -> None:
    """With what is accepted, and nothing changes."""
    before = spent.read_bytes()
    assert essentials in tell(spent, capsys, "budget", *words.split(), code=2)
    assert spent.read_bytes() == before


def test_where_nothing_is_limited_it_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And nothing can be raised."""
    log = FleetLog(tmp_path / "fleet.db", *TASKS[:1]).path
    assert "no budget" in tell(log, capsys, "budget")
    assert "no budget" in tell(log, capsys, "budget", "--add-usd", "1", code=2)


def test_why_a_task_waits_for_money_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For what is set aside and may come back, and for a period to be over; the fleet's, or its own."""
    log = FleetLog(tmp_path / "fleet.db", TASKS[0], TaskPlan("T3", "x"), agents=AGENTS, budget=BUDGET).claimed("T1")
    held = "all that is left of the fleet's budget is reserved for tasks in progress"
    assert held in tell(log.path, capsys, "why", "T3")
    again = replace(BUDGET, period_ms=3_600_000)
    log = FleetLog(tmp_path / "again.db", TASKS[0], TaskPlan("T3", "x"), agents=AGENTS, budget=again).claimed("T1")
    log.happens("board", "task:T1", task.Completed(1), task.Verified(1, "c0ffee"))
    log.happens("board", "worker_slot:ann", worker_slot.WorkWanted(Amounts(sessions=1)))
    assert "the fleet's budget is spent, and is refilled as soon as" in tell(log.path, capsys, "why", "T3")
