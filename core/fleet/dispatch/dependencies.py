"""What one task means for others: those that depend on it, the one that it is a part of, and the parts of it.

- What depends on a task that will not be done is blocked, with the reason, and so is what depends on that; when the
  task may be done after all, they go on by themselves (E19).
- A task that was split waits for its parts: when the last is closed it is to be verified as a whole, when one is lost
  it is blocked at once (E7). Both are asked whenever it begins to wait, too: its parts may have been faster (E8, E10).
- The parts of a task that nobody wants any more are cancelled, with all of theirs, each once (E36).
- What asks for a role that nobody has who is left is blocked, too; or for more trust than anybody has (``trusting``).
- A retry that a person grants is done at once.
"""

from collections.abc import Iterator
from typing import cast

from lifefold.core.fleet.board import fleet_task, worker_slot
from lifefold.core.fleet.board.fleet_task import FleetTask
from lifefold.core.fleet.dispatch import budgets
from lifefold.core.fleet.dispatch.task_index import Requirement, abilities, is_lost, somebody_may, tasks_of, work_of
from lifefold.core.kernel import Aggregate, Create, Created, Dispatch, Entity, Transition, rule
from lifefold.core.lifecycles import task
from lifefold.core.policy.access import AccessLevel

_PARTS = task.State.WAITING_FOR_SUBTASKS
_WAITS = frozenset({task.State.OPEN, _PARTS})
"""In these a task waits for others."""


