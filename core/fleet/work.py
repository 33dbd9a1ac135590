"""What the board's rules look up, folded over its transitions: which tasks are ready, and who waits for one."""

from bisect import bisect_left

import msgspec
from pyrsistent import PMap, PSet, PVector, pmap, pset, pvector

from lifefold.core import task
from lifefold.core.fleet import seat
from lifefold.core.kernel import Aggregate, Transition, replace

Place = tuple[int, int, str]
"""Where a task stands among those that could be next: its priority, its place in the plan, its id."""


class Work(msgspec.Struct, frozen=True):
    """What the rules look up. ``ready`` has the tasks to give out and ``waiting`` the seats to take them, in order.

    ``open`` has all open tasks: a fold sees transitions and no entities. ``unmet`` counts, for each task, the
    dependencies that are not closed yet; ``dependents`` is the other direction.
    """

    ready: tuple[Place, ...] = ()
    waiting: tuple[str, ...] = ()
    open: PMap[str, Place] = pmap()
    unmet: PMap[str, int] = pmap()
    dependents: PMap[str, PVector[str]] = pmap()
    closed: PSet[str] = pset()
    unsettled: int = 0
    present: int = 0


def fold(work: Work, transition: Transition) -> Work:
    """Take a transition of a task or a seat into account."""
    if transition.machine == "seat":
        return _fold_seat(work, transition)
    return _fold_task(work, transition) if transition.machine == "task" else work


def _fold_seat(work: Work, transition: Transition) -> Work:
    ref, entered = transition.entity, transition.entered
    waiting = tuple(each for each in work.waiting if each != ref)
    if entered is seat.State.WAITING:
        waiting = (*waiting, ref)
    arrived = 1 if transition.before is None else 0
    gone = 1 if entered is seat.State.GONE else 0
    return replace(work, waiting=waiting, present=work.present + arrived - gone)


def _fold_task(work: Work, transition: Transition) -> Work:
    record: task.Task = transition.after.record
    if transition.before is None:
        work = _introduce(work, record)
    was_settled = transition.before is None or task.settled(transition.before.record)
    work = replace(work, unsettled=work.unsettled + was_settled - task.settled(record))
    if transition.entered is task.State.OPEN:
        return _open(work, record)
    if record.id in work.open:
        work = _take(work, record.id)
    return _close(work, record.id) if transition.entered is task.State.CLOSED else work


def _introduce(work: Work, record: task.Task) -> Work:
    """Take in a new task: what it waits for, and that it does."""
    needed, dependents = dict.fromkeys(record.depends_on), work.dependents
    for each in needed:
        dependents = dependents.set(each, dependents.get(each, _NOBODY).append(record.id))
    unmet = sum(1 for each in needed if each not in work.closed)
    return replace(work, unmet=work.unmet.set(record.id, unmet), dependents=dependents)


_NOBODY: PVector[str] = pvector()


def _open(work: Work, record: task.Task) -> Work:
    """Take in that a task is open; it is ready if it waits for nothing."""
    place = (record.priority, record.ordinal, record.id)
    at, ready = bisect_left(work.ready, place), work.ready
    if not work.unmet[record.id]:
        ready = ready[:at] + (place,) + ready[at:]  # noqa: RUF005 - unpacking copies three times as much
    return replace(work, open=work.open.set(record.id, place), ready=ready)


def _take(work: Work, name: str) -> Work:
    """Take in that a task is open no more."""
    at = bisect_left(work.ready, work.open[name])
    ready = work.ready if work.unmet[name] else work.ready[:at] + work.ready[at + 1 :]
    return replace(work, open=work.open.remove(name), ready=ready)


def _close(work: Work, name: str) -> Work:
    """Take in that a task is closed: what waited for nothing else and is open is ready."""
    unmet = work.unmet
    dependents = work.dependents.get(name, _NOBODY)
    for each in dependents:
        unmet = unmet.set(each, unmet[each] - 1)
    freed = [work.open[each] for each in dependents if not unmet[each] and each in work.open]
    ready = tuple(sorted([*work.ready, *freed])) if freed else work.ready
    return replace(work, closed=work.closed.add(name), unmet=unmet, ready=ready)


def work_of(board: Aggregate) -> Work:
    """Return the board's view of its work."""
    work: Work = board.views["work"]
    return work


def tasks_of(board: Aggregate) -> list[task.Task]:
    """Return all tasks."""
    return [entity.record for ref, entity in board.entities.items() if ref.startswith("task:")]


def is_lost(record: task.Task) -> bool:
    """Tell whether a task will not be done unless somebody asks for it."""
    return task.settled(record) and record.state is not task.State.CLOSED
