"""Obstacles of a plan change: every part of it that this board does not allow, by name.

A change with an obstacle is refused as a whole. Each obstacle names its subject, the reason, and a command that helps.
In the command, ``{fleet}`` stands for the fleet file and ``{fresh}`` for a new log. A change of a task that is over has
no effect any more. It is an obstacle unless the change is ``partial``: then the operator knows that, and accepts the
rest. These can change at any time:

- added tasks, and removed tasks that have not begun;
- a task's prompt, ``verify`` and ``max_retries``, until it is CLOSED or CANCELLED;
- a task's ``max_subtasks``, ``subtasks_timeout`` and ``on_nothing``, also while an agent holds it, if it has no parts;
- everything else of a task while no agent holds it and it has no parts;
- agents and services that are added or removed; limits and roles of agents; caps of existing budgets;
- of the fleet ``approval_timeout`` and ``retry``.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from lifefold.core.fleet.board import fleet_task, intake, worker_slot
from lifefold.core.fleet.dispatch import budgets
from lifefold.core.fleet.dispatch.task_index import tasks_of
from lifefold.core.fleet.system.completion import finished, waits_for_money
from lifefold.core.fleet.system.plan import AgentPlan, Budget, TaskPlan
from lifefold.core.fleet.system.plan_change import PlanChange, last_in_force, ref_of, terms_when_removed
from lifefold.core.fleet.system.plan_difference import AgentChange, FleetChange, ServiceChange, TaskChange
from lifefold.core.fleet.system.plan_places import place_of
from lifefold.core.fleet.worker import stall_detector
from lifefold.core.kernel import Aggregate
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.budget.amounts import Caps, Resource
from lifefold.core.lifecycles.task import State


class Obstacle(msgspec.Struct, frozen=True):
    """An obstacle: its subject (``what``), the reason (``why``), and a command that helps ``instead``.

    ``other`` is what an operator can do first, where the file can also be put back.
    """

    what: str
    why: str
    instead: str
    other: str = ""

    def __str__(self) -> str:
        """Return what, why and what helps, for a changed file, without the command."""
        return f"{self.what}: {self.why}{f'; put that back, or {self.other}' if self.other else ''}"

    @property
    def of_edit(self) -> str:
        """The same for the edit of one task: its file is as it was."""
        return f"{self.what}: {self.why}{f'; {self.other}' if self.other else ''}"


FRESH: Final = "lifefold run {fleet} --db {fresh}"
"""Does everything again, by the new plan, in a log of its own."""

ACCEPT: Final = "lifefold run {fleet} --accept"
"""Accepts the change, after what the message says."""

REST: Final = "lifefold run {fleet} --accept --rest"
"""Accepts the change, and leaves the tasks that are over as they are."""


def obstacles(board: Aggregate, change: PlanChange, *, is_anything_left: bool = True) -> tuple[Obstacle, ...]:
    """Return the obstacles of a change; none if all of it can be in force now.

    ``is_anything_left``: another run of a fleet that is over would have work by the new plan. That decides only which
    command helps.
    """
    if last_in_force(board) != change.after:
        why = f"another change is in force since this one was made: {ref_of(last_in_force(board))}"
        return (Obstacle("the plan", why, "lifefold plan {fleet}"),)
    if finished(board):
        why = "the fleet is over, and its log takes nothing more; the file can be done in another log"
        return (Obstacle("the plan", why, "lifefold run {fleet} --again" if is_anything_left else FRESH),)
    found: list[Obstacle] = []
    for each in change.changes:
        match each:
            case TaskChange(was=None, now=now) if now is not None:
                found += _of_new_task(board, now, change)
            case TaskChange(was=was, now=None) if was is not None:
                found += _of_removed_task(board, was, change)
            case TaskChange(was=was, now=now) if was is not None and now is not None:
                found += _of_task(board, was, now, change)
            case AgentChange():
                found += _of_agent(board, each)
            case ServiceChange():
                found += _of_service(board, each)
            case FleetChange():
                found += _of_fleet(board, each)
            case _:
                pass
    return tuple(found)


# Tasks


def _of_new_task(board: Aggregate, now: TaskPlan, of: PlanChange) -> Iterator[Obstacle]:
    entity, name = board.entities.get(f"task:{now.id}"), place_of("tasks", now.id)
    before = terms_when_removed(board, now.id)
    if entity is not None and entity.state is not State.CANCELLED and before is not None:
        yield from _of_task(board, before, now, of)
    elif entity is not None:
        why = f"was added, but the board has a task of that id, which is {entity.state}; give it another id"
        yield Obstacle(name, why, ACCEPT)
    elif now.caps != Caps() and not _is_metered(board):
        yield Obstacle(f"{name}.budget", _UNMETERED, FRESH)


def _of_removed_task(board: Aggregate, was: TaskPlan, of: PlanChange) -> Iterator[Obstacle]:
    record: fleet_task.FleetTask = board.record(f"task:{was.id}")
    name, state = place_of("tasks", was.id), record.state
    is_so = f"was removed, but it is {state}{f' with {record.owner}' if record.owner else ''}"
    if state is State.CLOSED:
        if not of.partial:
            yield Obstacle(name, f"{is_so}, and stays so; {_REST_IS_POSSIBLE}", REST)
    elif state in {State.DONE, State.PENDING_APPROVAL}:
        yield Obstacle(name, f"{is_so}; {_first(record)}", _ending(record))
    elif state is not State.CANCELLED and (
        state not in fleet_task.REMOVABLE or (record.parts and state is not State.FAILED)
    ):
        if state in fleet_task.CANCELLABLE and _brings_tasks(of) and _is_the_last(board, was.id):
            yield Obstacle(name, f"{is_so}; to cancel it now would end the fleet: {_LATER}", ACCEPT)
        else:
            yield Obstacle(name, f"{is_so}; {_first(record)}", _ending(record))


_REST_IS_POSSIBLE: Final = "the rest of the change is possible without it"
_LATER: Final = "leave it in the file, accept the rest, cancel it, and remove it then"


def _brings_tasks(of: PlanChange) -> bool:
    return any(isinstance(each, TaskChange) and each.now is not None for each in of.changes)


def _is_the_last(board: Aggregate, name: str) -> bool:
    """Tell whether nothing is left to do without a task: all else that is left is a part of it, or waits for it."""
    left = {each.id: each for each in tasks_of(board) if not task.settled(each)}
    lost = {name}
    while more := {each.id for each in left.values() if each.id not in lost and lost & {*each.depends_on, each.parent}}:
        lost |= more
    return left.keys() <= lost and not intake.are_open(board) and not waits_for_money(board)


def _first(record: fleet_task.FleetTask) -> str:
    """Return what must become of a task first."""
    if record.state in fleet_task.CANCELLABLE:
        return "cancel it first"
    if record.state is State.PENDING_APPROVAL:
        return "reject or approve its work first; rejected work can be removed"
    return "wait until it is not; this says what comes next"


def _ending(record: fleet_task.FleetTask) -> str:
    """Return the command that ends a task, or shows a task that cannot be ended now."""
    if record.state in fleet_task.CANCELLABLE:
        return f"lifefold cancel {record.id}"
    if record.state is State.PENDING_APPROVAL:
        return _rejecting(record)
    return f"lifefold why {record.id}"


def _of_task(board: Aggregate, was: TaskPlan, now: TaskPlan, of: PlanChange) -> Iterator[Obstacle]:
    record: fleet_task.FleetTask = board.record(f"task:{was.id}")
    name, state = place_of("tasks", was.id), record.state
    if state in OVER:
        if was != now and not of.partial:
            keys = ", ".join(fleet_task.KEYS[each] for each in _differing(was, now))
            yield Obstacle(name, f"{keys}: the task is {state}, so that has no effect; {_REST_IS_POSSIBLE}", REST)
        return
    yield from _of_caps(board, f"{name}.budget", budgets.of_task(was.id), was.caps, now.caps)
    for field in _differing(was, now):
        key = f"{name}.{fleet_task.KEYS[field]}"
        if field in {*_AT_REST, *_WITHOUT_PARTS} and record.parts:
            yield Obstacle(key, "the task was split", FRESH, "begin a new log")
        elif field in _AT_REST and state in fleet_task.UNDER_WAY:
            yield _of_task_under_way(key, record)
    if was.verify and not now.verify and record.orphaned is task.OnDeath.VERIFY and state in fleet_task.UNDER_WAY:
        why = f"the task is {state}, and a dead session's work needs commands; leave one, or wait"
        yield Obstacle(f"{name}.verify", f"{why}; this says what comes next", f"lifefold why {record.id}")


def _of_task_under_way(key: str, record: fleet_task.FleetTask) -> Obstacle:
    """Return the obstacle of a key that a task in hand keeps."""
    is_so = f"the task is {record.state}{f' with {record.owner}' if record.owner else ''}"
    if record.state is State.PENDING_APPROVAL:
        return Obstacle(key, is_so, _rejecting(record), "reject its work first")
    return Obstacle(key, is_so, f"lifefold why {record.id}", "wait until it is not; this says what comes next")


def _rejecting(record: fleet_task.FleetTask) -> str:
    return f"lifefold reject {record.id} --reason '{_CHANGED}'"


_CHANGED: Final = "the fleet file has changed"

OVER: Final = frozenset({State.CLOSED, State.CANCELLED})
"""In these states a task is over: no change of it has an effect."""


def over(board: Aggregate, change: PlanChange) -> dict[str, State]:
    """Return the tasks of a change that are over, with their states: the change has no effect on them."""
    names = {each.name for each in change.changes if isinstance(each, TaskChange)}
    return {each.id: each.state for each in tasks_of(board) if each.id in names and each.state in OVER}


_AT_REST: Final = ("depends_on", "priority", "role", "files", "needs_approval", "trust")
"""What changes of a task only while it is not begun: the board's order of work depends on it."""

