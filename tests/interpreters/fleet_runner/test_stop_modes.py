"""Stopping agents of a fleet at work, with real processes: when they are through, or at once."""

from pathlib import Path

from fleet_sandbox import Sandbox


def test_a_kill_gives_no_grace_to_a_session_that_does_not_listen(tmp_path: Path) -> None:
    """Not even where a grace of ten minutes has begun: the stop that was asked for is cut short."""
    of = Sandbox(tmp_path).prepare("deaf-1", gates=("deaf-1",))
    of.fleet.write_text(of.fleet.read_text().replace('grace = "300ms"', 'grace = "10m"'))
    with of.running() as run, of.at_gate("deaf-1"):
        of.call("stop", "agent")
        assert "agent: killed" in of.call("stop", "--kill", "agent").stdout
        run.rest()
    assert run.process.returncode == 1
    assert of.processes() == []
    (agent,) = of.json("status")["agents"]
    assert (agent["desired_state"], agent["state"], agent["processes"]) == ("Stop", "Stopped", 0)


def test_a_kill_ordered_after_the_death_of_the_runner_is_done_by_the_next_one(tmp_path: Path) -> None:
    """The order is in the log; the next runner ends the session without grace."""
    of = Sandbox(tmp_path).prepare("deaf-1", gates=("deaf-1",))
    of.fleet.write_text(of.fleet.read_text().replace('grace = "300ms"', 'grace = "10m"'))
    with of.running() as run, of.at_gate("deaf-1"):
        run.process.kill()
        run.process.wait()
        of.call("stop", "--kill", "--all")
        of.run(code=1)
    assert of.processes() == []
