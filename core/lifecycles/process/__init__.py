"""A long-lived, trigger-driven process with a restart policy: eight states, nineteen edges (document 002).

The document's interface names a target state, so an edge is written ``move(source, target)``. All other inputs of a
process (a trigger, a failed run, a timer) use the same nineteen edges or leave the state as it is; no row adds one. The
edge from FAILED to STOPPING, a hint of the diagram, is in the profile ``process-promptise-1.5`` (C3). Where diagram and
table disagree, the table holds (C4, C5). The profiles ``by_hand`` have no timers and no activities: there only requests
move the process, as in the document's own interface.

The theory, in four parts.

*A stop is an intent.* It holds from its request until a start is requested, through failures and crashes. It cancels a
planned restart, and none is planned while it stands (C7). A start is refused while the process is stopping, for it
could overtake a later stop.

*A restart* is decided when the process comes down. A failure is followed by a restart if the policy says so. When
``max_restarts`` are used up, the process stays FAILED and reports that. *Only a successful run clears the count*: a
start that works or a restart does not. Otherwise a process that starts and then fails would be restarted for ever. A
requested start that fails is reported to its requester and not retried (C8). At the end of its lifetime a process is
stopped and, with the policy ``always``, started again. That is a recycle, and does not count.

*A pause binds on every path.* The record has the reason of a suspension (C15). Only a suspension for idleness ends with
the next trigger, and idleness replaces no other reason. A pause that is requested while the process starts, or before a
restart, holds as soon as the process is up. The table cannot suspend AWAITING, so the process goes there through
RUNNING (C6), for no time at all and with its triggers paused already.

*Idleness is AWAITING*: nothing is queued and no run is in flight. The idle timeout is a timer of that state, so each
run and each resumption restarts it. The lifetime counts from RUNNING on, suspensions included.

A process that is up when its runner dies is FAILED(orphaned) afterwards. The policy then decides as after any failure,
and a requested stop stands (C12). A move to the present state is no edge (C9). No state is terminal: a process at rest
may be removed (C16). The history is in the journal, not in the record.
"""

from lifefold.core.lifecycles.process.model import (
    AT_REST,
    DOWN,
    SERVING,
    BackoffElapsed,
    Crashed,
    Drained,
    DrainElapsed,
    IdleElapsed,
    LifetimeElapsed,
    MoveRequested,
    Orphaned,
    Process,
    QueueEmptied,
    ResumeRequested,
    RunFailed,
    RunSucceeded,
    StartFailed,
    StartRequested,
    StartSucceeded,
    State,
    StopRequested,
    SuspendDue,
    SuspendReason,
    SuspendRequested,
    TriggerArrived,
    found,
)
from lifefold.core.lifecycles.process.restart import Comeback, Limits
from lifefold.core.lifecycles.process.table import DRIVEN, TABLE, by_hand, by_hand_1_5, machine, promptise_1_5

__all__ = [
    "AT_REST", "DOWN", "DRIVEN", "SERVING", "TABLE", "BackoffElapsed", "Comeback", "Crashed",
    "DrainElapsed", "Drained", "IdleElapsed", "LifetimeElapsed", "Limits", "MoveRequested", "Orphaned", "Process",
    "QueueEmptied", "ResumeRequested", "RunFailed", "RunSucceeded", "StartFailed", "StartRequested",
    "StartSucceeded", "State", "StopRequested", "SuspendDue", "SuspendReason", "SuspendRequested",
    "TriggerArrived", "by_hand", "by_hand_1_5", "found", "machine", "promptise_1_5",
]  # fmt: skip
