"""What a desk does to others: how soon open pages hear of an entry, and what a writer loses while a desk is beside it.

The writer commits single entries, which were decided before, to the log on the disk, as fast as it can. The desk is a
process of its own that follows this log for ten browsers. Rounds with the desk at work and with the desk stopped
(SIGSTOP) alternate, so a disturbance affects both.
"""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from time import monotonic, perf_counter

import anyio
import httpx2

from lifefold.interpreters.store import Batch, Entry, SqliteStore

LIVE = 60
"""The entries that are awaited in the streams."""

ROUND = 150
"""The entries of a round of the writer."""

ROUNDS = 6
"""The rounds with, and as many without, the desk at work."""

STREAMS = 10

WAIT_S = 600


def delays_ms(base: httpx2.Client, log: Path, entries: Sequence[Entry]) -> list[float]:
    """Commit entries one by one, and return for each how long it took until all streams had it."""
    seen, changed = [0] * STREAMS, threading.Condition()
    last = threading.Event()

    def listen(number: int) -> None:
        with base.stream("GET", "/events?fleet=large") as answer:
            for line in answer.iter_lines():
                if line.startswith("id: "):
                    with changed:
                        seen[number] = int(line.removeprefix("id: "))
                        changed.notify_all()
                    if last.is_set():
                        return

    threads = [threading.Thread(target=listen, args=(number,), daemon=True) for number in range(STREAMS)]
    for each in threads:
        each.start()
    found: list[float] = []

    def all_have(least: int) -> bool:
        return min(seen) >= least

    with changed:
        changed.wait_for(lambda: min(seen) > 0, WAIT_S)
    begin = min(seen)
    with SqliteStore.open(log) as store:
        for number, entry in enumerate(entries, 1):
            if number == len(entries):
                last.set()
            anyio.run(partial(store.append, Batch([entry])))
            began = perf_counter()
            with changed:
                assert changed.wait_for(partial(all_have, begin + number), WAIT_S)
            found.append((perf_counter() - began) * 1_000)
    return found


@contextmanager
def _desk(log: Path) -> Generator[int]:
    """Serve a log in a process of its own, to ten browsers that listen; yield its pid."""
    command = [sys.executable, "-m", "lifefold.interpreters.cli", "serve", "--port", "0", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as desk, ExitStack() as stack:  # noqa: S603 - this program
        stack.callback(desk.terminate)
        assert desk.stdout is not None
        address = re.search(r"http://\S+", desk.stdout.readline())
        assert address is not None
        client = stack.enter_context(httpx2.Client(base_url=address[0].partition("/login")[0], timeout=WAIT_S))
        client.get(address[0])
        until_s = monotonic() + WAIT_S
        while client.get("/fleets/large.json").is_server_error and monotonic() < until_s:
            threading.Event().wait(0.1)
        for _ in range(STREAMS):
            stack.enter_context(client.stream("GET", "/events?fleet=large"))
        yield desk.pid


def ratios(log: Path, entries: Sequence[Entry]) -> list[float]:
    """Return the time of the writer beside a desk at work over that beside a stopped one, for each pair of rounds."""
    found: list[float] = []
    parts = [entries[place : place + ROUND] for place in range(0, 2 * ROUNDS * ROUND, ROUND)]
    with SqliteStore.open(log) as store, _desk(log) as pid:
        for number in range(ROUNDS):
            times: dict[bool, float] = {}
            for is_at_work in (True, False) if number % 2 else (False, True):
                os.kill(pid, signal.SIGCONT if is_at_work else signal.SIGSTOP)
                began = perf_counter()
                for entry in parts.pop(0):
                    anyio.run(partial(store.append, Batch([entry])))
                times[is_at_work] = perf_counter() - began
                os.kill(pid, signal.SIGCONT)
            found.append(times[True] / times[False])
    return found


def spread(numbers: Sequence[float], form: str) -> str:
    """Return the median of numbers, with the least and the greatest."""
    return f"{form % median(numbers)} ({form % min(numbers)} to {form % max(numbers)})"
