"""A sandbox for runs of whole fleets: a folder with a repository, a fleet file and a log, and the command line."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio

from commands_run import Fork, run_command, start_command
from lifefold.core.kernel import Envelope, Event, encode
from lifefold.interpreters.store import SqliteStore
from recorded_runs import Place

AGENT = r"""
import os, pathlib, signal, sys, time

task, attempt = os.environ["LIFEFOLD_TASK"], int(os.environ["LIFEFOLD_ATTEMPT"])
count = pathlib.Path(os.environ["COUNTS"]) / task
with count.open("a") as file:
    file.write(f"{os.environ['LIFEFOLD_AGENT']} {attempt}\n")
behaviour = task.partition("-")[0]
began = time.monotonic_ns()
prompt = pathlib.Path(sys.argv[1]).read_text()
first = "failed" not in prompt and "interrupted" not in prompt
if behaviour == "deaf" and first:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
gate = count.with_name(f"{task}.gate")
if gate.exists():
    gate.open().read()
if behaviour == "both" and first:
    count.with_name("meeting").open("w" if task.endswith("1") else "r").close()
if behaviour == "crash" and first:
    sys.exit("I crash")
if behaviour == "hang" and first:
    time.sleep(600)
if behaviour == "deaf" and first:
    time.sleep(600)
if behaviour == "slow" and "messages" not in prompt:
    print("waiting for a word", flush=True)
    time.sleep(600)
