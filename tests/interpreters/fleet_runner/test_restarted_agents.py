"""Agents that stop by their errors, with real processes: restarted within limits, and then quarantined."""

from pathlib import Path

from fleet_sandbox import Sandbox

FAILS = r"""
import os, pathlib, sys
count = pathlib.Path(os.environ["COUNTS"]) / "sessions"
with count.open("a") as file:
    file.write("one\n")
if len(count.read_text().splitlines()) <= int(os.environ["FAILURES"]):
    sys.exit("no api key")
pathlib.Path(os.environ["LIFEFOLD_TASK"] + ".txt").write_text("done")
"""


def sandbox(folder: Path, failures: int, max_restarts: int = 2) -> Sandbox:
    """Return a fleet of one agent that fails so often before it succeeds, and stops by its first error."""
    of = Sandbox(folder).prepare("plain-1")
    (of.folder / "agent.py").write_text(FAILS)
    text = of.fleet.read_text().replace("[fleet.retry]", '[fleet.restart]\nwindow = "1h"\n\n[fleet.retry]')
    restart = f'restart = {{ max_restarts = {max_restarts}, backoff_base = "100ms", backoff_cap = "100ms" }}'
    head = f'max_consecutive_errors = 1\n{restart}\nenv = {{ FAILURES = "{failures}", '
    of.fleet.write_text(text.replace("env = { ", head))
    return of


def test_an_agent_that_stops_by_errors_is_restarted_and_its_work_is_merged(tmp_path: Path) -> None:
    """Twice, with the same name; the journal says so."""
    of = sandbox(tmp_path, failures=2)
    of.run()
    assert len(of.merges()) == 1
    assert of.call("log", "--all").stdout.count("RestartDue") == 2
    (agent,) = of.json("status")["agents"]
    assert (agent["name"], agent["supervisor"]) == ("agent", "Dismissed")
    assert of.processes() == []


def test_an_agent_beyond_its_restarts_is_quarantined_with_the_reason_everywhere(tmp_path: Path) -> None:
    """By the screen, `status`, `why` and the journal; and the fleet ends."""
    of = sandbox(tmp_path, failures=99, max_restarts=1)
    said = of.run(code=1)
    reason = "it was restarted once within 1 h; it stopped:"
    assert f"quarantined: {reason}" in said
    (agent,) = of.json("status")["agents"]
    assert agent["supervisor"] == "Quarantined"
    assert agent["reason"].startswith(reason)
    assert "no api key" in agent["reason"]
    assert "quarantined" in of.call("status").stdout
    assert reason in of.call("why", "plain-1").stdout
    assert reason in of.call("log", "--all").stdout
    assert (of.folder / "counts" / "sessions").read_text().splitlines() == ["one"] * 2
    assert of.processes() == []
