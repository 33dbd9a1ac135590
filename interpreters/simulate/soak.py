"""Seeds without an end: one after the other until somebody stops it, and every seed that finds something is kept.

A folder has what was found, and how far it went: the next soak goes on there. Of each seed that finds something there
is a file at once; what it has found is then shrunk, and is a test beside it. A property that many seeds break is
shrunk a few times only: that takes long, and the others are known by their numbers.
"""

import json
import os
import re
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import Any, Final

import msgspec

from lifefold.interpreters.simulate.campaign import Order, Tally, run, work
from lifefold.interpreters.simulate.emitted import emitted
from lifefold.interpreters.simulate.faults import Faults
from lifefold.interpreters.simulate.findings import Finding, small
from lifefold.interpreters.simulate.report import Report
from lifefold.interpreters.simulate.simulation import Found, Limits
from lifefold.interpreters.simulate.simulation_targets import Target, named
from lifefold.interpreters.simulate.stopping import SIGNALS, unless_stopped

SMALL_OF_EACH: Final = 3
"""How many seeds that break the same property are shrunk."""

REMEMBERED: Final = 100_000
"""Of how many times and costs the distributions are: the last ones. Everything else is of all."""

PORTION_S: Final = 1.0
"""How long the seeds take, about, that a worker is given at a time; whoever stops it waits for so long."""

MOST: Final = 50
"""How many seeds a worker is given at most."""


class Folder:
    """Where a soak of a target keeps what it finds, and how far it went."""

    def __init__(self, path: Path, target: str) -> None:
        """Make the folder. Raises ``OSError`` if it cannot be, ``ValueError`` if it has something else in its place."""
        path.mkdir(parents=True, exist_ok=True)
        self._path: Final = path
        self._target: Final = target
        self._stem: Final = re.sub(r"\W+", "_", target).strip("_")
        self._progress: Final = path / f"{self._stem}.json"
        self.next_seed: int = self._read()

    def _read(self) -> int:
        if not self._progress.exists():
            return 0
        try:
            return int(json.loads(self._progress.read_bytes())["next_seed"])
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{self._progress} does not say how far a soak went; move it away") from error

    def went(self, next_seed: int) -> None:
        """Keep how far it went, whole or not at all."""
        self.next_seed = next_seed
        beside = self._progress.with_suffix(".new")
        beside.write_text(json.dumps({"target": self._target, "next_seed": next_seed}) + "\n")
        beside.replace(self._progress)

    def keep(self, seed: int, found: Found, faults: Faults, limits: Limits) -> None:
        """Keep a seed that has found something, with all that makes the same run again."""
        kept = {
            "target": self._target,
            "seed": seed,
            "found": msgspec.to_builtins(found),
            "faults": msgspec.to_builtins(faults),
            "limits": msgspec.to_builtins(limits),
        }
        (self._path / f"{self._stem}_seed_{seed}.json").write_text(json.dumps(kept, indent=2) + "\n")

    def keep_small(self, seed: int, finding: Finding) -> None:
        """Keep what a seed has found as a test."""
        (self._path / f"test_{self._stem}_seed_{seed}.py").write_text(emitted([finding]))


class Soak:
    """One soak: what it does, and what came of it so far."""

    def __init__(self, target: str, folder: Folder, *, faults: Faults, limits: Limits) -> None:
        """Take what is tried. Raises ``UnusableTarget`` for a name that is none."""
        self.target: Final[Target] = named(target)
        self.tally: Final = Tally()
        self.findings: Final[list[Finding]] = []
        self._order: Final = Order(target, (), faults, limits)
        self._folder: Final = folder
        self._made_small: Final[Counter[tuple[str, str]]] = Counter()
        self._portion = 1

    def go_on(self, is_stopped: Callable[[], bool], *, jobs: int = 1, tell: Callable[[Tally], None]) -> Report:
        """Try seeds until it is stopped; then return what came of them."""
        for tally in self._tallies(is_stopped, jobs):
            self.tally.add(tally)
            self.tally.forget(REMEMBERED)
            self._portion = max(1, min(MOST, int(PORTION_S * tally.seeds / max(tally.seconds, 1e-6))))
            for seed, found in tally.found:
                self._keep(seed, found, is_stopped)
            tell(self.tally)
        return Report(self.target, self.tally, tuple(self.findings))

    def _keep(self, seed: int, found: Found, is_stopped: Callable[[], bool]) -> None:
        order, broken = self._order, (found.owner, found.prop)
        self._folder.keep(seed, found, order.faults, order.limits)
        self._made_small[broken] += 1
        if self._made_small[broken] > SMALL_OF_EACH:
            return
        finding = unless_stopped(
            is_stopped,
            lambda: small(self.target, seed, run(self.target, order, seed), order.faults, order.limits),
        )
        if finding is not None:
            self._folder.keep_small(seed, finding)
            if self._made_small[broken] == 1:
                self.findings.append(finding)

    def _tallies(self, is_stopped: Callable[[], bool], jobs: int) -> Iterator[Tally]:
        """Yield what comes of seeds, in their order; whoever takes one has kept it when the next one is asked for."""
        if jobs == 1:
            begin = self._folder.next_seed
            while not is_stopped():
                order = self._next(begin)
                tally = work(order, is_stopped)
                yield tally
                begin += tally.seeds
                self._folder.went(begin)
            return
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=attached) as workers:
            yield from self._shared(workers, is_stopped, jobs)
            workers.shutdown(cancel_futures=True)

    def _shared(self, workers: ProcessPoolExecutor, is_stopped: Callable[[], bool], jobs: int) -> Iterator[Tally]:
        waiting: deque[tuple[Order, Future[Tally]]] = deque()
        begin = self._folder.next_seed
        while not is_stopped():
            while len(waiting) <= jobs:
                order = self._next(begin)
                waiting.append((order, _submitted(workers, order)))
                begin = order.seeds[-1] + 1
            order, future = waiting.popleft()
            yield future.result()
            self._folder.went(order.seeds[-1] + 1)

    def _next(self, begin: int) -> Order:
        return msgspec.structs.replace(self._order, seeds=tuple(range(begin, begin + self._portion)))


def _submitted(workers: ProcessPoolExecutor, order: Order) -> Future[Tally]:
    """Have an order worked at. Workers that begin with it inherit that no signal reaches them: Ctrl-C goes to all."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        return workers.submit(work, order)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def attached() -> None:
    """End this process when the one that has begun it does, however that ends."""
    Thread(target=_end_with, args=(parent_process(),), daemon=True).start()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)
