"""Stopping agents of a fleet at work, with real processes: when they are through, or at once."""

import signal
from pathlib import Path

from fleet_ground import Ground


def test_a_draining_agent_merges_its_task_and_begins_no_other(tmp_path: Path) -> None:
    """Its session, the verification and the merge; then it is gone, and the fleet ends with the rest of its tasks."""
    of = Ground(tmp_path).prepare("plain-1", "plain-2", gates=("plain-1",))
    with of.running() as run:
        with of.at_gate("plain-1"):
            assert "agent: finishes its task, and stops" in of.call("stop", "--drain").stdout
            (agent,) = of.json("status")["agents"]
            assert (agent["desired_state"], agent["state"]) == ("Drain", "Running")
            assert "draining: drained by the operator" in of.call("status").stdout
            assert "agent: is draining already" in of.call("stop", "--drain", "agent", code=2).stdout
            sooner = "lifefold stop agent, or lifefold stop agent --kill, ends it sooner"  # without a name: all agents
            assert sooner in of.call("pause", code=2).stdout
        run.rest()
    assert run.process.returncode == 1
    assert {each["id"]: each["state"] for each in of.json("tasks")} == {"plain-1": "CLOSED", "plain-2": "OPEN"}
    assert len(of.merges()) == 1
    assert of.sessions("plain-2") == 0
    assert of.processes() == []


def test_who_is_told_to_drain_when_no_runner_is_at_work_drains_in_the_next_run(tmp_path: Path) -> None:
    """The work that was interrupted is finished, and nothing else is begun."""
    of = Ground(tmp_path).prepare("slow-1", "plain-2", gates=("slow-1",))
    with of.running() as run, of.at_gate("slow-1"):
        of.call("send", "--no-interrupt", "agent", "go on")
        run.signal(signal.SIGINT)
        run.rest()
    of.call("stop", "--drain")
    of.run(code=1)
    assert {each["id"]: each["state"] for each in of.json("tasks")} == {"slow-1": "CLOSED", "plain-2": "OPEN"}


def test_a_kill_gives_no_grace_to_a_session_that_does_not_listen(tmp_path: Path) -> None:
    """Not even where a grace of ten minutes has begun: the stop that was asked for is cut short."""
    of = Ground(tmp_path).prepare("deaf-1", gates=("deaf-1",))
    of.fleet.write_text(of.fleet.read_text().replace('grace = "300ms"', 'grace = "10m"'))
    with of.running() as run, of.at_gate("deaf-1"):
        of.call("stop", "agent")
        assert "agent: killed" in of.call("stop", "--kill", "agent").stdout
        run.rest()
    assert run.process.returncode == 1
    assert of.processes() == []
    (agent,) = of.json("status")["agents"]
    assert (agent["desired_state"], agent["state"], agent["processes"]) == ("Stop", "Stopped", 0)


def test_who_is_killed_when_its_runner_is_dead_is_killed_by_the_next_one(tmp_path: Path) -> None:
    """The order is in the log; whoever finds the session ends it without grace."""
    of = Ground(tmp_path).prepare("deaf-1", gates=("deaf-1",))
    of.fleet.write_text(of.fleet.read_text().replace('grace = "300ms"', 'grace = "10m"'))
    with of.running() as run, of.at_gate("deaf-1"):
        run.process.kill()
        run.process.wait()
        of.call("stop", "--kill")
        of.run(code=1)
    assert of.processes() == []