_WITHOUT_PARTS: Final = ("most_subtasks", "subtasks_ms", "on_nothing")
"""What changes of a task only while it has no parts: they have it from their whole."""


def _differing(was: msgspec.Struct, now: msgspec.Struct) -> tuple[str, ...]:
    """Return the fields in which two of a kind differ."""
    return tuple(each for each in was.__struct_fields__ if getattr(was, each) != getattr(now, each))


# Agents and services


def _of_agent(board: Aggregate, change: AgentChange) -> Iterator[Obstacle]:
    was, now, name = change.was, change.now, place_of("agents", change.name)
    if was is None and now is not None:
        if f"worker_slot:{change.name}" in board.entities:
            yield Obstacle(name, _WAS_THERE, ACCEPT)
        elif now.caps != Caps() and not _is_metered(board):
            yield Obstacle(f"{name}.budget", _UNMETERED, FRESH)
    elif was is not None and now is not None:
        yield from _of_caps(board, f"{name}.budget", budgets.of_agent(was.name), was.caps, now.caps)
        yield from _of_kept_agent(board, name, was, now)


def _of_kept_agent(board: Aggregate, name: str, was: AgentPlan, now: AgentPlan) -> Iterator[Obstacle]:
    slot: worker_slot.WorkerSlot = board.record(f"worker_slot:{was.name}")
    if was.trust is not now.trust:
        yield _of_trust(name, slot, was, now)
    settled = {"restart": "restart", "talks": "kind", "steers": "kind", "account": "account"}
    changed = dict.fromkeys(key for field, key in settled.items() if getattr(was, field) != getattr(now, field))
    for key in (*_silences(was.stall, now.stall), *changed):
        why = "is settled when an agent begins; put that back, or give the agent another name"
        yield Obstacle(f"{name}.{key}", why, ACCEPT)
    of = board.entities.get(f"task:{slot.task}")
    if of is not None and of.record.owner == was.name and of.record.role in {*was.roles} - {*now.roles}:
        why = f"{was.name} is at {slot.task}, which takes the role {of.record.role}; {_first(of.record)}"
        yield Obstacle(f"{name}.roles", why, _ending(of.record))


