"""Durable dispatch: agents in memory on the engine and the SQLite store, beside SQLite alone with the same rows.

The rate is that of entries: accepted inputs that are on the disk before any of their effects is performed. An agent
offers one input at a time. So there are at most as many inputs in a batch as there are agents.
"""

import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from statistics import median
from time import process_time

import anyio
from anyio.lowlevel import checkpoint

from benchmarks.agents import Agents, Sitting
from benchmarks.bare_sqlite import Recorder, replay, replay_in_store
from benchmarks.host import cores, must_be_a_disk
from benchmarks.report import Report, Table, Target
from benchmarks.sampling import percentile, spread
from lifefold.interpreters.store import Batch, SqliteStore

ROUNDS = 5
MANY = 1_000


@dataclass(frozen=True)
class Load:
    """The numbers of agents and of sessions each, and the pause (shortest, longest) before each report."""

    title: str
    agents: int
    sessions: int
    rounds: int = ROUNDS
    think_s: tuple[float, float] | None = None
    wanted: float | None = None
    """The least wanted rate over that of SQLite alone."""

    def pause_s(self) -> Callable[[], float] | None:
        """Return a function for pauses: random, but the same in every run."""
        if self.think_s is None:
            return None
        return partial(Random(1).uniform, *self.think_s)  # noqa: S311 - chance, not secrecy


FULL = Load(f"{MANY:,} agents that never pause", MANY, 3, wanted=0.5)
HUNDRED = Load("100 agents that never pause", 100, 10, wanted=0.3)
ALONE = Load("one agent that never pauses", 1, 100, wanted=0.8)
CALM = Load(f"{MANY:,} agents that think for 0.4 to 1.2 s", MANY, 1, 1, (0.4, 1.2))
LOADS = (FULL, HUNDRED, ALONE, CALM)


@dataclass(frozen=True)
class Round:
    """The measurements of one run of a load. Times are in seconds."""

    engine_s: float
    processor_s: float
    bare_s: float
    bare_processor_s: float
    store_s: float
    batches: list[Batch]
    latencies_s: list[float]

    @property
    def entries(self) -> int:
        """The number of entries that the run has written."""
        return sum(len(batch.entries) for batch in self.batches)


def run(load: Load, folder: Path) -> Round:
    """Run a load on the engine, then write its rows with SQLite alone and with the store alone."""
    agents = Agents(load.agents, load.sessions, load.pause_s())
    with SqliteStore.create(folder / "engine.db", {}) as store:
        recorder = Recorder(store)
        anyio.run(_imported)
        before_s = process_time()
        engine_s = anyio.run(agents.live, recorder)
        processor_s = process_time() - before_s
        batches = anyio.run(recorder.batches)
    before_s = process_time()
    bare_s = replay(folder / "bare.db", batches)
    bare_processor_s = process_time() - before_s
    store_s = anyio.run(replay_in_store, folder / "store.db", batches)
    _clear(folder)
    return Round(engine_s, processor_s, bare_s, bare_processor_s, store_s, batches, agents.latencies_s)


async def _imported() -> None:
    """Import the event loop, which is no part of a run."""
    await checkpoint()


def memory_bytes(folder: Path) -> float:
    """Return the size of Python's objects in bytes per agent, with all sessions running."""
    agents = Sitting(MANY)
    tracemalloc.start()
    try:
        with SqliteStore.create(folder / "memory.db", {}) as store:
            anyio.run(agents.live, store)
    finally:
        tracemalloc.stop()
        _clear(folder)
    return agents.bytes_each


def _clear(folder: Path) -> None:
    for path in folder.glob("*.db*"):
        path.unlink()


def measure(folder: Path) -> Report:
    """Measure the loads in turns, and report."""
    must_be_a_disk(folder)
    _clear(folder)
    rounds: dict[Load, list[Round]] = {load: [] for load in LOADS}
    for number in range(max(load.rounds for load in LOADS)):
        for load in LOADS:
            if number < load.rounds:
                rounds[load].append(run(load, folder))
    rates = Table(
        "Entries per second, median (greatest)",
        (
            "",
            "engine",
            "SQLite alone",
            "store alone",
            "entries in a run",
            "entries in a batch",
            "processor use",
            "processor us per entry",
        ),
        tuple(_rates(load, rounds[load]) for load in LOADS),
    )
    latencies = Table(
        "From the event offered to its effect performed, in ms",
        ("", "effects", "p50", "p99", "greatest"),
        tuple(_latencies(load, rounds[load]) for load in LOADS),
    )
    notes = (
        f"{cores()} cores. SQLite alone and the store alone write the rows of the engine's run in its batches.",
        f"Memory: {memory_bytes(folder) / 1_000:,.1f} kB of Python objects per agent, {MANY:,} agents in a session.",
    )
    return Report("dispatch", (rates, latencies), tuple(_targets(rounds)), notes)


def _targets(rounds: dict[Load, list[Round]]) -> Iterator[Target]:
    for load, runs in rounds.items():
        if load.wanted is not None:
            shares = [each.bare_s / each.engine_s for each in runs]
            what = f"{load.title}: engine's rate over that of SQLite alone"
            yield Target(what, f"at least {load.wanted:g} x", spread(shares, "{:.2f} x"), median(shares) >= load.wanted)


def _rates(load: Load, rounds: list[Round]) -> tuple[str, ...]:
    kinds = (
        [each.entries / seconds for each, seconds in zip(rounds, times, strict=True)]
        for times in (
            [each.engine_s for each in rounds],
            [each.bare_s for each in rounds],
            [each.store_s for each in rounds],
        )
    )
    figures = (f"{median(rates):,.0f} ({max(rates):,.0f})" for rates in kinds)
    batches = [len(batch.entries) for each in rounds for batch in each.batches if batch.entries]
    use = median(each.processor_s / each.engine_s for each in rounds)
    size = f"median {median(batches):,.0f}, most {max(batches):,}"
    engine_us = median(1e6 * each.processor_s / each.entries for each in rounds)
    bare_us = median(1e6 * each.bare_processor_s / each.entries for each in rounds)
    cost = f"{engine_us:,.0f}; SQLite alone {bare_us:,.0f}"
    return load.title, *figures, f"{rounds[0].entries:,}", size, f"{use:.0%}", cost


def _latencies(load: Load, rounds: list[Round]) -> tuple[str, ...]:
    times_ms = [1_000 * seconds for each in rounds for seconds in each.latencies_s]
    figures = (percentile(times_ms, 50), percentile(times_ms, 99), max(times_ms))
    return load.title, f"{len(times_ms):,}", *(f"{each:,.2f}" for each in figures)
