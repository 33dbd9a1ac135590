"""What an operator can rely on, of a process at any time and of every step.

The properties are written without the guards and the actions that they are about. That a start comes to an end is
given; nobody else knows when it does.
"""

from typing import Any, Final

from lifefold.core.kernel import (
    Entity,
    Pattern,
    Property,
    Transition,
    accepts,
    always,
    always_step,
    leads_to,
    sometimes,
    weakly,
)
from lifefold.core.lifecycles.process.heard import HEARD
from lifefold.core.lifecycles.process.model import (
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
    RunSucceeded,
    StartRequested,
    State,
    StopRequested,
    SuspendDue,
    SuspendReason,
    TriggerArrived,
)
from lifefold.core.lifecycles.process.restart import Comeback
from lifefold.core.lifecycles.process.ways import MOVES, follows_the_edges, goes_where_it_is_driven
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


def keeps_the_stop(t: Transition) -> bool:
    """Say: a stop stands from when it is asked for until somebody asks for a start."""
    named = t.event.target if isinstance(t.event, MoveRequested) else None
    unborn = t.before is not None and t.before.state is State.CREATED
    by_name = named is State.STOPPING or (unborn and named is State.STOPPED)
    asked = by_name or isinstance(t.event, StopRequested)
    stood = t.before is not None and t.before.record.stop_requested and not _asks_for_a_start(t)
    return bool(t.after.record.stop_requested) or not (asked or stood)


def starts_when_asked(t: Transition) -> bool:
    """Say: a process starts because somebody asks for it, or because it is to come back and its pause is over."""
    if t.before is None or not enters(t, State.STARTING) or _asks_for_a_start(t):
        return True
    p: Process = t.before.record
    return isinstance(t.event, BackoffElapsed) and p.comeback is not Comeback.NONE and not p.stop_requested


def pauses_before_it_comes_back(t: Transition) -> bool:
    """Say: before a restart there is a pause that doubles with every one, up to its cap; else there is no timer."""
    p: Process = t.after.record
    if not enters(t, *DOWN):
        return True
    pauses = [each.delay_ms for each in t.effects if isinstance(each, StartTimer)]
    if p.comeback is not Comeback.RESTART:
        return pauses == [0] * (p.comeback is Comeback.RECYCLE)
    longest_ms = min(p.limits.restart_backoff_ms * 2**p.restart_count, p.limits.restart_backoff_cap_ms)
    return len(pauses) == 1 and longest_ms * (1 - p.limits.jitter) <= pauses[0] <= longest_ms


def counts_restarts(t: Transition) -> bool:
    """Say: every restart counts, a recycle does not, and only a successful run clears the count."""
    if t.before is None:
        return True
    before: Process = t.before.record
    after: Process = t.after.record
    restarts = enters(t, State.STARTING) and not _asks_for_a_start(t) and before.comeback is Comeback.RESTART
    return after.restart_count == (0 if isinstance(t.event, RunSucceeded) else before.restart_count + restarts)


def restarts_by_policy(t: Transition) -> bool:
    """Say: whether a process that fails comes back is what the policy, the stop and the limit say."""
    p: Process = t.after.record
    if t.before is None or not enters(t, State.FAILED):
        return True
    told = [each.kind for each in t.effects if isinstance(each, NotifyProcess)]
    told_who_asked = t.before.state is State.STARTING and t.before.record.comeback is Comeback.NONE
    nobody_asked = not told_who_asked or isinstance(t.event, Orphaned)
    may = p.limits.restart_policy != "never" and not p.stop_requested and nobody_asked
    left = p.restart_count < p.limits.max_restarts
    exhausted = may and not left
    return (p.comeback is Comeback.RESTART) == (may and left) and told == ["failed", "restart_exhausted"][
        : 1 + exhausted
    ]


def fails_by_a_crash(t: Transition) -> bool:
    """Say: nobody is shown as up, or as stopped, who has crashed."""
    return not isinstance(t.event, Crashed) or t.after.state is State.FAILED


