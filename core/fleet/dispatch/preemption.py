"""Preemption: a worker gives up its task for a ready task of higher priority, in a fleet that preempts (document 000).

If no worker is free for a ready task, the board preempts one worker. Candidates may take the task and are at a task of
strictly lower priority. Of these the one with the lowest priority is chosen, and among equals the latest claim. The
task is released under its claim, which does not count as a failure, and is open again. The worker is recalled as usual:
its session is interrupted, and its next request for work gets the urgent task.

At most one worker is preempted for a task. That task may no longer need the worker, because another worker has claimed
it, or because it was cancelled. Then the request is passed on to the next waiting task, before another worker is
preempted. A request ends without effect when its worker is gone. It also ends when its worker is free and may no longer
take the task, because of its trust or its budget. Then another worker may be preempted.

It ends: a preempted task comes after the task that it was preempted for, so two tasks never alternate.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from typing import Final, cast

import msgspec

from lifefold.core.fleet.board import budget, fleet_task, preemption_request, worker_slot
from lifefold.core.fleet.board.fleet_task import FleetTask
from lifefold.core.fleet.dispatch import accounts, budgets, claims
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
    """Return the reference of a worker's preemption request."""
    return f"preemption_request:{worker}"


def preemption_requests(workers: tuple[str, ...], within_ms: int) -> dict[str, preemption_request.PreemptionRequest]:
    """Return the preemption requests that a board begins with, by reference."""
    return {request_of(each): preemption_request.PreemptionRequest(within_ms=within_ms) for each in workers}


# The rules


