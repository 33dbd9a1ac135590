"""Ownership of tasks as the board and the workers have it, and the fleet properties about it."""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from lifefold.core.fleet import service
from lifefold.core.fleet.board import fleet_task, worker_slot
from lifefold.core.fleet.dispatch import claims
from lifefold.core.fleet.dispatch.locality import around, part
from lifefold.core.fleet.dispatch.task_index import tasks_of
from lifefold.core.fleet.system import board, worker
from lifefold.core.fleet.worker import assignment
from lifefold.core.kernel import (
    Aggregate,
    Projection,
    Property,
    SystemState,
    Transition,
    always,
    leads_to,
    localized,
    projected,
    weakly,
)
from lifefold.core.lifecycles import session, task
from lifefold.effects import MergeWork


class WorkerClaim(msgspec.Struct, frozen=True):
    """The projection of a worker: its claim, as task and epoch, and what it does about it.

    ``was_begun``: a session has run at the task. ``is_merging``: the work is being merged. ``has_stopped`` is about the
    agent. ``known`` is what the worker knows of the task.
    """

    claim: tuple[str, int] | None
    has_stopped: bool
    was_begun: bool | None
    is_merging: bool
    known: "Known"


Known = tuple[bool, task.Stage, tuple[tuple[str, ...], ...]]
"""What the owner of a task must know: approval, stage, and the commands that verify it."""


class BoardClaims(msgspec.Struct, frozen=True):
    """The projection of the board: the last claims of tasks, begun and closed ones, and their owners.

    It also has the workers that are gone, and what owners must know of their tasks.
    """

    epochs: tuple[tuple[str, int], ...]
    begun: frozenset[str]
    closed: frozenset[str]
    owners: tuple[tuple[str, str], ...]
    gone: frozenset[str]
    known: tuple[tuple[str, Known], ...]


def ownership_of(of: Aggregate) -> WorkerClaim | BoardClaims | None:
    """Return the projection of a board or a worker. A service has no task."""
    if of.kind == service.KIND:
        return None
    if of.kind == worker.KIND:
        work: assignment.Assignment = of.record("assignment")
        holds = work.state not in {assignment.State.IDLE, assignment.State.WANTING}
        claim = (work.brief.task, work.brief.epoch) if holds else None
        agent = of.record("session").state
        is_first = work.sessions == 0 or (work.sessions == 1 and agent is session.State.SPAWNING)
        begun = agent is session.State.RUNNING or not is_first
        was_begun = begun if work.state is assignment.State.WORKING else None
        is_merging = work.state is assignment.State.MERGING
        return WorkerClaim(claim, agent is session.State.STOPPED, was_begun, is_merging, _known(work.brief))
    tasks = tasks_of(of)
    worker_slots = (entity for ref, entity in of.entities.items() if ref.startswith("worker_slot:"))
    return BoardClaims(
        tuple((each.id, each.epoch) for each in tasks),
        frozenset(each.id for each in tasks if each.state is task.State.IN_PROGRESS),
        frozenset(each.id for each in tasks if each.state is task.State.CLOSED),
        tuple((each.id, each.owner) for each in tasks if each.state in claims.KEPT and each.owner),
        frozenset(
            each.ref.removeprefix("worker_slot:") for each in worker_slots if each.state is worker_slot.State.GONE
        ),
        tuple((each.id, _known(each)) for each in tasks),
    )


def _known(of: fleet_task.FleetTask | task.Brief) -> Known:
    return of.needs_approval, of.stage, of.verify


def _board_claims(fleet: Projection) -> BoardClaims:
    found: BoardClaims = fleet.aggregates[board.NAME]
    return found


def _worker_claims(fleet: Projection) -> dict[str, WorkerClaim]:
    return {name.partition("/")[2]: seen for name, seen in fleet.aggregates.items() if isinstance(seen, WorkerClaim)}


def claims_have_one_worker(fleet: Projection) -> bool:
    """No two workers hold the same claim (E12)."""
    claims = [each.claim for each in _worker_claims(fleet).values() if each.claim is not None]
    return len(set(claims)) == len(claims)


def claims_were_made(fleet: Projection) -> bool:
    """Every claim of a worker was made by the board (E12)."""
    known = dict(_board_claims(fleet).epochs)
    claims = (each.claim for each in _worker_claims(fleet).values() if each.claim is not None)
    return all(1 <= epoch <= known[name] for name, epoch in claims)


def ownership_agrees(fleet: Projection) -> bool:
    """With no message in flight, each worker holds what it owns, or finishes a merge."""
    board_claims = _board_claims(fleet)
    last = dict(board_claims.epochs)
    owned = {name: (of, last[of]) for of, name in board_claims.owners}
    return bool(fleet.under_way) or all(
        held.claim == owned.get(name) or (held.is_merging and name not in owned)
        for name, held in _worker_claims(fleet).items()
    )


def progress_agrees(fleet: Projection) -> bool:
    """When nothing is under way, a task that its owner works at is in progress if a session has run, and not before."""
    board_claims = _board_claims(fleet)
    owners = dict(board_claims.owners)
    at_work = [
        (name, held) for name, held in _worker_claims(fleet).items() if held.claim and held.was_begun is not None
    ]
    return bool(fleet.under_way) or all(
        (held.claim[0] in board_claims.begun) is held.was_begun
        for name, held in at_work
        if held.claim and owners.get(held.claim[0]) == name
    )


