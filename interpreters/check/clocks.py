"""The time of a system, and whether a search may give each aggregate a time of its own.

The canonical form of aggregates (see ``canonical``) keeps the distances of times in one record, and the time until
*its* next event. How long it waits while others act is not kept. So a machine that reads the time can be checked
beside machines for which no time passes only: without clocks and timers. It must also be without rules, because a rule
could act on it at another machine's time.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from lifefold.core.kernel import After, Machine, Opened, System, World
from lifefold.interpreters.search.opening import Beginning, names_of


class Crossed(ValueError):
    """A machine reads the time, and another one lets time pass."""

    def __init__(self, system: System, clock: str, other: str) -> None:
        super().__init__(
            f"{clock} reads the time, and {other} lets it pass: how long one waits while the other acts is not"
            f" searched, so nothing is proven about {system.name}; check {clock} by itself, or beside machines without"
            " clocks and timers"
        )


class Driven(ValueError):
    """A machine reads the time, and there are rules, or several entities of it."""

    def __init__(self, system: System, clock: str, why: str) -> None:
        super().__init__(
            f"{clock} reads the time, and {why}: the time at which others act on it is not searched, so nothing"
            f" is proven about {system.name}; check {clock} by itself"
        )


def see_to_clocks(system: System, beginning: Beginning) -> None:
    """Check that no time passes for a machine that reads it. Raises ``Crossed``, ``Driven``."""
    names = names_of(beginning)
    machines = list(_machines(system, names))
    for place, clock in machines:
        for elsewhere, other in machines:
            if clock.clocked and (place, clock.name) != (elsewhere, other.name) and _lets_time_pass(other):
                raise Crossed(system, clock.name, other.name)
    for _, clock in machines:
        if clock.clocked and any(system.type_of(name).rules for name in names):
            raise Driven(system, clock.name, "there are rules")
        if clock.clocked and any(_how_many(refs, clock) > 1 for refs in _entities(beginning)):
            raise Driven(system, clock.name, "there are several of it")


def _entities(beginning: Beginning) -> Iterator[Iterable[str]]:
    """Yield the entities of each aggregate in the beginning."""
    if isinstance(beginning, World):
        yield from (aggregate.entities for aggregate in beginning.aggregates.values())
    else:
        yield from (each.event.records for _, each in beginning if isinstance(each.event, Opened))


def _how_many(refs: Iterable[str], machine: Machine[Any]) -> int:
    return sum(ref.partition(":")[0] == machine.name for ref in refs)


def _machines(system: System, names: Iterable[str]) -> Iterator[tuple[str, Machine[Any]]]:
    return ((name, machine) for name in names for machine in system.type_of(name).machines.values())


def _lets_time_pass(machine: Machine[Any]) -> bool:
    return machine.clocked or any(isinstance(span.during, After) for span in machine.spans.values())
