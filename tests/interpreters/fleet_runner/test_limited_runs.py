"""Fleets with budgets, with real processes and real git: a limit is a ceiling, and what cannot go on says why."""

from pathlib import Path

import pytest

from fleet_sandbox import Sandbox

COSTS = """
import json, os
print("left", os.environ.get("LIFEFOLD_BUDGET_USD"), os.environ.get("LIFEFOLD_BUDGET_TOKENS"), flush=True)
print(json.dumps({"lifefold": {"cost_usd": float(os.environ["COST"]), "input_tokens": 10}}), flush=True)
"""


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    """Return a sandbox whose agents say what they cost: 0.40 dollars, unless the environment says otherwise."""
    sandbox = Sandbox(tmp_path).prepare("plain-1", "plain-2", "plain-3")
    agent = tmp_path / "agent.py"
    agent.write_text(agent.read_text() + COSTS)
    sandbox.settle("[[agents]]", '[[agents]]\nenv_pass = ["COST"]')
    return sandbox


def outputs(sandbox: Sandbox) -> str:
    """Return what all sessions have printed."""
    files = sorted(sandbox.log.with_name("sandbox.db.files").rglob("*"))
    return "".join(each.read_text(errors="replace") for each in files if each.is_file() and "out" in each.name)


def test_a_fleet_begins_nothing_that_its_budget_does_not_cover(sandbox: Sandbox) -> None:
    """Two sessions fit into a dollar, and the third task is blocked with the reason; the two are merged.

    With --no-wait the run leaves with a status of its own, and names the command that goes on. That works with no
    runner, and the next run does what was blocked.
    """
    sandbox.demand("", "budget = { usd = 1, session_usd = 0.5 }")
    printed = sandbox.call("run", str(sandbox.fleet), "--transitions", "--no-wait", code=4, COST="0.4").stdout
    reason = "the fleet's budget is too small for another claim: 0.80 of 1.00 USD spent, and a claim is given 0.50 USD"
    assert f"plain-3: blocked: {reason}" in printed
    assert "only an operator can move this fleet on" in printed
    told = {each["id"]: (each["state"], sandbox.sessions(each["id"])) for each in sandbox.json("tasks")}
    assert told == {"plain-1": ("CLOSED", 1), "plain-2": ("CLOSED", 1), "plain-3": ("BLOCKED", 0)}
    assert len(sandbox.merges()) == 2
    assert "left 0.500000 None" in outputs(sandbox)
    (balance,) = sandbox.json("budget")
    assert (balance["spent"], balance["set_aside"], balance["is_spent"]) == (800_000, 0, True)
    assert sandbox.processes() == []
    (line,) = [each for each in printed.splitlines() if "lifefold budget --add-usd" in each]
    assert "raised" in sandbox.call(*line.partition("lifefold ")[2].split()).stdout
    assert "3 of 3 tasks closed" in sandbox.run(COST="0.4")


def test_a_person_lets_a_fleet_that_waits_spend_more(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not end when its budget is spent; the task that was blocked is done, and then the fleet ends."""
    monkeypatch.setenv("COST", "0.1")
    sandbox.demand("", "budget = { sessions = 2 }")
    with sandbox.running() as run:
        said = run.until("the fleet's budget is spent", "lifefold budget --add-sessions 1")
        assert "plain-3" in said
        assert "lifefold budget --add-sessions 1" in sandbox.call("status").stdout
        assert "fleet: raised" in sandbox.call("budget", "--add-sessions", "1", "--reason", "go on").stdout
        assert "3 of 3 tasks closed" in run.rest()
        assert run.process.returncode == 0
    assert {each["state"] for each in sandbox.json("tasks")} == {"CLOSED"}
    assert len(sandbox.merges()) == 3
