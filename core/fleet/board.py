"""The board: one aggregate with all tasks and a seat for every worker. It decides who works on what.

A task is *ready* when it is OPEN and everything it depends on is CLOSED: verified is not enough, because a worktree
starts from the fleet's branch, and only what is merged is in it. The first ready task, by priority and then by its
place in the plan, goes to the seat that has waited longest. A failed task is opened again while it has retries; when it
has none, what depends on it is blocked, with the reason. A task that leaves its owner otherwise than by the owner's own
word is recalled from it. When nothing is left to do, or nobody is left to do it, everybody is sent home.
"""

from collections.abc import Iterator

from lifefold.core import task
from lifefold.core.fleet import assignment, intent, seat
from lifefold.core.fleet.nearby import on_board
from lifefold.core.fleet.work import Work, fold, is_lost, tasks_of, work_of
from lifefold.core.kernel import (
    Aggregate,
    AggregateType,
    Dispatch,
    Property,
    Transition,
    View,
    always,
    always_step,
    near,
    rule,
    sometimes,
)
from lifefold.effects import Tell

NAME = "board"


def brief_of(record: task.Task) -> task.Brief:
    """Return what a worker gets to know of a task."""
    return task.Brief(record.id, record.epoch, record.prompt, record.verify, record.failure, record.kept)


def match(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Ready tasks go to seats that wait, whichever of the two has just come to be."""
    if transition.entered not in {seat.State.WAITING, task.State.OPEN, task.State.CLOSED}:
        return
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
def recall(board: Aggregate, transition: Transition) -> Iterator[Tell]:
    """An owner whose claim is ended by somebody else, in whatever way, is told so, if it is still there (E20)."""
    if transition.before is None or transition.before.state not in _CLAIM or transition.after.state in _KEPT:
        return
    before: task.Task = transition.before.record
    worker = f"worker/{before.owner}"
    owner = board.entities.get(f"seat:{before.owner}")
    if owner is not None and owner.state is seat.State.WORKING and transition.actor != worker:
        recalled = assignment.Recalled(before.id, before.epoch, transition.after.record.reason)
        yield Tell(worker, "assignment", recalled)


_CLAIM = frozenset({task.State.CLAIMED, task.State.IN_PROGRESS})
"""While these hold, a task is its owner's to work on."""

_KEPT = _CLAIM | {task.State.DONE}
"""And in these it stays the owner's: what is done is still to be verified and merged."""


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
    if transition.entered is not None and is_lost(record):
        for name in work_of(board).dependents.get(record.id, ()):
            if board.entities[f"task:{name}"].state is task.State.OPEN:
                yield _blocked(name, by=record)


@rule(on=task.in_fleet)
def block_opened(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """A task that is opened while something it depends on will not be done is blocked at once: nobody could take it."""
    record: task.Task = transition.after.record
    if transition.entered is task.State.OPEN:
        needed = (board.entities.get(f"task:{name}") for name in record.depends_on)
        lost = [each.record for each in needed if each is not None and is_lost(each.record)]
        if lost:
            yield _blocked(record.id, by=lost[0])


def _blocked(name: str, *, by: task.Task) -> Dispatch:
    return Dispatch(f"task:{name}", task.Blocked(f"depends on {by.id}, which is {by.state}"))


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


def owners_sit_at_their_tasks(board: Aggregate) -> bool:
    """Who owns a task is there and sits at it, until it is home, and at no other one (E12, E21)."""
    owned = [each for each in tasks_of(board) if each.state in _KEPT]
    seats = [board.entities[f"seat:{each.owner}"] for each in owned]
    at_them = all(
        sat.state is seat.State.WORKING and sat.record.task == each.id for each, sat in zip(owned, seats, strict=True)
    )
    return at_them and len({each.owner for each in owned}) == len(owned)


def dependencies_are_closed(board: Aggregate) -> bool:
    """What is worked at depends on nothing that is not in the branch."""
    tasks = tasks_of(board)
    needed = {name for each in tasks if each.state in _KEPT for name in each.depends_on}
    return all(each.state is task.State.CLOSED for each in tasks if each.id in needed)


def view_agrees(board: Aggregate) -> bool:
    """What the rules look up is what the tasks and seats are."""
    work, tasks = work_of(board), tasks_of(board)
    seats = [entity for ref, entity in board.entities.items() if ref.startswith("seat:")]
    return (
        _tasks_agree(work, tasks)
        and sorted(work.waiting) == sorted(each.ref for each in seats if each.state is seat.State.WAITING)
        and work.unsettled == sum(not task.settled(each) for each in tasks)
        and work.present == sum(each.state is not seat.State.GONE for each in seats)
    )


def _tasks_agree(work: Work, tasks: list[task.Task]) -> bool:
    """Say whether which tasks are open, closed, ready, and what they wait for, is found again without the view."""
    closed = {each.id for each in tasks if each.state is task.State.CLOSED}
    places = {each.id: (each.priority, each.ordinal, each.id) for each in tasks if each.state is task.State.OPEN}
    unmet = {each.id: len(set(each.depends_on) - closed) for each in tasks}
    awaited = sorted((name, each.id) for each in tasks for name in dict.fromkeys(each.depends_on))
    return (
        (set(work.closed), dict(work.open), dict(work.unmet)) == (closed, places, unmet)
        and list(work.ready) == sorted(place for name, place in places.items() if not unmet[name])
        and sorted((name, each) for name, waiting in work.dependents.items() for each in waiting) == awaited
    )


def nobody_waits_beside_work(board: Aggregate) -> bool:
    """While somebody waits for work, no task is ready."""
    work = work_of(board)
    return not (work.ready and work.waiting)


def fails_by_its_worker(step: Transition) -> bool:
    """That a task has failed is said by who had it, and decided by no rule: whoever goes gives it back."""
    return not isinstance(step.event, task.Failed) or not step.actor.startswith("rule:")


PROMISES: tuple[Property[Aggregate], ...] = (
    *near(
        on_board,
        always("no task has two owners, and every owner sits at its task", owners_sit_at_their_tasks),
        always("nobody works at what depends on something that is not merged", dependencies_are_closed),
        always("nobody waits while a task is ready", nobody_waits_beside_work),
    ),
    always_step("a task does not fail because its owner is gone", fails_by_its_worker),
    always("what is looked up is what the tasks and seats are", view_agrees),
    sometimes("every task is closed", lambda b: all(each.state is task.State.CLOSED for each in tasks_of(b))),
    sometimes("everybody is gone", lambda b: work_of(b).present == 0),
)

aggregate = AggregateType(
    NAME,
    machines=(task.in_fleet, seat.machine),
    rules=(
        hand_over,
        recall,
        retry,
        block_dependents,
        block_opened,
        release,
        *(rule(on=each)(match) for each in (task.in_fleet, seat.machine)),
        send_home,
    ),
    views={"work": View(Work(), fold)},
    commands={"task": (task.Cancelled, task.Unblocked), "seat": ()},
    properties=PROMISES,
)
