"""A unit of work: planned, claimed, done, verified, closed. The table is document 004's, thirty lines.

*Ownership is an epoch.* Each claim raises ``epoch`` by one, and what its owner reports carries it. A report of an
earlier epoch fits no row: a worker that was given up for dead can complete nothing (E12). What somebody else may say,
too, carries epoch 0 then: a planner splits a task that nobody has claimed, and whoever gives tasks out blocks one.

*Settled is not a state* (E18): a task is settled when nothing will happen to it any more unless somebody asks for it.
That is so for CLOSED and CANCELLED, for FAILED when it may not be retried, and for BLOCKED, which only somebody's
``Unblocked`` leads out of. BLOCKED means whatever is not there, a person's word in the middle of the work included; a
person's word on *finished* work is PENDING_APPROVAL (E4).

PENDING_APPROVAL is not entered or left by any row (E2); it belongs to the approval operation.
"""

from lifefold.core.lifecycles.task.model import (
    Approved,
    Blocked,
    Brief,
    Cancelled,
    Claimed,
    Completed,
    Declined,
    Decomposed,
    Failed,
    OnDeath,
    OnNothing,
    Orphaned,
    OwnerReport,
    Rejected,
    Released,
    Retried,
    Salvaged,
    Stage,
    Started,
    State,
    SubtasksCompleted,
    SubtasksOverdue,
    Task,
    Unblocked,
    Verified,
)
from lifefold.core.lifecycles.task.properties import OWNED, PROPERTIES
from lifefold.core.lifecycles.task.rules import (
    claim,
    close,
    explain,
    fail,
    failed,
    give_back,
    is_not_of_another_claim,
    is_of_no_claim,
    is_owner,
    lose_patience,
    rests,
    resume,
    retries_left,
    retry,
    settled,
)
from lifefold.core.lifecycles.task.table import machine

__all__ = [
    "OWNED", "PROPERTIES", "Approved", "Blocked", "Brief", "Cancelled", "Claimed", "Completed", "Declined", "Decomposed",
    "Failed", "OnDeath", "OnNothing", "Orphaned", "OwnerReport", "Rejected", "Released", "Retried", "Salvaged", "Stage",
    "Started", "State", "SubtasksCompleted", "SubtasksOverdue", "Task", "Unblocked", "Verified", "claim", "close",
    "explain", "fail", "failed", "give_back", "is_not_of_another_claim", "is_of_no_claim", "is_owner", "lose_patience",
    "machine", "rests", "resume", "retries_left", "retry", "settled",
]  # fmt: skip
