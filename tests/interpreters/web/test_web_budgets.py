"""Budgets on the pages: what is spent, and the form that raises a budget."""

import re
from pathlib import Path

from fleet_log import FleetLog
from lifefold.core.fleet import Budget, Caps, TaskPlan
from lifefold.core.lifecycles.budget.amounts import Amounts
from web_desk import served


def test_a_fleet_with_budgets_is_shown_and_each_budget_is_offered_once(tmp_path: Path) -> None:
    """The fleet has two limits in one budget, and the task has one of its own."""
    task = TaskPlan("T1", "do it", caps=Caps(sessions=1))
    log = FleetLog(
        tmp_path / "fleet.db", task, budget=Budget(Caps(sessions=9, tokens=50), Amounts(tokens=20, sessions=1))
    )
    with served([log.path]) as desk:
        for path in ("/", "/fleets/fleet"):
            answer = desk.get(path, accept="text/html")
            assert answer.status_code == 200
            assert [each.strip() for each in re.findall("<option [^>]*>([^<]*)<", answer.text)] == ["fleet", "task T1"]
            assert "of 9 sessions" in answer.text
