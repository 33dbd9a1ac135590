"""Soaking: seed after seed until it is stopped; every seed with a finding is kept.

A folder has the findings and the next seed; a later soak continues there. A seed with a finding gets a file at once.
The finding is then shrunk, and a test is written beside the file. A property that many seeds break is shrunk a few
times only, because that takes long; the other seeds have their file.
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

from lifefold.interpreters.campaign.campaign import Order, Tally, run, work
from lifefold.interpreters.campaign.emitted import emitted
from lifefold.interpreters.campaign.findings import SeedFinding, small
from lifefold.interpreters.campaign.report import Report
from lifefold.interpreters.campaign.stopping import SIGNALS, unless_stopped
from lifefold.interpreters.simulate.faults import Faults
from lifefold.interpreters.simulate.simulation import Found, Limits
from lifefold.interpreters.targets.simulation_targets import named
from lifefold.interpreters.targets.target import Target

SMALL_OF_EACH: Final = 3
"""The number of seeds with the same broken property that are shrunk."""

REMEMBERED: Final = 100_000
"""The number of times and costs in the distributions: the last ones. All other figures are of all runs."""

PORTION_S: Final = 1.0
"""The approximate time of the seeds that a worker gets at a time; a stop waits for so long."""

MOST: Final = 50
"""The most seeds that a worker gets at a time."""


class Folder:
    """The folder of a soak of a target: its findings, and the next seed."""

    def __init__(self, path: Path, target: str) -> None:
        """Make the folder. Raises ``OSError`` if that fails, ``ValueError`` if a file in it is not of a soak."""
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
            raise ValueError(f"{self._progress} does not have the progress of a soak; move it away") from error

    def went(self, next_seed: int) -> None:
        """Write the next seed, whole or not at all."""
        self.next_seed = next_seed
        beside = self._progress.with_suffix(".new")
        beside.write_text(json.dumps({"target": self._target, "next_seed": next_seed}) + "\n")
        beside.replace(self._progress)

    def keep(self, seed: int, found: Found, faults: Faults, limits: Limits) -> None:
        """Keep a seed with a finding, with all that makes the same run again."""
        kept = {
            "target": self._target,
            "seed": seed,
            "found": msgspec.to_builtins(found),
            "faults": msgspec.to_builtins(faults),
            "limits": msgspec.to_builtins(limits),
        }
        (self._path / f"{self._stem}_seed_{seed}.json").write_text(json.dumps(kept, indent=2) + "\n")

    def keep_small(self, seed: int, finding: SeedFinding) -> None:
        """Keep the finding of a seed as a test."""
        (self._path / f"test_{self._stem}_seed_{seed}.py").write_text(emitted([finding]))


class Soak:
    """One soak: its target, and the results so far."""

    def __init__(self, target: str, folder: Folder, *, faults: Faults, limits: Limits) -> None:
        """Take the target. Raises ``UnusableTarget`` for an unknown name."""
        self.target: Final[Target] = named(target)
        self.tally: Final = Tally()
        self.findings: Final[list[SeedFinding]] = []
        self._order: Final = Order(target, (), faults, limits)
        self._folder: Final = folder
        self._made_small: Final[Counter[tuple[str, str]]] = Counter()
        self._portion = 1

    def go_on(self, is_stopped: Callable[[], bool], *, jobs: int = 1, tell: Callable[[Tally], None]) -> Report:
        """Try seeds until it is stopped; then return the results."""
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
            is_stopped, lambda: small(self.target, seed, run(self.target, order, seed), order.faults, order.limits)
        )
        if finding is not None:
            self._folder.keep_small(seed, finding)
            if self._made_small[broken] == 1:
                self.findings.append(finding)

    def _tallies(self, is_stopped: Callable[[], bool], jobs: int) -> Iterator[Tally]:
        """Yield the results of seeds, in order; the last one was kept when the next one is requested."""
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
    """Submit an order. Its workers start with signals blocked: Ctrl-C goes to all processes."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        return workers.submit(work, order)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def attached() -> None:
    """End this process when its parent process ends, however that ends."""
    Thread(target=_end_with, args=(parent_process(),), daemon=True).start()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)
