"""Who works on what: the rules by which tasks go to workers, and are taken from them.

The first ready task, by priority and then by its place in the plan, goes to the worker slot that has waited longest of
those that may take it, by role and by trust (E21, E34). What is done and only has to be verified as a whole, or merged,
goes first. A task that leaves its owner otherwise than by the owner's own word is recalled from it (E20); what an owner
that is gone leaves is given to somebody else, under another number (E12).
"""

from collections.abc import Iterator

from lifefold.core.fleet.board import adaptive_timeout, budget, fleet_task, preemption_request, worker_slot
from lifefold.core.fleet.board.fleet_task import FleetTask
from lifefold.core.fleet.dispatch import budgets
from lifefold.core.fleet.dispatch.task_index import CLAIMED, work_of
from lifefold.core.fleet.worker import assignment
from lifefold.core.kernel import Aggregate, Dispatch, Transition, rule
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.budget.amounts import Amounts
from lifefold.core.lifecycles.task import Stage
from lifefold.core.policy.reasons import AbortReason
from lifefold.effects import Tell


def match(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """The next ready task goes to the next worker slot that may take it, whatever has just made that possible.

    That is one pair: the next is found when this one sits at its task, and what it may spend is set aside. So this rule
    is the first of all, and what it finds is so when it is done. While a plan change comes into force nothing is given
    out: who takes what is decided by all of it.
    """
    if isinstance(transition.event, task.Claimed | budget.Reserve) or work_of(board).changing:
        return
    pair = next_pair(board)
    if pair is not None:
        name, owner = pair
        is_open = board.record(f"task:{name}").state is task.State.OPEN
        yield Dispatch(f"task:{name}", _claim(board, owner) if is_open else fleet_task.Handed(owner))


def next_pair(board: Aggregate) -> tuple[str, str] | None:
    """Return the task that is to be given out next, and the worker that gets it; None if there are no two."""
    work = work_of(board)
    if not (work.waiting and work.ready):
        return None
    for (_priority, _ordinal, name), asked in sorted((places[0], asked) for asked, places in work.ready.items()):
        record: FleetTask = board.record(f"task:{name}")
        if is_unwanted(board, name):
            continue
        for waiting in work.waiting:
            worker = waiting.removeprefix("worker_slot:")
            is_paid = record.state is not task.State.OPEN or budgets.admits(board, worker, name)
            if is_paid and board.record(waiting).may_take(*asked):
                return name, worker
    return None


def _claim(board: Aggregate, owner: str) -> task.Claimed:
    """Return the claim of a worker, which says how far it is trusted where that counts (E34)."""
    sat: worker_slot.WorkerSlot = board.record(f"worker_slot:{owner}")
    return task.Claimed(owner) if sat.trust is None else fleet_task.Entrusted(owner, sat.level)


def is_unwanted(board: Aggregate, name: str) -> bool:
    """Tell whether a task is aborted, or a part, or a part of a part, of one that is cancelled: soon it is, too.

    Or whether it is not in the plan any more, so that it is blocked next. Not if it is done: that is brought home all
    the same (E16).
    """
    record: FleetTask = board.record(f"task:{name}")
    is_open = record.state is task.State.OPEN
    if is_open and (record.is_doomed or record.removed):
        return True
    while is_open and record.parent:
        record = board.record(f"task:{record.parent}")
        if record.state is task.State.CANCELLED:
            return True
    return False


@rule(on=fleet_task.machine, event=task.Claimed)
def hand_over(board: Aggregate, transition: Transition) -> Iterator[Dispatch | Tell]:
    """A task that was claimed, or handed over, is given to its new owner."""
    record: FleetTask = transition.after.record
    yield Dispatch(f"worker_slot:{record.owner}", worker_slot.Seated(record.id))
    brief = brief_of(record, budgets.share_of(board, record), adaptive_timeout.limit_ms(board, record))
    yield Tell(f"worker/{record.owner}", "assignment", assignment.Assigned(brief))


def brief_of(record: FleetTask, share: Amounts, timeout_ms: int = 0) -> task.Brief:
    """Return what a worker gets to know of a task; what its sessions may cost, and how long one may take."""
    return task.Brief(
        record.id,
        record.epoch,
        record.prompt,
        record.verify,
        record.failure,
        record.kept,
        record.asks,
        record.stage,
        record.result,
        share,
        record.orphaned,
        timeout_ms,
        record.token,
        record.collected,
        record.on_nothing,
    )


_OPEN_ENDED = CLAIMED | {task.State.ORPHANED}
"""While these hold, a task is its owner's, and not known to be done."""

KEPT = _OPEN_ENDED | {task.State.DONE}
"""And in this it stays the owner's, if it has one.

What a dead session has left is still to be looked at, and what is done to be verified and merged.
"""


@rule(on=fleet_task.machine, leaves=_OPEN_ENDED)
def recall(board: Aggregate, transition: Transition) -> Iterator[Tell]:
    """An owner whose claim is ended by somebody else, in whatever way, is told so, if it is still there (E20)."""
    if transition.after.state in KEPT:
        return
    before: FleetTask = transition.was
    worker = f"worker/{before.owner}"
    owner = board.entities.get(f"worker_slot:{before.owner}")
    if owner is not None and owner.state is worker_slot.State.WORKING and transition.actor != worker:
        reason, within_ms = transition.after.record.reason, _within_ms(board, before)
        recalled = assignment.Recalled(before.id, before.epoch, reason, within_ms, _ends_by(board, transition))
        yield Tell(worker, "assignment", recalled)


def _ends_by(board: Aggregate, transition: Transition) -> AbortReason:
    """Return the canonical reason for which a session at a task is ended: an abort, an operator, or the board itself.

    Parts are cancelled with what they are parts of.
    """
    match transition.event:
        case fleet_task.Aborted(abort_reason=reason):
            return reason
        case task.Cancelled():
            whole = board.entities.get(f"task:{transition.after.record.parent}")
            cascades = whole is not None and whole.state is task.State.CANCELLED
            return AbortReason.PARENT_ABORTED if cascades else AbortReason.USER_INTERRUPT
        case _:
            return AbortReason.SHUTDOWN_SIGNAL


def _within_ms(board: Aggregate, record: FleetTask) -> int:
    """Return how long the session at a task that is recalled may take to end, if it has to make room for another one.

    0 is as long as it may in any case.
    """
    found = board.entities.get(f"preemption_request:{record.owner}")
    makes_room = found is not None and found.state is preemption_request.State.ASKED and found.record.of == record.id
    return found.record.within_ms if found is not None and makes_room else 0


@rule(on=worker_slot.machine, leaves=worker_slot.PRESENT, enters=worker_slot.State.GONE)
def release(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """What a worker that is gone had in hand is given back (E11)."""
    if not transition.was.task:
        return
    ref = f"task:{transition.was.task}"
    record: FleetTask = board.record(ref)
    if record.owner != transition.entity.removeprefix("worker_slot:"):
        return
    reason = f"{record.owner} is gone"
    if record.state is task.State.IN_PROGRESS:
        yield Dispatch(ref, task.Orphaned(record.epoch))
    if record.state is task.State.DONE and record.stage is Stage.WORK:
        yield Dispatch(ref, task.Rejected(record.epoch, reason))
    elif record.state is task.State.DONE:
        yield Dispatch(ref, fleet_task.Returned(record.epoch, reason))
    else:
        yield Dispatch(ref, task.Released(record.epoch, reason))