def preempt(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Preempt a worker for a task that waits, whatever has just made that necessary.

    The rule waits while a pair of task and worker can be given out. It preempts the next worker when this one has lost
    its task. Before that it ends the requests of workers that wait and may not take the task of their request.
    """
    work = work_of(board)
    if work.is_preempting and not (
        work.changing
        or accounts.frees_probe(board, transition)
        or isinstance(transition.event, task.Claimed | budget.Reserve | preemption_request.PreemptionRequested)
    ):
        asked = None if claims.next_pair(board) else _given_up(board) or next_asked(board)
        if asked is not None:
            yield asked


@rule(on=preemption_request.machine, event=preemption_request.PreemptionRequested)
def take_away(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Release the task of a worker that is preempted."""
    requested = cast("preemption_request.PreemptionRequested", transition.event)
    of: FleetTask = board.record(f"task:{requested.of}")
    yield Dispatch(f"task:{of.id}", task.Released(of.epoch, f"preempted for {requested.task}"))


@rule(on=fleet_task.machine, enters=task.State.CLAIMED)
def use_request(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """End the request of a worker that claims a task. Verifying or merging in between does not end it."""
    yield from _used(board, transition.after.record.owner)


@rule(on=worker_slot.machine, enters=worker_slot.State.GONE)
def drop_request(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """End the request of a worker that is gone."""
    yield from _used(board, transition.entity.removeprefix("worker_slot:"))


def _used(board: Aggregate, worker: str) -> Iterator[Dispatch]:
    if worker in work_of(board).preempted:
        yield Dispatch(request_of(worker), preemption_request.RequestUsed())


def _given_up(board: Aggregate) -> Dispatch | None:
    """Return the end of a request whose worker waits while no pair can be given out; None if there is none."""
    idle = next((each for each in sorted(work_of(board).preempted) if _waits(board, each)), None)
    return None if idle is None else Dispatch(request_of(idle), preemption_request.RequestUsed())


def _waits(board: Aggregate, worker: str) -> bool:
    return board.record(f"worker_slot:{worker}").state is worker_slot.State.WAITING


# Who is asked


def next_asked(board: Aggregate) -> Dispatch | None:
    """Return the next request, passed on or new; None if no worker can be preempted."""
    work = work_of(board)
    if not work.at:
        return None
    for place, asked in sorted(_waiting(board)):
        found = _passed_on(board, place, asked) or _asked(board, place, asked)
        if found is not None:
            return found
    return None


def _waiting(board: Aggregate) -> Iterator[tuple[Place, Requirement]]:
    """Yield, for each requirement, the first ready task without a request for it."""
    work = work_of(board)
    covered = set(work.preempted.values())
    for asked, places in work.ready.items():
        there = (places[at] for at in range(bisect_left(places, (FIRST + 1,)), len(places)))
        wanted = (each for each in there if each[2] not in covered and not claims.is_unwanted(board, each[2]))
        place = next(wanted, None)
        if place is not None:
            yield place, asked


def _passed_on(board: Aggregate, place: Place, asked: Requirement) -> Dispatch | None:
    """Return a pending request, passed on to this task, if the task that it was for no longer needs it."""
    for worker, name in sorted(work_of(board).preempted.items()):
        of: FleetTask = board.record(f"task:{board.record(request_of(worker)).of}")
        if not is_ready(board, name) and of.priority > place[0] and _may_take(board, worker, place, asked):
            return Dispatch(request_of(worker), preemption_request.RequestPassedOn(place[2]))
    return None


def is_ready(board: Aggregate, name: str) -> bool:
    """Tell whether a task is open and ready."""
    offered = work_of(board).offered.get(name)
    return offered is not None and offered.can_be_hindered and not work_of(board).hindered[name]


def _asked(board: Aggregate, place: Place, asked: Requirement) -> Dispatch | None:
    """Return a request to the worker whose task has the lowest priority, and of these the latest claim."""
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
    """Tell whether a worker at a task may take this task instead."""
    slot: worker_slot.WorkerSlot = board.record(f"worker_slot:{worker}")
    is_there = slot.state is worker_slot.State.WORKING and not slot.leaves
    has_means = budgets.leaves_a_share(board, worker, place[2]) and accounts.would_admit(board, worker)
    return is_there and slot.may_take(*asked) and has_means


# The properties


def _asked_requests(board: Aggregate) -> dict[str, preemption_request.PreemptionRequest]:
    """Return the pending requests by the names of their workers."""
    return {name: board.record(request_of(name)) for name in work_of(board).preempted}


def first_comes_first(board: Aggregate) -> bool:
    """Only a task of strictly lower priority is preempted."""
    asked = _asked_requests(board).values()
    return all(board.record(f"task:{r.task}").priority < board.record(f"task:{r.of}").priority for r in asked)


def asks_one(board: Aggregate) -> bool:
    """At most one worker is preempted for a task."""
    asked = [each.task for each in _asked_requests(board).values()]
    return len(set(asked)) == len(asked)


def has_no_work(board: Aggregate) -> bool:
    """A preempted worker works at nothing until its next claim; its slot may still show the task that it lost."""
    asked = _asked_requests(board)
    at_work = {each.owner for each in tasks_of(board) if each.state in CLAIMED}
    worker_slots = {name: board.entities.get(f"worker_slot:{name}") for name in asked}
    return not at_work & asked.keys() and all(
        slot is None or slot.record.task in {"", asked[name].of} or _is_handed_over(board, slot.record.task)
        for name, slot in worker_slots.items()
    )


def _is_handed_over(board: Aggregate, name: str) -> bool:
    """Tell whether a task was given out only to be verified or merged."""
    return board.record(f"task:{name}").stage is not task.Stage.WORK


def no_task_is_kept_waiting(board: Aggregate) -> bool:
    """While a task waits without a request, no worker that may take it works at a later task."""
    return not work_of(board).is_preempting or claims.next_pair(board) is not None or next_asked(board) is None


def a_preempted_worker_has_lost_its_task(board: Aggregate) -> bool:
    """A preempted worker that waits is about to get a task. Otherwise its request ends."""
    waits = any(_waits(board, name) for name in _asked_requests(board))
    return not waits or claims.next_pair(board) is not None


def is_there(board: Aggregate) -> bool:
    """A preempted worker is not gone."""
    worker_slots = (board.entities.get(f"worker_slot:{name}") for name in _asked_requests(board))
    return all(slot is None or slot.state in worker_slot.PRESENT for slot in worker_slots)


def view_agrees(board: Aggregate) -> bool:
    """The view of requests and claims agrees with the entities."""
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
        and {request_of(name): of for name, of in work.preempted.items()} == asked
    )


def is_no_failure(step: Transition) -> bool:
    """A released task has not failed: it is open, with as many retries as before."""
    was: FleetTask = step.was
    now: FleetTask = step.after.record
    same = (now.retries, now.limit, now.failure, now.kept) == (was.retries, was.limit, was.failure, was.kept)
    return step.entered is None or (same and step.entered is task.State.OPEN and not now.owner)


PROPERTIES: Final[tuple[Property[Aggregate], ...]] = (
    *localized(
        whole_board,
        always("only a task of strictly lower priority is preempted", first_comes_first),
        always("at most one worker is preempted for a task", asks_one),
        always("no worker keeps a later task while a task waits that it may take", no_task_is_kept_waiting),
    ),
    always("no preempted worker waits for a task that it may not take", a_preempted_worker_has_lost_its_task),
    always("a preempted worker has lost its task and works at nothing", has_no_work),
    always("a preempted worker is not gone", is_there),
    always_step("a released task has not failed by its release", is_no_failure, on=task.Released),
)


class BoardView(msgspec.Struct, frozen=True):
    """``sits_idle``: a worker slot shows a task that its worker no longer owns."""

    sits_idle: bool


def board_view(of: Aggregate) -> BoardView | bool:
    """Return the projection of a board; of a worker, whether it is paused or held."""
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
    """Tell whether a worker slot is idle while no worker is paused or held."""
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
