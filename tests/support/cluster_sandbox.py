"""A fleet of script agents on a Temporal server, with its brain and hosts as processes, and their traces."""

import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

import anyio
from temporalio.client import Client

from lifefold.core.fleet import system
from lifefold.interpreters.engine import Ledger
from lifefold.interpreters.rules import rules_version
from lifefold.interpreters.store import peek_log
from temporal_server import dev_server

LIFEFOLD: Final = Path(sys.executable).with_name("lifefold")

LONG_S: Final = 180.0
"""How long a test waits for what must happen."""

LOOK_S: Final = 0.05

AGENT: Final = """
n=0
while [ $n -lt $STEPS ]; do
  printf '%s %s %s %s\\n' "$(date +%s%N)" $$ "$LIFEFOLD_AGENT" "$LIFEFOLD_TASK" >> "$TRACE"
  n=$((n + 1)); sleep 0.05
done
"""
"""An agent that writes a line into the trace at each twentieth of a second: its time, its pid, its name, its task."""


class Life(NamedTuple):
    """A process of an agent: its task, and the times of its first and last line in the trace, in nanoseconds."""

    pid: int
    agent: str
    task: str
    begin_ns: int
    end_ns: int


class ClusterSandbox:
    """A folder with a fleet, and the processes of its cluster."""

    def __init__(  # noqa: PLR0913 - the size of a fleet, each part with its name
        self, folder: Path, client: Client, *, agents: int, tasks: int, steps: int, detection_s: int, db: str
    ) -> None:
        self.detection_s: Final = detection_s
        self.folder: Final = folder
        self.log: Final = folder / ("brain/.lifefold/clustered.db" if db else "fleet.db")
        """The place of the log, or of the file that says on which server it is."""
        self.db: Final = db or str(self.log)
        self.trace: Final = folder / "trace"
        self.address: Final = client.service_client.config.target_host
        self.processes: Final[dict[str, subprocess.Popen[bytes]]] = {}
        (folder / "agent.sh").write_text(AGENT)
        lines = ["[fleet]", 'name = "clustered"', "[fleet.env]", f'TRACE = "{self.trace}"', f'STEPS = "{steps}"']
        lines += ["[fleet.retry]", 'backoff_base = "100ms"', "[cluster]", f'detection = "{detection_s}s"']
        for number in range(agents):
            lines += ["[[agents]]", f'name = "a{number}"', f'command = ["sh", "{folder}/agent.sh"]']
        for number in range(tasks):
            lines += ["[[tasks]]", f'id = "t{number}"', f'prompt = "Do task {number}."']
        (folder / "fleet.toml").write_text("\n".join(lines))

    def begin(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        """Start a process of the cluster. Its output goes into a file of its name."""
        cluster = ("--server", self.address, "--detection", str(self.detection_s)) if words[0] != "run" else ()
        with (self.folder / f"{name}.out").open("ab") as out:
            folder = self._folder_of(name)
            argv = [str(LIFEFOLD), words[0], str(folder / "fleet.toml"), "--db", self.db, *cluster, *words[1:]]
            process = subprocess.Popen(argv, stdout=out, stderr=out, cwd=folder)
        self.processes[name] = process
        return process

    def _folder_of(self, name: str) -> Path:
        """Return the folder of a process: its own if the log is on a server, as on a machine of its own."""
        if self.db == str(self.log):
            return self.folder
        own = self.folder / name
        own.mkdir(exist_ok=True)
        (own / "fleet.toml").write_text((self.folder / "fleet.toml").read_text())
        return own

    def begin_local(self) -> subprocess.Popen[bytes]:
        """Start a runner without a cluster."""
        return self.begin("local", "run", "--no-live")

    def begin_run(self) -> subprocess.Popen[bytes]:
        """Start ``lifefold run`` on the server: a brain with the output of a local run."""
        return self.begin("run", "run", "--no-live", "--engine", f"temporal://{self.address}")

    def begin_brain(self) -> subprocess.Popen[bytes]:
        """Start a brain."""
        return self.begin("brain", "brain")

    def begin_host(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        """Start a host."""
        return self.begin(name, "host", "--name", name, *words)

    def kill(self, name: str) -> None:
        """End a process by SIGKILL."""
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def output(self, name: str) -> str:
        """Return what a process has printed."""
        return (self.folder / f"{name}.out").read_text()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds; another process brings it about."""
        with anyio.fail_after(LONG_S):
            while not holds():
                refused = [name for name, each in self.processes.items() if each.poll() == 2]
                assert refused == [], [self.output(name) for name in refused]
                await anyio.sleep(LOOK_S)

    async def until_over(self) -> int:
        """Wait for the brain to end, and return its exit code."""
        brain = self.processes["brain"]
        await self.until(lambda: brain.poll() is not None)
        return brain.returncode

    def lives(self) -> list[Life]:
        """Return the processes of agents that the trace knows, in the order of their beginnings."""
        seen: defaultdict[tuple[int, str, str], list[int]] = defaultdict(list)
        for line in self.trace.read_text().splitlines() if self.trace.exists() else ():
            at_ns, pid, agent, task = line.split()
            seen[int(pid), agent, task].append(int(at_ns))
        found = [Life(*key, min(times), max(times)) for key, times in seen.items()]
        return sorted(found, key=lambda life: life.begin_ns)

    def working(self) -> list[Life]:
        """Return the agents' processes that are alive."""
        return [life for life in self.lives() if Path(f"/proc/{life.pid}").exists()]

    def overlaps(self) -> Iterator[tuple[Life, Life]]:
        """Yield pairs of processes of one task, or of one agent, that were alive at the same time."""
        lives = self.lives()
        for index, one in enumerate(lives):
            for other in lives[index + 1 :]:
                is_same = one.task == other.task or one.agent == other.agent
                if is_same and other.begin_ns <= one.end_ns:
                    yield one, other

    async def verified(self) -> int:
        """Decide on the whole log again: no stream has a gap or a double. Return the number of entries."""
        with peek_log(self.log) as store:
            ledger = Ledger(system, rules=rules_version(system))
            return sum(1 for _ in ledger.verify(await store.read()))

    def close(self) -> None:
        """End what is left."""
        for process in self.processes.values():
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()
        for life in self.working():
            os.kill(life.pid, signal.SIGKILL)


@asynccontextmanager
async def cluster(  # noqa: PLR0913 - the size of a fleet, each part with its name
    folder: Path, *, agents: int = 2, tasks: int = 4, steps: int = 20, detection_s: int = 2, db: str = ""
) -> AsyncGenerator[ClusterSandbox]:
    """Run a server during the block, and prepare a fleet. At the end all its processes are ended."""
    async with dev_server() as client:
        sandbox = ClusterSandbox(
            folder, client, agents=agents, tasks=tasks, steps=steps, detection_s=detection_s, db=db
        )
        try:
            yield sandbox
        finally:
            sandbox.close()
