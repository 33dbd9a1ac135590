"""What a fleet does with agents that are classes of the user's: real processes, preempted and resumed."""

import signal
from pathlib import Path

import pytest

from fleet_sandbox import Sandbox

CRAFT = """
import os, pathlib
from lifefold.interpreters.facades.cooperative import Agent

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


def python_sandbox(folder: Path, craft: str, *, repository: bool = True) -> Sandbox:
    """Return the sandbox of one agent that is the class ``Writer``, with a task whose first session waits at a gate."""
    sandbox = Sandbox(folder).prepare("T1", gates=("T1",), repository=repository)
    (folder / "craft.py").write_text(craft)
    lines = sandbox.fleet.read_text().splitlines()
    lines = ['kind = "python"\ntarget = "craft:Writer"' if line.startswith("command") else line for line in lines]
    sandbox.fleet.write_text("\n".join(lines).replace('grace = "300ms"', 'grace = "60s"'))
    return sandbox


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return python_sandbox(tmp_path, CRAFT)


def test_an_agent_of_ones_own_class_does_a_task(sandbox: Sandbox) -> None:
    """In a worktree, verified and merged like any other's."""
    (sandbox.folder / "counts" / "T1.gate").unlink()
    sandbox.run()
    assert sandbox.git("show", "main:T1.txt") == "item 1\nitem 2\nitem 3\n"
    assert sandbox.processes() == []


def test_a_class_that_cannot_be_loaded_ends_the_run_before_it_begins(sandbox: Sandbox) -> None:
    """It would cost every task its retries: bad input, with place and reason, and nothing has been written."""
    (sandbox.folder / "craft.py").write_text("\nimport nothing_of_that_name")
    refused = sandbox.call("run", str(sandbox.fleet), "--transitions", code=2)
    assert "agents.agent.target: cannot be loaded: craft:Writer: ModuleNotFoundError: " in refused.stderr
    assert "craft.py, line 2)" in refused.stderr
    assert not sandbox.log.exists()


def test_an_agent_that_shuts_down_and_completes_has_done_its_task(sandbox: Sandbox) -> None:
    """In a fleet a graceful shutdown is no failure (A4)."""
    (sandbox.folder / "counts" / "T1.gate").unlink()
    with (sandbox.folder / "craft.py").open("a") as craft:
        craft.write("        self.shutdown()\n        self.complete()\n")
    sandbox.run()
    assert sandbox.git("show", "main:T1.txt") == "item 1\nitem 2\nitem 3\n"
    assert sandbox.processes() == []


def test_an_urgent_message_preempts_it_at_a_safe_point_and_it_goes_on_where_it_was(sandbox: Sandbox) -> None:
    """Nothing is done twice: the next session resumes what the interrupted one has suspended."""
    with sandbox.running() as run:
        with sandbox.at_gate("T1"):
            sandbox.call("send", "agent", "a word")
            run.until("Running -> Interrupting")
        assert "1 of 1 tasks closed" in run.rest()
    assert sandbox.git("show", "main:T1.txt") == "item 1\nitem 2\nitem 3\n"
    assert (sandbox.folder / "counts" / "T1").read_text().splitlines() == ["agent from 0", "agent from 2"]
    assert sandbox.processes() == []


TAKES_BREAKS = """
import os, pathlib, signal
from lifefold.interpreters.facades.cooperative import Agent

COUNTS = pathlib.Path(os.environ["COUNTS"])

class Writer(Agent):
    done = 0

    def on_suspend(self):
        pathlib.Path(os.environ["LIFEFOLD_STATE_FILE"] + ".done").write_text(str(self.done))

    def on_resume(self):
        self.done = int(pathlib.Path(os.environ["LIFEFOLD_STATE_FILE"] + ".done").read_text())

    def process_work(self):
        with (COUNTS / "T1").open("a") as file:
            file.write(f"from {self.done}\\n")
        sessions = len((COUNTS / "T1").read_text().splitlines())
        if sessions == 1:
            self.done = 2
            pathlib.Path(os.environ["LIFEFOLD_STATE_FILE"]).parent.mkdir(parents=True, exist_ok=True)
            self.suspend()
        elif sessions == 2 and (COUNTS / "crash").exists():
            os.kill(os.getpid(), signal.SIGKILL)
        else:
            pathlib.Path("T1.txt").write_text("done")
"""


def without_retries(sandbox: Sandbox) -> None:
    sandbox.fleet.write_text(sandbox.fleet.read_text() + "\nmax_retries = 0\n")


def sessions(sandbox: Sandbox) -> list[str]:
    """Return from where each session has gone on."""
    return [line.partition("from ")[2] for line in (sandbox.folder / "counts" / "T1").read_text().splitlines()]


def test_an_agent_that_suspends_itself_unasked_goes_on_and_its_task_loses_no_retry(sandbox: Sandbox) -> None:
    """Preempted by the shutdown of a machine, or by the agent itself."""
    (sandbox.folder / "craft.py").write_text(TAKES_BREAKS)
    without_retries(sandbox)
    sandbox.run()
    assert sessions(sandbox) == ["0", "2"]


def test_what_a_suspended_agent_has_kept_is_found_by_the_next_claim_of_its_task(tmp_path: Path) -> None:
    """A session that is resumed and then killed fails its claim; the state of before is still there for the next."""
    sandbox = python_sandbox(tmp_path, TAKES_BREAKS, repository=False)
    (sandbox.folder / "counts" / "crash").touch()
    sandbox.run()
    assert sessions(sandbox) == ["0", "2", "2"]


def test_an_agent_whose_runner_is_gone_suspends_and_the_next_run_goes_on_where_it_was(sandbox: Sandbox) -> None:
    """Its lease ends it, as a message would: that is no error, and costs no retry."""
    without_retries(sandbox)
    sandbox.fleet.write_text(sandbox.fleet.read_text().replace('name = "sandbox"', 'name = "sandbox"\nlease = "1s"', 1))
    with sandbox.running() as run:
        with sandbox.at_gate("T1"):
            run.signal(signal.SIGKILL)
            run.process.wait()
        sandbox.wait_for_all()
    sandbox.run()
    assert sandbox.git("show", "main:T1.txt") == "item 1\nitem 2\nitem 3\n"
    assert sessions(sandbox) == ["0", "2"]
