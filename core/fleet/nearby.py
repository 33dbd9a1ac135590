"""Who has to do with whom on the board: what one transition can have touched, so that nobody else need be asked.

A task has to do with what it waits for and with what waits for it, and with the seats of its owner and of the one it
had before. A seat has to do with the task that was given to it and with the one before.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from pyrsistent import pmap

from lifefold.core import task
from lifefold.core.fleet.work import work_of
from lifefold.core.kernel import Aggregate, Entity, Transition, replace


def on_board(of: Aggregate, _name: str, transitions: Iterable[Transition]) -> Aggregate:
    """Return the part of the board that has to do with tasks and seats that have changed."""
    return part(of, around(of, transitions))


def around(of: Aggregate, transitions: Iterable[Transition]) -> Iterator[str]:
    """Yield the references of what has to do with tasks and seats of the board."""
    for each in transitions:
        yield each.entity
        records = [entity.record for entity in (each.before, each.after) if entity is not None]
        if each.machine == "seat":
            yield from (f"task:{record.task}" for record in records if record.task)
        else:
            yield from (f"seat:{record.owner}" for record in records if record.owner)
            yield from _dependencies(of, records[-1])


def _dependencies(of: Aggregate, record: task.Task) -> Iterator[str]:
    yield from (f"task:{each}" for each in record.depends_on)
    yield from (f"task:{each}" for each in work_of(of).dependents.get(record.id, ()))


def part(of: Aggregate, refs: Iterable[str]) -> Aggregate:
    """Return a board with these entities only, and the seats of those who own these tasks."""
    entities = of.entities
    there: dict[str, Entity[Any]] = {ref: entities[ref] for ref in dict.fromkeys(refs) if ref in entities}
    owners = [each.record.owner for ref, each in there.items() if ref.startswith("task:")]
    for each in owners:
        seat = f"seat:{each}"
        if each and seat not in there and seat in entities:
            there[seat] = entities[seat]
    return replace(of, entities=pmap(there))