def tells_where_it_is(t: Transition) -> bool:
    """Say: somebody hears that the process is up, suspended, or down after having been up."""
    told = {each.kind for each in t.effects if isinstance(each, NotifyProcess)}
    if t.before is None or t.entered is None:
        return not told
    match t.before.state, t.after.state:
        case (State.STARTING, State.RUNNING):
            heard = len(told) == 1 and told <= {"started", "restarted"}
        case (State.SUSPENDED, State.RUNNING):
            heard = told == {"resumed"}
        case (_, State.SUSPENDED):
            heard = told == {"suspended"}
        case (State.STOPPING, State.STOPPED):
            heard = told == {"stopped"}
        case (_, State.FAILED):
            heard = "failed" in told
        case _:
            heard = not told
    return heard


def keeps_why_it_failed(t: Transition) -> bool:
    """Say: the reason of a failure is what was reported, or that nobody runs the process; and that is what is told."""
    if not enters(t, State.FAILED):
        return True
    kept: str = t.after.record.failure
    told = {each.reason for each in t.effects if isinstance(each, NotifyProcess)}
    reported = "orphaned" if isinstance(t.event, Orphaned) else getattr(t.event, "reason", "")
    return told == {kept} and reported in kept


def begins_anew(t: Transition) -> bool:
    """Say: who is started by somebody's wish has nothing left of before: no stop, no suspension, no failed run."""
    if t.before is None or not _asks_for_a_start(t) or not enters(t, State.STARTING):
        return True
    p: Process = t.after.record
    nothing = (False, "", None, Comeback.NONE, 0, "")
    return (p.stop_requested, p.stop_reason, p.suspended_for, p.comeback, p.consecutive_failures, p.failure) == nothing


def keeps_the_stronger_reason(t: Transition) -> bool:
    """Say: idleness replaces no other reason to be suspended."""
    held = t.before is not None and t.before.record.suspended_for not in {None, SuspendReason.IDLE}
    return not held or t.after.record.suspended_for is not SuspendReason.IDLE


def wakes_the_idle_alone(t: Transition) -> bool:
    """Say: a trigger ends no suspension but that for idleness."""
    woken = isinstance(t.event, TriggerArrived) and t.before is not None and t.before.state is State.SUSPENDED
    p: Process | None = t.before.record if t.before is not None else None
    return not woken or p is None or (t.entered is State.RUNNING) == (p.suspended_for is SuspendReason.IDLE)


def binds_the_triggers(t: Transition) -> bool:
    """Say: triggers are paused as soon as a suspension is to come, and go on as soon as it is not."""
    if t.before is None or t.before.state not in SERVING or t.after.state not in SERVING:
        return True
    was, now = t.before.record.suspended_for is not None, t.after.record.suspended_for is not None
    pauses, resumes = (any(isinstance(each, kind) for each in t.effects) for kind in (PauseTriggers, ResumeTriggers))
    return (pauses or not now or was) and (now or not pauses) and resumes == (was and not now)


def serves_as_it_is(t: Transition) -> bool:
    """Say: triggers are served from the beginning as they are to be: paused, if the process is to be suspended."""
    begun = [each.activity for each in t.effects if isinstance(each, Begin)]
    paused = t.after.record.suspended_for is not None
    return all(each.paused == paused for each in begun if isinstance(each, ServeTriggers))


def _asks_for_a_start(t: Transition) -> bool:
    wanted = isinstance(t.event, MoveRequested) and t.event.target is State.STARTING
    return wanted or isinstance(t.event, StartRequested)


STOPS_FAILED: Final = accepts(
    "a stop of a failed process can be asked for",
    {State.FAILED: (Pattern(MoveRequested, "Stopping", lambda e: e.target is State.STOPPING),)},
)
"""What the profiles promise in which a failed process can be stopped (C3)."""

