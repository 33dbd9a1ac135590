"""The accepted inputs of a process, from operators, from timers and from its activities, and their consequences.

A refused input is no step, so no other property covers it. These properties belong to the profiles with activities; by
hand, a process accepts moves only.
"""

from typing import Any, Final

from lifefold.core.kernel import Entity, Event, Property, Transition, accepts, always, always_step
from lifefold.core.lifecycles.process_model import (
    DOWN,
    SERVING,
    BackoffElapsed,
    IdleElapsed,
    LifetimeElapsed,
    Process,
    ResumeRequested,
    RunFailed,
    RunSucceeded,
    State,
    StopRequested,
    SuspendDue,
    SuspendReason,
    SuspendRequested,
    TriggerArrived,
)
from lifefold.core.lifecycles.process_restart import Comeback
from lifefold.core.lifecycles.property_forms import enters, goes_on, lasts_only


def is_coming(e: Entity[Process]) -> bool:
    """Tell whether the process is up, is coming up, or will restart by itself."""
    return e.state in {State.STARTING, *SERVING} or e.record.comeback is not Comeback.NONE


def has_a_suspension_to_end(e: Entity[Process]) -> bool:
    """Tell whether there is a suspension, present or planned."""
    return is_coming(e) and e.record.suspended_for is not None


def counts_failed_runs(t: Transition) -> bool:
    """Every failed run counts. A successful run clears the count and the reason, a new start the count."""
    before: Process = t.was
    after: Process = t.after.record
    if isinstance(t.event, RunSucceeded):
        return (after.consecutive_failures, after.failure) == (0, "")
    failures = 0 if enters(t, State.STARTING) else before.consecutive_failures + isinstance(t.event, RunFailed)
    return after.consecutive_failures == failures


def keeps_why_it_stops(t: Transition) -> bool:
    """The reason of a stop is that of its request, or the age of the process."""
    why: str = t.after.record.stop_reason
    match t.event:
        case StopRequested(reason=reason):
            return why == reason
        case LifetimeElapsed():
            return bool(why)
        case _:
            return True


def keeps_the_suspension(t: Transition) -> bool:
    """A requested suspension stands, or is planned, for the reason that holds; a requested resumption ends it."""
    now = t.after.record.suspended_for
    match t.event:
        case SuspendRequested(why=SuspendReason.IDLE) | IdleElapsed():
            return now is not None
        case SuspendRequested(why=why):
            return now is why
        case _:
            return not isinstance(t.event, ResumeRequested) or now is None


def wakes_the_idle(t: Transition) -> bool:
    """A trigger, and a restart, end a suspension for idleness, also a planned one, and no other."""
    comes_back = isinstance(t.event, BackoffElapsed) and enters(t, State.STARTING)
    if t.before is None or not (comes_back or isinstance(t.event, TriggerArrived)):
        return True
    was = t.before.record.suspended_for
    return t.after.record.suspended_for is (None if was is SuspendReason.IDLE else was)


def refuses_without_effect(t: Transition) -> bool:
    """A process that is down for good cannot be suspended, and one without a suspension cannot be resumed."""
    match t.event:
        case SuspendRequested():
            return t.before is None or is_coming(t.before)
        case ResumeRequested():
            return t.before is None or has_a_suspension_to_end(t.before)
        case _:
            return True


def has_its_time_before_it(e: Entity[Process]) -> bool:
    """A process with a lifetime, an idle timeout or a planned suspension has the timer of it running."""
    p = e.record
    timed = {
        LifetimeElapsed: e.state in SERVING and bool(p.limits.max_lifetime_ms),
        IdleElapsed: e.state is State.AWAITING and bool(p.limits.idle_timeout_ms),
        SuspendDue: e.state is State.RUNNING and p.suspended_for is not None,
    }
    return all(e.find(kind.__name__) is not None for kind, runs in timed.items() if runs)


ACCEPTED: Final[tuple[Property[Any], ...]] = (
    accepts("a process that is up, or will be, can be suspended", {tuple(State): (SuspendRequested,)}, when=is_coming),
    accepts("a suspension can be ended", {tuple(State): (ResumeRequested,)}, when=has_a_suspension_to_end),
    always_step("every failed run counts until one succeeds", counts_failed_runs, on=Event),
    always_step("a process keeps the reason of its stop", keeps_why_it_stops),
    always_step("a suspension is for the requested reason, and ends on request", keeps_the_suspension),
    always_step("a trigger or a restart ends idleness, and nothing else", wakes_the_idle),
    always_step("a request to suspend or to resume without a consequence is refused", refuses_without_effect),
    goes_on("StartProcess", State.STARTING),
    goes_on("ServeTriggers", *SERVING),
    goes_on("DrainProcess", State.STOPPING),
    always("a process with a lifetime, an idle timeout or a planned suspension has its timer", has_its_time_before_it),
    lasts_only("BackoffElapsed", *DOWN),
)
"""Properties of the profiles with activities and timers."""
