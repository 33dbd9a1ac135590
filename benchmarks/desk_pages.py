"""The pages of the desk on a large log: the time of each page now and in the past, and the memory of streams.

The fleet has 20 agents and 1,000 tasks. Operators pause and resume agents until the log has 100,000 entries, and the
fleet does its tasks. Times are those of a client on loopback, from the request to the whole answer. The processor time
of a page is that of all threads but the client's, with the idle desk's taken off: rounds of both alternate.
"""

import os
import tempfile
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from time import monotonic, perf_counter, process_time, thread_time

import anyio
import httpx2

from benchmarks import desk_beside
from benchmarks.desk_beside import LIVE, ROUND, STREAMS, WAIT_S, spread
from benchmarks.pure_world import World, plan
from benchmarks.report import Report, Table, Target
from lifefold.core.fleet import system
from lifefold.core.fleet.worker import desired_state
from lifefold.core.kernel import Envelope
from lifefold.interpreters.engine import Decision, Ledger
from lifefold.interpreters.store import Batch, Entry, SqliteStore
from lifefold.interpreters.web.server import opened

AGENTS = 20
TASKS = 1_000
ENTRIES = 100_000
ROUNDS = 5
AGAIN = 20
IDLE_S = 0.2
TARGET_MS = 200
SECOND_MS = 1_000
MOST_RATIO = 1.1
_MIB = 1024 * 1024


def entries(agents: int = AGENTS, tasks: int = TASKS, most: int = ENTRIES) -> list[Entry]:
    """Return the entries of a fleet whose operators pause and resume agents until a log has so many of them."""
    ledger, found = Ledger(system), list[Entry]()
    world = World(plan(agents, tasks))
    fleet: deque[tuple[str, Envelope]] = deque()
    while world.inputs:
        fleet.append(world.inputs.popleft())

    def decide(name: str, envelope: Envelope) -> None:
        decision = ledger.decide(name, envelope)
        if isinstance(decision, Decision):
            found.append(decision.entry)
            for requested in decision.reaction.effects:
                world.perform(name, requested)

    def drain() -> None:
        while world.inputs:
            decide(*world.inputs.popleft())

    rest = _without_tasks(agents, tasks)
    while fleet:
        decide(*fleet.popleft())
    padding = most - len(found) - rest
    workers = sorted(name for name in ledger.aggregates if name.startswith("worker/"))
    for number in range(max(0, padding)):
        worker = workers[(number // 2) % len(workers)]
        event = desired_state.PauseWanted("lunch") if number % 2 == 0 else desired_state.ResumeWanted()
        decide(worker, Envelope("desired_state", event, number, "operator:ann"))
    drain()
    return found


def _without_tasks(agents: int, tasks: int) -> int:
    """Return about how many entries the work of a fleet has."""
    return 10 * tasks + 5 * agents


def measure() -> Report:
    """Measure the pages."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        os.environ["XDG_STATE_HOME"] = name
        log = Path(name) / "large.db"
        with SqliteStore.create(log, {"fleet": "large", "meaning": "{}"}) as store:
            every = entries()
            begun = len(every) - LIVE - 2 * desk_beside.ROUNDS * ROUND
            anyio.run(partial(store.append, Batch(every[:begun])))
        desk = stack.enter_context(opened([log], port=0))
        thread = threading.Thread(target=desk.run, daemon=True)
        thread.start()
        stack.callback(thread.join)
        stack.callback(desk.leave)
        client = stack.enter_context(httpx2.Client(base_url=desk.address.partition("/login")[0], timeout=WAIT_S))
        client.get(desk.address)
        began = monotonic()
        while client.get("/fleets/large.json").is_server_error:
            threading.Event().wait(0.1)
        folded_s = monotonic() - began
        count = client.get("/fleets/large.json").json()["at"]["seq"]
        pages = list(_pages(client, count))
        memory = _memory()
        for _ in range(STREAMS):
            stack.enter_context(client.stream("GET", "/events?fleet=large&after=0"))
        threading.Event().wait(5)
        grown = _memory() - memory
        delays = desk_beside.delays_ms(client, log, every[begun : begun + LIVE])
        for _ in range(AGAIN):
            for path, _, _ in pages:
                client.get(path)
        kept = _memory() - memory - grown
        desk.leave()
        thread.join()
        ratios = desk_beside.ratios(log, every[begun + LIVE :])
    rows = tuple(
        (path, f"{median(times):.0f} ms", f"{max(times):.0f} ms", f"{median(used):.0f} ms")
        for path, times, used in pages
    )
    medians = [median(times) for _, times, _ in pages]
    wanted, found = f"below {TARGET_MS} ms", f"{min(medians):.0f}-{max(medians):.0f} ms"
    targets = (
        Target("a page, now and in the past", wanted, found, max(medians) < TARGET_MS),
        Target("an entry, in ten streams", "below 1,000 ms", spread(delays, "%.0f ms"), median(delays) < SECOND_MS),
        Target("a writer beside the desk", "below 1.10 x", spread(ratios, "%.2f x"), median(ratios) < MOST_RATIO),
    )
    notes = (
        f"The log has {count:,} entries, {AGENTS} agents and {TASKS:,} tasks. It is folded once, in {folded_s:.0f} s.",
        f"The process has {memory / _MIB:.0f} MiB with all that pages need.",
        f"{STREAMS} streams whose browsers read nothing take {grown / _MIB:.1f} MiB more.",
        f"{AGAIN * len(pages)} further pages, and entries that were streamed, left {kept / _MIB:.1f} MiB.",
    )
    return Report("desk", (Table("Pages", ("page", "median", "worst", "processor"), rows),), targets, notes)


def _pages(client: httpx2.Client, count: int) -> Iterator[tuple[str, list[float], list[float]]]:
    fleet = "/fleets/large"
    board = client.get(f"{fleet}/board.json").json()
    task = board["columns"][-1]["tasks"][0]["status"]["id"]
    agent = client.get(f"{fleet}.json").json()["agents"][0]["status"]["name"]
    for path in ("/", fleet, f"{fleet}/board", f"{fleet}/agents/{agent}", f"{fleet}/tasks/{task}", f"{fleet}/log",
                 f"{fleet}/log?text=nowhere", f"{fleet}/timeline"):  # fmt: skip
        yield path, *_ms(client, [path] * ROUNDS)
    for path in (fleet, f"{fleet}/board", f"{fleet}/tasks/{task}"):
        places = [count * part // (ROUNDS + 1) + part for part in range(1, ROUNDS + 1)]
        yield f"{path}?at={places[0]}", *_ms(client, [f"{path}?at={seq}" for seq in places])


def _ms(client: httpx2.Client, paths: Iterable[str]) -> tuple[list[float], list[float]]:
    """Return the time of each page, and the processor time of the desk for it."""
    times: list[float] = []
    used: list[float] = []
    for path in paths:
        began, of_desk = perf_counter(), _desk_s()
        threading.Event().wait(IDLE_S)
        idle = (_desk_s() - of_desk) / (perf_counter() - began)
        began, of_desk = perf_counter(), _desk_s()
        answer = client.get(path)
        took = perf_counter() - began
        assert answer.is_success, answer.text[:300]
        times.append(took * 1_000)
        used.append(max(0.0, _desk_s() - of_desk - idle * took) * 1_000)
    return times, used


def _desk_s() -> float:
    """Return the processor time of all threads but this one, in seconds."""
    return process_time() - thread_time()


def _memory() -> int:
    """Return the resident memory of this process, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
