"""What a worker does with the one task in its hands: a clean place, the work itself, the proof, the way home.

The work itself is done by the session; this machine says what surrounds it. Five things can come between:

- A place that cannot be made is trouble of the agent, not of the task: the task is given back as it was.
- An agent that stops gives back what it has not done. Work that is done is brought home all the same: its verification
  and its merge are finished, and what comes of them counts.
- Work that a person has to agree to before it is merged is *parked*: it is put where whoever merges it finds it, and is
  out of this worker's hands. Somebody, perhaps the same worker, is then given it to be merged only. Likewise a task may
  be given to be verified only, when its parts are closed.
- A session that has died has said nothing of its work. If the task wants that (``orphaned``), what it has left is
  *inspected* as soon as nothing of it is alive any more, and verified if there is anything; only if it agrees, it is as
  if the session had said that it is done (E40).
- An agent can move the fleet's branch itself, to work that is not verified. Then the merge is *disputed*: nothing is
  merged until the branch is where lifefold has left it, or the operator accepts it as it is.
- A task that is taken from its owner (``Recalled``, E20) is dropped at once, and what was done for it is never merged.
  Only a merge that has begun is finished: git cannot say of half of one whether it is in the branch.
"""

from lifefold.core.fleet.worker.assignment.model import (
    ON_ITS_WAY,
    ORPHANED,
    Assigned,
    Assignment,
    BranchAccepted,
    BranchBack,
    Buried,
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
    State,
    Verified,
    VerifyTimeoutChanged,
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
    "Buried",
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
    "State",
    "Verified",
    "VerifyTimeoutChanged",
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
