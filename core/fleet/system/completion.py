"""Whether a fleet is over, as its board has it; and whether it only waits for people.

What is blocked for want of money holds a fleet: a person may let more be spent, and then it goes on.
"""

from collections.abc import Mapping
from typing import Final

from lifefold.core.fleet.board import fleet_task, intake, service_slot
from lifefold.core.fleet.dispatch.task_index import tasks_of, work_of
from lifefold.core.fleet.worker import assignment
from lifefold.core.kernel import Aggregate
from lifefold.core.lifecycles import session, task


def finished(board: Aggregate) -> bool:
    """Nothing is left to do and no more will come, or nobody is left to do it; where there never was, no service."""
    return nothing_is_left(board) or (work_of(board).present == 0 and not service_slot.is_kept(board))


def nothing_is_left(board: Aggregate) -> bool:
    """Every task is settled, none for want of money, and no more will come."""
    return work_of(board).unsettled == 0 and not intake.are_open(board) and not waits_for_money(board)


def waits_for_money(board: Aggregate) -> bool:
    """Tell whether a task is blocked because a budget is spent that only a person can raise."""
    return any(lacks_money(each) for each in tasks_of(board))


def lacks_money(record: fleet_task.FleetTask) -> bool:
    """Tell whether a task is blocked because a budget is spent."""
    return record.state is task.State.BLOCKED and record.lacks.startswith(fleet_task.PURSE)


def only_people_move_it(aggregates: Mapping[str, Aggregate]) -> bool:
    """Tell whether nothing of a fleet goes on, and no time that passes changes that: what it waits for is people.

    A fleet that is over, or waits for more tasks, is none of these; nor is one in which a message is on its way.
    """
    desk = aggregates.get("board")
    if desk is None or finished(desk) or intake.are_open(desk):
        return False
    workers = (each for each in aggregates.values() if each.kind == "worker")
    timed = any(entity.running for entity in desk.entities.values())
    return not timed and all(map(_stands_still, workers)) and not _message_is_on_its_way(aggregates)


def _stands_still(worker: Aggregate) -> bool:
    """Tell whether a worker waits for work, or for a word, or has stopped."""
    at_rest = worker.record("session").state in _AT_REST
    return at_rest and worker.record("assignment").state in _NOT_ON_ITS_WAY


def _message_is_on_its_way(aggregates: Mapping[str, Aggregate]) -> bool:
    """Tell whether an aggregate has not taken a message that another has sent to it, as after a decision at rest."""
    return any(
        number > aggregates[peer].received.get(name, 0)
        for name, sender in aggregates.items()
        for peer, number in sender.sent.items()
        if peer in aggregates
    )


_AT_REST: Final = frozenset({session.State.BUILDING_PROMPT, session.State.STOPPED})
_NOT_ON_ITS_WAY: Final = frozenset({assignment.State.IDLE, assignment.State.WANTING, assignment.State.WORKING})
