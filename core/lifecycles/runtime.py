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

from typing import Annotated, Final, Never

from lifefold.core.kernel import ANY, STAY, After, Event, Machine, Row, Step, after, replace, row
from lifefold.core.kernel.row import Source
from lifefold.core.lifecycles.property_forms import follows_table
from lifefold.core.lifecycles.runtime_model import (
    AT_WORK,
    SDK,
    SEED,
    Complete,
    CompleteRecovery,
    DeadlinePassed,
    Fail,
    FailRecovery,
    InitTimedOut,
    Limits,
    Numbering,
    PreemptionForced,
    PreemptionRequested,
    Ready,
    Recover,
    RecoveryTimedOut,
    ResourceTimedOut,
    Resume,
    Run,
    Runtime,
    Schedule,
    SectionEntered,
    SectionLeft,
    Shutdown,
    ShutdownTimedOut,
    Start,
    State,
    Suspend,
    SuspendTimedOut,
    TimedOut,
    Wait,
    WaitResources,
    due_ms,
    safe_point,
)
from lifefold.core.lifecycles.runtime_preemption import Preemption, Section
from lifefold.core.lifecycles.runtime_properties import USUAL
from lifefold.effects import CallHook, LogFailure, ReportTaskFailed, SignalPreemption

__all__ = [
    "AT_WORK", "SDK", "SEED", "Complete", "CompleteRecovery", "DeadlinePassed", "Fail", "FailRecovery", "InitTimedOut",
    "Limits", "Numbering", "Preemption", "PreemptionForced", "PreemptionRequested", "Ready", "Recover",
    "RecoveryTimedOut", "ResourceTimedOut", "Resume", "Run", "Runtime", "Schedule", "Section", "SectionEntered",
    "SectionLeft", "Shutdown", "ShutdownTimedOut", "Start", "State", "Suspend", "SuspendTimedOut", "TimedOut", "Wait",
    "WaitResources", "due_ms", "machine", "may_recover", "safe_point",
]  # fmt: skip

# The hooks of the document: the annotations of actions name them, for tables to print

OnStartup = Annotated[CallHook, "on_startup"]
OnShutdown = Annotated[CallHook, "on_shutdown"]
OnScheduled = Annotated[CallHook, "on_scheduled"]
OnSuspend = Annotated[CallHook, "on_suspend"]
OnResume = Annotated[CallHook, "on_resume"]
OnRecoveryStart = Annotated[CallHook, "on_recovery_start"]
OnRecoveryComplete = Annotated[CallHook, "on_recovery_complete"]
OnPreemptRequest = Annotated[CallHook, "on_preempt_request"]

# Guards


def may_recover(a: Runtime, _e: Event | None = None) -> bool:
    """The budget has a recovery left (A24)."""
    return a.recoveries < a.limits.max_recoveries


def is_overdue(a: Runtime, _e: DeadlinePassed) -> bool:
    """The agent has not yielded in time, and has not been signalled yet (A17)."""
    due = due_ms(a)
    return a.preemption.signalled_ms is None and due is not None and due <= a.at_ms


def grace_is_over(a: Runtime, _e: DeadlinePassed) -> bool:
    """The agent was signalled, and has not yielded within the grace period (A17)."""
    due = due_ms(a)
    return a.preemption.signalled_ms is not None and due is not None and due <= a.at_ms


def is_new(a: Runtime, e: SectionEntered) -> bool:
    """No section of this key is running."""
    return not a.preemption.has(e.key)


def is_inside(a: Runtime, e: SectionLeft) -> bool:
    """The section of this key is running."""
    return a.preemption.has(e.key)


# Actions


def start(a: Runtime, _e: Start) -> Step[Runtime, OnStartup]:
    """Let the agent set itself up before it can be scheduled."""
    return Step(a, (CallHook("on_startup", before=True),))


def assign(a: Runtime, e: Schedule) -> Step[Runtime, OnScheduled]:
    """Take the task and tell the agent."""
    return Step(replace(a, task_id=e.task_id), (CallHook("on_scheduled", (e.task_id,)),))


def run(a: Runtime, _e: Run) -> Step[Runtime, Never]:
    """Begin or continue; a request that waited can be answered from now on."""
    return Step(replace(a, preemption=a.preemption.spare(a.at_ms).answerable(a.at_ms)))


def suspend(a: Runtime, _e: Suspend) -> Step[Runtime, OnSuspend]:
    """Let the agent save its state, and consume the request (A16)."""
    return Step(replace(a, preemption=a.preemption.consume()), (CallHook("on_suspend", before=True),))


def resume(a: Runtime, _e: Resume) -> Step[Runtime, OnResume]:
    """Let the agent load its state."""
    return Step(a, (CallHook("on_resume"),))


def complete(a: Runtime, _e: Complete) -> Step[Runtime, Never]:
    """Drop the task, and restore the whole recovery budget: the agent has completed something (A23)."""
    return Step(replace(a, recoveries=0, task_id=None))


def forget(a: Runtime, _e: Ready) -> Step[Runtime, Never]:
    """Begin afresh, without the data of the completed task."""
    return Step(a.relieved())


