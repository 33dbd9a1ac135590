"""The properties of a process, for its operator: at all times, and of every transition.

They are written without the guards and actions that they check. The end of a start is assumed: only the activity itself
can report it.
"""

from typing import Any, Final

from lifefold.core.kernel import Entity, Event, Property, Transition, always, always_step, leads_to, sometimes, weakly
from lifefold.core.lifecycles.process_inputs import ACCEPTED
from lifefold.core.lifecycles.process_model import (
    AT_REST,
    DOWN,
    SERVING,
    BackoffElapsed,
    Crashed,
    DrainElapsed,
    IdleElapsed,
    LifetimeElapsed,
    MoveRequested,
    Orphaned,
    Process,
    QueueEmptied,
    RunFailed,
    RunSucceeded,
    StartRequested,
    State,
    StopRequested,
    SuspendDue,
    SuspendReason,
    TriggerArrived,
)
from lifefold.core.lifecycles.process_restart import Comeback
from lifefold.core.lifecycles.property_forms import (
    asks_once,
    ends_confirmed,
    enters,
    is_alone,
    is_transient,
    keeps_time,
    rests_in,
)
from lifefold.effects import (
    Begin,
    DrainProcess,
    NotifyProcess,
    PauseTriggers,
    ResumeTriggers,
    ServeTriggers,
    StartProcess,
    StartTimer,
)


def moves_as_requested(t: Transition) -> bool:
    """A requested move leads to its target, if the state is the expected one."""
    if not isinstance(t.event, MoveRequested):
        return True
    return t.event.expected_from in {None, t.was.state} and t.entered is t.event.target


def follows_plans_and_counts(t: Transition) -> bool:
    """An event with two ways leads where the plans and the counts of the process say."""
    p: Process = t.was
    match t.event:
        case TriggerArrived():
            wakes = p.suspended_for is SuspendReason.IDLE or p.state is State.AWAITING
            to = State.RUNNING if wakes else p.state
        case QueueEmptied():
            to = State.AWAITING if p.suspended_for is None and p.state is State.RUNNING else p.state
        case RunFailed():
            given_up = p.state in SERVING and p.consecutive_failures + 1 >= p.limits.max_consecutive_failures
            to = State.FAILED if given_up else p.state
        case SuspendDue():
            to = p.state if p.suspended_for is None else State.SUSPENDED
        case BackoffElapsed():
            to = p.state if p.comeback is Comeback.NONE else State.STARTING
        case _:
            return True
    return t.after.state is to


def stops_a_failed_process(t: Transition) -> bool:
    """A failed process that is asked to stop does so (C3)."""
    failed = t.before is not None and t.before.state is State.FAILED
    return not (failed and isinstance(t.event, StopRequested)) or t.entered is State.STOPPING


def keeps_the_stop(t: Transition) -> bool:
    """A stop stands from its request until a start is requested."""
    named = t.event.target if isinstance(t.event, MoveRequested) else None
    unborn = t.before is not None and t.before.state is State.CREATED
    by_name = named is State.STOPPING or (unborn and named is State.STOPPED)
    requested = by_name or isinstance(t.event, StopRequested)
    stood = t.before is not None and t.before.record.stop_requested and not _asks_for_a_start(t)
    return bool(t.after.record.stop_requested) or not (requested or stood)


def starts_when_asked(t: Transition) -> bool:
    """A process starts on request, or for a planned restart after its pause."""
    if not enters(t, State.STARTING) or _asks_for_a_start(t):
        return True
    p: Process = t.was
    return isinstance(t.event, BackoffElapsed) and p.comeback is not Comeback.NONE and not p.stop_requested


def pauses_before_it_comes_back(t: Transition) -> bool:
    """Before a restart there is a pause that doubles each time, up to its cap; otherwise there is no timer."""
    p: Process = t.after.record
    if not enters(t, *DOWN):
        return True
    pauses = [each.delay_ms for each in t.effects if isinstance(each, StartTimer)]
    if p.comeback is not Comeback.RESTART:
        return pauses == [0] * (p.comeback is Comeback.RECYCLE)
    longest_ms = min(p.limits.restart_backoff_ms * 2**p.restart_count, p.limits.restart_backoff_cap_ms)
    return len(pauses) == 1 and longest_ms * (1 - p.limits.jitter) <= pauses[0] <= longest_ms


def counts_restarts(t: Transition) -> bool:
    """Every restart counts, a recycle does not, and only a successful run clears the count."""
    before: Process = t.was
    after: Process = t.after.record
    restarts = enters(t, State.STARTING) and not _asks_for_a_start(t) and before.comeback is Comeback.RESTART
    return after.restart_count == (0 if isinstance(t.event, RunSucceeded) else before.restart_count + restarts)


