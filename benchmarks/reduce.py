"""The cost of an event in the session machine: this project's reducer beside three other libraries, on the same tape.

Times are processor times of the thread, which exclude other processes.
"""

from collections.abc import Callable
from importlib.metadata import version
from statistics import median
from time import thread_time_ns
from types import ModuleType
from typing import Any

from benchmarks import own_session
from benchmarks.peers import PEERS, agreement
from benchmarks.peers.tape import cycles
from benchmarks.report import Report, Table, Target
from benchmarks.sampling import Costs, Turn, ratios, spread, take_turns
from lifefold.core.lifecycles import session

ROUNDS = 15
TAPE = cycles(100)

REDUCE = "reduce, value taken out"
MAKING = "the same, event made first"
STEP = "step"
CONTAINER_COSTS_AT_MOST = 2.5
"""The highest cost of ``reduce`` over ``step``; ``reduce`` makes a ``Success``, and its value is taken out."""

TARGETS = (
    (REDUCE, "transitions", 10.0),
    (REDUCE, "python-statemachine", 50.0),
    (REDUCE, "automat", 1.0),
    (STEP, "automat", 2.0),
)


def by_reduce() -> Turn:
    """Fold with ``reduce`` and take each value out of its container."""
    events, reduce = own_session.events(TAPE), session.machine.reduce

    def fold(record: session.Session) -> session.Session:
        for event in events:
            record = reduce(record, event).unwrap().record
        return record

    return _own(fold)


def by_making() -> Turn:
    """Make each event right before its reduction; otherwise like ``by_reduce``."""
    makings, reduce = own_session.makings(TAPE), session.machine.reduce

    def fold(record: session.Session) -> session.Session:
        for make, fields in makings:
            record = reduce(record, make(*fields)).unwrap().record
        return record

    return _own(fold)


def by_step() -> Turn:
    """Fold with ``step``, the reducer without the container; a refusal has no record and raises an error."""
    events = own_session.events(TAPE)
    step: Callable[..., Any] = session.machine.step

    def fold(record: session.Session) -> session.Session:
        for event in events:
            record = step(record, event).record
        return record

    return _own(fold)


def _own(fold: Callable[[session.Session], session.Session]) -> Turn:
    def turn() -> tuple[float, object]:
        record = own_session.make()
        start = thread_time_ns()
        record = fold(record)
        return (thread_time_ns() - start) / len(TAPE), own_session.shown(record)

    return turn


def by_peer(peer: ModuleType) -> Turn:
    """Call the methods of the peer's machine, looked up beforehand."""

    def turn() -> tuple[float, object]:
        machine = peer.make()
        calls = peer.compile_tape(machine, TAPE)
        start = thread_time_ns()
        for method, args in calls:
            method(*args)
        return (thread_time_ns() - start) / len(calls), agreement.shown(peer, machine)

    return turn


def measure() -> Report:
    """Measure all contenders, check that they end with equal observations, and report."""
    contenders = {REDUCE: by_reduce(), MAKING: by_making(), STEP: by_step()}
    contenders |= {name: by_peer(peer) for name, peer in PEERS.items()}
    costs = take_turns(contenders, ROUNDS)
    rows = tuple(_row(name, costs) for name in contenders)
    table = Table("Processor time per event", ("", "version", "median ns", "least ns", "x reduce", "x step"), rows)
    note = (
        f"{ROUNDS} rounds of {len(TAPE):,} events each; after every round all had the same state, counters, prompt and "
        "pause."
    )
    targets = (*(_target(*each, costs) for each in TARGETS), _price(costs))
    return Report("reduce", (table,), targets, (note,))


def _row(name: str, costs: Costs) -> tuple[str, ...]:
    factors = (f"{median(ratios(costs[name], costs[own])):,.2f}" for own in (REDUCE, STEP))
    edition = version(name) if name in PEERS else ""
    return name, edition, f"{median(costs[name]):,.0f}", f"{min(costs[name]):,.0f}", *factors


def _target(own: str, peer: str, wanted: float, costs: Costs) -> Target:
    factors = ratios(costs[peer], costs[own])
    met = median(factors) >= wanted
    return Target(f"{own}: {peer} costs", f"at least {wanted:g} x", spread(factors, "{:,.2f} x"), met)


def _price(costs: Costs) -> Target:
    """Return the target for the container of ``returns``: ``reduce`` with its value taken out, over ``step``."""
    factors = ratios(costs[REDUCE], costs[STEP])
    met = median(factors) <= CONTAINER_COSTS_AT_MOST
    return Target(
        f"{REDUCE}: costs, over {STEP}", f"at most {CONTAINER_COSTS_AT_MOST:g} x", spread(factors, "{:,.2f} x"), met
    )
