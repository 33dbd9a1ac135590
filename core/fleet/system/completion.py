"""The end of a fleet, as its board knows it, and whether a fleet waits only for operators.

A task that is blocked by a budget keeps a fleet from its end: an operator may raise the budget.
"""

from collections.abc import Mapping
from typing import Final

from lifefold.core.fleet.board import fleet_task, intake, notifier, service_slot
from lifefold.core.fleet.dispatch.task_index import tasks_of, work_of
from lifefold.core.fleet.worker import assignment
from lifefold.core.kernel import Aggregate
from lifefold.core.lifecycles import session, task


def finished(board: Aggregate) -> bool:
    """Tell whether no task is left or can come, or no worker is left. A fleet of services needs none."""
    return nothing_is_left(board) or (work_of(board).present == 0 and not service_slot.is_kept(board))


def nothing_is_left(board: Aggregate) -> bool:
    """Tell whether every task is settled, none is blocked by a budget, and no more can come."""
    return work_of(board).unsettled == 0 and not intake.are_open(board) and not waits_for_money(board)


def waits_for_money(board: Aggregate) -> bool:
    """Tell whether a task is blocked by a budget that only an operator can raise."""
    return any(is_out_of_budget(each) for each in tasks_of(board))


def is_out_of_budget(record: fleet_task.FleetTask) -> bool:
    """Tell whether a task is blocked because a budget is spent."""
    return record.state is task.State.BLOCKED and record.blocked_by.startswith(fleet_task.BUDGET)


def waits_for_operators(aggregates: Mapping[str, Aggregate]) -> bool:
    """Tell whether a fleet waits only for operators: nothing runs, and no timer will change that.

    It does not if it is over, if it waits for more tasks, or if a message is in flight. Notifications change no fleet.
    """
    board_now = aggregates.get("board")
    if board_now is None or finished(board_now) or intake.are_open(board_now):
        return False
    workers = (each for each in aggregates.values() if each.kind == "worker")
    timed = any(each.running for ref, each in board_now.entities.items() if not ref.startswith(f"{notifier.REF}:"))
    return not timed and all(map(_stands_still, workers)) and not _message_is_on_its_way(aggregates)


def _stands_still(worker: Aggregate) -> bool:
    """Tell whether a worker waits for work or for an operator, or has stopped."""
    at_rest = worker.record("session").state in _AT_REST
    return at_rest and worker.record("assignment").state in _NOT_ON_ITS_WAY


def _message_is_on_its_way(aggregates: Mapping[str, Aggregate]) -> bool:
    """Tell whether a message was sent and not yet received, as after a step without its deliveries."""
    return any(
        number > aggregates[peer].received.get(name, 0)
        for name, sender in aggregates.items()
        for peer, number in sender.sent.items()
        if peer in aggregates
    )


_AT_REST: Final = frozenset({session.State.BUILDING_PROMPT, session.State.STOPPED})
_NOT_ON_ITS_WAY: Final = frozenset({assignment.State.IDLE, assignment.State.WANTING, assignment.State.WORKING})
