"""Sessions of real processes that may take as long as others took: half an hour, where nothing is known."""

from pathlib import Path

from fleet_sandbox import Sandbox

PLAIN_MS = 1_800_000
FILE_MS = 30_000


def test_a_session_is_given_the_time_that_the_formula_says(tmp_path: Path) -> None:
    """By status and why, from the log: more for a task that changes files."""
    of = Sandbox(tmp_path).prepare("plain-1", "files-1", gates=("plain-1", "files-1"))
    of.demand("files-1", 'files = ["a", "b"]', 'depends_on = ["plain-1"]')
    text = of.fleet.read_text()
    of.fleet.write_text(text.replace('session_timeout = "60s"', 'session_timeout = "adaptive"'))
    with of.running() as run:
        for task, expected_ms in (("plain-1", PLAIN_MS), ("files-1", PLAIN_MS + 2 * FILE_MS)):
            with of.at_gate(task):
                (agent,) = of.json("status", "--db", str(of.log))["agents"]
                why = " ".join(of.call("why", task, "--db", str(of.log)).stdout.split())
            assert agent["timer"]["event"] == "SessionTimeout"
            assert agent["timer"]["deadline_ms"] - agent["since_ms"] == expected_ms
            assert f"each is ended after {expected_ms // 60_000} min at the latest" in why
        run.rest()
    assert len(of.merges()) == 2
