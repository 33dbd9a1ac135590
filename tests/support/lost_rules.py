"""The shipped fleet without one of its rules."""

from typing import Final

from lifefold.core.fleet import service
from lifefold.core.fleet.system import board, fleet_properties, worker
from lifefold.core.kernel import AggregateType, System

BOARD: Final = tuple(dict.fromkeys(each.name for each in board.aggregate.rules))
WORKER: Final = tuple(dict.fromkeys(each.name for each in worker.aggregate.rules))
SERVICE: Final = tuple(dict.fromkeys(each.name for each in service.aggregate.rules))
"""The names of its rules."""


def without(name: str, kind: str = "") -> System:
    """Return the fleet without the rules of this name, in all aggregates or in those of one kind."""
    of_fleet = (board.aggregate, worker.aggregate, service.aggregate)
    types = [_without(of, name) if kind in {"", of.kind} else of for of in of_fleet]
    return System("fleet", *types, properties=fleet_properties.PROPERTIES)


def _without(of: AggregateType, name: str) -> AggregateType:
    return AggregateType(
        of.kind,
        machines=of.machines.values(),
        rules=[each for each in of.rules if each.name != name],
        views=of.views,
        commands=of.commands,
        properties=of.properties,
    )
