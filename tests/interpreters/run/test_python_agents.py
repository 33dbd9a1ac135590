"""What a fleet does with agents that are classes of the user's: real processes, preempted and resumed."""

from pathlib import Path

import pytest

from fleet_ground import Ground

CRAFT = """
import os, pathlib
from lifefold.interpreters.handles.cooperative import Agent

class Writer(Agent):
    done = 0

    def on_suspend(self):
        pathlib.Path("checkpoint").write_text(str(self.done))

    def on_resume(self):
        self.done = int(pathlib.Path("checkpoint").read_text())
        pathlib.Path("checkpoint").unlink()

    def process_work(self):
        task = os.environ["LIFEFOLD_TASK"]
        counts = pathlib.Path(os.environ["COUNTS"])
        with (counts / task).open("a") as file:
            file.write(f"{self.agent_id} from {self.done}\\n")
        gate = counts / f"{task}.gate"
        while self.done < 3:
            self.done += 1
            with open(f"{task}.txt", "a") as file:
                file.write(f"item {self.done}\\n")
            if self.done == 2 and gate.exists():
                gate.open().read()
                while not self.safe_point():
                    pass
            if self.safe_point():
                self.suspend()
                return
"""


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    ground = Ground(tmp_path).prepare("T1", gates=("T1",))
    (tmp_path / "craft.py").write_text(CRAFT)
    lines = ground.fleet.read_text().splitlines()
    lines = ['kind = "python"\ntarget = "craft:Writer"' if line.startswith("command") else line for line in lines]
    ground.fleet.write_text("\n".join(lines).replace('grace = "300ms"', 'grace = "60s"'))
    return ground


def test_an_agent_of_ones_own_class_does_a_task(ground: Ground) -> None:
    """In a worktree, verified and merged like any other's."""
    (ground.folder / "counts" / "T1.gate").unlink()
    ground.run()
    assert ground.git("show", "main:T1.txt") == "item 1\nitem 2\nitem 3\n"
    assert ground.processes() == []


def test_an_agent_that_shuts_down_and_completes_has_done_its_task(ground: Ground) -> None:
    """In a fleet a graceful shutdown is no failure (A4)."""
    (ground.folder / "counts" / "T1.gate").unlink()
    with (ground.folder / "craft.py").open("a") as craft:
        craft.write("        self.shutdown()\n        self.complete()\n")
    ground.run()
    assert ground.git("show", "main:T1.txt") == "item 1\nitem 2\nitem 3\n"
    assert ground.processes() == []


def test_an_urgent_message_preempts_it_at_a_safe_point_and_it_goes_on_where_it_was(ground: Ground) -> None:
    """Nothing is done twice: the next session resumes what the interrupted one has suspended."""
    with ground.running() as run:
        with ground.at_gate("T1"):
            ground.call("send", "agent", "a word")
            run.until("Running -> Interrupting")
        assert "1 of 1 tasks closed" in run.rest()
    assert ground.git("show", "main:T1.txt") == "item 1\nitem 2\nitem 3\n"
    assert (ground.folder / "counts" / "T1").read_text().splitlines() == ["agent from 0", "agent from 2"]
    assert ground.processes() == []
