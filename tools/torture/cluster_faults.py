"""Faults of a cluster at random times: processes die, freeze, or are cut off, and servers die, while a fleet works.

A trial is one fleet on Temporal with a brain and two hosts. It has two agents, four tasks, and one task that always
fails. Its log is a file, or on a PostgreSQL server; each process then has a folder of its own. Each process reaches the
servers by proxies. One fault happens, in each third trial two after each other. What died is started again, and the
fleet goes on to its end. The tasks are then settled as after a local run, and ``ClusterSandbox.problems`` is empty.
"""

import shutil
import signal
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import ClassVar, Final

import anyio

from cluster_sandbox import ClusterSandbox, cluster
from lifefold.interpreters.engine import LogMismatchError
from lifefold.interpreters.store import StoreError
from postgres_server import NoServer, PostgresServer, server
from tcp_proxy import Proxy, proxy
from temporal_server import program
from trials import Verdict

HOSTS: Final = ("one", "two")
LATEST_S: Final = 3.0
"""The latest time of a fault after the first agent is at work."""
LONGEST_S: Final = 6.0
"""The longest fault, in seconds. The detection time is shorter."""
DETECTION_S: Final = 3
OVER: Final = 1
"""The exit code of the brain of this fleet, which has a task that always fails."""
MOST_BRAINS: Final = 4


class Trial:
    """A fleet with its processes behind proxies, and the chance of one trial."""

    def __init__(
        self, sandbox: ClusterSandbox, random: Random, stack: ExitStack, postgres: PostgresServer | None
    ) -> None:
        """Make the proxies. ``postgres`` is the server of the log, if it is not a file."""
        self._sandbox: Final = sandbox
        self._random: Final = random
        self._postgres: Final = postgres
        self._to_temporal: Final[Mapping[str, Proxy]] = {
            name: stack.enter_context(proxy(sandbox.server.port)) for name in ("brain", *HOSTS)
        }
        self._to_log: Final = None if postgres is None else stack.enter_context(proxy(postgres.port))
        self.brains = 0

    def _begin(self, name: str) -> None:
        address = f"127.0.0.1:{self._to_temporal[name].port}"
        if name == "brain":
            self.brains += 1
            db = self._sandbox.db
            if self._postgres is not None and self._to_log is not None:
                db = db.replace(f":{self._postgres.port}/", f":{self._to_log.port}/")
            self._sandbox.begin_brain(server=address, db=db)
        else:
            self._sandbox.begin_host(name, server=address)

    async def run(self, faults: tuple[str, ...]) -> list[str]:
        """Let faults happen, run the fleet to its end, and return what is wrong."""
        for name in ("brain", *HOSTS):
            self._begin(name)
        await self._sandbox.until_working(1)
        for fault in faults:
            await self._pause(LATEST_S)
            await FAULTS[fault](self)
        while (code := await self._sandbox.until_over()) != OVER:
            if self.brains == MOST_BRAINS:
                return [f"the brain ended with {code}: {self._sandbox.output('brain')[-300:]}"]
            self._begin("brain")
        return await self._sandbox.problems()

    async def _pause(self, most_s: float) -> None:
        await anyio.sleep(self._random.uniform(0.0, most_s))

    async def kill(self, name: str) -> None:
        """Kill a process, and start it again."""
        self._sandbox.kill(name)
        await self._pause(LONGEST_S)
        self._begin(name)

    async def freeze(self, name: str) -> None:
        """Stop a process, and let it go on."""
        process = self._sandbox.processes[name]
        process.send_signal(signal.SIGSTOP)
        await self._pause(LONGEST_S)
        process.send_signal(signal.SIGCONT)

    async def cut_off(self, between: Proxy, cut: Callable[[Proxy], None]) -> None:
        """Cut a process off from a server, and heal that."""
        cut(between)
        await self._pause(LONGEST_S)
        between.heal()

    async def cut_off_host(self, cut: Callable[[Proxy], None]) -> None:
        """Cut a host off from Temporal."""
        await self.cut_off(self._to_temporal[self.host], cut)

    async def cut_off_brain(self, cut: Callable[[Proxy], None], *, from_log: bool) -> None:
        """Cut the brain off from Temporal, or from the server of its log."""
        between = self._to_log if from_log else self._to_temporal["brain"]
        assert between is not None
        await self.cut_off(between, cut)

    async def restart_temporal(self) -> None:
        """Kill the server of Temporal, and start it again."""
        self._sandbox.server.kill()
        await self._pause(LONGEST_S)
        self._sandbox.server.start()
        await self._sandbox.server.client()

    async def restart_postgresql(self) -> None:
        """Kill the server of the log, and start it again."""
        assert self._postgres is not None
        self._postgres.kill()
        await self._pause(LONGEST_S)
        self._postgres.start()

    @property
    def host(self) -> str:
        """One of the hosts, by chance."""
        return self._random.choice(HOSTS)


