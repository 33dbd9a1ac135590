"""How a plan change comes into force: all of it in one step, or nothing of it.

The step that accepts a change decides about it. Without obstacles (``plan_obstacles``) it is in force: new tasks and
agents are created, tasks get their new terms, workers are told, and removed agents drain. The other rules decide what
follows from that. Messages to workers are numbered like all others, so a crash neither loses nor repeats a part.

A change is in force when all of it is done. Until then no task is given out, no worker is preempted, and no worker is
sent home (``TaskIndex.changing``). So a removed task is not claimed because the same change raises a budget. A fleet
that gets new tasks for old ones does not end in between. Claims are decided afterwards, by the whole board. The order
of the parts of a change makes no difference to them.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from lifefold.core.fleet import service
from lifefold.core.fleet.board import account, budget, fleet_task, service_slot, worker_slot
from lifefold.core.fleet.board.fleet_task import FleetTask
from lifefold.core.fleet.dispatch import accounts, budgets, preemption
from lifefold.core.fleet.dispatch.task_index import tasks_of
from lifefold.core.fleet.system import plan_change, worker
from lifefold.core.fleet.system.plan import (
    AgentPlan,
    Plan,
    TaskPlan,
    budget_of,
    fleet_task_of,
    own_permits,
    serving,
    worker_slot_of,
    working,
)
from lifefold.core.fleet.system.plan_change import PlanChange
from lifefold.core.fleet.system.plan_difference import AgentChange, FleetChange, ServiceChange, TaskChange, TaskMoved
from lifefold.core.fleet.system.plan_obstacles import OVER, obstacles, over
from lifefold.core.fleet.worker import assignment, desired_state, quota, usage_meter
from lifefold.core.kernel import (
    Aggregate,
    Create,
    Dispatch,
    Opened,
    Property,
    Record,
    Transition,
    always,
    always_step,
    replace,
    rule,
)
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.budget.amounts import Amounts, Caps, Resource
from lifefold.core.lifecycles.session_profiles import LimitsChanged
from lifefold.effects import Tell

RuleAction: TypeAlias = Create | Dispatch | Tell

REMOVED: Final = fleet_task.NOT_IN_THE_PLAN
"""Why an agent drains, or a task is not done, that the plan has no more."""


@rule(on=plan_change.machine, enters=plan_change.State.ACCEPTED)
def enforce(board: Aggregate, transition: Transition) -> Iterator[RuleAction]:
    """What was accepted is in force as a whole, or refused as a whole."""
    accepted: PlanChange = transition.after.record
    found = obstacles(board, accepted)
    if found:
        yield Dispatch(transition.entity, plan_change.ChangeRefused(tuple(map(str, found))))
        return
    for follow in _IN_ORDER:
        yield from follow(board, accepted)
    yield Dispatch(transition.entity, plan_change.ChangeEnforced())


def _raise_caps(board: Aggregate, of: PlanChange) -> Iterator[RuleAction]:
    """Apply the new caps of budgets, and create the budgets of new agents and tasks."""
    settled = over(board, of)
    for each in of.changes:
        match each:
            case FleetChange(was, now):
                yield from _recap(board, budgets.FLEET, was.budget.caps, now.budget.caps)
            case AgentChange(was, now) if now is not None:
                yield from _of_caps(board, budgets.of_agent(now.name), was, now, of.rules)
            case TaskChange(was, now) if now is not None and now.id not in settled:
                before = was or plan_change.terms_when_removed(board, now.id)
                yield from _of_caps(board, budgets.of_task(now.id), before, now, of.rules)
            case _:
                pass


def _of_caps(
    board: Aggregate, ref: str, was: AgentPlan | TaskPlan | None, now: AgentPlan | TaskPlan, rules: Plan
) -> Iterator[Create | Dispatch]:
    if was is None:
        yield from (Create(each, record) for each, record in budget_of(ref, now.caps, rules.budget))
    else:
        yield from _recap(board, ref, was.caps, now.caps)


def _recap(board: Aggregate, ref: str, was: Caps, now: Caps) -> Iterator[Dispatch]:
    """Bring the changed caps of the file into force, whatever operators have added to the former ones."""
    here = budgets.caps_of(board, ref)
    changed = (each for each in Resource if was.of(each) != now.of(each))
    by = {each: (now.of(each) or 0) - (here.of(each) or 0) for each in changed}
    if any(by.values()):
        more = Amounts(*(max(0, by.get(each, 0)) for each in Resource))
        yield Dispatch(ref, budget.Recapped(more, Amounts(*(max(0, -by.get(each, 0)) for each in Resource))))


def _bring_agents(board: Aggregate, of: PlanChange) -> Iterator[RuleAction]:
    """Create new agents and services, and send the others their new limits."""
    for each in of.changes:
        match each:
            case AgentChange(None, now) if now is not None:
                yield from _new_agent(board, now, of.rules)
            case AgentChange(was, now) if was is not None and now is not None:
                yield from _changed_agent(was, now)
            case ServiceChange(None, now) if now is not None:
                yield Create(f"{service_slot.REF}:{now.name}", service_slot.ServiceSlot())
                yield Tell(f"{service.KIND}/{now.name}", "", Opened(dict(serving(now))))
            case _:
                pass


def _new_agent(board: Aggregate, now: AgentPlan, rules: Plan) -> Iterator[RuleAction]:
    yield Create(f"worker_slot:{now.name}", worker_slot_of(now, rules))
    if rules.preemption is not None:
        preemption_requests = preemption.preemption_requests((now.name,), rules.preemption.within_ms)
        yield from (Create(ref, each) for ref, each in preemption_requests.items())
    yield from (Create(ref, each) for ref, each in own_permits(now, rules).items())
    if now.account and accounts.ref_of(now.account) not in board.entities:
        yield Create(accounts.ref_of(now.account), account.Account())
    yield Tell(f"{worker.KIND}/{now.name}", "", Opened({**working(now, rules), **_metered(board)}))
    if not accounts.is_open(board, now.account):
        yield Tell(f"{worker.KIND}/{now.name}", quota.REF, quota.AccountRests())


def _metered(board: Aggregate) -> dict[str, Record]:
    """Return the meter of a worker, where anything is limited."""
    all_budgets = [entity.record for ref, entity in board.entities.items() if ref.startswith(fleet_task.BUDGET)]
    keeps_time = any(line.resource is Resource.TIME for each in all_budgets for line in each.lines)
    return {usage_meter.REF: usage_meter.UsageMeter(keeps_time=keeps_time)} if all_budgets else {}


def _changed_agent(was: AgentPlan, now: AgentPlan) -> Iterator[RuleAction]:
    to = f"{worker.KIND}/{now.name}"
    if was.limits != now.limits:
        yield Tell(to, "session", LimitsChanged(now.limits))
    if was.verify_timeout_ms != now.verify_timeout_ms:
        yield Tell(to, "assignment", assignment.VerifyTimeoutChanged(now.verify_timeout_ms))
    if (was.roles, was.adaptive) != (now.roles, now.adaptive):
        yield Dispatch(f"worker_slot:{now.name}", worker_slot.Reassigned(now.roles, now.adaptive))


def _replan(board: Aggregate, of: PlanChange) -> Iterator[RuleAction]:
    """Apply the new terms of tasks, with the fleet's rules. Parts have only those.

    A removed task gets nothing, because only a change of its own puts it back.
    """
    changed: dict[str, TaskChange] = {each.name: each for each in of.changes if isinstance(each, TaskChange)}
    moved = {each.name: each.place for each in of.changes if isinstance(each, TaskMoved)}
    rules = next((each for each in of.changes if isinstance(each, FleetChange)), None)
    overtaken = _overtaken(board, {name: each.place for name, each in changed.items()} | moved)
    for record in sorted(tasks_of(board), key=lambda each: (each.ordinal, each.id)):
        found = changed.get(record.id)
        is_out = record.removed if found is None else found.now is None
        if record.state in OVER or is_out:
            continue
        to = _with_fleet_terms(record, rules)
        retries, what = None, "the fleet's rules" if to != record else ""
        if found is not None and found.now is not None:
            to = _with_plan_terms(record, found.now, found.place, of.rules)
            retries, what = _retries(found), _what(found)
        elif record.id in moved and not record.parts:
            to = replace(to, ordinal=moved[record.id])
        if to != record or retries is not None or record.removed:
            what = what or ("its place" if record.id in overtaken else "")
            yield from _replanned(record, fleet_task.Replanned(to, retries, what))


def _overtaken(board: Aggregate, places: Mapping[str, int]) -> frozenset[str]:
    """Return the tasks whose place among those of the board has changed; an added task changes no place of another."""
    stay = (each for each in tasks_of(board) if each.state not in OVER and places.get(each.id, 0) >= 0)
    there = {each.id: each.ordinal for each in stay}
    before = sorted(there, key=lambda name: (there[name], name))
    after = sorted(there, key=lambda name: (places.get(name, there[name]), name))
    return frozenset(was for was, now in zip(before, after, strict=True) if was != now)


def _with_fleet_terms(record: FleetTask, rules: FleetChange | None) -> FleetTask:
    """Return a task as it is, with what the fleet's rules say of it now."""
    if rules is None:
        return record
    return replace(record, approval_ms=rules.now.approval_ms, retry=rules.now.retry)


