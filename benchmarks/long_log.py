"""A long log with little alive: the time of a restart, of commands, and of the first screens, beside a short log.

A fleet of 20 agents has done all but 100 of its tasks, and operators have paused and resumed agents until the log has
its entries. Both logs have the same tasks alive. The commands are whole processes, and a short log costs them mostly
their imports. A restart is the load of an engine with its first inputs. The short log is verified with all properties.
Times are wall-clock times; rates are of processor time of the thread.
"""

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter, thread_time

import anyio

from benchmarks.first_screens import serve_s, watch_s
from benchmarks.pure_world import World, plan
from benchmarks.report import Report, Table, Target
from benchmarks.startup import command
from lifefold.core.fleet import system
from lifefold.core.fleet.dispatch.task_index import work_of
from lifefold.core.fleet.system import board
from lifefold.core.fleet.worker import desired_state
from lifefold.core.kernel import Envelope
from lifefold.interpreters.cli.account import Account
from lifefold.interpreters.engine import Decision, Engine, Interpreter, Ledger
from lifefold.interpreters.engine.snapshots import SnapshotTaker
from lifefold.interpreters.missing import wanted
from lifefold.interpreters.recorder.audit import audit
from lifefold.interpreters.rules import rules_version
from lifefold.interpreters.store import Batch, Entry, SqliteStore

AGENTS = 20
ALIVE = 100
LENGTHS = ((1_000, 100), (100_000, 1_000), (1_000_000, 10_000))
"""Entries, and tasks of which all but ``ALIVE`` are done."""

BATCH = 1_000
LOOK = 50
"""After so many entries the closed tasks are counted."""

ROUNDS = 5
RESTART_S, COMMAND_S = 2.0, 0.3
FOLDED_PER_S = 60_000
AUDITED_PER_S = 20_000


