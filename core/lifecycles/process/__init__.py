"""A long-lived, trigger-driven process with a restart policy: eight states, nineteen edges (document 002).

The document asks for a move by naming its target, so an edge is written ``move(source, target)``. Whatever else happens
to a process (a trigger comes, a run fails, a time is over) goes along the same nineteen edges or stays where it is; no
row adds one. FAILED to STOPPING, which the diagram hints at, is in the profile ``process-promptise-1.5`` (C3). Where
diagram and table disagree, the table holds (C4, C5). The profiles ``by_hand`` have no timers and no activities: there
only somebody's requests move, as in the document's own interface.

The theory, in four parts.

*A stop is an intent.* It holds from the moment it is asked for until somebody asks for a start, through failures and
crashes: it forgets a restart that was to come, and none is planned while it stands (C7). A start is refused while the
process is stopping, for it could overtake a later stop.

*Who comes back* is decided when the process comes down. A failure is followed by a restart if the policy says so; when
``max_restarts`` are used up the process stays FAILED, and says so. *Only a successful run clears the count*: neither a
start that works nor a restart does, or a process that starts and then fails would never be given up. A start that
somebody asked for and that fails is told to him and not retried (C8). At the end of its lifetime a process is stopped
and, with the policy ``always``, started anew; that is a recycle, and does not count.

*A pause binds on every path.* Why a process is suspended is known (C15): only one suspended for idleness resumes with
the next trigger, and idleness replaces no other reason. A pause that is asked for while the process starts, or is going
to be restarted, holds as soon as it is up. AWAITING cannot be suspended by the table, so the process goes there by way
of RUNNING (C6), for no time at all and with its triggers paused already.

*Idleness is AWAITING*: nothing is queued and nothing is in flight. The idle timeout is a timer of that state, so each
run and each resumption starts it anew. The lifetime counts from RUNNING on, suspensions included.

What is live when its runner dies is FAILED(orphaned) afterwards; the policy then decides as after any failure, and a
stop that was asked for stands (C12). An edge to the state that already holds there is none (C9), nor a terminal state:
who is at rest may be removed (C16). The history is the journal's, not the record's.
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