def _with_plan_terms(record: FleetTask, now: TaskPlan, place: int, rules: Plan) -> FleetTask:
    """Return a task with the terms of the plan. One that was split keeps its place: its parts have the same."""
    planned = fleet_task_of(now, record.ordinal if record.parts else place, rules)
    terms = {name: getattr(planned, name) for name in fleet_task.TERMS}
    return replace(record, **terms)


def _retries(found: TaskChange) -> int | None:
    if found.now is None or (found.was is not None and found.was.max_retries == found.now.max_retries):
        return None
    return found.now.max_retries


def _what(found: TaskChange) -> str:
    """Name what has changed of a task, as its fields are called."""
    if found.was is None or found.now is None:
        return "it is in the plan again"
    fields = [each for each in found.now.__struct_fields__ if getattr(found.was, each) != getattr(found.now, each)]
    return f"its {', '.join(fleet_task.KEYS[each] for each in fields)}" if fields else ""


def _replanned(record: FleetTask, event: fleet_task.Replanned) -> Iterator[RuleAction]:
    """Yield the new terms of a task, and its new verification for the worker that holds it."""
    yield Dispatch(f"task:{record.id}", event)
    if event.to.verify != record.verify and record.owner and record.state in fleet_task.UNDER_WAY:
        rebriefed = assignment.Rebriefed(record.id, record.epoch, event.to.verify)
        yield Tell(f"{worker.KIND}/{record.owner}", "assignment", rebriefed)


