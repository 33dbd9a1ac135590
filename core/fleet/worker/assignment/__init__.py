"""An assignment: the steps of a worker around the session of its task: worktree, verification, merge.

The session does the work; this machine governs the steps before and after it. The usual order has these exceptions:

- *A failed checkout* is an error of the agent, not of the task: the task is given back unchanged.
- *A stopped agent* gives unfinished work back. Finished work is still verified and merged.
- *Approval*: work that needs approval before the merge is *parked* as a commit, and the worker is free. After the
  approval, any worker can be assigned the task for its merge alone. In the same way, a task with closed parts is
  assigned for its verification alone.
- *A dead session* has reported nothing. If the task asks for it (``orphaned``), its worktree is *inspected* as soon as
  no process of the session is alive. A difference is verified, and then counts like reported work (E40).
- *A moved branch*: an agent can move the target branch to unverified work. The merge is then *disputed*: it waits until
  the branch is set back, or the operator accepts the branch as it is.
- *A completed session* can leave an urgent message. The claim then continues with another session, if one may begin.
- *A recall* (E20): the task is dropped at once, and its work is never merged. Only a merge in progress is finished,
  because git cannot tell whether half of a merge is in the branch.
"""

from lifefold.core.fleet.worker.assignment.model import (
    ON_ITS_WAY,
    ORPHANED,
    Assigned,
    Assignment,
    BranchAccepted,
    BranchBack,
    CheckedOut,
    CheckoutFailed,
    Collected,
    Conflicted,
    Displaced,
    Dropped,
    Inspected,
    Merged,
    Parked,
    ParkingFailed,
    Prompted,
    Rebriefed,
    Recalled,
    Rejected,
    SessionDied,
    SessionGone,
    State,
    Verified,
    VerifyTimeoutChanged,
    WorkContinued,
    WorkFailed,
    WorkFinished,
    WorkRequested,
)
from lifefold.core.fleet.worker.assignment.properties import PROPERTIES
from lifefold.core.fleet.worker.assignment.rules import differs, is_orphan, is_to_be_verified, orphan, rests
from lifefold.core.fleet.worker.assignment.table import machine

__all__ = [
    "ON_ITS_WAY",
    "ORPHANED",
    "PROPERTIES",
    "Assigned",
    "Assignment",
    "BranchAccepted",
    "BranchBack",
    "CheckedOut",
    "CheckoutFailed",
    "Collected",
    "Conflicted",
    "Displaced",
    "Dropped",
    "Inspected",
    "Merged",
    "Parked",
    "ParkingFailed",
    "Prompted",
    "Rebriefed",
    "Recalled",
    "Rejected",
    "SessionDied",
    "SessionGone",
    "State",
    "Verified",
    "VerifyTimeoutChanged",
    "WorkContinued",
    "WorkFailed",
    "WorkFinished",
    "WorkRequested",
    "differs",
    "is_orphan",
    "is_to_be_verified",
    "machine",
    "orphan",
    "rests",
]
