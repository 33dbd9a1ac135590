"""A long-lived, trigger-driven process with a restart policy: eight states, nineteen edges (document 002).

The document's interface names a target state, so an edge is written ``move(source, target)``. All other inputs of a
process (a trigger, a failed run, a timer) use the same nineteen edges, or leave the state as it is. No row adds an
edge. The edge from FAILED to STOPPING, a hint of the diagram, is in the profile ``process-promptise-1.5`` (C3). Where
diagram and table disagree, the table holds (C4, C5). The profiles ``by_hand`` have no timers and no activities: there
only requests move the process, as in the document's own interface.

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

from typing import Final

from lifefold.core.kernel import STAY, Machine, Pattern, Row, after, always_step, does, row
from lifefold.core.lifecycles import process_actions as do
from lifefold.core.lifecycles.process_model import (
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
from lifefold.core.lifecycles.process_properties import AT_ALL_TIMES, STEPS, WHEN_DRIVEN, stops_a_failed_process
from lifefold.core.lifecycles.process_restart import Comeback, Limits
from lifefold.core.lifecycles.property_forms import follows_table, goes_along, with_own_table
from lifefold.effects import DrainProcess, ServeTriggers, StartProcess

__all__ = [
    "AT_REST", "DOWN", "DRIVEN", "SERVING", "TABLE", "BackoffElapsed", "Comeback", "Crashed", "DrainElapsed", "Drained",
    "IdleElapsed", "LifetimeElapsed", "Limits", "MoveRequested", "Orphaned", "Process", "QueueEmptied",
    "ResumeRequested", "RunFailed", "RunSucceeded", "StartFailed", "StartRequested", "StartSucceeded", "State",
    "StopRequested", "SuspendDue", "SuspendReason", "SuspendRequested", "TriggerArrived", "by_hand", "by_hand_1_5",
    "found", "machine", "promptise_1_5",
]  # fmt: skip

# Activities and timers


def start_process(p: Process) -> StartProcess:
    """Return the activity of STARTING."""
    return StartProcess(p.restart_count)


def serve_triggers(p: Process) -> ServeTriggers:
    """Return the activity of a process that is up; paused from the beginning if a suspension is planned."""
    return ServeTriggers(p.limits.concurrency, p.limits.queue_limit, p.suspended_for is not None)


def drain_process(_p: Process) -> DrainProcess:
    """Return the activity of STOPPING."""
    return DrainProcess()


def until_suspended_ms(p: Process) -> int | None:
    """Return the stay in RUNNING before a planned suspension: no time at all (C6)."""
    return None if p.suspended_for is None else 0


def idle_timeout_ms(p: Process) -> int | None:
    """Return the time that the process may wait for a trigger."""
    return p.limits.idle_timeout_ms or None


def max_lifetime_ms(p: Process) -> int | None:
    """Return the time that the process may be up."""
    return p.limits.max_lifetime_ms or None


def drain_timeout_ms(p: Process) -> int:
    """Return the time that runs in flight have to end when the process stops."""
    return p.limits.drain_timeout_ms


def backoff_ms(p: Process) -> int | None:
    """Return the pause before a restart: no time before a recycle, None without a restart."""
    if p.comeback is Comeback.RESTART:
        return p.limits.backoff_ms(p.restart_count, p.name)
    return 0 if p.comeback is Comeback.RECYCLE else None


# The table


def to(target: State) -> Pattern[MoveRequested]:
    """Return the pattern of requests for this target."""
    return Pattern(MoveRequested, target.value, lambda e: e.target is target)


def move(source: State, target: State, action: do.Move | None = None) -> Row[Process]:
    """Write an edge of the document: this state allows this target."""
    return row(source, to(target), target, action, when=do.as_expected)


TABLE: Final[tuple[Row[Process], ...]] = (
    move(State.CREATED, State.STARTING, do.start),
    move(State.CREATED, State.STOPPED, do.want_stop),
    move(State.STARTING, State.RUNNING, do.begin),
    move(State.STARTING, State.FAILED, do.fail_start),
    move(State.STARTING, State.STOPPING, do.want_stop),
    move(State.RUNNING, State.SUSPENDED, do.suspend),
    move(State.RUNNING, State.STOPPING, do.want_stop),
    move(State.RUNNING, State.FAILED, do.fail),
    move(State.RUNNING, State.AWAITING, do.await_trigger),
    move(State.SUSPENDED, State.RUNNING, do.resume),
    move(State.SUSPENDED, State.STOPPING, do.want_stop),
    move(State.SUSPENDED, State.FAILED, do.fail),
    move(State.AWAITING, State.RUNNING),
    move(State.AWAITING, State.STOPPING, do.want_stop),
    move(State.AWAITING, State.FAILED, do.fail),
    move(State.STOPPING, State.STOPPED, do.stopped),
    move(State.STOPPING, State.FAILED, do.fail),
    move(State.STOPPED, State.STARTING, do.start),
    move(State.FAILED, State.STARTING, do.start),
)
"""The document's "Valid Transitions", an edge a line."""

