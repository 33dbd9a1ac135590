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


class Hand(msgspec.Struct, frozen=True):
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


class Office(msgspec.Struct, frozen=True):
    """The projection of the board: the last claims of tasks, begun and closed ones, and their owners.

    It also has the workers that are gone, and what owners must know of their tasks.
    """

    epochs: tuple[tuple[str, int], ...]
    begun: frozenset[str]
    closed: frozenset[str]
    owners: tuple[tuple[str, str], ...]
    gone: frozenset[str]
    known: tuple[tuple[str, Known], ...]


def in_hand(of: Aggregate) -> Hand | Office | None:
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
        return Hand(claim, agent is session.State.STOPPED, was_begun, is_merging, _known(work.brief))
    tasks = tasks_of(of)
    worker_slots = (entity for ref, entity in of.entities.items() if ref.startswith("worker_slot:"))
    return Office(
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


def _office(fleet: Projection) -> Office:
    found: Office = fleet.aggregates[board.NAME]
    return found


def _hands(fleet: Projection) -> dict[str, Hand]:
    return {name.partition("/")[2]: seen for name, seen in fleet.aggregates.items() if isinstance(seen, Hand)}


def claims_are_in_one_hand(fleet: Projection) -> bool:
    """No claim is in two hands (E12)."""
    claims = [each.claim for each in _hands(fleet).values() if each.claim is not None]
    return len(set(claims)) == len(claims)


def claims_were_made(fleet: Projection) -> bool:
    """Every claim of a worker was made by the board (E12)."""
    known = dict(_office(fleet).epochs)
    claims = (each.claim for each in _hands(fleet).values() if each.claim is not None)
    return all(1 <= epoch <= known[name] for name, epoch in claims)


def hands_agree(fleet: Projection) -> bool:
    """With no message in flight, each worker holds what it owns, or finishes a merge."""
    office = _office(fleet)
    last = dict(office.epochs)
    owned = {name: (of, last[of]) for of, name in office.owners}
    return bool(fleet.under_way) or all(
        hand.claim == owned.get(name) or (hand.is_merging and name not in owned) for name, hand in _hands(fleet).items()
    )


def progress_agrees(fleet: Projection) -> bool:
    """When nothing is under way, a task that its owner works at is in progress if a session has run, and not before."""
    office = _office(fleet)
    owners = dict(office.owners)
    at_work = [(name, hand) for name, hand in _hands(fleet).items() if hand.claim and hand.was_begun is not None]
    return bool(fleet.under_way) or all(
        (hand.claim[0] in office.begun) is hand.was_begun
        for name, hand in at_work
        if hand.claim and owners.get(hand.claim[0]) == name
    )


def closed_is_left(fleet: Projection) -> bool:
    """No worker works at a closed task under the claim that closed it."""
    office = _office(fleet)
    last = {(name, epoch) for name, epoch in office.epochs if name in office.closed}
    return not any(each.claim in last for each in _hands(fleet).values())


def owners_work(fleet: Projection) -> bool:
    """No worker holds the last claim of a task that is another worker's (E12)."""
    office = _office(fleet)
    last, owners = dict(office.epochs), dict(office.owners)
    claims = [(name, *each.claim) for name, each in _hands(fleet).items() if each.claim is not None]
    return all(owners.get(of, name) == name for name, of, epoch in claims if last[of] == epoch)


def owners_know_their_task(fleet: Projection) -> bool:
    """The owner of a task knows its stage, its verification and whether it needs approval.

    A plan change may replace the verification: the owner knows the new one when every message has arrived.
    """
    office = _office(fleet)
    last, known, hands = dict(office.epochs), dict(office.known), _hands(fleet)
    owned = [(of, hands[name]) for of, name in office.owners if name in hands]
    compared = 2 if fleet.under_way else 3
    return all(hand.known[:compared] == known[of][:compared] for of, hand in owned if hand.claim == (of, last[of]))


def has_lost_work(fleet: Projection) -> bool:
    """Tell whether a worker holds a task that was taken from it (E20)."""
    office = _office(fleet)
    last, owners = dict(office.epochs), dict(office.owners)
    claims = [(name, *each.claim) for name, each in _hands(fleet).items() if each.claim is not None]
    return any((last[of], owners.get(of)) != (epoch, name) for name, of, epoch in claims)


def gone_is_gone(fleet: Projection) -> bool:
    """A worker that is gone for the board has stopped and holds no task."""
    hands = _hands(fleet)
    gone = _office(fleet).gone & hands.keys()
    return all(hands[name].has_stopped and hands[name].claim is None for name in gone)


_TELLING = frozenset({"assignment", "session"})
"""The entities of a worker with its ownership."""


def nearby(fleet: SystemState, name: str, transitions: Iterable[Transition]) -> SystemState | None:
    """Return the workers near a step, and the part of the board near them.

    A worker with a task is also near the owner of the task.
    """
    board_now: Aggregate = fleet.aggregates[board.NAME]
    if name == board.NAME:
        refs = list(around(board_now, transitions))
        people = [f"{worker.KIND}/{ref.removeprefix('worker_slot:')}" for ref in refs if ref.startswith("worker_slot:")]
    elif name.startswith(f"{worker.KIND}/") and any(each.machine in _TELLING for each in transitions):
        refs, people = [], [name]
    else:
        return None
    there = _workers(fleet, people)
    refs += [ref for each in there.values() for ref in _of_worker(board_now, each)]
    owners = [board_now.record(ref).owner for ref in refs if ref.startswith("task:") and ref in board_now.entities]
    others = _workers(fleet, [f"{worker.KIND}/{each}" for each in owners if each])
    refs += [ref for name, each in others.items() if name not in there for ref in _of_worker(board_now, each)]
    return SystemState({board.NAME: part(board_now, refs), **there, **others}, fleet.in_flight)


def _workers(fleet: SystemState, names: Iterable[str]) -> dict[str, Aggregate]:
    return {each: fleet.aggregates[each] for each in dict.fromkeys(names) if each in fleet.aggregates}


def _of_worker(board_now: Aggregate, of: Aggregate) -> Iterator[str]:
    """Yield the references of a worker's worker slot, of the task that was given to it, and of the one in its hand."""
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
        in_hand,
        always("no two workers hold the same claim", claims_are_in_one_hand),
        always("every claim of a worker was made by the board", claims_were_made),
        always("with no message in flight, each worker holds the task it owns, or finishes a merge", hands_agree),
        always("with no message in flight, exactly the tasks with a session are in progress", progress_agrees),
        always("a worker that is gone holds no task", gone_is_gone),
        always("no worker works at a task that its claim has closed", closed_is_left),
        always("no worker works at a task of another claim", owners_work),
        always("the owner of a task knows its stage", owners_know_their_task),
    ),
)

AT_LAST: Final[tuple[Property[SystemState], ...]] = projected(
    in_hand,
    leads_to(
        "a worker whose task was taken learns it, if merges end",
        has_lost_work,
        lambda fleet: not has_lost_work(fleet),
        given=weakly(MergeWork),
    ),
)
