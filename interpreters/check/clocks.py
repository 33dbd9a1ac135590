"""Whose time a system goes by, and whether a search may look at each aggregate in a time of its own.

The form in which aggregates are looked at (see ``canonical``) knows how far apart the times of one record lie, and how
long it may be until *its* next event. How long it waits while others go on is not known there. So a machine that goes
by the time is looked at together with machines for which no time passes: no clock, and no timer.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from lifefold.core.kernel import After, Machine, System


class Crossed(ValueError):
    """A machine goes by the time, and another one lets time pass that it does not know of."""

    def __init__(self, system: System, clock: str, other: str) -> None:
        super().__init__(
            f"{clock} goes by the time, and {other} lets it pass: how long one waits while the other goes on is not"
            f" looked at, so nothing could be said of {system.name}; check {clock} by itself, or beside what has no"
            " clock and no timer"
        )


def see_to_clocks(system: System, names: Iterable[str]) -> None:
    """See to it that no time passes that a machine goes by and does not know of. Raises ``Crossed``."""
    machines = list(_machines(system, names))
    for place, clock in machines:
        for elsewhere, other in machines:
            if clock.clocked and (place, clock.name) != (elsewhere, other.name) and _lets_time_pass(other):
                raise Crossed(system, clock.name, other.name)


def _machines(system: System, names: Iterable[str]) -> Iterator[tuple[str, Machine[Any]]]:
    return ((name, machine) for name in names for machine in system.type_of(name).machines.values())


def _lets_time_pass(machine: Machine[Any]) -> bool:
    return machine.clocked or any(isinstance(span.during, After) for span in machine.spans.values())