def _add_tasks(board: Aggregate, of: PlanChange) -> Iterator[RuleAction]:
    """Put new tasks on the board."""
    for each in of.changes:
        if isinstance(each, TaskChange) and each.now is not None and f"task:{each.name}" not in board.entities:
            yield Create(f"task:{each.name}", fleet_task_of(each.now, each.place, of.rules))


def _remove_tasks(board: Aggregate, of: PlanChange) -> Iterator[RuleAction]:
    """Take tasks out of the plan that are not over."""
    for each in of.changes:
        is_gone = isinstance(each, TaskChange) and each.now is None
        if is_gone and board.record(f"task:{each.name}").state not in OVER:
            yield Dispatch(f"task:{each.name}", fleet_task.Removed(REMOVED))


def _dismiss(board: Aggregate, of: PlanChange) -> Iterator[RuleAction]:
    """Drain removed agents and services: they finish their work and get no more."""
    for each in of.changes:
        match each:
            case AgentChange(was, None) if was is not None:
                if board.entities[f"worker_slot:{was.name}"].state is not worker_slot.State.GONE:
                    yield Dispatch(f"worker_slot:{was.name}", worker_slot.Dismissed())
                    yield Tell(f"{worker.KIND}/{was.name}", "desired_state", desired_state.DrainWanted(REMOVED))
            case ServiceChange(was, None) if was is not None:
                if board.entities[f"{service_slot.REF}:{was.name}"].state is service_slot.State.ON:
                    yield Tell(f"{service.KIND}/{was.name}", "desired_state", desired_state.DrainWanted(REMOVED))
            case _:
                pass


def failed_for_good(board: Aggregate, of: PlanChange) -> frozenset[str]:
    """Return the changed tasks that have failed, and that have no retry left by their new terms."""
    kept = (each for each in of.changes if isinstance(each, TaskChange) and each.was is not None)
    return frozenset(each.name for each in kept if _stays_failed(board.record(f"task:{each.name}"), each, of.rules))


def _stays_failed(record: FleetTask, found: TaskChange, rules: Plan) -> bool:
    if record.state is not task.State.FAILED or found.now is None:
        return False
    to = _with_plan_terms(record, found.now, found.place, rules)
    return not task.retries_left(
        fleet_task.replanned(record, fleet_task.Replanned(to, _retries(found))), task.Retried()
    )