ORPHANED: Final[Row[Process]] = row((State.STARTING, *SERVING, State.STOPPING), Orphaned, State.FAILED, do.fail)

DRIVEN: Final[tuple[Row[Process], ...]] = (
    row((State.CREATED, *DOWN), StartRequested, State.STARTING, do.start),
    row(State.CREATED, StopRequested, State.STOPPED, do.want_stop),
    row((State.STARTING, *SERVING), StopRequested, State.STOPPING, do.want_stop),
    row((State.STOPPING, *DOWN), StopRequested, STAY, do.want_stop),
    row(State.STARTING, StartSucceeded, State.RUNNING, do.begin),
    row(State.STARTING, StartFailed, State.FAILED, do.fail_start),
    row(State.AWAITING, TriggerArrived, State.RUNNING),
    row(State.SUSPENDED, TriggerArrived, State.RUNNING, do.resume, when=do.is_idle),
    row(State.RUNNING, TriggerArrived, STAY, do.go_on, when=do.is_idle),
    row((State.RUNNING, State.SUSPENDED), TriggerArrived, STAY),
    row(State.RUNNING, QueueEmptied, State.AWAITING, when=do.goes_on),
    row(SERVING, QueueEmptied, STAY),
    row((*SERVING, State.STOPPING), RunSucceeded, STAY, do.clear),
    row(SERVING, RunFailed, State.FAILED, do.give_up, when=do.failed_too_often),
    row((*SERVING, State.STOPPING), RunFailed, STAY, do.count_failure),
    row(State.RUNNING, SuspendRequested, State.SUSPENDED, do.suspend),
    row(State.AWAITING, SuspendRequested, State.RUNNING, do.pause),
    row((State.STARTING, State.SUSPENDED), SuspendRequested, STAY, do.hold),
    row((State.STOPPING, *DOWN), SuspendRequested, STAY, do.hold, when=do.comes_back),
    row(State.AWAITING, IdleElapsed, State.RUNNING, do.pause),
    row(State.RUNNING, SuspendDue, State.SUSPENDED, do.arrive, when=do.will_suspend),
    row(State.RUNNING, SuspendDue, STAY),
    row(State.SUSPENDED, ResumeRequested, State.RUNNING, do.resume),
    row(State.RUNNING, ResumeRequested, STAY, do.go_on, when=do.will_suspend),
    row(State.STARTING, ResumeRequested, STAY, do.forget, when=do.will_suspend),
    row((State.STOPPING, *DOWN), ResumeRequested, STAY, do.forget, when=do.comes_back_suspended),
    row(SERVING, LifetimeElapsed, State.STOPPING, do.grow_old),
    row((*SERVING, State.STOPPING), Crashed, State.FAILED, do.fail),
    row(State.STOPPING, Drained, State.STOPPED, do.stopped),
    row(State.STOPPING, DrainElapsed, State.STOPPED, do.stopped),
    row(DOWN, BackoffElapsed, State.STARTING, do.come_back, when=do.comes_back),
    row(DOWN, BackoffElapsed, STAY),
    ORPHANED,
)
"""The rows that move a process along those edges, or change other fields of the record."""

