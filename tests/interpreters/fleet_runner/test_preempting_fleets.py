"""An urgent task comes while the only agent is busy, with real processes: it is done first, and both are closed."""

from pathlib import Path
from typing import Any

from fleet_sandbox import Sandbox

AGENT = r"""
import os, pathlib, signal, time

counts, task = pathlib.Path(os.environ["COUNTS"]), os.environ["LIFEFOLD_TASK"]
with (counts / "order").open("a") as file:
    file.write(f"{task}\n")
gate = counts / f"{task}.gate"
if gate.exists():
    pathlib.Path("half.txt").write_text("half of it")
    if "DEAF" in os.environ:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    gate.open().read()
    time.sleep(600)
pathlib.Path(f"{task}.txt").write_text("done")
"""

CRAFT = """
import os, pathlib, time
from lifefold.interpreters.facades.cooperative import Agent

class Writer(Agent):
    done = 0

    def beside(self):
        return pathlib.Path(os.environ["LIFEFOLD_STATE_FILE"] + ".done")

    def on_suspend(self):
        self.beside().parent.mkdir(parents=True, exist_ok=True)
        self.beside().write_text(str(self.done))

    def on_resume(self):
        self.done = int(self.beside().read_text())

    def process_work(self):
        task, counts = os.environ["LIFEFOLD_TASK"], pathlib.Path(os.environ["COUNTS"])
        with (counts / "order").open("a") as file:
            file.write(f"{task} from {self.done}\\n")
        gate = counts / f"{task}.gate"
        while self.done < 3:
            self.done += 1
            if self.done == 2 and gate.exists():
                gate.open().read()
                while not self.safe_point():
                    pass
                leaves_off = time.monotonic() + float(os.environ["LEAVES_OFF_S"])
                while time.monotonic() < leaves_off:
                    pass
            if self.safe_point():
                self.suspend()
                return
        pathlib.Path(f"{task}.txt").write_text("done")
"""


def prepared(folder: Path, table: str, **options: Any) -> Sandbox:
    """Return the sandbox of one agent at a task that it does not end by itself; the fleet has this table more."""
    sandbox = Sandbox(folder).prepare("low", gates=("low",), timeout="1h", **options)
    (folder / "agent.py").write_text(AGENT)
    sandbox.fleet.write_text(sandbox.fleet.read_text().replace("[fleet.retry]", f"{table}\n\n[fleet.retry]"))
    return sandbox.demand("low", "max_retries = 0")


def changed(sandbox: Sandbox, old: str, new: str) -> Sandbox:
    """Change the fleet file."""
    text = sandbox.fleet.read_text()
    assert text.count(old) == 1
    sandbox.fleet.write_text(text.replace(old, new))
    return sandbox


def deaf(sandbox: Sandbox) -> Sandbox:
    """Have the agent not hear that it is asked to end."""
    return changed(sandbox, "env = { ", 'env = { DEAF = "1", ')


def add_urgent(sandbox: Sandbox) -> None:
    sandbox.call("task", "add", "--id", "urgent", "--prompt", "at once", "--priority", "1")


def order(sandbox: Sandbox) -> list[str]:
    """Return at which tasks sessions have begun, one after the other."""
    return (sandbox.folder / "counts" / "order").read_text().splitlines()


def ended_well(sandbox: Sandbox) -> None:
    """Both are closed, at the first attempt of each, and nothing is left."""
    tasks = {each["id"]: each for each in sandbox.json("tasks")}
    assert {name: each["state"] for name, each in tasks.items()} == {"low": "CLOSED", "urgent": "CLOSED"}
    assert {name: each["retries"] for name, each in tasks.items()} == {"low": 0, "urgent": 0}
    assert {name: each["attempts"] for name, each in tasks.items()} == {"low": 2, "urgent": 1}
    assert sandbox.processes() == []


def test_an_urgent_task_preempts_the_only_agent_and_both_tasks_are_closed(tmp_path: Path) -> None:
    """Its session is asked to end; the task loses no retry, is done anew afterwards, and `why` says what happened."""
    sandbox = prepared(tmp_path, "[fleet.preemption]")
    with sandbox.running() as run:
        with sandbox.at_gate("low"):
            add_urgent(sandbox)
            run.until("Running -> Interrupting")
        assert "2 of 2 tasks closed" in run.rest()
    assert order(sandbox) == ["low", "urgent", "low"]
    assert "given back: preempted for urgent" in sandbox.call("why", "low").stdout
    assert len(sandbox.merges()) == 2
    assert "half of it" in sandbox.git("log", "--all", "-p", "--format=%s")
    ended_well(sandbox)


def test_a_session_that_ignores_its_preemption_ends_at_the_deadline(tmp_path: Path) -> None:
    """That is the fleet's, and not the agent's grace, which is an hour here."""
    sandbox = deaf(prepared(tmp_path, '[fleet.preemption]\ndeadline = "300ms"'))
    changed(sandbox, 'grace = "300ms"', 'grace = "1h"')
    with sandbox.running() as run:
        with sandbox.at_gate("low"):
            add_urgent(sandbox)
            run.until("Running -> Interrupting")
        assert "2 of 2 tasks closed" in run.rest()
    assert order(sandbox) == ["low", "urgent", "low"]
    assert "GraceExceeded" in sandbox.call("log", "--all").stdout
    ended_well(sandbox)


def test_the_operator_sees_a_preempted_agent_while_it_lasts(tmp_path: Path) -> None:
    """By `status` and by `why`; what the session comes to meanwhile does not count, for the task was taken from it."""
    sandbox = deaf(prepared(tmp_path, '[fleet.preemption]\ndeadline = "1h"'))
    (tmp_path / "agent.py").write_text(AGENT.replace("    time.sleep(600)\n", ""))
    with sandbox.running() as run:
        with sandbox.at_gate("low"):
            add_urgent(sandbox)
            run.until("Running -> Interrupting")
            assert "preempted for urgent" in sandbox.call("status").stdout
            assert "no agent is free: agent is preempted for urgent" in sandbox.call("why", "urgent").stdout
            assert "preempted for urgent" in sandbox.call("why", "low").stdout
            (agent,) = sandbox.json("status")["agents"]
            assert agent["preempted_for"] == "urgent"
        assert "2 of 2 tasks closed" in run.rest()
    assert order(sandbox) == ["low", "urgent", "low"]
    ended_well(sandbox)


def test_a_python_agent_is_suspended_at_its_safe_point_and_goes_on_where_it_was_afterwards(tmp_path: Path) -> None:
    """It has the deadline's time to come there, which is longer than its grace."""
    sandbox = prepared(tmp_path, '[fleet.preemption]\ndeadline = "60s"')
    (tmp_path / "craft.py").write_text(CRAFT)
    lines = sandbox.fleet.read_text().splitlines()
    lines = ['kind = "python"\ntarget = "craft:Writer"' if line.startswith("command") else line for line in lines]
    sandbox.fleet.write_text("\n".join(lines).replace("env = { ", 'env = { LEAVES_OFF_S = "0.6", '))
    with sandbox.running() as run:
        with sandbox.at_gate("low"):
            add_urgent(sandbox)
            run.until("Running -> Interrupting")
        assert "2 of 2 tasks closed" in run.rest()
    assert order(sandbox) == ["low from 0", "urgent from 0", "low from 2"]
    ended_well(sandbox)