def fail(a: Runtime, e: Fail) -> Step[Runtime, Never]:
    """Keep the reason."""
    return Step(a.failed(e.reason))


def time_out(a: Runtime, e: TimedOut) -> Step[Runtime, LogFailure]:
    """Keep and log the state that lasted too long (A6)."""
    reason = f"{a.state} lasted too long"
    return Step(a.failed(reason, e.error_code), (LogFailure(e.error_code, reason),))


def shut_down(a: Runtime, _e: Shutdown) -> Step[Runtime, OnShutdown]:
    """Let the agent clean up before it is shutting down."""
    return Step(a, (CallHook("on_shutdown", before=True),))


def begin_recovery(a: Runtime, _e: Event) -> Step[Runtime, OnRecoveryStart]:
    """Count the recovery and let the agent try it."""
    count = min(a.recoveries + 1, a.limits.max_recoveries)
    return Step(replace(a, recoveries=count), (CallHook("on_recovery_start"),))


def complete_recovery(a: Runtime, _e: CompleteRecovery) -> Step[Runtime, OnRecoveryComplete | ReportTaskFailed]:
    """Report the task that the failure has cost, and begin afresh (A23)."""
    return Step(a.relieved(), (CallHook("on_recovery_complete", (True,)), *task_failed(a)))


def fail_recovery(a: Runtime, e: Fail | FailRecovery) -> Step[Runtime, OnRecoveryComplete]:
    """Keep the reason, and tell the agent."""
    return Step(a.failed(e.reason), (CallHook("on_recovery_complete", (False,)),))


def time_out_recovery(a: Runtime, e: RecoveryTimedOut) -> Step[Runtime, LogFailure | OnRecoveryComplete]:
    """Keep and log that recovery lasted too long, and tell the agent."""
    timed_out = time_out(a, e)
    return Step(timed_out.record, (*timed_out.effects, CallHook("on_recovery_complete", (False,))))


def abort_recovery(a: Runtime, e: Shutdown) -> Step[Runtime, OnShutdown | OnRecoveryComplete | ReportTaskFailed]:
    """Let the agent clean up; its recovery is over as well, and its failed task is reported (A5, A23)."""
    call = CallHook("on_recovery_complete", (False,))
    return Step(replace(a, task_id=None), (*shut_down(a, e).effects, call, *task_failed(a)))


def task_failed(a: Runtime) -> tuple[ReportTaskFailed, ...]:
    """Return the report of the task that the agent has lost, if it had one."""
    return () if a.task_id is None else (ReportTaskFailed(a.task_id, a.failure_reason or "", a.error_code),)


def request(a: Runtime, e: PreemptionRequested) -> Step[Runtime, OnPreemptRequest]:
    """Tell the agent, and keep the request if it can concern a task (A15, A25)."""
    call = CallHook("on_preempt_request", (e.reason,))
    if a.state not in AT_WORK:
        return Step(a, (call,))
    requested = a.preemption.request(e.reason, a.at_ms)
    noted = requested.answerable(a.at_ms) if a.state is State.RUNNING else requested
    return Step(replace(a, preemption=noted), (call,))


def enter(a: Runtime, e: SectionEntered) -> Step[Runtime, Never]:
    """Defer preemption while the section is running (A18)."""
    until_ms = None if e.within_ms is None else a.at_ms + e.within_ms
    return Step(replace(a, preemption=a.preemption.enter(Section(e.key, until_ms, a.at_ms))))


def leave(a: Runtime, e: SectionLeft) -> Step[Runtime, Never]:
    """End the deferral; a request that came meanwhile can be answered from now on (A15)."""
    left = a.preemption.leave(e.key)
    return Step(replace(a, preemption=left.answerable(a.at_ms) if a.state is State.RUNNING else left))


def signal(a: Runtime, _e: DeadlinePassed) -> Step[Runtime, SignalPreemption]:
    """Tell the agent that it is overdue, and begin the grace period."""
    signalled = replace(a, preemption=a.preemption.signal(a.at_ms))
    return Step(signalled, (SignalPreemption(a.preemption.reason, a.limits.preemption_grace_ms),))


def hurry(a: Runtime, e: PreemptionForced) -> Step[Runtime, SignalPreemption]:
    """Begin the grace period now; a running one is not restarted."""
    wanted = replace(a, preemption=a.preemption.request(e.reason, a.at_ms))
    return Step(wanted) if a.preemption.signalled_ms is not None else signal(wanted, DeadlinePassed())


def force(a: Runtime, _e: DeadlinePassed) -> Step[Runtime, LogFailure]:
    """Fail the agent. The request stands until it recovers, so that a loop that still runs is told to end."""
    reason = f"preemption was forced: {a.preemption.reason}"
    return Step(a.failed(reason, "forced_preemption"), (LogFailure("forced_preemption", reason),))


# The table

