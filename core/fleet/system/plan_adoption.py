"""The changes of a board by commands beside its plan: added tasks and raised budgets.

A fleet file may have such a task later. Then the file and the board are compared as for any other task. The same
definition changes nothing, and another one is a change of that task. A changed cap of the file is compared with the cap
in force. The retries of the file are compared with those in force. ``lifefold retry`` may have raised these, but only
if all of them are used. Then fewer retries in the file are no change.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from lifefold.core.fleet.board.fleet_task import FleetTask
from lifefold.core.fleet.dispatch import budgets
from lifefold.core.fleet.system.plan import Plan, TaskPlan, fleet_task_of
from lifefold.core.fleet.system.plan_change import PlanChange, terms_when_removed
from lifefold.core.fleet.system.plan_difference import AgentChange, FleetChange, TaskChange
from lifefold.core.fleet.system.plan_places import place_of
from lifefold.core.kernel import Aggregate, replace
from lifefold.core.lifecycles.budget.amounts import Caps, Resource

_FIELDS: Final[Mapping[str, str]] = {
    **{
        name: name
        for name in (
            "prompt",
            "verify",
            "priority",
            "role",
            "most_subtasks",
            "subtasks_ms",
            "orphaned",
            "on_nothing",
            "anew",
        )
    },
    "needs_approval": "always_needs_approval",
    "trust": "level",
}
"""The fields of a planned task, with the field of the task on the board that has the same meaning."""

_SETS: Final = ("depends_on", "files")
"""The fields whose order has no meaning."""


def adopted(board: Aggregate, old: Plan, new: Plan) -> dict[str, TaskPlan]:
    """Return the tasks of a new plan that a command has added to the board, each with its terms on the board."""
    planned = {each.id for each in old.tasks}
    found = {each.id: each for each in new.tasks if each.id not in planned and f"task:{each.id}" in board.entities}
    return {name: _terms(board, now, new) for name, now in found.items() if terms_when_removed(board, name) is None}


def _terms(board: Aggregate, now: TaskPlan, plan: Plan) -> TaskPlan:
    """Return the terms of a task on the board. A term that means the same there is as the new plan writes it."""
    record: FleetTask = board.record(f"task:{now.id}")
    same = fleet_task_of(now, record.ordinal, plan)
    others = {name: getattr(record, of) for name, of in _FIELDS.items() if getattr(record, of) != getattr(same, of)}
    sets = {name: getattr(record, name) for name in _SETS if {*getattr(record, name)} != {*getattr(now, name)}}
    may_be_granted = record.retries >= record.max_retries
    retries = min(now.max_retries, record.max_retries) if may_be_granted else record.max_retries
    return replace(now, **others, **sets, max_retries=retries, caps=budgets.caps_of(board, budgets.of_task(now.id)))


def raised(board: Aggregate, change: PlanChange) -> dict[str, tuple[Caps, Caps]]:
    """Return the changed caps that a command has raised, by the place of their budget: as planned, and as in force."""
    found: dict[str, tuple[Caps, Caps]] = {}
    for place, ref, was, now in _changed_caps(change):
        here = budgets.caps_of(board, ref)
        is_raised = [each for each in Resource if was.of(each) not in {None, now.of(each), here.of(each)}]
        names = [each for each in is_raised if None not in {now.of(each), here.of(each)}]
        if names:
            found[place] = (_only(was, names), _only(here, names))
    return found


def _changed_caps(change: PlanChange) -> Iterator[tuple[str, str, Caps, Caps]]:
    """Yield the place, the reference, and both sides of each budget that may have changed."""
    for each in change.changes:
        match each:
            case FleetChange(was, now):
                yield "fleet", budgets.FLEET, was.budget.caps, now.budget.caps
            case AgentChange(was, now) if was is not None and now is not None:
                yield place_of("agents", each.name), budgets.of_agent(each.name), was.caps, now.caps
            case TaskChange(was, now) if was is not None and now is not None:
                yield place_of("tasks", each.name), budgets.of_task(each.name), was.caps, now.caps
            case _:
                pass


def _only(caps: Caps, names: list[Resource]) -> Caps:
    return Caps(**{each: caps.of(each) for each in names})
