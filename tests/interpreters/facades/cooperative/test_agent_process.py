"""An agent of a user's class in its own process: real processes, real signals."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from lifefold.core.policy.reasons import SUSPENDED_STATUS

CRAFT = '''
import json, os
from lifefold.interpreters.facades.cooperative import Agent

class Craft(Agent):
    """Writes its items into a file, one at each gate, and yields between two of them."""

    done = 0

    def on_startup(self):
        self.note("startup")

    def on_scheduled(self, task_id):
        self.note(f"scheduled {task_id}")

    def on_preempt_request(self, reason):
        self.note("asked")

    def on_suspend(self):
        with open("checkpoint", "w") as file:
            json.dump(self.done, file)

    def on_resume(self):
        with open("checkpoint") as file:
            self.done = json.load(file)
        self.note(f"resumed at {self.done}")

    def note(self, text):
        with open("notes", "a") as file:
            file.write(text + "\\n")

    def process_work(self):
        while self.done < 3:
            with open(f"gate-{self.done}") as gate:
                gate.read()
            self.done += 1
            self.note(f"item {self.done}")
            while self.done == 2 and os.path.exists("expect-preemption") and not self.safe_point():
                pass
            if self.safe_point():
                os.remove("expect-preemption")
                self.suspend()
                return

class Broken(Craft):
    def process_work(self):
        raise ValueError("no such file")

class Forgetful(Craft):
    """Its data are gone when it resumes."""

    def on_resume(self):
        raise LookupError("no checkpoint")

class Deliberate(Craft):
    """Does not yield."""

    def process_work(self):
        with open("gate-0") as gate:
            gate.read()
        while True:
            pass

class Waiting(Craft):
    def process_work(self):
        self.wait()

class Deaf(Craft):
    def __init__(self, name):
        from lifefold.core.lifecycles.runtime import Limits
        Agent.__init__(self, name, limits=Limits(preemption_timeout_ms=1, preemption_grace_ms=1))

    def process_work(self):
        with open("gate-0") as gate:
            gate.read()
        while True:
            pass

class Graceful(Craft):
    def process_work(self):
        self.shutdown()
        self.complete()

class Literal(Graceful):
    def __init__(self, name):
        from lifefold.core.lifecycles.runtime import machine
        Agent.__init__(self, name, machine=machine)

class Quitter(Craft):
    def process_work(self):
        raise SystemExit(0)

class Unprepared(Craft):
    def on_scheduled(self, task_id):
        raise ValueError("no such disk")

class Busy(Craft):
    """Leaves a thread that never ends."""

    def process_work(self):
        import threading
        threading.Thread(target=threading.Event().wait).start()

class Slow(Craft):
    """Is asked to yield before it runs."""

    def on_startup(self):
        with open("gate-0") as gate:
            gate.read()
        with open("gate-1") as gate:
            gate.read()

    def process_work(self):
        while not self.safe_point():
            pass
        self.suspend()

class Later(Agent):
    async def process_work(self):
        pass


class Bit(Agent):
    def process_work(self):
        yield 1


class Unmade(Agent):
    def __init__(self, name):
        self.name = name

    def process_work(self):
        pass


class Blamed(Agent):
    def process_work(self):
        raise ValueError("no such disk") from OSError("unplugged")


class Idle(Agent):
    pass
'''


class Bench:
    """A folder with the agents' module, and processes of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[str]] = []
        (folder / "craft.py").write_text(CRAFT)
        for number in range(3):
            os.mkfifo(folder / f"gate-{number}")

    def start(self, target: str, **told: str) -> "subprocess.Popen[str]":
        command = (
            sys.executable,
            "-P",
            "-m",
            "lifefold.interpreters.facades.cooperative.worker",
            str(self.folder),
            target,
        )
        env = {
            **os.environ,
            "LIFEFOLD_AGENT": "ann",
            "LIFEFOLD_TASK": "T1",
            "LIFEFOLD_STATE_FILE": str(self.folder / "kept" / "state.json"),
            **told,
        }
        process = subprocess.Popen(command, cwd=self.folder, env=env, stderr=subprocess.PIPE, text=True)
        self.processes.append(process)
        return process

    def open_gate(self, number: int) -> None:
        """Let the agent through, when it has come there."""
        (self.folder / f"gate-{number}").write_text("")

    def leave_gates_open(self) -> None:
        """Let agents through from now on, whenever they come."""
        for gate in self.folder.glob("gate-*"):
            gate.unlink()
            gate.touch()

    def notes(self) -> list[str]:
        return (self.folder / "notes").read_text().splitlines()

    def kept(self) -> bool:
        return (self.folder / "kept" / "state.json").exists()


def ended(process: "subprocess.Popen[str]") -> tuple[int, str]:
    """Wait for the end; return the exit status and the last line on stderr."""
    _, errors = process.communicate(timeout=60)
    return process.returncode, errors.strip().rpartition("\n")[2]


@pytest.fixture
def bench(tmp_path: Path) -> Generator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    for process in bench.processes:
        with process:
            process.kill()


def test_an_agent_that_returns_has_completed_its_task(bench: Bench) -> None:
    """It is started, scheduled, run; its hooks are called on the way."""
    process = bench.start("craft:Craft")
    for number in range(3):
        bench.open_gate(number)
    assert ended(process) == (0, "")
    assert bench.notes() == ["startup", "scheduled T1", "item 1", "item 2", "item 3"]
    assert not bench.kept()


