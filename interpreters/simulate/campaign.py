"""Many seeds, one after the other or several at a time, and what came of all of them together.

A worker is a process of its own that is told what to simulate by a name, not by values: whatever it is, it is found
there as it was found here (see ``targets``). The seeds that are tried, and what is found, do not depend on how many
workers there are, nor on which of them is first.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from time import perf_counter
from typing import Final

import msgspec

from lifefold.interpreters.simulate.faults import Faults
from lifefold.interpreters.simulate.simulation import Found, Limits, Run, simulate
from lifefold.interpreters.simulate.targets import Target, named

PORTION: Final = 5
"""How many seeds a worker is given at a time."""


class Tally(msgspec.Struct):
    """What came of some seeds. Times are in milliseconds, virtual but for ``seconds``, which are of processors."""

    seeds: int = 0
    inputs: int = 0
    refused: int = 0
    transitions: int = 0
    crashes: int = 0
    again: int = 0
    virtual_ms: int = 0
    seconds: float = 0.0
    struck: Counter[str] = msgspec.field(default_factory=Counter[str])
    seen: set[tuple[str, str]] = msgspec.field(default_factory=set[tuple[str, str]])
    possible: frozenset[tuple[str, str]] = frozenset()
    states: set[tuple[str, str]] = msgspec.field(default_factory=set[tuple[str, str]])
    rows: set[tuple[str, int]] = msgspec.field(default_factory=set[tuple[str, int]])
    guards: set[tuple[str, int, bool]] = msgspec.field(default_factory=set[tuple[str, int, bool]])
    state_ms: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter[tuple[str, str]])
    recovery_ms: list[int] = msgspec.field(default_factory=list[int])
    found: list[tuple[int, Found]] = msgspec.field(default_factory=list[tuple[int, Found]])

    def take(self, seed: int, run: Run, seconds: float) -> None:
        """Add a run."""
        counts = run.counts
        self.seeds += 1
        self.inputs += counts.inputs
        self.refused += counts.refused
        self.transitions += counts.transitions
        self.crashes += counts.crashes
        self.again += counts.again
        self.virtual_ms += run.until_ms
        self.seconds += seconds
        self.struck.update(run.struck)
        self.seen |= run.seen
        self.states |= run.covered.states
        self.rows |= run.covered.rows
        self.guards |= run.covered.guards
        self.state_ms.update(run.state_ms)
        self.recovery_ms += run.recovery_ms
        if run.found is not None:
            self.found.append((seed, run.found))

    def add(self, other: "Tally") -> None:
        """Add what came of other seeds."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in _UNIONS:
            getattr(self, name).update(getattr(other, name))
        self.recovery_ms += other.recovery_ms
        self.found = sorted([*self.found, *other.found], key=lambda each: each[0])


_SUMS: Final = ("seeds", "inputs", "refused", "transitions", "crashes", "again", "virtual_ms", "seconds")
_UNIONS: Final = ("struck", "seen", "states", "rows", "guards", "state_ms")


class Order(msgspec.Struct, frozen=True):
    """What a worker is to do: which target, by its name, which seeds, with which faults and limits."""

    target: str
    seeds: tuple[int, ...]
    faults: Faults
    limits: Limits


def campaign(  # noqa: PLR0913 - what may be chosen, each with its name
    target: str,
    seeds: Sequence[int],
    *,
    faults: Faults | None = None,
    limits: Limits | None = None,
    jobs: int = 1,
    tell: Callable[[Tally], None] | None = None,
    stop_at: int | None = None,
) -> Tally:
    """Simulate a target, by its name, with every one of these seeds; end when so many have found something.

    Raises ``UnusableTarget`` for a name that is none.
    """
    named(target)
    portions = (tuple(seeds[begin : begin + PORTION]) for begin in range(0, len(seeds), PORTION))
    orders = (Order(target, each, faults or Faults(), limits or Limits()) for each in portions)
    whole = Tally()
    for tally in _tallies(orders, jobs):
        whole.add(tally)
        if tell is not None:
            tell(whole)
        if stop_at is not None and len(whole.found) >= stop_at:
            break
    return whole


def _tallies(orders: Iterable[Order], jobs: int) -> Iterator[Tally]:
    if jobs == 1:
        yield from map(work, orders)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as workers:
        yield from workers.map(work, orders)


def work(order: Order) -> Tally:
    """Try the seeds of an order."""
    of, tally = named(order.target), Tally()
    for seed in order.seeds:
        began = perf_counter()
        tally.take(seed, run(of, order, seed), perf_counter() - began)
    return tally


def run(of: Target, order: Order, seed: int) -> Run:
    """Simulate one seed."""
    return simulate(
        of.subject,
        opening=of.opening,
        seed=seed,
        faults=order.faults,
        environment=of.environment,
        limits=order.limits,
    )
