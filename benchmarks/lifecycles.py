"""The cost of an event in each of the documents' lifecycles: at most twice that of an event in ``session``.

A lease is measured too, without a target: it is not one of the seven, and does accounting with every event.

Each lifecycle has its own walk: legal events, chosen at random among the examples of its events, and restarted where no
event is legal. Times are processor times of the thread.
"""

from functools import partial
from random import Random
from statistics import median
from time import thread_time_ns
from typing import Any

from benchmarks.report import Report, Table, Target
from benchmarks.sampling import Turn, ratios, spread, take_turns
from lifefold.core.kernel import Event, Machine, Record, Step
from lifefold.interpreters import views

ROUNDS = 11
EVENTS = 2_000
MEASURE = "session"
AT_MOST = 2.0
TARGETED = ("runtime", "process", "status", "task", "agent", "turn")
LIFECYCLES = (MEASURE, *TARGETED, "lease")

Walk = list[tuple[Record, Event]]


def walk(machine: Machine[Any]) -> Walk:
    """Return a sequence of ``EVENTS`` transitions of a machine."""
    random = Random(1)  # noqa: S311 - chance, not secrecy
    examples = [event for kind in machine.events for event in kind.examples()]
    taken: Walk = []
    record = machine.initial
    while len(taken) < EVENTS:
        steps = [(event, machine.step(record, event)) for event in examples]
        legal = [(event, step.record) for event, step in steps if isinstance(step, Step)]
        if not legal:
            record = machine.initial
            continue
        event, became = random.choice(legal)
        taken.append((record, event))
        record = became if became.state not in machine.final else machine.initial
    return taken


def turn(machine: Machine[Any], taken: Walk) -> tuple[float, object]:
    """Reduce the events of a walk once; return nanoseconds per event, and the number of events."""
    reduce = machine.reduce
    start = thread_time_ns()
    for record, event in taken:
        reduce(record, event).unwrap()
    return (thread_time_ns() - start) / len(taken), len(taken)


def measure() -> Report:
    """Measure the lifecycles in turns, and report."""
    known = views.machines()
    contenders: dict[str, Turn] = {name: partial(turn, known[name], walk(known[name])) for name in LIFECYCLES}
    costs = take_turns(contenders, ROUNDS)
    shares = {name: ratios(costs[name], costs[MEASURE]) for name in LIFECYCLES}
    rows = tuple(
        (name, f"{median(costs[name]):,.0f}", f"{min(costs[name]):,.0f}", f"{median(shares[name]):.2f}")
        for name in LIFECYCLES
    )
    table = Table("Processor time per event", ("", "median ns", "least ns", f"x {MEASURE}"), rows)
    targets = tuple(
        Target(
            f"{name} costs", f"at most {AT_MOST:g} x {MEASURE}", spread(shares[name]), median(shares[name]) <= AT_MOST
        )
        for name in TARGETED
    )
    note = f"{ROUNDS} rounds of {EVENTS:,} legal events each; every lifecycle has its own walk."
    return Report("lifecycles", (table,), targets, (note,))