def _silences(was: stall_detector.Limits | None, now: stall_detector.Limits | None) -> Iterator[str]:
    """Yield the keys of the silences that differ."""
    for field, key in _SILENCES.items():
        if getattr(was, field, None) != getattr(now, field, None):
            yield key


_SILENCES: Final = {"warn_ms": "stall_warn", "nudge_ms": "stall_interrupt", "end_ms": "stall_timeout"}


def _of_trust(name: str, slot: worker_slot.WorkerSlot, was: AgentPlan, now: AgentPlan) -> Obstacle:
    """Return the obstacle of planned trust, with the command by which an operator changes a level."""
    why = "is settled when an agent begins; put that back"
    if slot.trust is None or slot.state is worker_slot.State.GONE:
        return Obstacle(f"{name}.trust", why, ACCEPT)
    way = "promote" if now.trust > was.trust else "demote"
    reason = f"the fleet file said {now.trust.word}"
    more = f"; this {way}s it by one level, and the file may say what it said"
    return Obstacle(f"{name}.trust", f"{why}{more}", f"lifefold trust {was.name} --{way} --reason '{reason}'")


def _of_service(board: Aggregate, change: ServiceChange) -> Iterator[Obstacle]:
    was, now, name = change.was, change.now, place_of("agents", change.name)
    if was is None and f"service_slot:{change.name}" in board.entities:
        yield Obstacle(name, _WAS_THERE, ACCEPT)
    elif was is not None and now is not None:
        keys = ", ".join(_SERVICE_KEYS[each] for each in _differing(was, now))
        why = f"{keys}: is settled when a service begins; put that back, or give the service another name"
        yield Obstacle(name, why, ACCEPT)


