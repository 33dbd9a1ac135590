"""Properties of the whole fleet: its board, its workers, and the messages in flight."""

import msgspec

from lifefold.core.fleet import service
from lifefold.core.fleet.board import budget, fleet_task, intake, service_slot
from lifefold.core.fleet.dispatch import accounts, plan_approval, preemption, restarts
from lifefold.core.fleet.dispatch.task_index import is_lost, tasks_of, work_of
from lifefold.core.fleet.system import board, ownership, worker
from lifefold.core.fleet.worker import announcer, conversations, desired_state, orphans, shutdown
from lifefold.core.kernel import (
    Aggregate,
    Projection,
    Property,
    SystemState,
    always,
    leads_to,
    localized,
    projected,
    sometimes,
    strongly,
    weakly,
)
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.session_model import SUCCESS
from lifefold.effects import CheckOutWork, InspectWork, MergeWork, ParkWork, PrepareWorktree, RunSession, VerifyWork

WORK_ENDS = (
    *weakly(PrepareWorktree, CheckOutWork, RunSession, InspectWork, VerifyWork, ParkWork, MergeWork),
    *weakly(desired_state.RunWanted, desired_state.ResumeWanted, plan_approval.PlanApproved, intake.LastTaskIn),
    *strongly(SUCCESS),
)
"""Fairness: every activity ends, and operators do what only they can.

They end holds and pauses, approve a plan, and close the intake. A session may succeed at last: sessions may suspend
themselves as long as operators ask for it (D28).
"""


def awaits_what_may_come(of: Aggregate) -> bool:
    """Tell of a board whether everything that its open tasks wait for may still be closed (E19)."""
    if of.kind != board.NAME:
        return True
    tasks = {each.id: each for each in tasks_of(of)}
    awaited = {name for each in tasks.values() if each.state is task.State.OPEN for name in each.depends_on}
    return not any(name in awaited and is_lost(each) for name, each in tasks.items())


class Course(msgspec.Struct, frozen=True):
    """A projection of a worker or the board: how far the fleet is.

    ``is_over``: nothing of it is left. The rest is about the board. ``is_finished``: every task is settled or
    no worker is left. ``is_closed``: every task is closed. ``is_dry``: only an operator can raise a spent budget.
    ``is_held``: a worker is asked to hold.
    """

    is_over: bool
    is_finished: bool = False
    is_closed: bool = False
    is_held: bool = False
    is_dry: bool = False


def course(of: Aggregate) -> Course:
    """Return what is looked at to see whether the fleet comes to its end."""
    if of.kind == worker.KIND:
        return Course(shutdown.settled(of), is_held=of.record("desired_state").state in desired_state.RESTS)
    if of.kind == service.KIND:
        return Course(service.settled(of))
    closed = all(each.state is task.State.CLOSED for each in tasks_of(of))
    gone = all(each.state is service_slot.State.GONE for _, each in service_slot.service_slots(of))
    all_budgets = (each.record for ref, each in of.entities.items() if ref.startswith(fleet_task.BUDGET))
    dry = any(map(budget.is_spent_for_good, all_budgets))
    return Course(work_of(of).present == 0 and gone, board.finished(of), closed, is_dry=dry)


def is_held(fleet: Projection) -> bool:
    """Tell whether a worker was asked to hold."""
    return any(each.is_held for each in fleet.aggregates.values())


def is_dry(fleet: Projection) -> bool:
    """Tell whether a budget is spent that only an operator can raise, so that tasks wait for it."""
    dry: bool = fleet.aggregates[board.NAME].is_dry
    return dry


def is_finished(fleet: Projection) -> bool:
    """Tell whether every task is settled, or no worker is left."""
    finished: bool = fleet.aggregates[board.NAME].is_finished
    return finished


def is_over(fleet: Projection) -> bool:
    """Tell whether the fleet is over: every worker is gone, nothing runs, and no message is in flight."""
    return is_finished(fleet) and all(each.is_over for each in fleet.aggregates.values()) and not fleet.under_way


def is_done(fleet: Projection) -> bool:
    """Tell whether the fleet has come to its end with all of its tasks closed."""
    return is_over(fleet) and fleet.aggregates[board.NAME].is_closed


def _waits(fleet: Projection) -> bool:
    """Tell whether a task is left to do, no worker is asked to hold, and no budget is spent for good.

    Fairness gives that each hold ends, and then this is so again. So only operators who hold workers again and again
    keep a task from being settled.
    """
    return not is_finished(fleet) and not is_held(fleet) and not is_dry(fleet)


PROPERTIES: tuple[Property[SystemState], ...] = (
    *ownership.OF_FLEETS,
    *localized(
        ownership.nearby,
        *projected(
            awaits_what_may_come,
            always("no task waits for a task that is lost", lambda fleet: all(fleet.aggregates.values())),
        ),
    ),
    *ownership.AT_LAST,
    *projected(
        course,
        leads_to(
            "every task is settled at last, or no worker is left, if activities end, holds end and budgets last",
            _waits,
            lambda fleet: not _waits(fleet),
            given=WORK_ENDS,
        ),
        leads_to("a fleet without tasks left ends, if activities end", is_finished, is_over, given=WORK_ENDS),
        sometimes("a fleet closes all its tasks and ends", is_done),
        leads_to("every message arrives", lambda fleet: fleet.under_way > 0, lambda fleet: not fleet.under_way),
    ),
    *shutdown.OF_FLEETS,
    *restarts.OF_FLEETS,
    *accounts.OF_FLEETS,
    *preemption.OF_FLEETS,
    *orphans.OF_FLEETS,
    *conversations.OF_FLEETS,
    *announcer.OF_FLEETS,
    *service.OF_FLEETS,
)