if behaviour == "child" and first:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
if behaviour == "split" and "+" not in task:
    import anyio

    from lifefold.core.fleet.board import fleet_task
    from lifefold.core.kernel import Envelope, encode
    from lifefold.interpreters.store import SqliteStore

    parts = tuple(fleet_task.Subtask(f"Write {task}+{n}.txt", (("test", "-s", f"{task}+{n}.txt"),)) for n in (1, 2))
    epoch, _, token = os.environ["LIFEFOLD_TOKEN"].partition("-")
    split = Envelope("task:" + task, fleet_task.Split(int(epoch), parts, token), time.time_ns() // 1_000_000)
    with SqliteStore.peek(pathlib.Path(os.environ["LIFEFOLD_DB"])) as store:
        anyio.run(store.submit, "board", encode(split))
    time.sleep(600)
pathlib.Path(task + ".txt").write_text(prompt)
with count.with_name(f"{task}.spans").open("a") as file:
    file.write(f"{began} {time.monotonic_ns()}\n")
"""

FLEET = """
[fleet]
name = "sandbox"
{repository}

[fleet.retry]
backoff_base = "10ms"

[[agents]]
name = "agent"
count = {agents}
command = ["{python}", "{folder}/agent.py", "{{prompt_file}}"]
env = {{ COUNTS = "{folder}/counts" }}
session_timeout = "{timeout}"
grace = "300ms"
backoff_base = "200ms"
"""

HANG_S = 500
"""Longer than any command here takes on any machine, and shorter than the time after which pytest gives up."""

APART_S = 1.0
"""Longer than repetitions of a signal count as one signal."""

LAST_STEPS_S = 10
"""How long a process may need to be gone when it has done its work; an agent that was forgotten sleeps far longer."""

TASK = """
[[tasks]]
id = "{id}"
prompt = "Write {id}.txt"
verify = [["test", "-s", "{id}.txt"]]
"""


class Sandbox:
    """A folder with a repository, a fleet and a log, and the commands for it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.fleet = folder / "fleet.toml"
        self.place = Place(folder)
        """Lets the plugin of recorded runs look at the logs here."""
        self.log = folder / ".lifefold" / "sandbox.db"
        self.runners: list[int] = []
        """The processes of runners that were started here: the words of some do not tell."""

    def prepare(
        self,
        *tasks: str,
        agents: int = 1,
        repository: bool = True,
        timeout: str = "60s",
        gates: Sequence[str] = (),
    ) -> "Sandbox":
        """Write the agent, the fleet file and, unless unwanted, make a repository of one commit.

        ``timeout`` is for tests in which sessions hang; no session that ends by itself takes so long. ``gates`` names
        the tasks whose first session is to wait ``at_gate``.
        """
        (self.folder / "counts").mkdir()
        for task in gates:
            os.mkfifo(self._gate(task))
        (self.folder / "agent.py").write_text(AGENT)
        place = 'repository = "repo"' if repository else ""
        head = FLEET.format(repository=place, agents=agents, python=sys.executable, folder=self.folder, timeout=timeout)
        self.fleet.write_text(head + "".join(TASK.format(id=task) for task in tasks))
        if repository:
            repo = self.folder / "repo"
            repo.mkdir()
            self.git("init", "--quiet", "--initial-branch=main")
            (repo / "README").write_text("hello\n")
            self.git("add", "--all")
            self.git("-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "--quiet", "-m", "first")
        return self

    def _gate(self, task: str) -> Path:
        return self.folder / "counts" / f"{task}.gate"

    @contextmanager
    def at_gate(self, task: str) -> Generator[None]:
        """Wait until the first session of a task stands at its gate; it may go on when the block is left."""
        with self._gate(task).open("wb"):
            self._gate(task).unlink()
            yield

    def git(self, *arguments: str) -> str:
        """Run git in the repository."""
        command = ["git", "-C", str(self.folder / "repo"), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def merges(self) -> list[str]:
        """Return the subjects of the merges into the fleet's branch."""
        return self.git("log", "--first-parent", "--merges", "--format=%s", "main").splitlines()

    def settle(self, text: str, other: str) -> "Sandbox":
        """Write something else into the fleet file in place of a text that is there once."""
        before = self.fleet.read_text()
        assert before.count(text) == 1
        self.fleet.write_text(before.replace(text, other))
        return self

    def demand(self, task: str, *lines: str) -> "Sandbox":
        """Write more lines to a task of the fleet file; without a name, to the fleet."""
        head = f'id = "{task}"\n' if task else 'name = "sandbox"\n'
        text = self.fleet.read_text()
        assert text.count(head) == 1
        self.fleet.write_text(text.replace(head, head + "".join(f"{line}\n" for line in lines)))
        return self

    def agents_of(self, task: str) -> list[str]:
        """Return who has worked at a task, session by session."""
        return [line.split()[0] for line in (self.folder / "counts" / task).read_text().splitlines()]

    def spans(self, *tasks: str) -> list[tuple[int, int]]:
        """Return from when to when there were sessions at these tasks, the earliest first."""
        files = [self.folder / "counts" / f"{task}.spans" for task in tasks]
        lines = [line for file in files for line in file.read_text().splitlines()]
        return sorted((int(began), int(ended)) for began, ended in map(str.split, lines))

    def submit(self, entity: str, event: Event) -> None:
        """Say something to the board of a fleet at work, as commands do: by way of its log."""
        envelope = Envelope(entity, event, time.time_ns() // 1_000_000, "operator")
        with SqliteStore.peek(self.log) as store:
            anyio.run(store.submit, "board", encode(envelope))

    def sessions(self, task: str) -> int:
        """Return how many sessions have worked at a task."""
        counts = self.folder / "counts" / task
        return len(counts.read_text().splitlines()) if counts.exists() else 0

    def call(self, *arguments: str, code: int | None = 0, **env: str) -> subprocess.CompletedProcess[str]:
        """Run the command line to its end; ``env`` is added to the environment."""
        done = run_command(self.folder, *arguments, timeout_s=HANG_S, **env)
        assert code is None or done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done

    def json(self, *arguments: str) -> Any:
        """Return what a command prints as JSON."""
        return json.loads(self.call(*arguments, "--json").stdout)

    def run(self, code: int = 0, **env: str) -> str:
        """Run the fleet to its end; return what it printed."""
        return self.call("run", str(self.fleet), "--transitions", code=code, **env).stdout

    @contextmanager
    def running(self, *options: str) -> Generator["Run"]:
        """Start the fleet in a process group of its own; whatever is left of it is killed in the end."""
        with start_command(self.folder, "run", str(self.fleet), "--transitions", *options) as process:
            self.runners.append(process.pid)
            try:
                yield Run(process)
            finally:
                process.kill()

    def processes(self) -> list[str]:
        """Return the command lines of all processes for this sandbox, agents and shims, that do not just end anyway."""
        return [words for pid, words in self._processes().items() if not _ends(pid, LAST_STEPS_S)]

    def kill_all(self) -> None:
        """Kill all processes that work for this sandbox, and wait until they are dead."""
        for pid in self._processes():
            assert _ends(pid, HANG_S, signal.SIGKILL)

    def wait_for_all(self) -> None:
        """Wait until all processes that work for this sandbox have ended."""
        for pid, words in self._processes().items():
            assert _ends(pid, HANG_S), words

    def _processes(self) -> dict[int, str]:
        found: dict[int, str] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    environment = (entry / "environ").read_bytes().decode("utf-8", "replace")
                except OSError:
                    continue
                is_runner = int(entry.name) in self.runners and "command_child" in words
                if words and (is_runner or str(self.folder) in words or f"COUNTS={self.folder}/" in environment):
                    found[int(entry.name)] = words
        return found


def _ends(pid: int, within_s: float, number: signal.Signals | None = None) -> bool:
    """Tell whether a process has ended within a time; send it a signal before, if one is given."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        if number is not None:
            signal.pidfd_send_signal(process, number)
        return bool(select.select([process], [], [], within_s)[0])
    finally:
        os.close(process)


class Run:
    """A runner at work."""

    def __init__(self, process: "Fork | subprocess.Popen[str]") -> None:
        self.process = process
        self.seen: list[str] = []

    def until(self, *words: str) -> str:
        """Read what the runner prints until a line has all the words; return that line."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.seen.append(line)
            if all(word in line for word in words):
                return line
        raise AssertionError(f"never saw {words} in:\n{''.join(self.seen)}")

    def signal_again(self, number: signal.Signals) -> None:
        """Send the runner another signal, after it has reported the last one."""
        time.sleep(APART_S)
        self.signal(number)

    def signal(self, number: signal.Signals) -> None:
        """Send the runner, and it alone, a signal."""
        self.process.send_signal(number)

    def rest(self) -> str:
        """Read what comes until the runner's end."""
        assert self.process.stdout is not None
        text = self.process.stdout.read()
        self.seen.append(text)
        self.process.wait(HANG_S)
        return text
