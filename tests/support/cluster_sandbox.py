"""A fleet of script agents on a Temporal server, with its brain and hosts as processes, and their traces.

Each process of the cluster has a trace of its own, in which the agents that it runs write lines. The times in a trace
are those of the machine, also if the process has another clock.
"""

import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

import anyio
import pytest

from cluster_journal import Journal, read_journal
from temporal_server import NoTemporal, TemporalServer, shared_server, temporal_server

LIFEFOLD: Final = Path(sys.executable).with_name("lifefold")

LONG_S: Final = 180.0
"""How long a test waits for what must happen."""

LOOK_S: Final = 0.05

PATIENT_S: Final = 30
"""A detection time that a loaded machine does not exceed. A test in which a host is lost gives a shorter one."""

REST_MS: Final = 500
"""The shortest pause between two attempts at a task."""

AGENT: Final = """
say() { printf '%s %s %s %s %s\\n' "$(date +%s%N)" $$ "$LIFEFOLD_AGENT" "$LIFEFOLD_TASK" "$1" >> "$TRACE"; }
say begins
case $LIFEFOLD_TASK in hopeless*) exit 3;; esac
n=0
while [ $n -lt $STEPS ] || [ -e "${0%/*}/hold" ]; do
  say works
  n=$((n + 1)); sleep 0.05
done
echo "$LIFEFOLD_AGENT" > "$LIFEFOLD_TASK.txt"
say ends
"""
"""An agent that writes a line at each twentieth of a second: its time, its pid, its name, its task, what it does.

It fails at each task whose name begins with ``hopeless``. Its work is a file with its name. It does not end while there
is a file ``hold`` beside it.
"""


class Life(NamedTuple):
    """A process of an agent: its task, and the times of its first and last line in the trace, in nanoseconds.

    ``host`` is the process of the cluster that has run it. ``is_whole``: the agent has come to its end.
    """

    pid: int
    agent: str
    task: str
    host: str
    begin_ns: int
    end_ns: int
    is_whole: bool


