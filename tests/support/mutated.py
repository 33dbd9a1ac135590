"""Bugs of other software as mutants of shipped lifecycles and systems: the shortest trace to each that a check finds.

A mutant is checked within the configuration of the original (``interpreters.targets.check_targets``): the same record,
bounds and properties. The search is only as deep as a short trace needs, with fewer operator commands where that would
be too far.
"""

from collections.abc import Iterable
from typing import Any, Final

from lifefold.core.kernel import AggregateType, Event, Machine, Row, State, System, alone, replace
from lifefold.core.kernel.row import During
from lifefold.interpreters.check import Outcome, Report, check
from lifefold.interpreters.targets.check_targets import named

LONGEST: Final = 12
"""The most steps of a trace to a mutant's broken property, the cycle of a lasso included."""

NEAR: Final = 300
"""How many of the nearest states are looked at, unless what is promised is that something comes."""

ALL: Final = 1_000_000
"""So many that a search comes to its end: what never comes is only known then."""

STUCK: Final = "     and from then on nothing happens any more"
"""The last line of a way that ends where something should follow, and does not."""

WIDE: Final = 10_000
"""So many characters that each step is one line."""


def shipped(name: str) -> Machine[Any]:
    """Return the machine of this name with the record and the properties that it is checked with."""
    machine = named(name).subject
    assert isinstance(machine, Machine)
    return machine


def lasting(
    machine: Machine[Any], slot: str, states: Iterable[State], *rows: Row[Any], part: During[Any] | None = None
) -> Machine[Any]:
    """Return a copy in which a timer or an activity goes on in these states, with rows for that behind its own.

    ``part`` is what goes on there, if it is not what did.
    """
    during = {where: tuple(each for each in old if each.slot != slot) for where, old in machine.during.items()}
    there = frozenset(states)
    during[there] = (*during.get(there, ()), part or machine.spans[slot].during)
    return machine._but(rows=(*machine.rows, *rows), during=during)


def way_to(
    prop: str, machine: Machine[Any], states: int = NEAR, said: tuple[type[Event], ...] | None = None
) -> list[str]:
    """Check a copy of a shipped machine; return the way to where it breaks the property with these words.

    ``said`` is what people may say, if it is not all that they can.
    """
    system, opening = alone(machine)
    if said is not None:
        system = System(machine.name, AggregateType(machine.name, machines=(machine,), commands={machine.name: said}))
    bounds = replace(named(machine.name).bounds, compared=0, states=states)
    return way_in(check(system, opening=tuple(opening.items()), bounds=bounds), prop)


def way_in(report: Report, prop: str, longest: int = LONGEST) -> list[str]:
    """Return the way to where a property is broken, a line for each step; it is short."""
    broken = {each.name: each for each in report.broken()}
    found = [each for name, each in broken.items() if prop in name]
    assert found, f"{prop!r} does not find it; broken are {sorted(broken)}; {report.conclusion()}"
    [verdict] = found
    assert verdict.outcome is Outcome.BROKEN, report
    assert verdict.trace is not None, report
    way = list(verdict.trace.lines(WIDE))
    assert sum(line.lstrip()[0].isdigit() for line in way) <= longest, way
    return way
