"""The table of a task as the document writes it, line by line, and the profile for a fleet."""

from lifefold.core.kernel import Machine, row, takes
from lifefold.core.task.model import (
    Approved,
    Blocked,
    Cancelled,
    Claimed,
    Completed,
    Declined,
    Decomposed,
    Failed,
    Orphaned,
    Rejected,
    Released,
    Retried,
    Salvaged,
    Started,
    State,
    SubtasksCompleted,
    SubtasksOverdue,
    Task,
    Unblocked,
    Verified,
)
from lifefold.core.task.promises import PROMISES
from lifefold.core.task.rules import (
    claim,
    close,
    explain,
    fail,
    give_back,
    is_not_of_another_claim,
    is_of_no_claim,
    is_owner,
    lose_patience,
    rests,
    resume,
    retries_left,
    retry,
)

machine = Machine(
    "task",
    Task(),
    about="a unit of work: planned, claimed, done, verified, closed",
    rows=(
        row(State.PLANNED, Approved, State.OPEN),
        row(State.PLANNED, Declined, State.CANCELLED),
        row(State.OPEN, Claimed, State.CLAIMED, claim),
        row(State.OPEN, Decomposed, State.WAITING_FOR_SUBTASKS, when=is_of_no_claim),
        row(State.OPEN, Cancelled, State.CANCELLED, explain),
        row(State.CLAIMED, Started, State.IN_PROGRESS, when=is_owner),
        row(State.CLAIMED, Released, State.OPEN, give_back, when=is_owner),
        row(State.CLAIMED, Completed, State.DONE, when=is_owner),
        row(State.CLAIMED, Failed, State.FAILED, fail, when=is_owner),
        row(State.CLAIMED, Cancelled, State.CANCELLED, explain),
        row(State.CLAIMED, Decomposed, State.WAITING_FOR_SUBTASKS, when=is_owner),
        row(State.CLAIMED, Blocked, State.BLOCKED, explain, when=is_not_of_another_claim),
        row(State.IN_PROGRESS, Completed, State.DONE, when=is_owner),
        row(State.IN_PROGRESS, Failed, State.FAILED, fail, when=is_owner),
        row(State.IN_PROGRESS, Blocked, State.BLOCKED, explain, when=is_not_of_another_claim),
        row(State.IN_PROGRESS, Decomposed, State.WAITING_FOR_SUBTASKS, when=is_owner),
        row(State.IN_PROGRESS, Released, State.OPEN, give_back, when=is_owner),
        row(State.IN_PROGRESS, Cancelled, State.CANCELLED, explain),
        row(State.IN_PROGRESS, Orphaned, State.ORPHANED, when=is_owner),
        row(State.ORPHANED, Salvaged, State.DONE, when=is_owner),
        row(State.ORPHANED, Failed, State.FAILED, fail, when=is_owner),
        row(State.ORPHANED, Released, State.OPEN, give_back, when=is_owner),
        row(State.BLOCKED, Unblocked, State.OPEN, resume),
        row(State.BLOCKED, Cancelled, State.CANCELLED, explain),
        row(State.WAITING_FOR_SUBTASKS, SubtasksCompleted, State.DONE),
        row(State.WAITING_FOR_SUBTASKS, SubtasksOverdue, State.BLOCKED, lose_patience),
        row(State.WAITING_FOR_SUBTASKS, Cancelled, State.CANCELLED, explain),
        row(State.FAILED, Retried, State.OPEN, retry, when=retries_left),
        row(State.DONE, Verified, State.CLOSED, close, when=is_owner),
        row(State.DONE, Rejected, State.FAILED, fail, when=is_owner),
    ),
    final={State.CLOSED, State.CANCELLED},
    detached={State.PENDING_APPROVAL},
    properties=PROMISES,
    rests=rests,
)

in_fleet = machine.with_rows(row(State.OPEN, Blocked, State.BLOCKED, explain, when=is_of_no_claim)).promising(
    takes("a task that nobody has claimed can be blocked", {State.OPEN: (Blocked,)})
)
"""The profile for a fleet: a task that nobody has claimed is blocked when what it depends on fails (E19)."""