def closed_is_left(fleet: Projection) -> bool:
    """No worker works at a closed task under the claim that closed it."""
    board_claims = _board_claims(fleet)
    last = {(name, epoch) for name, epoch in board_claims.epochs if name in board_claims.closed}
    return not any(each.claim in last for each in _worker_claims(fleet).values())


def owners_work(fleet: Projection) -> bool:
    """No worker holds the last claim of a task that is another worker's (E12)."""
    board_claims = _board_claims(fleet)
    last, owners = dict(board_claims.epochs), dict(board_claims.owners)
    claims = [(name, *each.claim) for name, each in _worker_claims(fleet).items() if each.claim is not None]
    return all(owners.get(of, name) == name for name, of, epoch in claims if last[of] == epoch)


def owners_know_their_task(fleet: Projection) -> bool:
    """The owner of a task knows its stage, its verification and whether it needs approval.

    A plan change may replace the verification: the owner knows the new one when every message has arrived.
    """
    board_claims = _board_claims(fleet)
    last, known, held_by = dict(board_claims.epochs), dict(board_claims.known), _worker_claims(fleet)
    owned = [(of, held_by[name]) for of, name in board_claims.owners if name in held_by]
    compared = 2 if fleet.under_way else 3
    return all(held.known[:compared] == known[of][:compared] for of, held in owned if held.claim == (of, last[of]))


def has_lost_work(fleet: Projection) -> bool:
    """Tell whether a worker holds a task that was taken from it (E20)."""
    board_claims = _board_claims(fleet)
    last, owners = dict(board_claims.epochs), dict(board_claims.owners)
    claims = [(name, *each.claim) for name, each in _worker_claims(fleet).items() if each.claim is not None]
    return any((last[of], owners.get(of)) != (epoch, name) for name, of, epoch in claims)


def gone_workers_hold_nothing(fleet: Projection) -> bool:
    """A worker that is gone for the board has stopped and holds no task."""
    held_by = _worker_claims(fleet)
    gone = _board_claims(fleet).gone & held_by.keys()
    return all(held_by[name].has_stopped and held_by[name].claim is None for name in gone)


_TELLING = frozenset({"assignment", "session"})
"""The entities of a worker with its ownership."""


def nearby(fleet: SystemState, name: str, transitions: Iterable[Transition]) -> SystemState | None:
    """Return the workers near a step, and the part of the board near them.

    A worker with a task is also near the owner of the task.
    """
    board_now: Aggregate = fleet.aggregates[board.NAME]
    if name == board.NAME:
        refs = list(around(board_now, transitions))
        workers = [
            f"{worker.KIND}/{ref.removeprefix('worker_slot:')}" for ref in refs if ref.startswith("worker_slot:")
        ]
    elif name.startswith(f"{worker.KIND}/") and any(each.machine in _TELLING for each in transitions):
        refs, workers = [], [name]
    else:
        return None
    there = _workers(fleet, workers)
    refs += [ref for each in there.values() for ref in _of_worker(board_now, each)]
    owners = [board_now.record(ref).owner for ref in refs if ref.startswith("task:") and ref in board_now.entities]
    others = _workers(fleet, [f"{worker.KIND}/{each}" for each in owners if each])
    refs += [ref for name, each in others.items() if name not in there for ref in _of_worker(board_now, each)]
    return SystemState({board.NAME: part(board_now, refs), **there, **others}, fleet.in_flight)


def _workers(fleet: SystemState, names: Iterable[str]) -> dict[str, Aggregate]:
    return {each: fleet.aggregates[each] for each in dict.fromkeys(names) if each in fleet.aggregates}


def _of_worker(board_now: Aggregate, of: Aggregate) -> Iterator[str]:
    """Yield the references of a worker's worker slot, of the task that was given to it, and of the one it holds."""
    worker_slot = f"worker_slot:{of.key}"
    yield worker_slot
    tasks = (
        board_now.entities[worker_slot].record.task if worker_slot in board_now.entities else "",
        of.record("assignment").brief.task,
    )
    yield from (f"task:{each}" for each in tasks if each)


OF_FLEETS: Final[tuple[Property[SystemState], ...]] = localized(
    nearby,
    *projected(
        ownership_of,
        always("no two workers hold the same claim", claims_have_one_worker),
        always("every claim of a worker was made by the board", claims_were_made),
        always("with no message in flight, each worker holds the task it owns, or finishes a merge", ownership_agrees),
        always("with no message in flight, exactly the tasks with a session are in progress", progress_agrees),
        always("a worker that is gone holds no task", gone_workers_hold_nothing),
        always("no worker works at a task that its claim has closed", closed_is_left),
        always("no worker works at a task of another claim", owners_work),
        always("the owner of a task knows its stage", owners_know_their_task),
    ),
)

AT_LAST: Final[tuple[Property[SystemState], ...]] = projected(
    ownership_of,
    leads_to(
        "a worker whose task was taken learns it, if merges end",
        has_lost_work,
        lambda fleet: not has_lost_work(fleet),
        given=weakly(MergeWork),
    ),
)