def test_a_preempted_agent_goes_on_where_it_was_in_the_next_process(bench: Bench) -> None:
    """TERM is a request; the agent yields at its safe point, and the next session resumes it."""
    (bench.folder / "expect-preemption").touch()
    first = bench.start("craft:Craft")
    bench.open_gate(0)
    bench.open_gate(1)
    first.send_signal(signal.SIGTERM)
    assert ended(first)[0] == SUSPENDED_STATUS
    assert bench.kept()
    second = bench.start("craft:Craft")
    bench.open_gate(2)
    assert ended(second) == (0, "")
    notes = [note for note in bench.notes() if note != "asked"]  # told by another thread, if the process is still there
    assert notes == ["startup", "scheduled T1", "item 1", "item 2", "resumed at 2", "item 3"]
    assert not bench.kept()


def suspended(bench: Bench) -> None:
    """Leave an agent that has done two of three items, and was asked to yield then."""
    (bench.folder / "expect-preemption").touch()
    process = bench.start("craft:Craft")
    bench.open_gate(0)
    bench.open_gate(1)
    process.send_signal(signal.SIGTERM)
    assert ended(process)[0] == SUSPENDED_STATUS
    (bench.folder / "notes").unlink()
    bench.leave_gates_open()


def test_the_next_agent_with_the_task_continues_where_the_suspended_agent_was(bench: Bench) -> None:
    """Another agent of the same class, too. It was started once for all: ``on_startup`` is not called again.

    openai/openai-agents-python#2172.
    """
    suspended(bench)
    assert ended(bench.start("craft:Craft", LIFEFOLD_AGENT="bob")) == (0, "")
    assert bench.notes() == ["resumed at 2", "item 3"]
    assert not bench.kept()


@pytest.mark.parametrize("why", ["another class", "what it saved is gone", "not a state", "half a state"])
def test_an_agent_that_cannot_resume_does_its_task_from_the_start(bench: Bench, why: str) -> None:
    """A state file that is missing, or belongs to another class, is no failure."""
    suspended(bench)
    file, target = bench.folder / "kept" / "state.json", "craft:Craft"
    match why:
        case "another class":
            target = "craft:Forgetful"
        case "what it saved is gone":
            (bench.folder / "checkpoint").unlink()
        case "not a state":
            file.write_text("a session id of some command")
        case _:
            file.write_bytes(file.read_bytes()[:-1])
    assert ended(bench.start(target))[0] == 0
    assert bench.notes() == ["startup", "scheduled T1", "item 1", "item 2", "item 3"]
    assert not bench.kept()


def test_an_agent_that_does_not_yield_has_failed_before_the_grace_of_its_session_is_over(bench: Bench) -> None:
    """So it reports why it ended; otherwise the runner would kill it after the grace, without a reason (A17)."""
    process = bench.start("craft:Deliberate", LIFEFOLD_GRACE_MS="1000")
    bench.open_gate(0)
    process.send_signal(signal.SIGTERM)
    status, said = ended(process)
    assert status == 1
    assert said.startswith("ended in FAILED: preemption")


def test_an_agent_that_does_not_yield_is_ended_by_force(bench: Bench) -> None:
    """When its machine fails it, the process ends, whatever it is at (A17)."""
    process = bench.start("craft:Deaf")
    bench.open_gate(0)
    process.send_signal(signal.SIGINT)
    status, said = ended(process)
    assert status == 1
    assert said.startswith("ended in FAILED: ")


def test_an_agent_that_shuts_down_gracefully_has_completed_its_task(bench: Bench) -> None:
    """Agents that a fleet runs have the profile in which a shutdown need not end as a failure (A4)."""
    assert ended(bench.start("craft:Graceful")) == (0, "")


def test_an_agent_that_was_made_with_a_machine_keeps_it(bench: Bench) -> None:
    """By the document's own table it cannot complete once it shuts down."""
    status, said = ended(bench.start("craft:Literal"))
    assert status == 1
    assert said.startswith("ended in FAILED: ")
    assert "SHUTTING_DOWN -> COMPLETED" in said


def test_a_request_during_the_start_is_told_when_the_agent_runs(bench: Bench) -> None:
    """It is not lost, and not taken for one about something else."""
    process = bench.start("craft:Slow")
    bench.open_gate(0)
    process.send_signal(signal.SIGTERM)
    bench.open_gate(1)
    assert ended(process)[0] == SUSPENDED_STATUS
    assert bench.kept()


def test_a_process_ends_with_its_task(bench: Bench) -> None:
    """Whatever threads of the agent's go on."""
    assert ended(bench.start("craft:Busy")) == (0, "")


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("craft:Broken", "ended in FAILED: ValueError: no such file"),
        ("craft:Quitter", "ended in FAILED: SystemExit: 0"),
        ("craft:Unprepared", "ended in FAILED: ValueError: no such disk"),
        ("craft:Waiting", "ended in WAITING: process_work() returned"),
        ("craft:Later", "ended in FAILED: TypeError: process_work() must do the task when it is called"),
        ("craft:Bit", "ended in FAILED: TypeError: process_work() must do the task when it is called"),
        ("craft:Blamed", "ended in FAILED: ValueError: no such disk; OSError: unplugged"),
        ("craft:Unmade", "craft:Unmade: AttributeError: "),
        ("craft:Idle", "craft:Idle: it must be a subclass of"),
        ("craft:Nobody", "craft:Nobody: AttributeError: "),
        ("nothing:Craft", "nothing:Craft: ModuleNotFoundError: "),
    ],
)
def test_whatever_else_happens_the_last_line_says_why(bench: Bench, target: str, said: str) -> None:
    """The exit status is 1, and nothing is kept."""
    status, line = ended(bench.start(target))
    assert status == 1
    assert line.startswith(said)
    assert not bench.kept()
