"""In how many ways a system can stand: its *configurations*, and the nearest states in which all of them are.

Each entity of an aggregate has its state; in that state something goes on, and is so far; events of some kind wait. A
state of the system *shows* each of these. What is counted or remembered is left out.
"""

from collections.abc import Iterable, Iterator, Sequence

from lifefold.core.kernel import Aggregate
from lifefold.interpreters.search.findings import Findings

Shown = tuple[str, ...]


def shown(aggregate: Aggregate) -> Iterator[Shown]:
    """Yield what an aggregate shows."""
    for ref, entity in aggregate.entities.items():
        yield ref, entity.state
        for component in entity.running:
            yield ref, entity.state, component.slot, component.phase
        for waiting in entity.postponed:
            yield ref, entity.state, type(waiting.event).__name__


def nearest(found: Findings) -> list[int]:
    """Return states, as near as may be, that together show whatever any state of each aggregate shows."""
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
