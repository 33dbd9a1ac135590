"""Who has to do with whom on the board: what one transition can have touched, so that nobody else need be asked.

A task has to do with what it waits for and with what waits for it, with its rivals, its parts, the task that it is a
part of and the other parts of that, and with the worker slots of its owner and of the one it had before. A worker slot
has to do with the task that was given to it and with the one before.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from pyrsistent import pmap

from lifefold.core.fleet.board.fleet_task import FleetTask
from lifefold.core.fleet.dispatch.task_index import work_of
from lifefold.core.kernel import Aggregate, Entity, Transition, replace


def on_board(of: Aggregate, _name: str, transitions: Iterable[Transition]) -> Aggregate:
    """Return the part of the board that has to do with tasks and worker slots that have changed."""
    return part(of, around(of, transitions))


def whole_board(of: Aggregate, _name: str, _transitions: Iterable[Transition]) -> Aggregate:
    """Return all of the board, for a property that takes no longer on a large one: it asks the view."""
    return of


def around(of: Aggregate, transitions: Iterable[Transition]) -> Iterator[str]:
    """Yield the references of what has to do with tasks and worker slots of the board."""
    for each in transitions:
        yield each.entity
        records = [entity.record for entity in (each.before, each.after) if entity is not None]
        if each.machine == "worker_slot":
            yield from (f"task:{record.task}" for record in records if record.task)
        elif each.machine == "task":
            yield from (f"worker_slot:{record.owner}" for record in records if record.owner)
            yield from _dependencies(of, records[-1])


def _dependencies(of: Aggregate, record: FleetTask) -> Iterator[str]:
    yield from (f"task:{each}" for each in record.depends_on)
    work = work_of(of)
    for others in (work.dependents, work.rivals):
        yield from (f"task:{each}" for each in others.get(record.id, ()))
    whole = of.entities.get(f"task:{record.parent}")
    siblings = () if whole is None else (record.parent, *whole.record.parts_of_it())
    yield from (f"task:{each}" for each in (*siblings, *record.parts_of_it()))


def part(of: Aggregate, refs: Iterable[str]) -> Aggregate:
    """Return a board with these entities only, and the worker slots of those who own these tasks."""
    entities = of.entities
    there: dict[str, Entity[Any]] = {ref: entities[ref] for ref in dict.fromkeys(refs) if ref in entities}
    owners = [each.record.owner for ref, each in there.items() if ref.startswith("task:")]
    for each in owners:
        worker_slot = f"worker_slot:{each}"
        if each and worker_slot not in there and worker_slot in entities:
            there[worker_slot] = entities[worker_slot]
    return replace(of, entities=pmap(there))