@rule(on=fleet_task.machine, event=fleet_task.RetryGranted)
def retry_granted(_board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """A task that a person lets be tried again is opened at once."""
    yield Dispatch(transition.entity, task.Retried())


@rule(on=fleet_task.machine)
def block_waiting(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """What waits for a task that will not be done is blocked, with the reason (E7, E19)."""
    record: FleetTask = transition.after.record
    if is_lost(record) and not _was_lost(transition):
        for each in _waiting_for(board, record):
            if each.state in _WAITS:
                yield _lost(each, by=record)


@rule(on=fleet_task.machine)
def free_waiting(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """What was blocked because of a task goes on when that one may be done after all (E19)."""
    record: FleetTask = transition.after.record
    if _was_lost(transition) and not is_lost(record):
        for each in _waiting_for(board, record):
            if each.state is task.State.BLOCKED and each.record.lacks == record.id:
                yield Dispatch(each.ref, fleet_task.DependencyBack(record.id))


@rule(on=fleet_task.machine, enters=_WAITS)
def look_again(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """A task that begins to wait is blocked at once if something that it waits for will not be done (E8, E19).

    One that is open and has parts waits for them first (E10). One that is not in the plan any more is blocked by that.
    """
    record: FleetTask = transition.after.record
    if transition.entered is task.State.OPEN and record.waits:
        yield Dispatch(transition.entity, task.Decomposed(0))
    elif transition.entered is task.State.OPEN and record.removed:
        yield Dispatch(transition.entity, fleet_task.DependencyLost(fleet_task.PLAN, fleet_task.NOT_IN_THE_PLAN))
    else:
        needed = record.parts_of_it() if transition.after.state is _PARTS else record.depends_on
        lost = [each for each in _records(board, needed) if is_lost(each)]
        if lost:
            yield _lost(transition.after, by=lost[0])
        elif transition.after.state is not _PARTS and is_unmanned(board, (record.role, record.level)):
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
    """When the last worker leaves, is gone, demoted, or without its role, who could take them, tasks are blocked."""
    before: worker_slot.WorkerSlot = transition.was
    now: worker_slot.WorkerSlot = transition.after.record
    less = now.level < before.level or now.leaves > before.leaves or not {*before.roles} <= {*now.roles}
    if transition.entered is worker_slot.State.GONE or less:
        every = {(role, level) for role, _ in abilities(before) for level in AccessLevel}
        lost = {asked for asked in every if is_unmanned(board, asked)}
        offers = work_of(board).offered.items() if lost else ()
        for name, each in sorted(offers, key=lambda offered: offered[0]):
            if each.asked in lost:
                yield _without(board, f"task:{name}", each.asked)


@rule(on=worker_slot.machine, event=(Created, worker_slot.Reassigned))
def gain_role(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """What was blocked for want of a role, or of trust, goes on when a plan change brings somebody who may take it.

    Only a plan change brings roles. Whoever comes to a level by its work is seen elsewhere (``trusting``).
    """
    before = () if transition.before is None else abilities(transition.before.record)
    if not work_of(board).changing or {*abilities(transition.after.record)} <= {*before}:
        return
    for each in sorted(tasks_of(board), key=lambda each: (each.priority, each.ordinal, each.id)):
        asked = (each.role, each.level)
        is_lacking = each.state is task.State.BLOCKED and each.lacks.startswith((fleet_task.ROLE, fleet_task.LEVEL))
        if is_lacking and not (is_unmanned(board, asked) and unmanned(board, asked)[0] == each.lacks):
            yield Dispatch(f"task:{each.id}", fleet_task.DependencyBack(each.lacks))


@rule(on=fleet_task.machine, enters=task.State.CLOSED)
def gather(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """When the last part of a task is closed, the task goes on, also if that took too long (E7)."""
    whole = gathered(board, transition)
    if whole is not None:
        yield Dispatch(whole.ref, task.SubtasksCompleted() if whole.state is _PARTS else task.Unblocked())


def gathered(board: Aggregate, transition: Transition) -> Entity[FleetTask] | None:
    """Return the task that goes on because its last part is closed now; None if there is none."""
    if transition.entered is not task.State.CLOSED or not transition.after.record.parent:
        return None
    whole: Entity[FleetTask] = board.entities[f"task:{transition.after.record.parent}"]
    goes_on = whole.state is _PARTS or (whole.state is task.State.BLOCKED and whole.record.waits)
    return whole if goes_on and _are_closed(board, whole.record) else None


@rule(on=fleet_task.machine, event=fleet_task.Split)
def divide(_board: Aggregate, transition: Transition) -> Iterator[Create]:
    """A task that is split gets its parts, each a task of its own: with its role, its priority and its retries."""
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
            retry=whole.retry,
            orphaned=whole.orphaned,
            on_nothing=whole.on_nothing,
            level=whole.level,
            merges=whole.merges,
            key=whole.key,
        )
        yield Create(f"task:{part.id}", part)


@rule(on=fleet_task.machine, enters=(task.State.CANCELLED, task.State.OPEN))
def cancel_parts(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """The parts of a task that nobody wants any more are cancelled, too; one that rests, when it is opened (E36).

    What is aborted has its parts aborted, which says why (``aborts``).
    """
    record: FleetTask = transition.after.record
    if transition.entered is task.State.CANCELLED:
        if isinstance(transition.event, fleet_task.Aborted):
            return
        for each in _records(board, record.parts_of_it()):
            if each.state in _CANCELLABLE:
                yield _cancelled(each, with_=record)
    elif record.parent and not record.is_doomed:
        whole: FleetTask = board.record(f"task:{record.parent}")
        if whole.state is task.State.CANCELLED:
            yield _cancelled(record, with_=whole)


def _cancelled(part: FleetTask, *, with_: FleetTask) -> Dispatch:
    return Dispatch(f"task:{part.id}", task.Cancelled(f"{with_.id} is cancelled"))


_CANCELLABLE = frozenset(
    {
        task.State.OPEN,
        task.State.CLAIMED,
        task.State.IN_PROGRESS,
        task.State.BLOCKED,
        task.State.WAITING_FOR_SUBTASKS,
    }
)
"""In these a task can be cancelled; what is done, or has failed, cannot (E16)."""


def is_unmanned(board: Aggregate, asked: Requirement) -> bool:
    """Tell whether a role or some trust is asked for, and nobody is left who has it."""
    return asked != ("", AccessLevel.UNTRUSTED) and not somebody_may(work_of(board), *asked)


def unmanned(board: Aggregate, asked: Requirement) -> tuple[str, str]:
    """Return what is lacked where nobody has what is asked for, and say it of a task, after its name."""
    role, level = asked
    if role and not somebody_may(work_of(board), role, AccessLevel.UNTRUSTED):
        return f"{fleet_task.ROLE}{role}", f"asks for the role {role}, and nobody is left who has it"
    whom = f"with the role {role} " if role else ""
    return f"{fleet_task.LEVEL}{level.word}", f"takes an agent {whom}that is {level.word}, and there is none"


def _without(board: Aggregate, ref: str, asked: Requirement) -> Dispatch:
    return Dispatch(ref, fleet_task.DependencyLost(*unmanned(board, asked)))


def _was_lost(transition: Transition) -> bool:
    return transition.before is not None and is_lost(transition.before.record)


def _waiting_for(board: Aggregate, record: FleetTask) -> Iterator[Entity[FleetTask]]:
    """Yield the tasks that have to do with what becomes of this one."""
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
    """Tell whether all parts of a task are there, and closed."""
    parts = list(_records(board, whole.parts_of_it()))
    return len(parts) == whole.parts and all(each.state is task.State.CLOSED for each in parts)


def _lost(waiting: Entity[FleetTask], *, by: FleetTask) -> Dispatch:
    what = f"{by.id}, a part of it, is" if waiting.record.id == by.parent else f"depends on {by.id}, which is"
    return Dispatch(waiting.ref, fleet_task.DependencyLost(by.id, f"{what} {by.state}"))
