"""Locality on the board: the entities that one transition can affect, so that a property looks at no others.

A task is near its dependencies and dependents, its rivals, its parts, its whole and the other parts of that. It is also
near the worker slots of its present and its last owner. A worker slot is near its present and its last task.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from lifefold.core.fleet.board.fleet_task import FleetTask
from lifefold.core.fleet.dispatch.task_index import work_of
from lifefold.core.kernel import Aggregate, Entity, PersistentMap, Transition, replace


def on_board(of: Aggregate, _name: str, transitions: Iterable[Transition]) -> Aggregate:
    """Return the part of the board near the tasks and worker slots that have changed."""
    return part(of, around(of, transitions))


def whole_board(of: Aggregate, _name: str, _transitions: Iterable[Transition]) -> Aggregate:
    """Return the whole board, for a property that reads the task index and costs the same on a large one."""
    return of


def around(of: Aggregate, transitions: Iterable[Transition]) -> Iterator[str]:
    """Yield the references of the entities near these transitions."""
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
    """Return a board with only these entities and the worker slots of the owners of these tasks."""
    entities = of.entities
    there: dict[str, Entity[Any]] = {ref: entities[ref] for ref in dict.fromkeys(refs) if ref in entities}
    owners = [each.record.owner for ref, each in there.items() if ref.startswith("task:")]
    for each in owners:
        worker_slot = f"worker_slot:{each}"
        if each and worker_slot not in there and worker_slot in entities:
            there[worker_slot] = entities[worker_slot]
    return replace(of, entities=PersistentMap(there))
