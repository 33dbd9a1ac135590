"""One log and one set of rules on three engines: SQLite and PostgreSQL below the local engine, and Temporal.

The agents are in memory, so the figures are those of the engines. The servers are on this machine, too: the development
server of Temporal with its state in a file, and PostgreSQL with its flushes on. The failover is that of a real fleet
with processes (``failover_s``).
"""

import os
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import anyio

from benchmarks.agents import Agents
from benchmarks.host import cores, must_be_a_disk
from benchmarks.report import Report, Table, Target
from benchmarks.sampling import percentile, spread
from lifefold.interpreters.store import LogStore, SqliteStore
from lifefold.interpreters.store.postgres import PostgresStore, read_address

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))

from benchmarks import on_temporal
from benchmarks.failover import Failover, failover
from postgres_server import NoServer, PostgresServer
from postgres_server import server as postgres_server
from temporal_server import NoTemporal, TemporalServer, temporal_server

WANTED_BURST = 1_000


@dataclass(frozen=True)
class Sizes:
    """How much is measured. ``together`` agents never pause; ``alive`` agents are in a session."""

    rounds: int = 3
    sessions: int = 3
    together: int = 20
    burst: int = 2_000
    idle: int = 1_000
    alive: int = 2_000
    failovers: int = 2
    detection_s: int = 2


@dataclass
class Found:
    """Measurements by engine. Latencies and times are in seconds, memory is in bytes."""

    alone: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    latencies: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    together: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    idle: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    bursts: dict[int, list[float]] = field(default_factory=dict[int, list[float]])
    alive: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    failovers: list[Failover] = field(default_factory=list[Failover])
    missing: list[str] = field(default_factory=list[str])


class Logs:
    """Makes new logs in a folder, and on a server."""

    def __init__(self, folder: Path, postgres: PostgresServer | None) -> None:
        self._folder = folder
        self._postgres = postgres
        self._made = 0

    @contextmanager
    def new(self, *, is_on_a_server: bool = False) -> Generator[LogStore]:
        """Make a log, and close it after the block."""
        self._made += 1
        if is_on_a_server:
            assert self._postgres is not None
            store: LogStore = PostgresStore.create(read_address(self._postgres.new_log()), {})
        else:
            store = SqliteStore.create(self._folder / f"{self._made}.db", {})
        with store:
            yield store


SQLITE, POSTGRES, TEMPORAL, BOTH = "SQLite", "PostgreSQL", "Temporal, log in SQLite", "Temporal, log on PostgreSQL"


def measure(folder: Path, sizes: Sizes | None = None) -> Report:
    """Measure everything, with those servers that are here, and report."""
    must_be_a_disk(folder)
    of, found = sizes or Sizes(), Found()
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(dir=folder) as own, ExitStack() as stack:
        postgres, temporal = postgres_here(stack, found), temporal_here(stack, found)
        logs = Logs(Path(own), postgres)
        anyio.run(Measurement(of, found, logs, (postgres, temporal)).run)
    if temporal is not None:
        found.failovers += [anyio.run(failover, of.detection_s) for _ in range(of.failovers)]
    notes = (
        f"{cores()} cores. Load before and after (one-minute average): {before:.1f} and {os.getloadavg()[0]:.1f}.",
        *(f"Not measured: {why}" for why in found.missing),
    )
    return Report("cluster", tuple(_tables(found, of)), tuple(_targets(found)), notes)


def postgres_here(stack: ExitStack, found: Found) -> PostgresServer | None:
    """Start a server until the end of the stack; without its programs note that, and return None."""
    try:
        return stack.enter_context(postgres_server())
    except NoServer as why:
        found.missing.append(str(why))
        return None


def temporal_here(stack: ExitStack, found: Found) -> TemporalServer | None:
    """Start a server until the end of the stack; without its program note that, and return None."""
    try:
        return stack.enter_context(temporal_server())
    except NoTemporal as why:
        found.missing.append(str(why))
        return None