_SERVICE_KEYS: Final = {
    "limits": "its limits",
    "runs": "session_timeout or grace",
    "triggers": "triggers",
    "takes_messages": "triggers",
}

_WAS_THERE: Final = (
    "one of that name was in this fleet before, and has left or is leaving;"
    " give it another name, as an [[agents]] of its own"
)


# The fleet


def _of_fleet(board: Aggregate, change: FleetChange) -> Iterator[Obstacle]:
    was, now = change.was, change.now
    yield from _of_caps(board, "fleet.budget", budgets.FLEET, was.budget.caps, now.budget.caps)
    if not _is_alike(board, was.budget, now.budget):
        yield Obstacle("fleet.budget", "how budgets are kept is settled when a log begins; put that back", FRESH)
    if was.approve_plan and not now.approve_plan:
        yield Obstacle("fleet.approve_plan", "the plan was put before a person; put that back, approve it", _APPROVE)
    settled = "name approve_plan gates orphaned restarts preemption aborts anew questions notify to_branch"
    for field in settled.split():
        if getattr(was, field) != getattr(now, field) and not (field == "approve_plan" and was.approve_plan):
            key = {"restarts": "restart", "anew": "on_retry", "to_branch": "merge"}.get(field, field)
            yield Obstacle(f"fleet.{key}", "is settled when a log begins; put that back, or begin a new log", FRESH)


_APPROVE: Final = "lifefold approve"

_UNMETERED: Final = "this fleet counts nothing, because its file had no budget when its log began; begin a new log"


def _is_alike(board: Aggregate, was: Budget, now: Budget) -> bool:
    """Tell whether budgets are kept alike; how much time is set aside counts only where time is limited."""
    all_budgets = (entity.record for ref, entity in board.entities.items() if ref.startswith(fleet_task.BUDGET))
    keeps_time = any(line.resource is Resource.TIME for each in all_budgets for line in each.lines)
    share = now.share if keeps_time else now.share.but(Resource.TIME, was.share.of(Resource.TIME))
    return msgspec.structs.replace(now, caps=was.caps, share=share) == was


def _of_caps(board: Aggregate, what: str, ref: str, was: Caps, now: Caps) -> Iterator[Obstacle]:
    """Yield what is in the way of other caps: there is no such account, or more is spent and set aside already."""
    for resource in Resource:
        before, after = was.of(resource), now.of(resource)
        if before == after:
            continue
        if before is None or after is None:
            why = f"{_LIMITS[resource]} is limited from the beginning of a log on, or not; put that back, or begin one"
            yield Obstacle(what, why, FRESH)
            continue
        line = next(each for each in board.record(ref).lines if each.resource is resource)
        if line.account.free < line.account.cap - after:
            used = budgets.in_words(resource, line.account.cap - line.account.free)
            why = f"{budgets.in_words(resource, after)} is less than what is spent or set aside, {used}"
            yield Obstacle(what, f"{why}; to begin nothing new for now, pause", "lifefold pause")


_LIMITS: Final = {
    Resource.MONEY: "money",
    Resource.TOKENS: "how many tokens there are",
    Resource.TIME: "time",
    Resource.SESSIONS: "how many sessions there are",
}


def _is_metered(board: Aggregate) -> bool:
    """Tell whether what sessions cost is counted."""
    return any(ref.startswith(fleet_task.BUDGET) for ref in board.entities)