def verified_before(board: Aggregate, of: PlanChange) -> dict[str, bool]:
    """Return the tasks with other commands whose work is verified already, and whether it is verified again.

    Work that waits for its approval is. Approved work is merged, and without commands nothing is verified.
    """
    pairs = ((each.was, each.now) for each in of.changes if isinstance(each, TaskChange))
    others = {was.id: now for was, now in pairs if was is not None and now is not None and was.verify != now.verify}
    records: dict[str, FleetTask] = {name: board.record(f"task:{name}") for name in others}
    return {
        name: each.state is task.State.PENDING_APPROVAL and bool(others[name].verify)
        for name, each in records.items()
        if each.stage is task.Stage.MERGE and each.state in {task.State.PENDING_APPROVAL, task.State.DONE}
    }


_IN_ORDER: Final[tuple[Callable[[Aggregate, PlanChange], Iterator[RuleAction]], ...]] = (
    _raise_caps,
    _bring_agents,
    _dismiss,
    _replan,
    _add_tasks,
    _remove_tasks,
)
"""The parts of a change in the order of their application: agents come before the tasks that need them."""


@rule(on=fleet_task.machine, event=fleet_task.Replanned)
def continue_with_new_terms(_board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Let a blocked or failed task go on, if its new terms allow that.

    Anything that still hinders it blocks it again. A lost part is not a matter of terms.
    """
    record: FleetTask = transition.after.record
    if record.state is task.State.BLOCKED and record.blocked_by and record.blocked_by not in record.parts_of_it():
        yield Dispatch(transition.entity, fleet_task.DependencyBack(record.blocked_by))
    elif record.state is task.State.FAILED and fleet_task.comes_back(transition.was, record):
        yield Dispatch(transition.entity, task.Retried())


def has_the_terms_in_force(board: Aggregate) -> bool:
    """A task has the terms of the last change in force for it, and a removed task is not given out."""
    last = {
        each.name: (each, of.rules)
        for _, of in plan_change.changes_of(board)
        if of.state is plan_change.State.IN_FORCE
        for each in of.changes
        if isinstance(each, TaskChange)
    }
    return all(_has_terms(board.record(f"task:{name}"), *found) for name, found in last.items())


def _has_terms(record: FleetTask, found: TaskChange, rules: Plan) -> bool:
    if record.state in OVER:
        return True
    if found.now is None:
        return record.removed and task.settled(record)
    planned = _with_plan_terms(record, found.now, record.ordinal, rules)
    names = ("verify", "depends_on", "priority", "role", "files", "most_subtasks", "orphaned", "on_nothing", "anew")
    return not record.removed and all(getattr(planned, name) == getattr(record, name) for name in names)


def has_the_agents_of_the_plan(board: Aggregate) -> bool:
    """The agents and services of the plan in force exist; removed ones are leaving or gone.

    The tasks of the plan in force are on the board.
    """
    last = {
        (type(each), each.name): each
        for _, of in plan_change.changes_of(board)
        if of.state is plan_change.State.IN_FORCE
        for each in of.changes
        if isinstance(each, TaskChange | AgentChange | ServiceChange)
    }
    return all(_is_there(board, each) for each in last.values())


def _is_there(board: Aggregate, found: TaskChange | AgentChange | ServiceChange) -> bool:
    if not isinstance(found, AgentChange):
        ref = f"{'task' if isinstance(found, TaskChange) else service_slot.REF}:{found.name}"
        return found.now is None or ref in board.entities
    slot = board.entities.get(f"worker_slot:{found.name}")
    left = slot is not None and (slot.record.leaves or slot.state is worker_slot.State.GONE)
    return slot is not None and (left if found.now is None else not slot.record.leaves)


def is_not_claimed(board: Aggregate) -> bool:
    """A removed task is settled: no agent holds it, and none gets it."""
    return all(task.settled(each) for each in tasks_of(board) if each.removed)


PROPERTIES: Final[tuple[Property[Aggregate], ...]] = (
    always("a task has the terms of the plan in force", has_the_terms_in_force),
    always("the tasks, agents and services of the plan in force are those of the board", has_the_agents_of_the_plan),
    always("a task that was removed from the plan is not worked at", is_not_claimed),
    always_step(
        "an agent that was removed from the plan is given no task",
        lambda step: not step.was.leaves,
        on=worker_slot.TaskGiven,
    ),
)