def restarts_by_policy(t: Transition) -> bool:
    """The policy, the stop and the limit decide whether a failed process restarts."""
    p: Process = t.after.record
    if t.before is None or not enters(t, State.FAILED):
        return True
    news = [each.kind for each in t.effects if isinstance(each, NotifyProcess)]
    was_requested = t.before.state is State.STARTING and t.before.record.comeback is Comeback.NONE
    by_itself = not was_requested or isinstance(t.event, Orphaned)
    may = p.limits.restart_policy != "never" and not p.stop_requested and by_itself
    left = p.restart_count < p.limits.max_restarts
    exhausted = may and not left
    return (p.comeback is Comeback.RESTART) == (may and left) and news == ["failed", "restart_exhausted"][
        : 1 + exhausted
    ]


def reports_its_state(t: Transition) -> bool:
    """A process that is up, suspended, or down after having been up is reported."""
    news = {each.kind for each in t.effects if isinstance(each, NotifyProcess)}
    if t.before is None or t.entered is None:
        return not news
    match t.before.state, t.after.state:
        case (State.STARTING, State.RUNNING):
            reported = len(news) == 1 and news <= {"started", "restarted"}
        case (State.SUSPENDED, State.RUNNING):
            reported = news == {"resumed"}
        case (_, State.SUSPENDED):
            reported = news == {"suspended"}
        case (State.STOPPING, State.STOPPED):
            reported = news == {"stopped"}
        case (_, State.FAILED):
            reported = "failed" in news
        case _:
            reported = not news
    return reported


def keeps_why_it_failed(t: Transition) -> bool:
    """The reason of a failure is the reported one, or the missing runner; the same reason is published."""
    if not enters(t, State.FAILED):
        return True
    kept: str = t.after.record.failure
    news = {each.reason for each in t.effects if isinstance(each, NotifyProcess)}
    reported = "orphaned" if isinstance(t.event, Orphaned) else getattr(t.event, "reason", "")
    return news == {kept} and reported in kept


def start_clears_the_past(t: Transition) -> bool:
    """A requested start clears the past: no stop, no suspension, no failed run is left."""
    if t.before is None or not _asks_for_a_start(t) or not enters(t, State.STARTING):
        return True
    p: Process = t.after.record
    nothing = (False, "", None, Comeback.NONE, 0, "")
    return (p.stop_requested, p.stop_reason, p.suspended_for, p.comeback, p.consecutive_failures, p.failure) == nothing


def keeps_the_stronger_reason(t: Transition) -> bool:
    """Idleness replaces no other reason of a suspension."""
    held = t.before is not None and t.before.record.suspended_for not in {None, SuspendReason.IDLE}
    return not held or t.after.record.suspended_for is not SuspendReason.IDLE


def wakes_the_idle_alone(t: Transition) -> bool:
    """A trigger ends no suspension but that for idleness."""
    woken = isinstance(t.event, TriggerArrived) and t.before is not None and t.before.state is State.SUSPENDED
    p: Process | None = t.before.record if t.before is not None else None
    return not woken or p is None or (t.entered is State.RUNNING) == (p.suspended_for is SuspendReason.IDLE)


def binds_the_triggers(t: Transition) -> bool:
    """Triggers are paused as soon as a suspension is planned, and resumed as soon as it is not."""
    if t.was.state not in SERVING or t.after.state not in SERVING:
        return True
    was, now = t.was.suspended_for is not None, t.after.record.suspended_for is not None
    pauses, resumes = (any(isinstance(each, kind) for each in t.effects) for kind in (PauseTriggers, ResumeTriggers))
    return (pauses or not now or was) and (now or not pauses) and resumes == (was and not now)


def serves_paused_when_suspended(t: Transition) -> bool:
    """Triggers are served from the beginning as the suspension requires: paused, if one is planned."""
    begun = [each.activity for each in t.effects if isinstance(each, Begin)]
    paused = t.after.record.suspended_for is not None
    return all(each.paused == paused for each in begun if isinstance(each, ServeTriggers))


def _asks_for_a_start(t: Transition) -> bool:
    wanted = isinstance(t.event, MoveRequested) and t.event.target is State.STARTING
    return wanted or isinstance(t.event, StartRequested)