ROWS: tuple[Row[Runtime], ...] = (
    row(State.INITIALIZING, Start, State.RUNNABLE, start),
    row(State.INITIALIZING, InitTimedOut, State.FAILED, time_out),
    row(State.RUNNABLE, Schedule, State.SCHEDULED, assign),
    row(State.SCHEDULED, Run, State.RUNNING, run),
    row(State.RUNNING, Wait, State.WAITING),
    row(State.RUNNING, WaitResources, State.WAITING_RESOURCES),
    row(State.RUNNING, Suspend, State.SUSPENDED, suspend),
    row(State.RUNNING, Complete, State.COMPLETED, complete),
    row(State.RUNNING, Fail, State.FAILED, fail),
    row(State.RUNNING, DeadlinePassed, State.FAILED, force, when=grace_is_over),
    row(State.RUNNING, Shutdown, State.SHUTTING_DOWN, shut_down),
    row(State.WAITING, Run, State.RUNNING, run),
    row(State.WAITING_RESOURCES, Run, State.RUNNING, run),
    row(State.WAITING_RESOURCES, ResourceTimedOut, State.FAILED, time_out),
    row(State.SUSPENDED, Resume, State.RESUMED, resume),
    row(State.SUSPENDED, SuspendTimedOut, State.FAILED, time_out),
    row(State.RESUMED, Run, State.RUNNING, run),
    row(State.COMPLETED, Ready, State.RUNNABLE, forget),
    row(State.FAILED, Recover, State.RECOVERING, begin_recovery),
    row(State.SHUTTING_DOWN, ShutdownTimedOut, State.FAILED, time_out),
    row(State.SHUTTING_DOWN, Fail, State.FAILED, fail),
    row(State.RECOVERING, CompleteRecovery, State.RUNNABLE, complete_recovery),
    row(State.RECOVERING, FailRecovery, State.FAILED, fail_recovery),
    row(State.RECOVERING, Fail, State.FAILED, fail_recovery),
    row(State.RECOVERING, RecoveryTimedOut, State.FAILED, time_out_recovery),
    row(State.RECOVERING, Shutdown, State.SHUTTING_DOWN, abort_recovery),
)

BESIDE: tuple[Row[Runtime], ...] = (
    row(ANY, PreemptionRequested, STAY, request),
    row(ANY, SectionEntered, STAY, enter, when=is_new),
    row(ANY, SectionLeft, STAY, leave, when=is_inside),
    row(State.RUNNING, PreemptionForced, STAY, hurry),
    row(State.RUNNING, DeadlinePassed, STAY, signal, when=is_overdue),
)
"""The events beside the state: none of them is an edge."""

CONDITIONS: Final = (is_overdue, grace_is_over, is_new, is_inside)
"""The guards that may refuse an event in its state."""


def has_a_task_at_work(a: Runtime) -> bool:
    """From SCHEDULED to RESUMED the agent has a task; before it is scheduled, and once completed, it has none."""
    if a.state in {State.INITIALIZING, State.RUNNABLE, State.COMPLETED}:
        return a.task_id is None
    return a.task_id is not None or a.state not in AT_WORK


def has_no_failure_at_work(a: Runtime) -> bool:
    """The reason of a failure is gone once the agent can be scheduled again, or has completed its task."""
    well = a.state in {State.INITIALIZING, State.RUNNABLE, *AT_WORK, State.COMPLETED}
    return not well or (a.failure_reason is None and not a.error_code)


def deadlines_have_a_request(a: Runtime) -> bool:
    """No deadline of preemption runs without a request."""
    preemption = a.preemption
    return preemption.requested or replace(preemption, reason="", sections=()) == Preemption()


def init_timeout_ms(a: Runtime) -> int:
    """Return the time limit of the initialisation."""
    return a.limits.init_timeout_ms


def resource_timeout_ms(a: Runtime) -> int:
    """Return the time limit of a wait for resources."""
    return a.limits.resource_timeout_ms


def suspend_timeout_ms(a: Runtime) -> int:
    """Return the time limit of a suspension."""
    return a.limits.suspend_timeout_ms


def shutdown_timeout_ms(a: Runtime) -> int:
    """Return the time limit of a shutdown."""
    return a.limits.shutdown_timeout_ms


def recovery_timeout_ms(a: Runtime) -> int:
    """Return the time limit of a recovery."""
    return a.limits.recovery_timeout_ms


INVARIANTS: Final = (has_a_task_at_work, has_no_failure_at_work, deadlines_have_a_request)

DURING: Final[dict[Source, After[Runtime]]] = {
    State.INITIALIZING: after(init_timeout_ms, InitTimedOut),
    State.WAITING_RESOURCES: after(resource_timeout_ms, ResourceTimedOut),
    State.SUSPENDED: after(suspend_timeout_ms, SuspendTimedOut),
    State.SHUTTING_DOWN: after(shutdown_timeout_ms, ShutdownTimedOut),
    State.RECOVERING: after(recovery_timeout_ms, RecoveryTimedOut),
}
"""The states with a time limit (A6)."""

machine: Machine[Runtime] = Machine(
    "runtime",
    Runtime(),
    about="a cooperative agent in this process: schedule, run, wait, suspend, recover, shut down",
    rows=(*ROWS, *BESIDE),
    during=DURING,
    invariants=INVARIANTS,
    properties=(*USUAL, *follows_table((*ROWS, *BESIDE), but=CONDITIONS)),
)