FAULTS: Final[Mapping[str, Callable[[Trial], Awaitable[None]]]] = {
    "host: killed": lambda trial: trial.kill(trial.host),
    "host: frozen": lambda trial: trial.freeze(trial.host),
    "host: cut off from Temporal, lost": lambda trial: trial.cut_off_host(Proxy.swallow),
    "host: cut off from Temporal, late": lambda trial: trial.cut_off_host(Proxy.hold_back),
    "brain: killed": lambda trial: trial.kill("brain"),
    "brain: frozen": lambda trial: trial.freeze("brain"),
    "brain: cut off from Temporal, lost": lambda trial: trial.cut_off_brain(Proxy.swallow, from_log=False),
    "brain: cut off from Temporal, late": lambda trial: trial.cut_off_brain(Proxy.hold_back, from_log=False),
    "brain: cut off from PostgreSQL, lost": lambda trial: trial.cut_off_brain(Proxy.swallow, from_log=True),
    "brain: cut off from PostgreSQL, late": lambda trial: trial.cut_off_brain(Proxy.hold_back, from_log=True),
    "Temporal: killed": Trial.restart_temporal,
    "PostgreSQL: killed": Trial.restart_postgresql,
}
"""The faults by their names. Those with PostgreSQL need a log there."""


def faults_of(number: int) -> tuple[tuple[str, ...], bool]:
    """Return the faults of a trial, and whether its log is on a server."""
    names, random = tuple(FAULTS), Random(number)
    faults = (names[number % len(names)], *((random.choice(names),) if number % 3 == 2 else ()))
    return faults, number // len(names) % 2 == 1 or any("PostgreSQL" in each for each in faults)


class ClusterCampaign:
    """Trials with each fault in turn, at random times."""

    name: ClassVar[str] = "cluster"

    def __init__(self) -> None:
        """Start a PostgreSQL server for all trials. Raises ``LookupError`` where a server's program is missing."""
        program()
        self._shared: Final = ExitStack()
        try:
            self._postgres: Final = self._shared.enter_context(server())
        except NoServer as missing:
            raise LookupError(f"needs PostgreSQL: {missing}") from missing

    def attempt(self, number: int) -> Verdict:
        """Make one trial."""
        return anyio.run(self._attempt, number)

    async def _attempt(self, number: int) -> Verdict:
        (faults, is_on_a_server), folder = faults_of(number), Path(tempfile.mkdtemp(prefix="lifefold-cluster-"))
        postgres = self._postgres if is_on_a_server else None
        db = "" if postgres is None else postgres.new_log()
        counted: dict[str, int] = {}
        with ExitStack() as stack:
            async with cluster(
                folder, steps=80, detection_s=DETECTION_S, db=db, hopeless=1, own_server=True
            ) as sandbox:
                trial = Trial(sandbox, Random(number), stack, postgres)
                try:
                    wrong = await trial.run(faults)
                except (AssertionError, TimeoutError, StoreError, LogMismatchError) as error:
                    wrong = [f"{type(error).__name__}: {error}"]
                lives = sandbox.lives()
                counted |= {"faults": len(faults), "sessions": len(lives), "brains": trial.brains}
                counted["cut short"] = sum(not life.is_whole and life.task.startswith("t") for life in lives)
        if not wrong:
            shutil.rmtree(folder, ignore_errors=True)
        return Verdict(faults[0], tuple(f"{each} (see {folder})" for each in wrong), counted)

    def close(self) -> None:
        """Stop the server."""
        self._shared.close()
