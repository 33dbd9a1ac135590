"""A unit of work: planned, claimed, done, verified, closed. The table is document 004's, thirty lines.

*Ownership is an epoch.* Each claim raises ``epoch`` by one, and the reports of its owner carry it. A report of an
earlier epoch fits no row: a worker that was given up for dead can complete nothing (E12). A report that another process
may send, too, carries epoch 0 then. A planner splits a task before any claim, and the board blocks one.

*Settled is not a state* (E18): a task is settled when nothing more happens to it without a request. That is so for
CLOSED and CANCELLED, for FAILED without a retry left, and for BLOCKED, which only ``Unblocked`` leads out of. BLOCKED
means that anything is missing, also a person's answer in the middle of the work. A person's approval of *finished* work
is PENDING_APPROVAL (E4).

No row enters or leaves PENDING_APPROVAL (E2); it belongs to the approval operation.
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
    block_overdue,
    claim,
    close,
    explain,
    fail,
    failed,
    give_back,
    is_not_of_another_claim,
    is_of_no_claim,
    is_owner,
    rests,
    resume,
    retries_left,
    retry,
    settled,
)
from lifefold.core.lifecycles.task.table import machine

__all__ = [
    "OWNED", "PROPERTIES", "Approved", "Blocked", "Brief", "Cancelled", "Claimed", "Completed", "Declined",
    "Decomposed", "Failed", "OnDeath", "OnNothing", "Orphaned", "OwnerReport", "Rejected", "Released", "Retried",
    "Salvaged", "Stage", "Started", "State", "SubtasksCompleted", "SubtasksOverdue", "Task", "Unblocked", "Verified",
    "block_overdue", "claim", "close", "explain", "fail", "failed", "give_back", "is_not_of_another_claim",
    "is_of_no_claim", "is_owner", "machine", "rests", "resume", "retries_left", "retry", "settled",
]  # fmt: skip
