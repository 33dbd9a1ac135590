"""SIGKILL of the processes of a real fleet, at named points and at random times; later runs finish its work.

A trial is one fleet of two agents and three tasks. At one point of its first run one kind of process is killed, or all
are. Then the fleet is run until it has ended. After that every task is closed, and merged once. No two sessions have
worked at one task at the same time. No process is left, the checkout is whole, and a bystander lives. Each entry of the
log is a step of the model that is checked. Each signal of the runner and of the shims had a proof (``signals``).
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import ClassVar, Final

import anyio

import fuse
import interposing
import tortured_runner
from fleet_sandbox import Sandbox
from lifefold.interpreters.store import SqliteStore
from recorded_runs import foreign_in
from signals import judge, read
from trials import Verdict

HANG_S: Final = 300.0
"""Longer than a run of this fleet takes on any machine."""

TASKS: Final = ("plain-1", "plain-2", "plain-3")
FILES: Final = 60
"""The number of files that each checkout writes. One of them passes a point."""

AGENT: Final = """
import fcntl, os, pathlib, sys
sys.path.insert(0, {tools!r})
import fuse
task = os.environ["LIFEFOLD_TASK"]
counts = pathlib.Path(os.environ["COUNTS"])
with (counts / task).open("a") as file:
    file.write(f"{{os.environ['LIFEFOLD_AGENT']}} {{os.environ['LIFEFOLD_ATTEMPT']}}\\n")
held = (counts / f"{{task}}.held").open("w")
try:
    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    (counts / "doubled").write_text(task)
fuse.reach("agent begins")
pathlib.Path(task + ".txt").write_text("half")
fuse.reach("agent is at work")
pathlib.Path(task + ".txt").write_text("whole\\n" * 2000)
for number in range({files}):
    pathlib.Path(f"many-{{number}}.txt").write_text(f"{{number}} of {{task}}\\n" if number % 3 == {own}[task] else
                                                  pathlib.Path(f"many-{{number}}.txt").read_text())
