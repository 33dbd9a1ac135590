"""What one task means for others: for its dependents, its parent, and its parts.

- A task that depends on a lost task is blocked, with the reason, and so are its own dependents. When the lost task may
  be done after all, they go on by themselves (E19).
- A split task waits for its parts. When the last part is closed, it is verified as a whole. When a part is lost, it is
  blocked at once (E7). Both are also decided when it begins to wait, since parts may have been faster (E8, E10).
- The parts of a cancelled task are cancelled, at every depth, each once (E36).
- A task is blocked while no worker has its role or its trust level (see ``trust``).
- A retry that an operator grants begins at once.
"""

from collections.abc import Iterator
from typing import cast

from lifefold.core.fleet.board import fleet_task, worker_slot
from lifefold.core.fleet.board.fleet_task import FleetTask
from lifefold.core.fleet.dispatch import budgets
from lifefold.core.fleet.dispatch.task_index import Requirement, abilities, any_agent_may, is_lost, tasks_of, work_of
from lifefold.core.kernel import Aggregate, Create, Created, Dispatch, Entity, Transition, rule
from lifefold.core.lifecycles import task
from lifefold.core.policy.access import AccessLevel

_PARTS = task.State.WAITING_FOR_SUBTASKS
_WAITS = frozenset({task.State.OPEN, _PARTS})
"""In these states a task waits for others."""