STEPS: Final[tuple[Property[Any], ...]] = (
    always_step("a process goes from state to state as the document draws it, and as it is asked", follows_the_edges),
    accepts("whatever the document draws can be asked for", MOVES),
    accepts("that nobody runs a process any more is heard", {(State.STARTING, *SERVING, State.STOPPING): (Orphaned,)}),
    always_step("every event leads where it says", goes_where_it_is_driven),
    *keeps_time(
        {
            LifetimeElapsed: (SERVING, lambda p: p.limits.max_lifetime_ms),
            SuspendDue: ((State.RUNNING,), lambda _p: 0),
            IdleElapsed: ((State.AWAITING,), lambda p: p.limits.idle_timeout_ms),
            DrainElapsed: ((State.STOPPING,), lambda p: p.limits.drain_timeout_ms),
        }
    ),
    asks_once(),
    always_step("a stop stands until somebody asks for a start", keeps_the_stop),
    always_step("nothing starts that was not asked for, or to come back", starts_when_asked),
    always_step("a restart has its pause before it", pauses_before_it_comes_back),
    always_step("every restart counts until a run succeeds", counts_restarts),
    always_step("who fails comes back as the policy says, or says that he will not", restarts_by_policy),
    always_step("who crashes has failed", fails_by_a_crash),
    always_step("who fails keeps why, and says it", keeps_why_it_failed),
    always_step("who is started begins anew", begins_anew),
    always_step("somebody hears of where the process is", tells_where_it_is),
    always_step("a pause binds as soon as it stands", binds_the_triggers),
    always(
        "who waits for a trigger is not to be suspended",
        lambda e: e.state is not State.AWAITING or e.record.suspended_for is None,
    ),
    always_step("idleness replaces no other reason", keeps_the_stronger_reason),
    always_step("a trigger wakes none but the idle", wakes_the_idle_alone),
)
"""Promises of every step, of all profiles."""

WHEN_DRIVEN: Final = (always_step("what begins is paused if the process is", serves_as_it_is), *HEARD)
"""Promises of those profiles that have activities."""

AT_ALL_TIMES: Final[tuple[Property[Entity[Process]], ...]] = (
    *ends_confirmed(StartProcess),
    *is_alone(ServeTriggers),
    *ends_confirmed(DrainProcess),
    rests_in(*DOWN),
    is_transient(State.STARTING, *weakly(StartProcess)),
    is_transient(State.STOPPING),
    leads_to(
        "a stop is heard in every state",
        lambda e: not e.record.stop_requested,
        lambda e: e.record.stop_requested,
        given=weakly(StopRequested),
    ),
    leads_to(
        "who is asked to stop is down, unless somebody asks for a start",
        lambda e: e.record.stop_requested,
        lambda e: not e.record.stop_requested or e.state in DOWN,
    ),
    leads_to(
        "who runs and is to be suspended soon is",
        lambda e: e.state is State.RUNNING and e.record.suspended_for is not None,
        lambda e: e.state is not State.RUNNING or e.record.suspended_for is None,
    ),
    leads_to(
        "what nobody runs any more is not shown as up",
        lambda e: e.state not in AT_REST,
        lambda e: e.state in AT_REST,
        given=weakly(Orphaned),
    ),
    sometimes("a stop comes while the process starts", lambda e: e.record.stop_requested and e.state is State.STOPPING),
    sometimes("a process is suspended", lambda e: e.state is State.SUSPENDED),
    sometimes("a process fails", lambda e: e.state is State.FAILED),
)
"""Promises of those profiles that have activities and timers."""

COMING_BACK: Final[tuple[Property[Entity[Process]], ...]] = (
    leads_to(
        "who is to come back does, unless he is asked to stop or to start",
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
"""Promises besides, for limits with a restart policy."""

IDLING: Final[tuple[Property[Entity[Process]], ...]] = (
    is_transient(State.AWAITING),
    sometimes("a process is suspended for idleness", lambda e: e.record.suspended_for is SuspendReason.IDLE),
)
"""Promises besides, for limits with an idle timeout."""

RECYCLING: Final[tuple[Property[Entity[Process]], ...]] = (
    is_transient(State.SUSPENDED),
    sometimes("a process is recycled", lambda e: e.record.comeback is Comeback.RECYCLE),
)
"""Promises besides, for limits with a lifetime and the policy ``always``."""
