"""The board: one aggregate with all tasks and a seat for every worker. It decides who works on what.

A task is *ready* when it is OPEN and everything it depends on is CLOSED: verified is not enough, because a worktree
starts from the fleet's branch, and only what is merged is in it. The first ready task, by priority and then by its
place in the plan, goes to the seat that has waited longest. A failed task is opened again while it has retries; when it
has none, what depends on it is blocked, with the reason. When nothing is left to do, or nobody is left to do it,
everybody is sent home.
"""

from bisect import insort
from collections.abc import Iterator

import msgspec
from pyrsistent import PMap, PSet, pmap, pset

from lifefold.core import task
from lifefold.core.fleet import assignment, intent, seat
from lifefold.core.kernel import Aggregate, AggregateType, Dispatch, Transition, View, replace, rule
from lifefold.effects import Tell

NAME = "board"


class Work(msgspec.Struct, frozen=True):
    """What the rules look up. ``ready`` has (priority, place in the plan, task), ``waiting`` seats, both in order.

    ``unmet`` counts, for each task, the dependencies that are not closed yet; ``dependents`` is the other direction.
    """

    ready: tuple[tuple[int, int, str], ...] = ()
    waiting: tuple[str, ...] = ()
    unmet: PMap[str, int] = pmap()
    dependents: PMap[str, tuple[str, ...]] = pmap()
    open: PSet[str] = pset()
    closed: PSet[str] = pset()
    places: PMap[str, tuple[int, int, str]] = pmap()
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
    name = record.id
    if transition.before is None:
        needed = dict.fromkeys(record.depends_on)
        unmet = sum(1 for each in needed if each not in work.closed)
        dependents = work.dependents
        for each in needed:
            dependents = dependents.set(each, (*dependents.get(each, ()), name))
        place = (record.priority, record.ordinal, name)
        work = replace(
            work, unmet=work.unmet.set(name, unmet), dependents=dependents, places=work.places.set(name, place)
        )
    was_settled = transition.before is not None and task.settled(transition.before.record)
    change = (transition.before is None) + was_settled - task.settled(record)
    now_open = work.open.add(name) if record.state is task.State.OPEN else work.open.discard(name)
    work = replace(work, unsettled=work.unsettled + change, open=now_open)
    if transition.entered is task.State.CLOSED:
        unmet_now = work.unmet
        for each in work.dependents.get(name, ()):
            unmet_now = unmet_now.set(each, unmet_now[each] - 1)
        work = replace(work, closed=work.closed.add(name), unmet=unmet_now)
    return replace(work, ready=_ready(work, record, transition))


def _ready(work: Work, record: task.Task, transition: Transition) -> tuple[tuple[int, int, str], ...]:
    """Return the ready tasks after one task's transition: itself may come or go, its dependents may come."""
    place = work.places[record.id]
    ready = [each for each in work.ready if each != place]
    if record.state is task.State.OPEN and work.unmet[record.id] == 0:
        insort(ready, place)
    if transition.entered is task.State.CLOSED:
        for each in work.dependents.get(record.id, ()):
            if each in work.open and work.unmet[each] == 0:
                insort(ready, work.places[each])
    return tuple(ready)


def work_of(board: Aggregate) -> Work:
    """Return the board's view of its work."""
    work: Work = board.views["work"]
    return work


def brief_of(record: task.Task) -> task.Brief:
    """Return what a worker gets to know of a task."""
    return task.Brief(record.id, record.epoch, record.prompt, record.verify, record.reason)


@rule(on=seat.machine)
def match_seats(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """A seat that starts to wait gets a task, if one is ready."""
    if transition.entered is seat.State.WAITING:
        yield from _claims(board)


@rule(on=task.in_fleet)
def match_tasks(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Tasks that become ready go to seats that wait."""
    if transition.entered in {task.State.OPEN, task.State.CLOSED}:
        yield from _claims(board)


def _claims(board: Aggregate) -> Iterator[Dispatch]:
    work = work_of(board)
    for (_priority, _place, name), waiting in zip(work.ready, work.waiting, strict=False):
        yield Dispatch(f"task:{name}", task.Claimed(waiting.removeprefix("seat:")))


@rule(on=task.in_fleet)
def hand_over(board: Aggregate, transition: Transition) -> Iterator[Dispatch | Tell]:
    """A claimed task is handed to its new owner."""
    del board
    if transition.entered is task.State.CLAIMED:
        record: task.Task = transition.after.record
        yield Dispatch(f"seat:{record.owner}", seat.Seated(record.id))
        yield Tell(f"worker/{record.owner}", "assignment", assignment.Assigned(brief_of(record)))


@rule(on=task.in_fleet)
def retry(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """A failed task is opened again while it has retries (E5)."""
    del board
    record: task.Task = transition.after.record
    if transition.entered is task.State.FAILED and not task.settled(record):
        yield Dispatch(transition.entity, task.Retried())


@rule(on=task.in_fleet)
def block_dependents(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """What depends on a task that will not be done is blocked, with the reason (E19)."""
    record: task.Task = transition.after.record
    if transition.entered is not None and record.state is not task.State.CLOSED and task.settled(record):
        for name in work_of(board).dependents.get(record.id, ()):
            if board.entities[f"task:{name}"].state is task.State.OPEN:
                reason = f"depends on {record.id}, which is {record.state}"
                yield Dispatch(f"task:{name}", task.Blocked(reason))


@rule(on=seat.machine)
def release(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """A task given to a worker that is gone does not stay with it (E11)."""
    if transition.entered is not seat.State.GONE or transition.before is None or not transition.before.record.task:
        return
    ref = f"task:{transition.before.record.task}"
    record: task.Task = board.record(ref)
    if record.owner != transition.entity.removeprefix("seat:"):
        return
    reason = f"{record.owner} is gone"
    if record.state is task.State.IN_PROGRESS:
        yield Dispatch(ref, task.Orphaned(record.epoch))
    if record.state is task.State.DONE:
        yield Dispatch(ref, task.Rejected(record.epoch, reason))
    elif record.state in {task.State.CLAIMED, task.State.IN_PROGRESS}:
        yield Dispatch(ref, task.Released(record.epoch, reason))


@rule(on=task.in_fleet)
def send_home(board: Aggregate, transition: Transition) -> Iterator[Tell]:
    """When every task is settled, everybody may go."""
    if work_of(board).unsettled == 0 and transition.before is not None and not task.settled(transition.before.record):
        for ref in sorted(board.entities):
            if ref.startswith("seat:") and board.entities[ref].state is not seat.State.GONE:
                yield Tell(f"worker/{ref.removeprefix('seat:')}", "intent", intent.StopWanted("no work is left"))


def finished(board: Aggregate) -> bool:
    """Nothing is left to do, or nobody to do it."""
    work = work_of(board)
    return work.unsettled == 0 or work.present == 0


aggregate = AggregateType(
    NAME,
    machines=(task.in_fleet, seat.machine),
    rules=(hand_over, retry, block_dependents, release, match_tasks, match_seats, send_home),
    views={"work": View(Work(), fold)},
)
