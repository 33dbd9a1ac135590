"""The *configurations* of a system, and the nearest states that together show all of them.

A configuration is a fact about one entity of an aggregate. It is a state, a running activity with its progress, or the
type of a postponed event. A state of the system *shows* its configurations. Counters and other data are left out.
"""

from collections.abc import Iterable, Iterator, Sequence

from lifefold.core.kernel import Aggregate
from lifefold.interpreters.search.findings import Findings

Shown = tuple[str, ...]


def shown(aggregate: Aggregate) -> Iterator[Shown]:
    """Yield the configurations that an aggregate shows."""
    for ref, entity in aggregate.entities.items():
        yield ref, entity.state
        for component in entity.running:
            yield ref, entity.state, component.slot, component.phase
        for waiting in entity.postponed:
            yield ref, entity.state, type(waiting.event).__name__


def nearest(found: Findings) -> list[int]:
    """Return states, as near as possible, that together show every configuration of each aggregate."""
    chosen = {
        found.nearest(component.number, locals_)
        for component in found.product_system.components
        for locals_ in _showing(component.states).values()
    }
    return sorted(chosen - {-1})


def _showing(states: Iterable[Aggregate]) -> dict[Shown, Sequence[int]]:
    found: dict[Shown, list[int]] = {}
    for number, each in enumerate(states):
        for one in shown(each):
            found.setdefault(one, []).append(number)
    return dict(found)
