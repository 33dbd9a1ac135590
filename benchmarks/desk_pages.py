"""The pages of the desk on a large log: the time of each page now and in the past, and the memory of streams.

The fleet has 20 agents and 1,000 tasks. Operators pause and resume agents until the log has 100,000 entries, and the
fleet does its tasks. Times are those of a client on loopback, from the request to the whole answer.
"""

import os
import tempfile
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from time import monotonic, perf_counter

import anyio
import httpx2

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
STREAMS = 10
TARGET_MS = 200
WAIT_S = 600
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
            anyio.run(partial(store.append, Batch(entries())))
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
    rows = tuple((path, f"{median(times):.0f} ms", f"{max(times):.0f} ms") for path, times in pages)
    medians = [median(times) for _, times in pages]
    wanted, found = f"below {TARGET_MS} ms", f"{min(medians):.0f}-{max(medians):.0f} ms"
    target = Target("a page, now and in the past", wanted, found, max(medians) < TARGET_MS)
    notes = (
        f"The log has {count:,} entries, {AGENTS} agents and {TASKS:,} tasks. It is folded once, in {folded_s:.0f} s.",
        f"The process has {memory / _MIB:.0f} MiB with all that pages need.",
        f"{STREAMS} streams whose browsers read nothing take {grown / _MIB:.1f} MiB more.",
    )
    return Report("desk", (Table("Pages", ("page", "median", "worst"), rows),), (target,), notes)


def _pages(client: httpx2.Client, count: int) -> Iterator[tuple[str, list[float]]]:
    fleet = "/fleets/large"
    board = client.get(f"{fleet}/board.json").json()
    task = board["columns"][-1]["tasks"][0]["status"]["id"]
    agent = client.get(f"{fleet}.json").json()["agents"][0]["status"]["name"]
    for path in ("/", fleet, f"{fleet}/board", f"{fleet}/agents/{agent}", f"{fleet}/tasks/{task}", f"{fleet}/log",
                 f"{fleet}/log?text=nowhere", f"{fleet}/timeline"):  # fmt: skip
        yield path, [_ms(client, path) for _ in range(ROUNDS)]
    for path in (fleet, f"{fleet}/board", f"{fleet}/tasks/{task}"):
        places = [count * part // (ROUNDS + 1) + part for part in range(1, ROUNDS + 1)]
        yield f"{path}?at=SEQ", [_ms(client, f"{path}?at={seq}") for seq in places]


def _ms(client: httpx2.Client, path: str) -> float:
    began = perf_counter()
    answer = client.get(path)
    assert answer.is_success, answer.text[:300]
    return (perf_counter() - began) * 1_000


def _memory() -> int:
    """Return the resident memory of this process, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
