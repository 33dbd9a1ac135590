"""Claims: the rules that give tasks to workers and take tasks from them.

Ready tasks are ordered by priority, and then by their place in the plan. The first one goes to a worker that may take
it, by role and by trust (E21, E34). Its budgets have a share, and its account does not rest. Of several workers the one
that has waited longest gets it. Work that is done and only has to be verified as a whole, or merged, goes first.

A task that leaves its owner other than by the owner's report is recalled from it (E20). A task whose owner is gone goes
to another worker, under the next epoch (E12).
"""

from collections.abc import Iterator

from lifefold.core.fleet.board import adaptive_timeout, budget, fleet_task, preemption_request, worker_slot
from lifefold.core.fleet.board.fleet_task import FleetTask
from lifefold.core.fleet.dispatch import accounts, budgets, task_messages
from lifefold.core.fleet.dispatch.task_index import CLAIMED, work_of
from lifefold.core.fleet.worker import assignment, prompt
from lifefold.core.kernel import Aggregate, Dispatch, Transition, replace, rule
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.budget.amounts import Amounts
from lifefold.core.lifecycles.task import Stage
from lifefold.core.policy.reasons import AbortReason
from lifefold.effects import Tell


def match(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Give the next ready task to the next worker that may take it, whatever has made that possible.

    The rule gives out one pair. The next pair is found when the worker is at its task and its shares are reserved.
    While a plan change comes into force no task is given out: the whole change decides about claims.
    """
    if isinstance(transition.event, task.Claimed | budget.Reserve) or work_of(board).changing:
        return
    pair = next_pair(board)
    if pair is not None:
        name, owner = pair
        is_open = board.record(f"task:{name}").state is task.State.OPEN
        yield Dispatch(f"task:{name}", _claim(board, owner) if is_open else fleet_task.Handed(owner))


def next_pair(board: Aggregate) -> tuple[str, str] | None:
    """Return the next task to give out and its worker; None if there is no such pair."""
    work = work_of(board)
    if not (work.waiting and work.ready):
        return None
    for (_priority, _ordinal, name), asked in sorted((places[0], asked) for asked, places in work.ready.items()):
        record: FleetTask = board.record(f"task:{name}")
        if is_unwanted(board, name):
            continue
        for waiting in work.waiting:
            worker = waiting.removeprefix("worker_slot:")
            is_begun = record.state is not task.State.OPEN
            may_begin = is_begun or (budgets.admits(board, worker, name) and accounts.admits(board, worker))
            if may_begin and board.record(waiting).may_take(*asked):
                return name, worker
    return None


def _claim(board: Aggregate, owner: str) -> task.Claimed:
    """Return the claim of a worker, with its trust level in a fleet with trust (E34)."""
    slot: worker_slot.WorkerSlot = board.record(f"worker_slot:{owner}")
    return task.Claimed(owner) if slot.trust is None else fleet_task.Entrusted(owner, slot.level)


def is_unwanted(board: Aggregate, name: str) -> bool:
    """Tell whether an open task is about to be cancelled or blocked, so that no worker may claim it.

    It is aborted, removed from the plan, or a part at any depth of a cancelled task. Finished work is merged all the
    same (E16).
    """
    record: FleetTask = board.record(f"task:{name}")
    is_open = record.state is task.State.OPEN
    if is_open and (record.is_aborted or record.removed):
        return True
    while is_open and record.parent:
        record = board.record(f"task:{record.parent}")
        if record.state is task.State.CANCELLED:
            return True
    return False


@rule(on=fleet_task.machine, event=task.Claimed)
def hand_over(board: Aggregate, transition: Transition) -> Iterator[Dispatch | Tell]:
    """Give a task that was claimed or handed over to its new owner."""
    record: FleetTask = transition.after.record
    yield Dispatch(f"worker_slot:{record.owner}", worker_slot.TaskGiven(record.id))
    told = replace(record, prompt=prompt.with_messages(record.prompt, task_messages.messages_of(board, record.id)))
    brief = brief_of(told, budgets.share_of(board, record), adaptive_timeout.limit_ms(board, record))
    yield Tell(f"worker/{record.owner}", "assignment", assignment.Assigned(brief, record.conversation_of(record.owner)))


def brief_of(record: FleetTask, share: Amounts, timeout_ms: int = 0) -> task.Brief:
    """Return the brief of a task, with the reservation of its claim and the time limit of its sessions."""
    return task.Brief(
        record.id,
        record.epoch,
        record.prompt,
        record.verify,
        record.failure,
        record.kept,
        record.needs_approval,
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
"""In these states a task belongs to its owner and is not known to be done."""

KEPT = _OPEN_ENDED | {task.State.DONE}
"""In these states a task stays with its owner, if it has one.

The work of a dead session is still to be inspected, and finished work to be verified and merged.
"""


@rule(on=fleet_task.machine, leaves=_OPEN_ENDED)
def recall(board: Aggregate, transition: Transition) -> Iterator[Tell]:
    """Recall a task from its owner, if the claim ended other than by the owner itself (E20)."""
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
    """Return the canonical reason for the end of a session: an abort, an operator, or the board itself.

    A part that is cancelled with its whole ends by the abort of its parent.
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
    """Return how many milliseconds the session of a preempted task may take to end.

    0 is no limit besides the usual one.
    """
    found = board.entities.get(f"preemption_request:{record.owner}")
    preempted = found is not None and found.state is preemption_request.State.ASKED and found.record.of == record.id
    return found.record.within_ms if found is not None and preempted else 0


@rule(on=worker_slot.machine, leaves=worker_slot.PRESENT, enters=worker_slot.State.GONE)
def release(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Give back the task of a worker that is gone (E11)."""
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
