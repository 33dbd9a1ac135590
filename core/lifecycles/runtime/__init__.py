"""A cooperative agent that lives in this process: scheduled, run, suspended, recovered, shut down.

The table is the diagram of document 000: twenty-two edges, no more and no fewer (A1). Several events may lead along one
edge: RUNNING becomes FAILED by ``fail``, and when preemption is forced.

*The agent and its scheduler move it*, by the document's methods, each an event here. ``Ready`` is for the one edge
without a method in the document (A3). ``Fail`` is accepted where the document says (A7) and ``Shutdown`` also while
recovering (A5). The other edges into FAILED are timers of their states, with the codes in ``error_code`` (A6).
COMPLETED ends the task, not the agent (A2). WAITING and SCHEDULED have no exit but the document's. In the profile
``watched`` an operator is told when they last long (A8, A26).

*Hooks* are effects of their rows. Hooks that the document calls before a transition are performed before it is
committed, and prevent it by failing; the others follow it (A11, A14, A21).

*Preemption is beside the state* (see ``preemption``). A request may come at any time and is consumed by entering
SUSPENDED (A16). It concerns the task, so it ends with the task at the latest. A RUNNABLE agent has no request. An agent
without a task is told of a request, which then is over. Deadlines count while RUNNING, and the timeout also during
waits. After a wait the agent is signalled again before it is failed, but only once. Deadlines appear while a state
lasts, so no timer of the state can stand for them. The keeper of the time sends ``DeadlinePassed``, as often as it
likes; it counts from ``due_ms`` on (A17).

*Recovery has no limit in the table* (A24). ``recoveries`` counts them up to the budget since the last completed task,
and not since the last recovery. Otherwise an agent that recovers and fails again at once would be recovered for ever.
In the profile ``supervised`` the budget binds, and the agent recovers after a delay.
"""

from lifefold.core.lifecycles.runtime.events import (
    Complete,
    CompleteRecovery,
    DeadlinePassed,
    Fail,
    FailRecovery,
    InitTimedOut,
    PreemptionForced,
    PreemptionRequested,
    Ready,
    Recover,
    RecoveryTimedOut,
    ResourceTimedOut,
    Resume,
    Run,
    Schedule,
    SectionEntered,
    SectionLeft,
    Shutdown,
    ShutdownTimedOut,
    Start,
    Suspend,
    SuspendTimedOut,
    TimedOut,
    Wait,
    WaitResources,
)
from lifefold.core.lifecycles.runtime.numbers import SDK, SEED, Numbering
from lifefold.core.lifecycles.runtime.preemption import Preemption, Section
from lifefold.core.lifecycles.runtime.profiles import (
    Overdue,
    RecoveryDue,
    agentpy,
    auto_running,
    graceful,
    supervised,
    watched,
)
from lifefold.core.lifecycles.runtime.record import AT_WORK, Limits, Runtime, State, due_ms, safe_point
from lifefold.core.lifecycles.runtime.table import machine, may_recover

__all__ = [
    "AT_WORK",
    "SDK",
    "SEED",
    "Complete",
    "CompleteRecovery",
    "DeadlinePassed",
    "Fail",
    "FailRecovery",
    "InitTimedOut",
    "Limits",
    "Numbering",
    "Overdue",
    "Preemption",
    "PreemptionForced",
    "PreemptionRequested",
    "Ready",
    "Recover",
    "RecoveryDue",
    "RecoveryTimedOut",
    "ResourceTimedOut",
    "Resume",
    "Run",
    "Runtime",
    "Schedule",
    "Section",
    "SectionEntered",
    "SectionLeft",
    "Shutdown",
    "ShutdownTimedOut",
    "Start",
    "State",
    "Suspend",
    "SuspendTimedOut",
    "TimedOut",
    "Wait",
    "WaitResources",
    "agentpy",
    "auto_running",
    "due_ms",
    "graceful",
    "machine",
    "may_recover",
    "safe_point",
    "supervised",
    "watched",
]
