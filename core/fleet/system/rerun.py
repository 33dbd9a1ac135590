"""What is left of a plan when its fleet is over: what the next run of it begins with, in a log of its own.

A fleet that is over takes nothing more: everybody has gone home. Its log stays as it is, and another run takes up what
was not CLOSED. What an attempt has failed by goes into the next one's prompt there, as it does within a run (E6). What
somebody has cancelled stays so, with all that needs it. A task that was split is taken up as a whole, and is told which
of its parts are merged.
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
    """How runs have ended, by the tasks' ids: what is closed and what cancelled, and what others have failed by."""

    closed: tuple[str, ...] = ()
    cancelled: tuple[str, ...] = ()
    failures: Mapping[str, str] = {}


def is_over(aggregates: Mapping[str, Aggregate]) -> bool:
    """Tell whether a fleet is over: all is settled, or nobody is left to do it, and nothing of anybody goes on."""
    settled = {worker.KIND: shutdown.settled, service.KIND: service.settled}
    is_left = all(settled[each.kind](each) for each in aggregates.values() if each.kind in settled)
    return board.NAME in aggregates and board.finished(aggregates[board.NAME]) and is_left


def ended(of: Aggregate, before: FinishedFleet) -> FinishedFleet:
    """Return how a run has ended, by its board, that took up what earlier ones had left, if only that of none.

    What was declined with the whole plan was not cancelled: the plan may be another one by then.
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
    """Say by what a task has failed; of one that was split, what became of its parts, too."""
    parts = [each for each in tasks if each.parent == whole.id]
    merged = [f"{each.id} is merged already ({each.prompt})" for each in parts if each.state is State.CLOSED]
    failed = [f"{each.id} failed: {each.failure}" for each in parts if each.state is not State.CLOSED and each.failure]
    split = ["it was split", *merged, *failed] if parts else []
    return "; ".join([*([whole.failure] if whole.failure else []), *split])


def remainder(plan: Plan, before: FinishedFleet) -> Plan:
    """Return what of a plan is left to be done: nothing waits any more for what is closed."""
    unwanted = _unwanted(plan, before)
    tasks = (each for each in plan.tasks if each.id not in {*before.closed, *unwanted})
    return msgspec.structs.replace(plan, tasks=tuple(_left(each, before) for each in tasks))


def left_out(plan: Plan, of: Aggregate, before: FinishedFleet) -> tuple[str, ...]:
    """Return what is neither done nor cancelled, and is not done by a next run either.

    It needs what was cancelled, or it was added to a run and is not in the plan.
    """
    known = {each.id for each in plan.tasks} | {*before.closed, *before.cancelled}
    added = {each.id for each in tasks_of(of) if not each.parent} - known
    return tuple(sorted(added | (_unwanted(plan, before) - {*before.cancelled})))


def _left(each: TaskPlan, before: FinishedFleet) -> TaskPlan:
    needs = tuple(name for name in each.depends_on if name not in before.closed)
    prompt = after_failure(each.prompt, before.failures.get(each.id, ""))
    return msgspec.structs.replace(each, depends_on=needs, prompt=prompt)


def _unwanted(plan: Plan, before: FinishedFleet) -> set[str]:
    """Return what of a plan was cancelled, and what needs that, if only through others."""
    unwanted = {each.id for each in plan.tasks if each.id in before.cancelled}
    left = [each for each in plan.tasks if each.id not in before.closed]
    while more := {each.id for each in left if each.id not in unwanted and unwanted.intersection(each.depends_on)}:
        unwanted |= more
    return unwanted
