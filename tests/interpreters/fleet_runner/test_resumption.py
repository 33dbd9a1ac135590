"""The notice of a run that continues a log: tasks in progress, and tasks that are only claimed."""

from pathlib import Path

from fleet_log import FleetLog, folded
from lifefold.core.fleet import AgentPlan, TaskPlan
from lifefold.core.fleet.board import worker_slot
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.resumption import continuing


def test_a_claim_without_a_session_is_not_in_progress(tmp_path: Path) -> None:
    """It is claimed, and no session has begun."""
    log = tmp_path / "fleet.db"
    of = FleetLog(log, TaskPlan("T1", "x"), TaskPlan("T2", "x"), agents=(AgentPlan("ann"), AgentPlan("bob")))
    of.claimed("T1").happens("board", "worker_slot:bob", worker_slot.WorkWanted())
    said = continuing(folded(log).aggregates, FleetFolder(log))
    assert said == "continuing: 0 sessions adopted, 1 task in progress, 1 claimed and not begun"