class Maker:
    """Makes a log: decides like an engine, and writes batches with snapshots."""

    def __init__(self, store: SqliteStore, agents: int, tasks: int) -> None:
        """Begin a fleet."""
        self.store = store
        self.ledger = Ledger(system, rules=rules_version(system))
        self.account = Account()
        self.taker = SnapshotTaker(self.ledger, store)
        self.taker.notes = self.account.notes
        self.world = World(plan(agents, tasks))
        self.waiting: list[Decision] = []
        self.entries = 0

    def decide(self, name: str, envelope: Envelope) -> None:
        """Decide on one input, and perform its effects."""
        decision = self.ledger.decide(name, envelope)
        if isinstance(decision, Decision):
            self.waiting.append(decision)
            self.entries += 1
            for requested in decision.reaction.effects:
                self.world.perform(name, requested)

    async def write(self, *, at_end: bool = False) -> None:
        """Write the waiting decisions, and a snapshot if one is due."""
        entries: list[Entry] = []
        for decision in self.waiting:
            self.taker.note(decision)
            self.account.observe(decision.entry.stream, decision.reaction)
            entries.append(decision.entry)
        self.waiting.clear()
        await self.store.append(Batch(entries, {name: of.version for name, of in self.ledger.aggregates.items()}))
        snapshot = self.taken(at_end=at_end)
        if snapshot is not None:
            await self.store.append(snapshot)

    def taken(self, *, at_end: bool) -> Batch | None:
        """Return the snapshot that is due; every effect is performed."""
        if not (self.taker.is_due_at_end if at_end else self.taker.is_due):
            return None
        snapshot = self.taker.taken(lambda _: True, lambda _: ())
        return None if snapshot is None else Batch(snapshot=snapshot)

    async def work(self, tasks: int) -> None:
        """Let the fleet work until so many tasks are left."""
        while self.world.inputs:
            self.decide(*self.world.inputs.popleft())
            if self.entries % LOOK == 0:
                of = self.ledger.aggregates[board.NAME]
                if len(work_of(of).closed) >= tasks - ALIVE:
                    return
            if len(self.waiting) >= BATCH:
                await self.write()

    async def pause(self, most: int) -> None:
        """Let operators pause and resume agents until the log has so many entries."""
        workers = sorted(name for name in self.ledger.aggregates if name.startswith("worker/"))
        for number in range(max(0, most - self.entries)):
            worker = workers[(number // 2) % len(workers)]
            event = desired_state.PauseWanted("lunch") if number % 2 == 0 else desired_state.ResumeWanted()
            self.decide(worker, Envelope("desired_state", event, self.world.at_ms, "operator:ann"))
            if len(self.waiting) >= BATCH:
                await self.write()


async def make(path: Path, entries: int, tasks: int) -> None:
    """Make a log with all but ``ALIVE`` of its tasks done."""
    with SqliteStore.create(path, {"fleet": "long", "meaning": "{}"}) as store:
        maker = Maker(store, AGENTS, tasks)
        await maker.work(tasks)
        await maker.pause(entries)
        await maker.write(at_end=True)


def idle() -> Interpreter:
    """Return an interpreter that does nothing."""
    effects, activities = wanted(system)

    async def nothing(*_given: object) -> None:
        await anyio.sleep_forever()

    return Interpreter(dict.fromkeys(effects, nothing), dict.fromkeys(activities, nothing))


async def _restart(path: Path) -> None:
    with SqliteStore.open(path) as store:
        engine = Engine(system, store, idle())
        await engine.load()
        engine.resume()


def restart_s(path: Path) -> float:
    """Return the time of a restart."""
    start = perf_counter()
    anyio.run(_restart, path)
    return perf_counter() - start


def command_s(path: Path, *words: str) -> float:
    """Return the time of a command as a process."""
    start = perf_counter()
    done = subprocess.run((*command(), *words, "--db", str(path)), capture_output=True, check=False)  # noqa: S603 - constant
    assert done.returncode == 0, done.stderr.decode()
    return perf_counter() - start


def refold(path: Path) -> float:
    """Return the entries that are folded in a second of processor time, with reading and the chain's verification."""
    with SqliteStore.peek(path) as store:
        start = thread_time()
        resumption = anyio.run(store.resumed, "no such form")
        ledger, count = Ledger(system), 0
        for _ in ledger.fold(resumption.entries):
            count += 1
        return count / (thread_time() - start)


def verify(path: Path) -> float:
    """Return the entries that ``lifefold verify`` audits in a second of processor time, with all properties."""
    with SqliteStore.peek(path) as store:
        chain = anyio.run(store.chain)
    start = thread_time()
    found = audit(system, chain)
    assert found.is_allowed, found.fault
    return found.entries / (thread_time() - start)


def measure(folder: Path, lengths: tuple[tuple[int, int], ...] = LENGTHS) -> Report:
    """Measure and report; the logs are in a folder of their own within this one, until the end."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        logs: list[Path] = []
        for entries, tasks in lengths:
            logs.append(Path(own) / f"{entries}.db")
            anyio.run(make, logs[-1], entries, tasks)
        return _report(logs)


_WAYS: dict[str, Callable[[Path], float]] = {
    "restart": restart_s,
    "status": lambda path: command_s(path, "status"),
    "tasks": lambda path: command_s(path, "tasks"),
    "send": lambda path: command_s(path, "send", "agent-000", "hello"),
    "why": lambda path: command_s(path, "why", "T0000"),
    "show": lambda path: command_s(path, "show", "agent-000"),
    "log": lambda path: command_s(path, "log"),
    "log --at the middle": lambda path: command_s(path, "log", "--at", str(int(path.stem) // 2)),
    "serve": serve_s,
    "watch": watch_s,
}


def _rows(logs: list[Path]) -> Iterator[tuple[str, ...]]:
    for what, way in _WAYS.items():
        costs = [[way(log) for log in logs] for _ in range(ROUNDS)]
        yield (what, *(f"{median(each):.2f} ({min(each):.2f} to {max(each):.2f})" for each in zip(*costs, strict=True)))


def _report(logs: list[Path]) -> Report:
    rows = tuple(_rows(logs))
    rate, audited = refold(logs[-1]), verify(logs[0])
    targets = (
        *(
            Target(row[0], f"below {wanted_s:g} s", f"{row[-1]} s", float(row[-1].split()[0]) < wanted_s)
            for row, wanted_s in zip(rows, (RESTART_S, COMMAND_S, COMMAND_S, COMMAND_S), strict=False)
        ),
        Target("whole fold", f"{FOLDED_PER_S:,}/s", f"{rate:,.0f}/s", rate >= FOLDED_PER_S),
        Target("verify", f"{AUDITED_PER_S:,}/s", f"{audited:,.0f}/s", audited >= AUDITED_PER_S),
    )
    heads = ("", *(f"{int(log.stem):,} entries" for log in logs))
    sizes = ", ".join(f"{log.stat().st_size / 1e6:,.0f} MB" for log in logs)
    note = f"{AGENTS} agents, {ALIVE} tasks alive; the logs have {sizes}. {ROUNDS} rounds."
    return Report("long", (Table("Seconds", heads, rows),), targets, (note,))
