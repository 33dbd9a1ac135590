"""Whose time a system goes by, and whether a search may look at each aggregate in a time of its own.

The form in which aggregates are looked at (see ``canonical``) knows how far apart the times of one record lie, and how
long it may be until *its* next event. How long it waits while others go on is not known there. So a machine that goes
by the time is looked at together with machines for which no time passes: no clock, and no timer; and where there are no
rules, by which it would hear of something at another's time.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from lifefold.core.kernel import After, Envelope, Machine, Opened, System


class Crossed(ValueError):
    """A machine goes by the time, and another one lets time pass that it does not know of."""

    def __init__(self, system: System, clock: str, other: str) -> None:
        super().__init__(
            f"{clock} goes by the time, and {other} lets it pass: how long one waits while the other goes on is not"
            f" looked at, so nothing could be said of {system.name}; check {clock} by itself, or beside what has no"
            " clock and no timer"
        )


class Driven(ValueError):
    """A machine goes by the time, and there are rules, or several of it."""

    def __init__(self, system: System, clock: str, why: str) -> None:
        super().__init__(
            f"{clock} goes by the time, and {why}: when it hears of what others do is not looked at, so nothing could"
            f" be said of {system.name}; check {clock} by itself"
        )


def see_to_clocks(system: System, opening: Iterable[tuple[str, Envelope]]) -> None:
    """See to it that no time passes that a machine goes by and does not know of. Raises ``Crossed``, ``Driven``."""
    opening = tuple(opening)
    machines = list(_machines(system, (name for name, _ in opening)))
    for place, clock in machines:
        for elsewhere, other in machines:
            if clock.clocked and (place, clock.name) != (elsewhere, other.name) and _lets_time_pass(other):
                raise Crossed(system, clock.name, other.name)
    for _, clock in machines:
        if clock.clocked and any(system.type_of(name).rules for name, _ in opening):
            raise Driven(system, clock.name, "there are rules")
        if clock.clocked and any(_how_many(envelope, clock) > 1 for _, envelope in opening):
            raise Driven(system, clock.name, "there are several of it")


def _how_many(envelope: Envelope, machine: Machine[Any]) -> int:
    records = envelope.event.records if isinstance(envelope.event, Opened) else {}
    return sum(ref.partition(":")[0] == machine.name for ref in records)


def _machines(system: System, names: Iterable[str]) -> Iterator[tuple[str, Machine[Any]]]:
    return ((name, machine) for name in names for machine in system.type_of(name).machines.values())


def _lets_time_pass(machine: Machine[Any]) -> bool:
    return machine.clocked or any(isinstance(span.during, After) for span in machine.spans.values())
