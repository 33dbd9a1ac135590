"""Agents in memory on a Temporal server: a brain and a host in this process, with the handlers of the other engines.

``Turns`` have no activities and no effects: they measure what an input costs, and what an agent that waits takes.
"""

import gc
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from itertools import cycle, islice
from pathlib import Path
from time import perf_counter

import anyio
from temporalio.client import Client

from benchmarks.agents import Agents, Sitting
from benchmarks.agents import system as agents_system
from lifefold.core.kernel import AggregateType, Envelope, Event, Opened, System
from lifefold.core.lifecycles import session, turn
from lifefold.interpreters.engine import Engine, Interpreter
from lifefold.interpreters.store import EventStore
from lifefold.interpreters.temporal import Brain, Cluster, Commits, Host, Performer, Times

system = System("turns", AggregateType("turn", machines=(turn.machine,)))
DETECTION_MS = 60_000
"""Twice the default: the machine of a measurement may be busy with other things."""

AT_A_TIME = 20
LONG_S = 600.0
"""How long a measurement waits for what must happen."""


class Clustered(Agents):
    """Agents whose inputs go through Temporal."""

    def __init__(self, count: int, sessions: int, pause_s: Callable[[], float] | None = None) -> None:
        """Prepare the agents."""
        super().__init__(count, sessions, pause_s)
        self.over = anyio.Event()

    def _finish(self) -> None:
        super()._finish()
        if self._left == 0:
            self.over.set()


class ClusteredSitting(Sitting, Clustered):
    """Agents on Temporal whose first session never ends."""


def nothing() -> None:
    """Do nothing."""


async def live(agents: Clustered, client: Client, store: EventStore, at_the_end: Callable[[], None] = nothing) -> float:
    """Run all agents to their end; return the time in seconds since the first event was offered.

    ``at_the_end`` is called while the workflows are still there.
    """
    cluster = Cluster(client, f"agents-{id(agents)}", Times(detection_ms=DETECTION_MS))
    commits = Commits(agents_system, store)
    performer = Performer(agents_system, store, agents.interpreter(), cluster)
    host = Host(cluster, performer, "one", capacity=len(agents.names))
    async with running(Brain(cluster, commits), host):
        start = perf_counter()
        now_ms = commits.clock.now_ms()
        records = {name: Opened({"session": session.Session(name=name)}) for name in agents.names}
        await offer_all(
            cluster, {name: Envelope("", each, now_ms, "plan", key="opened") for name, each in records.items()}
        )
        with anyio.fail_after(LONG_S):
            await agents.over.wait()
        took = perf_counter() - start
        at_the_end()
        for name in agents.names:
            await cluster.handle(name).terminate("measured")
    return took


async def offer_all(cluster: Cluster, inputs: Mapping[str, Envelope]) -> None:
    """Give an input to each of many aggregates, some at a time: the server answers each call within its limit."""
    limiter = anyio.CapacityLimiter(AT_A_TIME)

    async def offer(name: str, envelope: Envelope) -> None:
        async with limiter:
            await cluster.offer(name, envelope)

    async with anyio.create_task_group() as tasks:
        for name, envelope in inputs.items():
            tasks.start_soon(offer, name, envelope)


@asynccontextmanager
async def running(*parts: Brain | Host) -> AsyncGenerator[None]:
    """Run a brain and hosts during the block."""
    async with anyio.create_task_group() as tasks:
        for part in parts:
            await tasks.start(part.run)
        yield
        tasks.cancel_scope.cancel()


def tool_calls(count: int) -> Iterator[Event]:
    """Yield the reports of a turn that uses tools, so many in all."""
    begin: tuple[Event, ...] = (turn.TaskClaimed(task="t"), turn.AgentSpawned(), turn.AgentSpawned())
    yield from begin[:count]
    yield from islice(cycle((turn.ToolStarted(), turn.ToolCompleted())), max(0, count - len(begin)))


def opened(name: str, at_ms: int) -> Envelope:
    """Return the input that opens a turn."""
    return Envelope("", Opened({"turn": turn.Turn(agent=name)}), at_ms, "plan", key="opened")


class Turns:
    """Aggregates with one turn each, on Temporal."""

    def __init__(self, client: Client, store: EventStore, fleet: str) -> None:
        """Decide with a brain on this store."""
        self._cluster = Cluster(client, fleet)
        self._commits = Commits(system, store)
        self.brain = Brain(self._cluster, self._commits)

    async def open(self, count: int) -> None:
        """Open so many turns, and wait until all are in the log."""
        names, now_ms = [f"turn/{number:05}" for number in range(count)], self._commits.clock.now_ms()
        await offer_all(self._cluster, {name: opened(name, now_ms) for name in names})
        await self._until(lambda: len(self._commits.aggregates) == count)

    async def burst(self, events: int, signals: int) -> float:
        """Send so many reports of one agent in so many signals; return the time in seconds until all are in the log."""
        name, reports = "turn/00000", list(tool_calls(events))
        size = -(-events // signals)
        start = perf_counter()
        for begin in range(0, events, size):
            some = (Envelope("turn", each, 0, "agent") for each in reports[begin : begin + size])
            await self._cluster.offer(name, *some)
        await self._until(lambda: self._commits.aggregates[name].version == events + 1)
        return perf_counter() - start

    async def close(self, count: int) -> None:
        """End the workflows."""
        for number in range(count):
            await self._cluster.handle(f"turn/{number:05}").terminate("measured")

    async def _until(self, holds: Callable[[], bool]) -> None:
        with anyio.fail_after(LONG_S):
            while not holds():
                await self._commits.changed.wait()


async def open_locally(count: int, store: EventStore) -> Engine:
    """Open so many turns on an engine; return it once all are in the log."""
    engine = Engine(system, store, Interpreter())
    await engine.load()
    for number in range(count):
        name = f"turn/{number:05}"
        engine.offer(name, opened(name, engine.clock.now_ms()))
    await engine.run(lambda now: len(now.aggregates) == count)
    return engine


def resident_bytes(pid: int | str = "self") -> int:
    """Return the resident memory of a process in bytes. Linux only."""
    gc.collect()
    status = Path(f"/proc/{pid}/status").read_text()
    return 1_024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")))