@rule(on=fleet_task.machine, event=fleet_task.RetryGranted)
def retry_granted(_board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Open a task at once when an operator grants a retry."""
    yield Dispatch(transition.entity, task.Retried())


@rule(on=fleet_task.machine)
def block_waiting(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Block the tasks that wait for a task that is lost, with the reason (E7, E19)."""
    record: FleetTask = transition.after.record
    if is_lost(record) and not _was_lost(transition):
        for each in _waiting_for(board, record):
            if each.state in _WAITS:
                yield _lost(each, by=record)


@rule(on=fleet_task.machine)
def free_waiting(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Let tasks go on that were blocked because of a task, when it may be done after all (E19)."""
    record: FleetTask = transition.after.record
    if _was_lost(transition) and not is_lost(record):
        for each in _waiting_for(board, record):
            if each.state is task.State.BLOCKED and each.record.blocked_by == record.id:
                yield Dispatch(each.ref, fleet_task.DependencyBack(record.id))


@rule(on=fleet_task.machine, enters=_WAITS)
def look_again(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Block a task that begins to wait for something that is lost, or let it wait for its parts (E8, E10, E19).

    A task that is no longer in the plan is blocked by that.
    """
    record: FleetTask = transition.after.record
    if transition.entered is task.State.OPEN and record.waits_for_parts:
        yield Dispatch(transition.entity, task.Decomposed(0))
    elif transition.entered is task.State.OPEN and record.removed:
        yield Dispatch(transition.entity, fleet_task.DependencyLost(fleet_task.PLAN, fleet_task.NOT_IN_THE_PLAN))
    else:
        needed = record.parts_of_it() if transition.after.state is _PARTS else record.depends_on
        lost = [each for each in _records(board, needed) if is_lost(each)]
        if lost:
            yield _lost(transition.after, by=lost[0])
        elif transition.after.state is not _PARTS and is_unmet(board, (record.role, record.level)):
            yield _without(board, transition.entity, (record.role, record.level))
        elif transition.after.state is not _PARTS and (spent := budgets.out_of_money(board, record.id)) is not None:
            yield spent
        elif transition.after.state is _PARTS and _are_closed(board, record):
            yield Dispatch(transition.entity, task.SubtasksCompleted())


@rule(
    on=worker_slot.machine,
    event=(worker_slot.WorkerGone, worker_slot.Dismissed, worker_slot.Reassigned, worker_slot.Judged),
)
def lose_role(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Block tasks when no worker is left with their role or trust level."""
    before: worker_slot.WorkerSlot = transition.was
    now: worker_slot.WorkerSlot = transition.after.record
    less = now.level < before.level or now.leaves > before.leaves or not {*before.roles} <= {*now.roles}
    if transition.entered is worker_slot.State.GONE or less:
        every = {(role, level) for role, _ in abilities(before) for level in AccessLevel}
        lost = {asked for asked in every if is_unmet(board, asked)}
        offers = work_of(board).offered.items() if lost else ()
        for name, each in sorted(offers, key=lambda offered: offered[0]):
            if each.asked in lost:
                yield _without(board, f"task:{name}", each.asked)


@rule(on=worker_slot.machine, event=(Created, worker_slot.Reassigned))
def gain_role(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Let tasks go on when a plan change brings a worker with their role or trust level.

    Only plan changes bring roles. A level that an agent earns by its work is handled by ``trust``.
    """
    before = () if transition.before is None else abilities(transition.before.record)
    if not work_of(board).changing or {*abilities(transition.after.record)} <= {*before}:
        return
    for each in sorted(tasks_of(board), key=lambda each: (each.priority, each.ordinal, each.id)):
        asked = (each.role, each.level)
        is_lacking = each.state is task.State.BLOCKED and each.blocked_by.startswith(
            (fleet_task.ROLE, fleet_task.LEVEL)
        )
        if is_lacking and not (is_unmet(board, asked) and unmet_requirement(board, asked)[0] == each.blocked_by):
            yield Dispatch(f"task:{each.id}", fleet_task.DependencyBack(each.blocked_by))


@rule(on=fleet_task.machine, enters=task.State.CLOSED)
def gather(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Let a split task go on when its last part is closed, however late (E7)."""
    whole = gathered(board, transition)
    if whole is not None:
        yield Dispatch(whole.ref, task.SubtasksCompleted() if whole.state is _PARTS else task.Unblocked())


def gathered(board: Aggregate, transition: Transition) -> Entity[FleetTask] | None:
    """Return the split task that goes on because its last part is closed now; None if there is none."""
    if transition.entered is not task.State.CLOSED or not transition.after.record.parent:
        return None
    whole: Entity[FleetTask] = board.entities[f"task:{transition.after.record.parent}"]
    goes_on = whole.state is _PARTS or (whole.state is task.State.BLOCKED and whole.record.waits_for_parts)
    return whole if goes_on and _are_closed(board, whole.record) else None


@rule(on=fleet_task.machine, event=fleet_task.Split)
def divide(_board: Aggregate, transition: Transition) -> Iterator[Create]:
    """Create the parts of a split task, each with the role, priority and retries of the whole."""
    split = cast("fleet_task.Split", transition.event)
    whole: FleetTask = transition.after.record
    for number, each in enumerate(split.tasks, transition.was.parts + 1):
        part = FleetTask(
            state=task.State.OPEN,
            id=whole.part(number),
            prompt=each.prompt,
            verify=each.verify,
            files=each.files,
            parent=whole.id,
            role=whole.role,
            priority=whole.priority,
            ordinal=whole.ordinal,
            max_retries=whole.max_retries,
            limit=whole.max_retries,
            most_subtasks=whole.most_subtasks // 2,
            fate=whole.fate and fleet_task.Fate(whole.fate.policy),
            subtasks_ms=whole.subtasks_ms,
            approval_ms=whole.approval_ms,
            retry=whole.retry,
            orphaned=whole.orphaned,
            on_nothing=whole.on_nothing,
            anew=whole.anew,
            level=whole.level,
            merges=whole.merges,
            key=whole.key,
        )
        yield Create(f"task:{part.id}", part)


@rule(on=fleet_task.machine, enters=(task.State.CANCELLED, task.State.OPEN))
def cancel_parts(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Cancel the parts of a cancelled task; a part that cannot be cancelled yet, when it is opened (E36).

    An aborted task has its parts aborted, with the reason (``aborts``).
    """
    record: FleetTask = transition.after.record
    if transition.entered is task.State.CANCELLED:
        if isinstance(transition.event, fleet_task.Aborted):
            return
        for each in _records(board, record.parts_of_it()):
            if each.state in _CANCELLABLE:
                yield _cancelled(each, with_=record)
    elif record.parent and not record.is_aborted:
        whole: FleetTask = board.record(f"task:{record.parent}")
        if whole.state is task.State.CANCELLED:
            yield _cancelled(record, with_=whole)


def _cancelled(part: FleetTask, *, with_: FleetTask) -> Dispatch:
    return Dispatch(f"task:{part.id}", task.Cancelled(f"{with_.id} is cancelled"))


_CANCELLABLE = frozenset(
    {task.State.OPEN, task.State.CLAIMED, task.State.IN_PROGRESS, task.State.BLOCKED, task.State.WAITING_FOR_SUBTASKS}
)
"""In these states a task can be cancelled. Done and failed tasks cannot (E16)."""


def is_unmet(board: Aggregate, asked: Requirement) -> bool:
    """Tell whether a task requires a role or a trust level that no remaining worker has."""
    return asked != ("", AccessLevel.UNTRUSTED) and not any_agent_may(work_of(board), *asked)


def unmet_requirement(board: Aggregate, asked: Requirement) -> tuple[str, str]:
    """Return the missing role or level, and a phrase about it that follows the name of a task."""
    role, level = asked
    if role and not any_agent_may(work_of(board), role, AccessLevel.UNTRUSTED):
        return f"{fleet_task.ROLE}{role}", f"asks for the role {role}, and no worker is left that has it"
    whom = f"with the role {role} " if role else ""
    return f"{fleet_task.LEVEL}{level.word}", f"takes an agent {whom}that is {level.word}, and there is none"


def _without(board: Aggregate, ref: str, asked: Requirement) -> Dispatch:
    return Dispatch(ref, fleet_task.DependencyLost(*unmet_requirement(board, asked)))


def _was_lost(transition: Transition) -> bool:
    return transition.before is not None and is_lost(transition.before.record)


def _waiting_for(board: Aggregate, record: FleetTask) -> Iterator[Entity[FleetTask]]:
    """Yield the dependents of a task, and the task that it is a part of."""
    for name in work_of(board).dependents.get(record.id, ()):
        yield board.entities[f"task:{name}"]
    if record.parent:
        yield board.entities[f"task:{record.parent}"]


def _records(board: Aggregate, names: tuple[str, ...]) -> Iterator[FleetTask]:
    for name in names:
        found = board.entities.get(f"task:{name}")
        if found is not None:
            yield found.record


def _are_closed(board: Aggregate, whole: FleetTask) -> bool:
    """Tell whether all parts of a task exist and are closed."""
    parts = list(_records(board, whole.parts_of_it()))
    return len(parts) == whole.parts and all(each.state is task.State.CLOSED for each in parts)


def _lost(waiting: Entity[FleetTask], *, by: FleetTask) -> Dispatch:
    what = f"{by.id}, a part of it, is" if waiting.record.id == by.parent else f"depends on {by.id}, which is"
    return Dispatch(waiting.ref, fleet_task.DependencyLost(by.id, f"{what} {by.state}"))