STEPS: Final[tuple[Property[Any], ...]] = (
    always_step("a process moves as requested", moves_as_requested, on=Event),
    always_step("an event with two ways leads where the process's plans say", follows_plans_and_counts, on=Event),
    *keeps_time(
        {
            LifetimeElapsed: (SERVING, lambda p: p.limits.max_lifetime_ms),
            SuspendDue: ((State.RUNNING,), lambda _p: 0),
            IdleElapsed: ((State.AWAITING,), lambda p: p.limits.idle_timeout_ms),
            DrainElapsed: ((State.STOPPING,), lambda p: p.limits.drain_timeout_ms),
        }
    ),
    asks_once(),
    always_step("a stop stands until a start is requested", keeps_the_stop),
    always_step("a process starts on request or for a restart only", starts_when_asked, on=Event),
    always_step("a restart has its pause before it", pauses_before_it_comes_back),
    always_step("every restart counts until a run succeeds", counts_restarts, on=Event),
    always_step("a failed process restarts as the policy says, or reports that it does not", restarts_by_policy),
    always_step("a crashed process has failed", lambda t: t.after.state is State.FAILED, on=Crashed),
    always_step("a failed process keeps the reason, and reports it", keeps_why_it_failed),
    always_step("a requested start clears the past", start_clears_the_past),
    always_step("the state of the process is reported", reports_its_state),
    always_step("a pause binds as soon as it stands", binds_the_triggers, on=Event),
    always(
        "a process that waits for a trigger has no planned suspension",
        lambda e: e.state is not State.AWAITING or e.record.suspended_for is None,
    ),
    always_step("idleness replaces no other reason", keeps_the_stronger_reason),
    always_step("a trigger ends no suspension but that for idleness", wakes_the_idle_alone),
)
"""Properties of every transition, in all profiles."""

WHEN_DRIVEN: Final = (
    always_step("triggers are served paused if the process is", serves_paused_when_suspended),
    *ACCEPTED,
)
"""Properties of the profiles with activities."""

AT_ALL_TIMES: Final[tuple[Property[Entity[Process]], ...]] = (
    *ends_confirmed(StartProcess),
    *is_alone(ServeTriggers),
    *ends_confirmed(DrainProcess),
    rests_in(*DOWN),
    is_transient(State.STARTING, *weakly(StartProcess)),
    is_transient(State.STOPPING),
    leads_to(
        "a stop is accepted in every state",
        lambda e: not e.record.stop_requested,
        lambda e: e.record.stop_requested,
        given=weakly(StopRequested),
    ),
    leads_to(
        "a process that is asked to stop is down, unless a start is requested",
        lambda e: e.record.stop_requested,
        lambda e: not e.record.stop_requested or e.state in DOWN,
    ),
    leads_to(
        "a running process with a planned suspension is suspended",
        lambda e: e.state is State.RUNNING and e.record.suspended_for is not None,
        lambda e: e.state is not State.RUNNING or e.record.suspended_for is None,
    ),
    leads_to(
        "a process without a runner is not shown as up",
        lambda e: e.state not in AT_REST,
        lambda e: e.state in AT_REST,
        given=weakly(Orphaned),
    ),
    sometimes("a stop comes while the process starts", lambda e: e.record.stop_requested and e.state is State.STOPPING),
    sometimes("a process is suspended", lambda e: e.state is State.SUSPENDED),
    sometimes("a process fails", lambda e: e.state is State.FAILED),
)
"""Properties of the profiles with activities and timers."""

COMING_BACK: Final[tuple[Property[Entity[Process]], ...]] = (
    leads_to(
        "a planned restart happens, unless a stop or a start is requested",
        lambda e: e.state in DOWN and e.record.comeback is not Comeback.NONE,
        lambda e: e.state not in DOWN or e.record.comeback is Comeback.NONE,
    ),
    sometimes("a process is restarted", lambda e: e.state in SERVING and e.record.restart_count > 0),
    sometimes(
        "the restarts are used up",
        lambda e: (
            e.state is State.FAILED
            and e.record.restart_count == e.record.limits.max_restarts
            and e.record.comeback is Comeback.NONE
        ),
    ),
)
"""Further properties, for limits with a restart policy."""

IDLING: Final[tuple[Property[Entity[Process]], ...]] = (
    is_transient(State.AWAITING),
    sometimes("a process is suspended for idleness", lambda e: e.record.suspended_for is SuspendReason.IDLE),
)
"""Further properties, for limits with an idle timeout."""

RECYCLING: Final[tuple[Property[Entity[Process]], ...]] = (
    is_transient(State.SUSPENDED),
    sometimes("a process is recycled", lambda e: e.record.comeback is Comeback.RECYCLE),
)
"""Further properties, for limits with a lifetime and the policy ``always``."""
