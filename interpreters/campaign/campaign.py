"""Campaigns: many seeds, one after the other or in parallel, and the sum of their results.

A worker is a process that gets the name of a target, not its values, and finds the target by that name (see
``simulation_targets``). The seeds and the findings do not depend on the number of workers or on their order. A target
without a name is tried in this process.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import active_children, get_context
from time import perf_counter
from typing import Final

import msgspec

from lifefold.core.kernel import System
from lifefold.interpreters.campaign.cost import Cost, cost
from lifefold.interpreters.campaign.driver import Driver
from lifefold.interpreters.campaign.stopping import unless_stopped
from lifefold.interpreters.search.used_parts import UsedParts
from lifefold.interpreters.simulate.choices import Name
from lifefold.interpreters.simulate.faults import DEADLY, DEADLY_TO_ENGINE, Faults
from lifefold.interpreters.simulate.simulation import Found, Limits, Run, simulate
from lifefold.interpreters.targets.simulation_targets import named
from lifefold.interpreters.targets.target import Target

PORTION: Final = 5
"""The number of seeds that a worker gets at a time."""


class Tally(msgspec.Struct):
    """The results of some seeds. Times are virtual milliseconds, but ``seconds`` are processor time.

    ``points`` are the points of a runner's work with a crash: the fault, and its place (a commit of a run, or between
    two effects). ``task_sessions`` and ``task_ms`` have the sessions of each task that was worked at, and their
    duration. ``microusd`` is the sum that all accounts have paid; None if there are no accounts. ``driver`` is
    what was simulated.
    """

    driver: Driver = Driver.OWN
    seeds: int = 0
    inputs: int = 0
    refused: int = 0
    transitions: int = 0
    crashes: int = 0
    again: int = 0
    virtual_ms: int = 0
    seconds: float = 0.0
    struck: Counter[str] = msgspec.field(default_factory=Counter[str])
    points: set[Name] = msgspec.field(default_factory=set[Name])
    seen: set[tuple[str, str]] = msgspec.field(default_factory=set[tuple[str, str]])
    used: UsedParts = msgspec.field(default_factory=UsedParts)
    state_ms: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter[tuple[str, str]])
    recovery_ms: list[int] = msgspec.field(default_factory=list[int])
    unclaimed_ms: list[int] = msgspec.field(default_factory=list[int])
    sessions: int = 0
    session_ms: int = 0
    task_sessions: list[int] = msgspec.field(default_factory=list[int])
    task_ms: list[int] = msgspec.field(default_factory=list[int])
    microusd: int | None = None
    found: list[tuple[int, Found]] = msgspec.field(default_factory=list[tuple[int, Found]])

    def take(self, system: System, seed: int, run: Run, seconds: float) -> None:
        """Add a run of a system."""
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
        self.used.add(run.used)
        self.state_ms.update(run.state_ms)
        self.recovery_ms += run.recovery_ms
        self.points |= points(run)
        self._pay(cost(system, run.entries))
        if run.found is not None:
            self.found.append((seed, run.found))

    def _pay(self, paid: Cost) -> None:
        self.sessions += paid.sessions
        self.session_ms += paid.session_ms
        self.unclaimed_ms += paid.unclaimed_ms
        worked_at = [each for each in paid.tasks.values() if each.sessions]
        self.task_sessions += [each.sessions for each in worked_at]
        self.task_ms += [each.session_ms for each in worked_at]
        if paid.microusd is not None:
            self.microusd = (self.microusd or 0) + paid.microusd

    def add(self, other: "Tally") -> None:
        """Add the results of other seeds."""
        for name in (*_SUMS, *_LISTS):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in _UNIONS:
            getattr(self, name).update(getattr(other, name))
        self.used.add(other.used)
        if other.microusd is not None:
            self.microusd = (self.microusd or 0) + other.microusd
        self.found = sorted([*self.found, *other.found], key=lambda each: each[0])

    def forget(self, most: int) -> None:
        """Keep at most so many of the times and costs that are kept one by one: the last ones."""
        for name in _LISTS:
            del getattr(self, name)[:-most]


_SUMS: Final = (
    "seeds", "inputs", "refused", "transitions", "crashes", "again", "virtual_ms", "seconds", "sessions", "session_ms",
)  # fmt: skip
_LISTS: Final = ("recovery_ms", "unclaimed_ms", "task_sessions", "task_ms")
_UNIONS: Final = ("struck", "points", "seen", "state_ms")


def points(run: Run) -> set[Name]:
    """Return the points at which runners have crashed: the fault, and its place."""
    return {name[:-1] for name in run.deviations if name[0] in _DEADLY}  # the last part is the number of the runner


_DEADLY: Final = frozenset((*DEADLY, *DEADLY_TO_ENGINE))


class Order(msgspec.Struct, frozen=True):
    """An order for a worker: the name of the target, the seeds, the faults and the limits.

    ``driver`` is what is simulated.
    """

    target: str
    seeds: tuple[int, ...]
    faults: Faults
    limits: Limits
    driver: Driver = Driver.OWN


def campaign(  # noqa: PLR0913 - what may be chosen, each with its name
    target: str | Target,
    seeds: Sequence[int],
    *,
    faults: Faults | None = None,
    limits: Limits | None = None,
    jobs: int = 1,
    tell: Callable[[Tally], None] | None = None,
    stop_at: int | None = None,
    is_stopped: Callable[[], bool] | None = None,
    driver: Driver = Driver.OWN,
) -> Tally:
    """Simulate a target with each of these seeds; end after so many findings, or when it is stopped.

    ``driver`` says what is simulated: the simulation's own runner, the real engine, or a cluster.

    A target with a name can be tried by several ``jobs``. Raises ``UnusableTarget`` for an unknown name, and
    ``ValueError`` for several jobs without a name.
    """
    of = named(target) if isinstance(target, str) else target
    if jobs > 1 and not isinstance(target, str):
        raise ValueError(f"{of.name}: other processes find a target by its name; give that, or jobs=1")
    whole = Tally(driver)
    portions = (tuple(seeds[begin : begin + PORTION]) for begin in range(0, len(seeds), PORTION))
    orders = (Order(of.name, each, faults or Faults(), limits or Limits(), driver) for each in portions)
    for tally in _tallies(of, orders, jobs, is_stopped):
        whole.add(tally)
        if tell is not None:
            tell(whole)
        if (stop_at is not None and len(whole.found) >= stop_at) or (is_stopped is not None and is_stopped()):
            break
    return whole


def _tallies(of: Target, orders: Iterable[Order], jobs: int, is_stopped: Callable[[], bool] | None) -> Iterator[Tally]:
    if jobs == 1:
        yield from (_worked(of, order, is_stopped) for order in orders)
        return
    others = {*active_children()}
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as workers:
        try:
            tallies = workers.map(work, orders)
            while (tally := unless_stopped(is_stopped, lambda: next(tallies, None))) is not None:
                yield tally
        finally:
            workers.shutdown(wait=False, cancel_futures=True)
            if is_stopped is not None and is_stopped():
                for each in {*active_children()} - others:
                    each.terminate()  # its present work is not needed any more, and may take long


def work(order: Order, is_stopped: Callable[[], bool] | None = None) -> Tally:
    """Try the seeds of an order, or the first ones that there is time for."""
    return _worked(named(order.target), order, is_stopped)


def _worked(of: Target, order: Order, is_stopped: Callable[[], bool] | None) -> Tally:
    tally, system = Tally(order.driver), of.system
    for seed in order.seeds:
        began = perf_counter()
        made = unless_stopped(is_stopped, partial(run, of, order, seed))
        if made is None:
            break
        tally.take(system, seed, made, perf_counter() - began)
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
        runner=order.driver.runner(),
    )
