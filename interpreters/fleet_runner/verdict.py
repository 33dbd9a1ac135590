"""How a run of a fleet has ended."""

from collections.abc import Mapping
from enum import IntEnum

from lifefold.core.fleet.board import service_slot
from lifefold.core.fleet.system import board
from lifefold.core.kernel import Aggregate
from lifefold.core.lifecycles import task
from lifefold.interpreters.explain import task_status


class Verdict(IntEnum):
    """The end of a run; the value is the exit code. ``HELD``: it waits for the operator, with ``--no-wait``."""

    ALL_CLOSED = 0
    SOME_FAILED = 1
    HELD = 4
    LEFT = 130


def verdict_of(aggregates: Mapping[str, Aggregate]) -> Verdict:
    """Return the verdict of a fleet that is over."""
    planned = task_status.counted(task_status.tasks(aggregates))
    closed = all(each.state == task.State.CLOSED for each in planned)
    served = not any(each.record.failed for _, each in service_slot.service_slots(aggregates[board.NAME]))
    return Verdict.ALL_CLOSED if closed and served else Verdict.SOME_FAILED
