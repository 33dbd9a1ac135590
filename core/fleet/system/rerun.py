"""Reruns: the plan of the tasks that a finished fleet left undone, for a new log.

A fleet that is over accepts no more input, and its log stays as it is. The next run takes up the tasks that were not
CLOSED. The failure of an earlier attempt goes into the next prompt, as it does within a run (E6). A cancelled task
stays cancelled, with its dependents. A split task is taken up as a whole and is told which of its parts are merged.
"""

from collections.abc import Iterable, Mapping

import msgspec

from lifefold.core.fleet import service
from lifefold.core.fleet.board.fleet_task import FleetTask
from lifefold.core.fleet.dispatch import plan_approval
from lifefold.core.fleet.dispatch.task_index import tasks_of
from lifefold.core.fleet.system import board, worker
from lifefold.core.fleet.system.plan import Plan, TaskPlan
from lifefold.core.fleet.worker import shutdown
from lifefold.core.fleet.worker.prompt import after_failure
from lifefold.core.kernel import Aggregate
from lifefold.core.lifecycles.task import State


class FinishedFleet(msgspec.Struct, frozen=True):
    """The outcome of runs by task id: closed, cancelled, and the failures of the others."""

    closed: tuple[str, ...] = ()
    cancelled: tuple[str, ...] = ()
    failures: Mapping[str, str] = {}


def is_over(aggregates: Mapping[str, Aggregate]) -> bool:
    """Tell whether a fleet is over: all tasks are settled, or no worker is left, and nothing runs."""
    settled = {worker.KIND: shutdown.settled, service.KIND: service.settled}
    is_left = all(settled[each.kind](each) for each in aggregates.values() if each.kind in settled)
    return board.NAME in aggregates and board.finished(aggregates[board.NAME]) and is_left


def ended(of: Aggregate, before: FinishedFleet) -> FinishedFleet:
    """Return the outcome of a run and of the runs before it, by its board.

    A task that was declined with the whole plan does not count as cancelled: the plan may change.
    """
    tasks = sorted(tasks_of(of), key=lambda each: each.id)
    whole = [each for each in tasks if not each.parent]
    plan = of.entities.get(plan_approval.REF)
    is_declined = plan is not None and plan.state is plan_approval.State.DECLINED
    closed = tuple(each.id for each in whole if each.state is State.CLOSED)
    cancelled = tuple(each.id for each in whole if each.state is State.CANCELLED and not is_declined)
    failures = {each.id: said for each in whole if (said := _failure(each, tasks))}
    return FinishedFleet((*before.closed, *closed), (*before.cancelled, *cancelled), {**before.failures, **failures})


def _failure(whole: FleetTask, tasks: Iterable[FleetTask]) -> str:
    """Return the failure of a task; of a split task with the outcome of its parts."""
    parts = [each for each in tasks if each.parent == whole.id]
    merged = [f"{each.id} is merged already ({each.prompt})" for each in parts if each.state is State.CLOSED]
    failed = [f"{each.id} failed: {each.failure}" for each in parts if each.state is not State.CLOSED and each.failure]
    split = ["it was split", *merged, *failed] if parts else []
    return "; ".join([*([whole.failure] if whole.failure else []), *split])


def remainder(plan: Plan, before: FinishedFleet) -> Plan:
    """Return the part of a plan that is left to do, without dependencies on closed tasks."""
    unwanted = _unwanted(plan, before)
    tasks = (each for each in plan.tasks if each.id not in {*before.closed, *unwanted})
    return msgspec.structs.replace(plan, tasks=tuple(_left(each, before) for each in tasks))


def left_out(plan: Plan, of: Aggregate, before: FinishedFleet) -> tuple[str, ...]:
    """Return the tasks that are neither done nor cancelled, and that a next run does not do either.

    They need a cancelled task, or they were added to a run and are not in the plan.
    """
    known = {each.id for each in plan.tasks} | {*before.closed, *before.cancelled}
    added = {each.id for each in tasks_of(of) if not each.parent} - known
    return tuple(sorted(added | (_unwanted(plan, before) - {*before.cancelled})))


def _left(each: TaskPlan, before: FinishedFleet) -> TaskPlan:
    needs = tuple(name for name in each.depends_on if name not in before.closed)
    prompt = after_failure(each.prompt, before.failures.get(each.id, ""))
    return msgspec.structs.replace(each, depends_on=needs, prompt=prompt)


def _unwanted(plan: Plan, before: FinishedFleet) -> set[str]:
    """Return the cancelled tasks of a plan, with all that depend on them at any distance."""
    unwanted = {each.id for each in plan.tasks if each.id in before.cancelled}
    left = [each for each in plan.tasks if each.id not in before.closed]
    while more := {each.id for each in left if each.id not in unwanted and unwanted.intersection(each.depends_on)}:
        unwanted |= more
    return unwanted