class Measurement:
    """One measurement, with those servers that are here."""

    def __init__(
        self, of: Sizes, found: Found, logs: Logs, servers: tuple[PostgresServer | None, TemporalServer | None]
    ) -> None:
        self._of = of
        self._found = found
        self._logs = logs
        self._postgres, self._temporal = servers

    async def run(self) -> None:
        """Measure all but the failover."""
        for _ in range(self._of.rounds):
            for is_on_a_server in (False, True) if self._postgres else (False,):
                for count in (1, self._of.together):
                    await self._live_locally(count, is_on_a_server=is_on_a_server)
                    if self._temporal is not None:
                        await self._live_on(self._temporal, count, is_on_a_server=is_on_a_server)
        await self._wait_locally()
        if self._temporal is not None:
            await self._send_bursts(self._temporal)
            await self._wait_on(self._temporal)
            await self._sit_on(self._temporal)

    async def _live_locally(self, count: int, *, is_on_a_server: bool) -> None:
        with self._logs.new(is_on_a_server=is_on_a_server) as store:
            agents = Agents(count, self._of.sessions)
            took = await agents.live(store)
            self._note(POSTGRES if is_on_a_server else SQLITE, agents, len(await store.read()) / took)

    async def _live_on(self, temporal: TemporalServer, count: int, *, is_on_a_server: bool) -> None:
        with self._logs.new(is_on_a_server=is_on_a_server) as store:
            agents = on_temporal.Clustered(count, self._of.sessions)
            took = await on_temporal.live(agents, await temporal.client(), store)
            self._note(BOTH if is_on_a_server else TEMPORAL, agents, len(await store.read()) / took)

    def _note(self, name: str, agents: Agents, rate: float) -> None:
        is_alone = len(agents.names) == 1
        (self._found.alone if is_alone else self._found.together).setdefault(name, []).append(rate)
        if is_alone:
            self._found.latencies.setdefault(name, []).extend(agents.latencies_s)

    async def _send_bursts(self, temporal: TemporalServer) -> None:
        events = self._of.burst
        for signals in (1, -(-events // 50)):
            for number in range(self._of.rounds):
                with self._logs.new() as store:
                    turns = on_temporal.Turns(await temporal.client(), store, f"burst-{signals}-{number}")
                    async with on_temporal.running(turns.brain):
                        await turns.open(1)
                        took = await turns.burst(events, signals)
                        self._found.bursts.setdefault(signals, []).append(events / took)
                        await turns.close(1)

    async def _wait_locally(self) -> None:
        with self._logs.new() as store:
            before, count = on_temporal.resident_bytes(), self._of.idle
            engine = await on_temporal.open_locally(count, store)
            more = on_temporal.resident_bytes() - before
            assert len(engine.aggregates) == count
            self._found.idle[SQLITE] = (_per_thousand(more, count), "-")

    async def _wait_on(self, temporal: TemporalServer) -> None:
        with self._logs.new() as store:
            memory, count = Memory(temporal), self._of.idle
            turns = on_temporal.Turns(await temporal.client(), store, "idle")
            async with on_temporal.running(turns.brain):
                await turns.open(count)
                ours, theirs = memory.more()
                self._found.idle[TEMPORAL] = (_per_thousand(ours, count), _per_thousand(theirs, count))
                await turns.close(count)

    async def _sit_on(self, temporal: TemporalServer) -> None:
        with self._logs.new() as store:
            memory = Memory(temporal)
            agents = on_temporal.ClusteredSitting(self._of.alive)
            took = await on_temporal.live(agents, await temporal.client(), store, memory.note)
            sizes = (f"{each / 1e6:,.0f}" for each in memory.noted)
            self._found.alive.append((f"{self._of.alive:,}", f"{took:.0f}", *sizes))


class Memory:
    """The resident memory of this process and of a server, since the beginning of a measurement, in bytes."""

    def __init__(self, server: TemporalServer) -> None:
        self._server = server
        self._before = self._now()
        self.noted = (0, 0)

    def more(self) -> tuple[int, int]:
        """Return what has come since the beginning."""
        ours, theirs = self._now()
        return ours - self._before[0], theirs - self._before[1]

    def note(self) -> None:
        """Keep what has come since the beginning in ``noted``."""
        self.noted = self.more()

    def _now(self) -> tuple[int, int]:
        return on_temporal.resident_bytes(), on_temporal.resident_bytes(self._server.pid)


def _per_thousand(size: int, count: int) -> str:
    return f"{size / count / 1_000:,.1f}"


def _targets(found: Found) -> Iterator[Target]:
    if found.bursts:
        rates = found.bursts[1]
        is_met = median(rates) >= WANTED_BURST
        yield Target("a worker's burst in one signal", f"{WANTED_BURST:,} events/s", spread(rates, "{:,.0f}"), is_met)


def _tables(found: Found, of: Sizes) -> Iterator[Table]:
    yield Table(
        "Entries per second, and from the event offered to its effect performed",
        ("", "one agent", f"{of.together} agents", "p50, ms", "p95, ms"),
        tuple(
            (
                name,
                spread(found.alone[name], "{:,.0f}"),
                spread(found.together[name], "{:,.0f}"),
                f"{1_000 * percentile(found.latencies[name], 50):.1f}",
                f"{1_000 * percentile(found.latencies[name], 95):.1f}",
            )
            for name in found.alone
        ),
    )
    yield Table(
        "Memory of 1,000 agents that wait, in MB",
        ("", "processes of the fleet", "server of Temporal"),
        tuple((name, *sizes) for name, sizes in found.idle.items()),
    )
    if found.bursts:
        rows = tuple((f"{number}", f"{of.burst:,}", spread(rates, "{:,.0f}")) for number, rates in found.bursts.items())
        yield Table("A worker's burst through Temporal", ("signals", "events", "events per s"), rows)
    if found.alive:
        heads = ("agents", "all in a session after s", "brain and host, MB", "server, MB")
        yield Table("Agents alive on Temporal", heads, tuple(found.alive))
    if found.failovers:
        yield Table(
            f"A killed host, with a detection time of {of.detection_s} s; seconds after the kill",
            ("", "median (least to greatest)"),
            (
                ("its last session has ended", spread([each.ended_s for each in found.failovers])),
                ("its work begins elsewhere", spread([each.begun_s for each in found.failovers])),
                ("overlap", spread([each.overlap_s for each in found.failovers], "{:.3f}")),
            ),
        )
