"""Who makes room for a task that comes first, in a fleet that preempts (document 000).

A task that is ready and that nobody is free for has one worker asked: of those who may take it, and are at something of
strictly lower priority, one whose task is of the lowest, and of these the one that was given its task last. That task
is taken from it under its claim, which is no failure of it, and is open again. The worker hears that as of any other
recall; its session is interrupted, and who asks for work then is given what comes first.

So that nobody is asked in vain, a task has no more than one worker asked for it. When it needs that one no more (it was
given to somebody else, or is cancelled), the room is for the next that waits, before anybody else is asked. A worker
that goes makes no room, nor does one that is free and may not take what it was asked for any more (it was demoted, or
its budget is spent); then somebody else may be asked.

It ends: what makes room comes after what it is made for, so that two tasks never take turns at it.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from typing import Final, cast

import msgspec

from lifefold.core.fleet.board import budget, fleet_task, preemption_request, worker_slot
from lifefold.core.fleet.board.fleet_task import FleetTask
from lifefold.core.fleet.dispatch import budgets, claims
from lifefold.core.fleet.dispatch.locality import whole_board
from lifefold.core.fleet.dispatch.task_index import CLAIMED, FIRST, Place, Requirement, tasks_of, work_of
from lifefold.core.fleet.worker import desired_state
from lifefold.core.kernel import (
    Aggregate,
    Dispatch,
    Projection,
    Property,
    SystemState,
    Transition,
    always,
    always_step,
    leads_to,
    localized,
    projected,
    rule,
    weakly,
)
from lifefold.core.lifecycles import session, task
from lifefold.effects import MergeWork, ParkWork, PrepareWorktree, VerifyWork


def request_of(worker: str) -> str:
    """Return the reference of a worker's room."""
    return f"preemption_request:{worker}"


def preemption_requests(workers: tuple[str, ...], within_ms: int) -> dict[str, preemption_request.PreemptionRequest]:
    """Return the rooms that a board begins with, by their references."""
    return {request_of(each): preemption_request.PreemptionRequest(within_ms=within_ms) for each in workers}


# The rules


