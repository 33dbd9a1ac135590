"""The table of a task on a board: the rows of document 003, and those of the fleet."""

from typing import Any, Final

from lifefold.core.fleet.board.fleet_task.model import (
    Aborted,
    AbortWanted,
    ConversationKept,
    DependencyBack,
    DependencyLost,
    Entrusted,
    FleetTask,
    Handed,
    NothingDone,
    Parked,
    Rested,
    RetryGranted,
    Returned,
    Split,
    ToolAborted,
)
from lifefold.core.fleet.board.fleet_task.properties import PROPERTIES
from lifefold.core.fleet.board.fleet_task.replanning import PROPERTIES as OF_CHANGES
from lifefold.core.fleet.board.fleet_task.replanning import ROWS as CHANGES
from lifefold.core.fleet.board.fleet_task.rules import (
    AT_WORK,
    CANCELLABLE,
    NOT_NOW,
    abort,
    approval,
    approval_expired,
    converse,
    entrust,
    fail,
    find_again,
    gather,
    grant,
    has_aborts,
    has_no_owner,
    is_blocked_by_it,
    is_by_the_owner,
    is_handed,
    is_of_its_agent,
    is_to_be_agreed,
    is_trusted,
    lose,
    mark_aborted,
    may_come_again,
    may_split,
    note,
    orphan,
    park,
    put_back,
    refuse,
    rest,
    rests,
    split,
    subtasks,
    take,
    take_over,
)
from lifefold.core.kernel import STAY, Machine, Row, after, row
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.approval import ApprovalExpired, ApprovalGranted, ApprovalRefused
from lifefold.core.lifecycles.task import (
    Claimed,
    Failed,
    Orphaned,
    Rejected,
    State,
    SubtasksCompleted,
    SubtasksOverdue,
    Unblocked,
)

INSTEAD: Final[tuple[Row[Any], ...]] = (
    row(State.OPEN, Claimed, State.CLAIMED, take),
    row(State.CLAIMED, Failed, State.FAILED, fail, when=task.is_owner),
    row(State.IN_PROGRESS, Failed, State.FAILED, fail, when=task.is_owner),
    row(State.IN_PROGRESS, Orphaned, State.ORPHANED, orphan, when=task.is_owner),
    row(State.ORPHANED, Failed, State.FAILED, fail, when=task.is_owner),
    row(State.DONE, Rejected, State.FAILED, fail, when=task.is_owner),
    row(State.WAITING_FOR_SUBTASKS, SubtasksCompleted, State.DONE, gather),
    row(State.BLOCKED, Unblocked, State.OPEN, find_again),
)
"""Rows that replace the document's rows for the same state and event, with more actions."""

_instead = {(r.sources, r.event): r for r in INSTEAD}

machine: Machine[Any] = Machine(
    "task",
    FleetTask(),
    rows=(
        *(_instead.get((r.sources, r.event), r) for r in task.machine.rows),
        row(State.OPEN, Entrusted, State.CLAIMED, entrust, when=is_trusted),
        row(State.OPEN, DependencyLost, State.BLOCKED, lose),
        row(State.WAITING_FOR_SUBTASKS, DependencyLost, State.BLOCKED, lose),
        row(State.BLOCKED, DependencyBack, State.OPEN, find_again, when=is_blocked_by_it),
        row(State.FAILED, Rested, State.OPEN, task.retry, when=task.retries_left),
        row(State.FAILED, Rested, STAY),
        row(State.FAILED, RetryGranted, STAY, grant),
        row(AT_WORK, Split, State.WAITING_FOR_SUBTASKS, split, when=may_split),
        row(State.DONE, Parked, State.PENDING_APPROVAL, park, when=is_to_be_agreed),
        row(State.PENDING_APPROVAL, ApprovalGranted, State.DONE),
        row(State.PENDING_APPROVAL, ApprovalRefused, State.FAILED, refuse),
        row(State.PENDING_APPROVAL, ApprovalExpired, State.FAILED, approval_expired),
        row(State.DONE, Handed, STAY, take_over, when=has_no_owner),
        row(State.DONE, NothingDone, State.FAILED, fail, when=task.is_owner),
        row(State.DONE, Returned, STAY, put_back, when=is_handed),
        row(AT_WORK, ToolAborted, STAY, note, when=is_by_the_owner),
        row((*CANCELLABLE, *NOT_NOW), AbortWanted, STAY, note, when=has_aborts),
        row(CANCELLABLE, Aborted, State.CANCELLED, abort, when=has_aborts),
        row(NOT_NOW, Aborted, STAY, mark_aborted, when=may_come_again),
        row((*CANCELLABLE, *NOT_NOW), ConversationKept, STAY, converse, when=is_of_its_agent),
        *CHANGES,
    ),
    final=task.machine.final,
    properties=(*task.machine.properties, *PROPERTIES, *OF_CHANGES),
    rests=rests,
    during={
        State.FAILED: after(rest, Rested),
        State.WAITING_FOR_SUBTASKS: after(subtasks, SubtasksOverdue),
        State.PENDING_APPROVAL: after(approval, ApprovalExpired),
    },
    about="a task on a board: retried after a rest, approved by an operator, split into parts, blocked by another task",
)