class ClusterSandbox:
    """A folder with a fleet, and the processes of its cluster."""

    patience_s: ClassVar[float] = LONG_S
    """How long ``until`` waits."""

    def __init__(  # noqa: PLR0913 - the size of a fleet, each part with its name
        self,
        folder: Path,
        server: TemporalServer,
        *,
        agents: int,
        tasks: int,
        steps: int,
        detection_s: int,
        db: str,
        hopeless: int,
        remote: str = "",
        verify: str = "",
    ) -> None:
        self.detection_s: Final = detection_s
        self.folder: Final = folder
        self.server: Final = server
        self.log: Final = folder / ("brain/.lifefold/clustered.db" if db else "fleet.db")
        """The place of the log, or of the file that says on which server it is."""
        self.db: Final = db or str(self.log)
        self.tasks: Final = (
            *(f"t{number}" for number in range(tasks)),
            *(f"hopeless{number}" for number in range(hopeless)),
        )
        self.processes: Final[dict[str, subprocess.Popen[bytes]]] = {}
        (folder / "agent.sh").write_text(AGENT)
        lines = ["[fleet]", 'name = "clustered"', 'env_pass = ["TRACE"]', "[fleet.env]", f'STEPS = "{steps}"']
        lines += ["[fleet.retry]", f'backoff_base = "{REST_MS}ms"', f'backoff_cap = "{REST_MS}ms"']
        lines += ["[cluster]", f'detection = "{detection_s}s"']
        if remote:
            lines.insert(2, 'repository = "."')
            lines.append(f'remote = "{remote}"')
        for number in range(agents):
            lines += ["[[agents]]", f'name = "a{number}"', f'command = ["sh", "{folder}/agent.sh"]']
            lines += ['backoff_base = "100ms"', 'backoff_cap = "100ms"']
        for name in self.tasks:
            retries = 1 if name.startswith("hopeless") else 9
            lines += ["[[tasks]]", f'id = "{name}"', f'prompt = "Do {name}."', f"max_retries = {retries}"]
            lines += [f'verify = [["sh", "-c", "{verify}"]]'] if verify else []
        (folder / "fleet.toml").write_text("\n".join(lines))

    def begin(
        self,
        name: str,
        *words: str,
        server: str = "",
        db: str = "",
        around: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a process of the cluster. Its output goes into a file of its name.

        ``server`` and ``db`` are other addresses, such as those of proxies. ``around`` is a part of its environment.
        """
        cluster = ("--server", server or self.server.address, "--detection", str(self.detection_s))
        with (self.folder / f"{name}.out").open("ab") as out:
            folder = self._folder_of(name)
            argv = [str(LIFEFOLD), words[0], str(folder / "fleet.toml"), "--db", db or self.db]
            argv += [*(cluster if words[0] != "run" else ()), *words[1:]]
            env = {**os.environ, "TRACE": str(self.folder / f"{name}.trace"), **(around or {})}
            process = subprocess.Popen(argv, stdout=out, stderr=out, cwd=folder, env=env)
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

    def begin_run(self, *words: str) -> subprocess.Popen[bytes]:
        """Start ``lifefold run`` on the server: a brain with the output of a local run."""
        return self.begin("run", "run", "--no-live", "--engine", f"temporal://{self.server.address}", *words)

    def call(self, *words: str, log: Path | None = None) -> str:
        """Give another command about a log, and return what it prints. It must succeed."""
        argv = [str(LIFEFOLD), *words, "--db", str(log or self.log)]
        done = subprocess.run(argv, check=False, capture_output=True, text=True, cwd=self.folder, timeout=LONG_S)
        assert not done.returncode, (words, done.stdout, done.stderr)
        return done.stdout

    def begin_brain(
        self, *, server: str = "", db: str = "", around: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a brain."""
        return self.begin("brain", "brain", server=server, db=db, around=around)

    def begin_host(
        self, name: str, *words: str, server: str = "", db: str = "", around: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a host."""
        return self.begin(name, "host", "--name", name, *words, server=server, db=db, around=around)

    def hold(self) -> None:
        """Let no agent come to its end before ``release``, however slow the machine is."""
        (self.folder / "hold").touch()

    def release(self) -> None:
        """Let the agents come to their ends."""
        (self.folder / "hold").unlink()

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
        with anyio.fail_after(self.patience_s):
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
        """Return the processes of agents that the traces know, in the order of their beginnings."""
        seen: defaultdict[tuple[int, str, str, str], list[tuple[int, str]]] = defaultdict(list)
        for trace in sorted(self.folder.glob("*.trace")):
            for line in trace.read_text().splitlines():
                at_ns, pid, agent, task, what = line.split()
                seen[int(pid), agent, task, trace.stem].append((int(at_ns), what))
        found = [
            Life(*key, min(lines)[0], max(lines)[0], is_whole="ends" in {what for _, what in lines})
            for key, lines in seen.items()
        ]
        return sorted(found, key=lambda life: life.begin_ns)

    def done_at(self) -> list[tuple[str, str]]:
        """Return each task that an agent has finished, and the host of that, in the order of names."""
        return sorted((life.task, life.host) for life in self.lives() if life.is_whole)

    def working(self, host: str = "") -> list[Life]:
        """Return the agents' processes that are alive, of one host or of all."""
        return [life for life in self.lives() if Path(f"/proc/{life.pid}").exists() and host in {"", life.host}]

    async def until_working(self, count: int, host: str = "") -> None:
        """Wait until so many agents are at work, of one host or of all."""
        await self.until(lambda: len(self.working(host)) >= count)

    async def until_ended(self, host: str = "") -> None:
        """Wait until no agent is at work, of one host or of all."""
        await self.until(lambda: not self.working(host))

    async def until_attached(self, host: str) -> None:
        """Wait until a host takes work."""
        await self.until(lambda: "takes work" in self.output(host))

    def overlaps(self) -> Iterator[tuple[Life, Life]]:
        """Yield pairs of processes of one task, or of one agent, that were alive at the same time."""
        lives = self.lives()
        for index, one in enumerate(lives):
            for other in lives[index + 1 :]:
                is_same = one.task == other.task or one.agent == other.agent
                if is_same and other.begin_ns <= one.end_ns:
                    yield one, other

    def hasty(self) -> Iterator[tuple[Life, Life]]:
        """Yield attempts at a task, and the next attempt, if that has begun before the pause of a retry was over."""
        for task in self.tasks:
            lives = [life for life in self.lives() if life.task == task]
            for one, other in pairwise(lives):
                if other.begin_ns - one.end_ns < REST_MS * 1_000_000:
                    yield one, other

    async def journal(self) -> Journal:
        """Read and verify the log. Raises ``LogMismatchError`` if it was decided otherwise than these rules decide."""
        return await read_journal(self.log)

    @property
    def expected(self) -> dict[str, str]:
        """The states of the tasks after a run without disturbance."""
        return {name: "failed" if name.startswith("hopeless") else "closed" for name in self.tasks}

    async def problems(self) -> list[str]:
        """Return what is wrong after the fleet has ended: by its log, and by the traces of its agents."""
        journal = await self.journal()
        done = {life.task for life in self.lives() if life.is_whole}
        return [
            *([f"settled: {journal.settled}"] if journal.settled != self.expected else []),
            *(f"gap or double: {each}" for each in journal.out_of_order),
            *(f"taken twice: {each}" for each in journal.doubles),
            *(f"timer too early: {each}" for each in journal.early),
            *(
                f"overlap of {(one.end_ns - other.begin_ns) / 1e9:.3f} s: {one} {other}"
                for one, other in self.overlaps()
            ),
            *(f"next attempt too early: {one} {other}" for one, other in self.hasty()),
            *(f"orphan: {life}" for life in self.working()),
            *(f"{name} is closed, and no agent has finished it" for name in sorted(journal.closed - done)),
        ]

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
    folder: Path,
    *,
    agents: int = 2,
    tasks: int = 4,
    steps: int = 20,
    detection_s: int = PATIENT_S,
    db: str = "",
    hopeless: int = 0,
    remote: str = "",
    verify: str = "",
    own_server: bool = False,
) -> AsyncGenerator[ClusterSandbox]:
    """Prepare a fleet on the server of this process. At the end of the block all processes of the fleet are ended.

    With ``own_server`` the server is one of its own, which may be killed or looked through. With a ``remote`` the fleet
    has a repository. ``verify`` is the script of each task's verification.

    The test is skipped where the server's program is missing.
    """
    try:
        with temporal_server() if own_server else nullcontext(shared_server()) as server:
            await server.client()
            sandbox = ClusterSandbox(
                folder,
                server,
                agents=agents,
                tasks=tasks,
                steps=steps,
                detection_s=detection_s,
                db=db,
                hopeless=hopeless,
                remote=remote,
                verify=verify,
            )
            try:
                yield sandbox
            finally:
                sandbox.close()
    except NoTemporal as missing:
        pytest.skip(str(missing))