def make_room(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Somebody is asked to make room for a task that waits, whatever has just made that necessary.

    Nobody is as long as somebody is about to be given a task. The next is asked when this one has lost its task, and
    before that is settled who waits although it was asked: what its room is for it may not take any more.
    """
    work = work_of(board)
    if work.is_preempting and not (
        work.changing
        or isinstance(transition.event, task.Claimed | budget.Reserve | preemption_request.PreemptionRequested)
    ):
        asked = None if claims.next_pair(board) else _given_up(board) or next_asked(board)
        if asked is not None:
            yield asked


@rule(on=preemption_request.machine, event=preemption_request.PreemptionRequested)
def take_away(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Who is asked to make room loses the task that it is at."""
    requested = cast("preemption_request.PreemptionRequested", transition.event)
    of: FleetTask = board.record(f"task:{requested.of}")
    yield Dispatch(f"task:{of.id}", task.Released(of.epoch, f"it makes room for {requested.task}"))


@rule(on=fleet_task.machine, enters=task.State.CLAIMED)
def use_room(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Who is given something to work at has made its room; what only has to be brought home comes in between."""
    yield from _used(board, transition.after.record.owner)


@rule(on=worker_slot.machine, enters=worker_slot.State.GONE)
def leave_room(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Who is gone makes no room."""
    yield from _used(board, transition.entity.removeprefix("worker_slot:"))


def _used(board: Aggregate, worker: str) -> Iterator[Dispatch]:
    if worker in work_of(board).makes_room:
        yield Dispatch(request_of(worker), preemption_request.RequestUsed())


def _given_up(board: Aggregate) -> Dispatch | None:
    """Return that somebody who waits makes room no more, when nothing can be given to anybody; None if nobody does."""
    idle = next((each for each in sorted(work_of(board).makes_room) if _waits(board, each)), None)
    return None if idle is None else Dispatch(request_of(idle), preemption_request.RequestUsed())


def _waits(board: Aggregate, worker: str) -> bool:
    return board.record(f"worker_slot:{worker}").state is worker_slot.State.WAITING


# Who is asked


def next_asked(board: Aggregate) -> Dispatch | None:
    """Return whose room is to be for which task next, by passing it on or by asking; None if nobody's."""
    work = work_of(board)
    if not work.at:
        return None
    for place, asked in sorted(_waiting(board)):
        found = _passed_on(board, place, asked) or _asked(board, place, asked)
        if found is not None:
            return found
    return None


def _waiting(board: Aggregate) -> Iterator[tuple[Place, Requirement]]:
    """Yield the first of all that ask for the same, of those who are to be worked at and have nobody asked for them."""
    work = work_of(board)
    covered = set(work.makes_room.values())
    for asked, places in work.ready.items():
        there = (places[at] for at in range(bisect_left(places, (FIRST + 1,)), len(places)))
        wanted = (each for each in there if each[2] not in covered and not claims.is_unwanted(board, each[2]))
        place = next(wanted, None)
        if place is not None:
            yield place, asked


def _passed_on(board: Aggregate, place: Place, asked: Requirement) -> Dispatch | None:
    """Return that somebody who makes room already does so for this task, the one it was for having no need of it."""
    for worker, name in sorted(work_of(board).makes_room.items()):
        of: FleetTask = board.record(f"task:{board.record(request_of(worker)).of}")
        if not is_ready(board, name) and of.priority > place[0] and _may_take(board, worker, place, asked):
            return Dispatch(request_of(worker), preemption_request.RequestPassedOn(place[2]))
    return None


def is_ready(board: Aggregate, name: str) -> bool:
    """Tell whether a task is to be worked at and nothing hinders it."""
    offered = work_of(board).offered.get(name)
    return offered is not None and offered.can_be_hindered and not work_of(board).hindered[name]


def _asked(board: Aggregate, place: Place, asked: Requirement) -> Dispatch | None:
    """Return that the one is asked whose task is of the lowest priority, and was given to it last."""
    at = work_of(board).at
    for priority in sorted(at, reverse=True):
        if priority <= place[0]:
            return None
        for name in reversed(at[priority]):
            worker: str = board.record(f"task:{name}").owner
            if _may_take(board, worker, place, asked):
                return Dispatch(request_of(worker), preemption_request.PreemptionRequested(place[2], name))
    return None


def _may_take(board: Aggregate, worker: str, place: Place, asked: Requirement) -> bool:
    """Tell whether somebody who is at work might take this task instead."""
    sat: worker_slot.WorkerSlot = board.record(f"worker_slot:{worker}")
    is_there = sat.state is worker_slot.State.WORKING and not sat.leaves
    return is_there and sat.may_take(*asked) and budgets.leaves_a_share(board, worker, place[2])


# The properties


def _asked_rooms(board: Aggregate) -> dict[str, preemption_request.PreemptionRequest]:
    """Return the rooms of those who were asked, by the names of these: they are looked up."""
    return {name: board.record(request_of(name)) for name in work_of(board).makes_room}


def first_comes_first(board: Aggregate) -> bool:
    """Only a task of strictly lower priority makes room for another one."""
    asked = _asked_rooms(board).values()
    return all(board.record(f"task:{r.task}").priority < board.record(f"task:{r.of}").priority for r in asked)


def asks_one(board: Aggregate) -> bool:
    """No task has more than one worker asked for it."""
    asked = [each.task for each in _asked_rooms(board).values()]
    return len(set(asked)) == len(asked)


def has_let_go(board: Aggregate) -> bool:
    """Who was asked works at nothing until it is given something new, and sits where it had the task that went."""
    asked = _asked_rooms(board)
    at_work = {each.owner for each in tasks_of(board) if each.state in CLAIMED}
    worker_slots = {name: board.entities.get(f"worker_slot:{name}") for name in asked}
    return not at_work & asked.keys() and all(
        sat is None or sat.record.task in {"", asked[name].of} or _is_brought_home(board, sat.record.task)
        for name, sat in worker_slots.items()
    )


def _is_brought_home(board: Aggregate, name: str) -> bool:
    """Tell whether a task was given to somebody only to be verified or merged."""
    return board.record(f"task:{name}").stage is not task.Stage.WORK


def nobody_is_kept_waiting(board: Aggregate) -> bool:
    """Nobody works at what comes later while a task waits that he may take, and nobody was asked for."""
    return not work_of(board).is_preempting or claims.next_pair(board) is not None or next_asked(board) is None


def nobody_waits_in_his_room(board: Aggregate) -> bool:
    """Whoever makes room and waits is about to be given something; else the room is of no use, and not his."""
    waits = any(_waits(board, name) for name in _asked_rooms(board))
    return not waits or claims.next_pair(board) is not None


def is_there(board: Aggregate) -> bool:
    """Whoever makes room is there: of one who is gone nobody waits for it."""
    worker_slots = (board.entities.get(f"worker_slot:{name}") for name in _asked_rooms(board))
    return all(sat is None or sat.state in worker_slot.PRESENT for sat in worker_slots)


def view_agrees(board: Aggregate) -> bool:
    """What is looked up of rooms, and of who is to work at what, is found again without the view."""
    work, preemption_requests = (
        work_of(board),
        {ref: each for ref, each in board.entities.items() if ref.startswith("preemption_request:")},
    )
    asked = {
        ref: each.record.task
        for ref, each in preemption_requests.items()
        if each.state is preemption_request.State.ASKED
    }
    at = Counter((each.priority, each.id) for each in tasks_of(board) if preemption_requests and each.state in CLAIMED)
    return (
        work.is_preempting is bool(preemption_requests)
        and Counter((priority, name) for priority, names in work.at.items() for name in names) == at
        and {request_of(name): of for name, of in work.makes_room.items()} == asked
    )


def is_no_failure(step: Transition) -> bool:
    """What is given back, or taken away, has not failed by that: it is open, and may be tried as often as before."""
    if step.before is None or not isinstance(step.event, task.Released) or step.entered is None:
        return True
    before: FleetTask = step.before.record
    now: FleetTask = step.after.record
    same = (now.retries, now.limit, now.failure, now.kept) == (
        before.retries,
        before.limit,
        before.failure,
        before.kept,
    )
    return same and step.entered is task.State.OPEN and not now.owner


PROPERTIES: Final[tuple[Property[Aggregate], ...]] = (
    *localized(
        whole_board,
        always("only a task of strictly lower priority is preempted", first_comes_first),
        always("at most one worker is preempted for a task", asks_one),
        always("no worker keeps a later task while a task waits that it may take", nobody_is_kept_waiting),
    ),
    always("no preempted worker waits for a task that it may not take", nobody_waits_in_his_room),
    always("a preempted worker has lost its task and works at nothing", has_let_go),
    always("a preempted worker is not gone", is_there),
    always_step("a released task has not failed by its release", is_no_failure),
)


class BoardView(msgspec.Struct, frozen=True):
    """Whether somebody ``sits_idle``: at a task that is not his any more, whether it was taken from him or is done."""

    sits_idle: bool


def board_view(of: Aggregate) -> BoardView | bool:
    """Return of a board whether somebody sits idle; of a worker, whether it was asked to hold."""
    if of.kind != "board":
        return of.record("desired_state").state in desired_state.RESTS
    worker_slots = [
        each
        for ref, each in of.entities.items()
        if ref.startswith("worker_slot:") and each.state is worker_slot.State.WORKING
    ]
    return BoardView(
        any(
            of.record(f"task:{each.record.task}").owner != each.ref.removeprefix("worker_slot:")
            for each in worker_slots
        )
    )


def _sits_idle(fleet: Projection) -> bool:
    """Tell whether somebody sits idle, and nobody is held."""
    seen = fleet.aggregates.values()
    return any(isinstance(each, BoardView) and each.sits_idle for each in seen) and not any(
        each is True for each in seen
    )


OF_FLEETS: Final[tuple[Property[SystemState], ...]] = projected(
    board_view,
    leads_to(
        "a worker that lost its task is free at last, or gone",
        _sits_idle,
        lambda fleet: not _sits_idle(fleet),
        given=weakly(
            *(PrepareWorktree, VerifyWork, ParkWork, MergeWork),
            *(session.SessionStarted, desired_state.RunWanted, desired_state.ResumeWanted),
        ),
    ),
)