fuse.reach("agent ends")
"""

PLACES: Final = (
    *((point, victim) for point in tortured_runner.STEPS for victim in ("runner", "runner group", "everything")),
    *((point, victim) for point in tortured_runner.GIT for victim in ("runner", "everything")),
    *(("checkout", victim) for victim in ("git group", "runner", "everything")),
    *(
        (point, victim)
        for point in ("agent begins", "agent is at work", "agent ends")
        for victim in ("agent", "agent group", "shim", "runner", "everything")
    ),
    *(("any time", victim) for victim in ("runner", "shim", "agent group", "git group", "everything")),
)
"""The points, and what is killed there."""

PASSES: Final[Mapping[str, int]] = {"git begins": 60, "git has ended": 60, "checkout": 3}
"""How often a point is passed in a run, about; other points of the engine are passed more often than eight times."""


class Trial:
    """A fleet in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        """Make the repository, the fleet file, and the filter that every checkout passes."""
        self.sandbox: Final = Sandbox(folder).prepare(*TASKS, agents=2)
        self.fuse: Final = folder / "fuse.json"
        self.signals: Final = folder / "signals"
        tools = str(Path(fuse.__file__).parent)
        own = {task: number for number, task in enumerate(TASKS)}
        (folder / "agent.py").write_text(AGENT.format(tools=tools, files=FILES, own=own))
        fleet = self.sandbox.fleet
        passed = 'env_pass = ["TORTURE_*", "LD_PRELOAD"]'
        text = fleet.read_text().replace('name = "sandbox"\n', f'name = "sandbox"\nlease = "3s"\n{passed}\n')
        fleet.write_text(text.replace('name = "agent"\n', f'name = "agent"\n{passed}\n'))
        reach = f"import sys; sys.path.insert(0, {tools!r}); import fuse; fuse.reach('checkout')"
        smudge = folder / "smudge.sh"
        smudge.write_text(f'#!/bin/sh\n[ -e {self.fuse} ] && {sys.executable} -S -c "{reach}"\ncat\n')
        smudge.chmod(0o700)
        repository = folder / "repo"
        for number in range(FILES):
            (repository / f"many-{number}.txt").write_text(f"{number}\n")
        (repository / ".gitattributes").write_text("many-30.txt filter=slow\n")
        self.sandbox.git("config", "filter.slow.smudge", str(smudge))
        self.sandbox.git("add", "--all")
        self.sandbox.git("-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "--quiet", "-m", "many")

    @contextmanager
    def running(self) -> "Generator[subprocess.Popen[bytes]]":
        """Run the fleet; what it prints is in the file ``printed``."""
        environment = dict(os.environ)
        if interposing.library() is not None:
            environment = dict(interposing.environment(signals=self.signals))
        environment[fuse.ENVIRONMENT] = str(self.fuse)
        command = [sys.executable, tortured_runner.__file__, "run", str(self.sandbox.fleet), "--no-live"]
        with (
            (self.sandbox.folder / "printed").open("ab") as printed,
            subprocess.Popen(
                command,
                cwd=self.sandbox.folder,
                env=environment,
                stdout=printed,
                stderr=printed,
                start_new_session=True,
            ) as process,
        ):
            try:
                yield process
            finally:
                process.kill()

    def run(self, within_s: float = HANG_S) -> int | None:
        """Run the fleet to its end, or for so long; return its exit code."""
        with self.running() as process:
            try:
                return process.wait(within_s)
            except subprocess.TimeoutExpired:
                return None

    def strike_after(self, pause_s: float, victim: str) -> int | None:
        """Run the fleet, and kill after a time; return its exit code."""
        with self.running() as process:
            try:
                return process.wait(pause_s)
            except subprocess.TimeoutExpired:
                fuse.strike(self.sandbox.folder, victim)
                return process.wait(HANG_S)

    def problems(self) -> Iterator[str]:
        """Yield what is wrong after the fleet has ended."""
        sandbox = self.sandbox
        merges = sorted(sandbox.merges())
        if merges != [f"Merge {task}: Write {task}.txt" for task in TASKS]:
            yield f"merged: {merges}"
        if (sandbox.folder / "counts" / "doubled").exists():
            yield "two sessions worked at one task at the same time"
        torn = [task for task in TASKS if (sandbox.folder / "repo" / f"{task}.txt").read_text() != "whole\n" * 2000]
        if torn:
            yield f"the checkout has torn files: {torn}"
        if sandbox.git("status", "--porcelain"):
            yield f"the checkout differs from its branch: {sandbox.git('status', '--porcelain')[:200]}"
        if list((sandbox.folder / "repo" / ".git").glob("*.lock")):
            yield "a lock of git is left"
        sandbox.git("fsck", "--no-dangling")
        left = [each for each in sandbox.processes() if "sleep" not in each]
        if left:
            yield f"orphans: {left}"
        with SqliteStore.peek(sandbox.log) as store:
            anyio.run(store.read_on, 0)  # verifies the chain
        foreign = foreign_in(sandbox.log)
        if foreign is not None:
            yield str(foreign)

    def printed(self) -> str:
        """Return the last lines that the runs have printed."""
        return " / ".join((self.sandbox.folder / "printed").read_text(errors="replace").splitlines()[-4:])


@contextmanager
def bystander() -> "Generator[subprocess.Popen[bytes]]":
    """Have a process that is none of the fleet's."""
    with subprocess.Popen(["/bin/sleep", "10000"], start_new_session=True) as process:
        try:
            yield process
        finally:
            process.kill()


class KillCampaign:
    """Trials at each point in turn, each time at another pass of it."""

    name: ClassVar[str] = "kills"

    def attempt(self, number: int) -> Verdict:
        """Make one trial."""
        point, victim = PLACES[number % len(PLACES)]
        folder = Path(tempfile.mkdtemp(prefix="lifefold-kills-"))
        wrong: list[str] = []
        counted: dict[str, int] = {}
        with bystander() as innocent:
            try:
                wrong += tried(Trial(folder), point, victim, Random(number), counted)
            finally:
                Sandbox(folder).kill_all()
            if innocent.poll() is not None:
                wrong.append("the bystander was killed")
        if not wrong:
            shutil.rmtree(folder, ignore_errors=True)
        return Verdict(f"{point}: {victim}", tuple(f"{each} (see {folder})" for each in wrong), counted)

    def close(self) -> None:
        """Keep nothing."""


def tried(trial: Trial, point: str, victim: str, random: Random, counted: dict[str, int]) -> list[str]:
    """Kill, run the fleet to its end, and return what is wrong."""
    if point == "any time":
        code = trial.strike_after(random.uniform(0.5, 6.0), victim)
    else:
        passes = PASSES.get(point, 8 if point in tortured_runner.STEPS else 2)
        fuse.lay(trial.fuse, point, random.randint(1, passes), victim)
        code = trial.run()
    counted["kills"] = int(point == "any time" or fuse.is_burnt(trial.fuse))
    trial.fuse.unlink(missing_ok=True)
    runs = 1
    while code != 0 and runs < 4:
        code = trial.run()
        runs += 1
    counted["runs"] = runs
    wrong = [] if code == 0 else [f"exit code {code} after {runs} runs: {trial.printed()}"]
    try:
        wrong += trial.problems()
    except (subprocess.CalledProcessError, OSError) as error:
        wrong.append(f"{type(error).__name__}: {error}")
    if trial.signals.exists():
        judged = judge(read(trial.signals))
        counted |= judged.proofs
        wrong += judged.unproven
    return wrong