CONDITIONS: Final = (
    do.is_idle,
    do.goes_on,
    do.failed_too_often,
    do.comes_back,
    do.will_suspend,
    do.comes_back_suspended,
)
"""The guards that may refuse an event in its state."""

_STOP_FAILED: Final = move(State.FAILED, State.STOPPING, do.want_stop)

ALONG: Final = goes_along("a process moves along the edges of the document", (*TABLE, _STOP_FAILED))
"""Its rows are those of the profile, too, in which a failed process can be stopped (C3)."""


def stays_stopped(p: Process) -> bool:
    """While a stop stands, the process is stopping or down, and no start is planned (C7)."""
    return not p.stop_requested or (p.state in {State.STOPPING, *DOWN} and p.comeback is Comeback.NONE)


def comes_back_from_below(p: Process) -> bool:
    """Only a process that is down, going down or just coming up has a planned restart."""
    return p.comeback is Comeback.NONE or p.state in {State.STOPPING, *DOWN, State.STARTING}


def restarts_within_the_limit(p: Process) -> bool:
    """The restarts without a successful run never exceed the limit."""
    return p.restart_count <= p.limits.max_restarts


def fails_within_the_limit(p: Process) -> bool:
    """A process that is up has fewer failed runs in a row than the limit."""
    return p.state not in SERVING or p.consecutive_failures < p.limits.max_consecutive_failures


def suspensions_have_a_reason(p: Process) -> bool:
    """Every suspension has a reason (C15)."""
    return p.state is not State.SUSPENDED or p.suspended_for is not None


INVARIANTS: Final = (
    stays_stopped,
    comes_back_from_below,
    restarts_within_the_limit,
    fails_within_the_limit,
    suspensions_have_a_reason,
)

machine = Machine(
    "process",
    Process(),
    about="a long-lived, trigger-driven process with a restart policy",
    rows=(*TABLE, *DRIVEN),
    during={
        State.STARTING: does(start_process, last=(StartSucceeded, StartFailed)),
        SERVING: (
            does(serve_triggers, yields=(TriggerArrived, QueueEmptied, RunSucceeded, RunFailed, Crashed)),
            after(max_lifetime_ms, LifetimeElapsed),
        ),
        State.RUNNING: after(until_suspended_ms, SuspendDue),
        State.AWAITING: after(idle_timeout_ms, IdleElapsed),
        State.STOPPING: (
            does(drain_process, yields=(RunSucceeded, RunFailed, Crashed), last=Drained),
            after(drain_timeout_ms, DrainElapsed),
        ),
        DOWN: after(backoff_ms, BackoffElapsed),
    },
    invariants=INVARIANTS,
    properties=(*AT_ALL_TIMES, *WHEN_DRIVEN, *STEPS, ALONG, *follows_table((*TABLE, *DRIVEN), but=CONDITIONS)),
)

by_hand = Machine(
    "process-by-hand",
    Process(),
    about="process, moved by requests only: the document's own interface",
    rows=(*TABLE, ORPHANED),
    invariants=INVARIANTS,
    properties=(*STEPS, ALONG, *follows_table((*TABLE, ORPHANED))),
)
"""The profile without timers and activities: the process moves on request only."""

promptise_1_5 = with_own_table(
    machine.with_rows(
        _STOP_FAILED, row(State.FAILED, StopRequested, State.STOPPING, do.want_stop), name="process-promptise-1.5"
    ),
    CONDITIONS,
).with_properties(always_step("a failed process that is asked to stop is stopped", stops_a_failed_process))
"""The profile in which a failed process can be stopped (C3)."""

by_hand_1_5 = with_own_table(by_hand.with_rows(_STOP_FAILED, name="process-by-hand-1.5"))
"""The profile ``by_hand`` in which a failed process can be stopped (C3)."""
