"""What a process hears from people, from the clock, and from what it serves, and what it makes of that.

What is refused is no step, so that no other property can speak of it. Of those profiles only in which something drives
the process; by hand, only its moves are asked for.
"""

from typing import Any, Final

from lifefold.core.kernel import Entity, Property, Transition, accepts, always, always_step
from lifefold.core.lifecycles.process.model import (
    DOWN,
    SERVING,
    BackoffElapsed,
    Crashed,
    Drained,
    IdleElapsed,
    LifetimeElapsed,
    Process,
    QueueEmptied,
    ResumeRequested,
    RunFailed,
    RunSucceeded,
    StartRequested,
    State,
    StopRequested,
    SuspendDue,
    SuspendReason,
    SuspendRequested,
    TriggerArrived,
)
from lifefold.core.lifecycles.process.restart import Comeback
from lifefold.core.lifecycles.property_forms import enters, goes_on, lasts_only


def is_coming(e: Entity[Process]) -> bool:
    """Say: the process is up, or coming up, or will come back by itself."""
    return e.state in {State.STARTING, *SERVING} or e.record.comeback is not Comeback.NONE


def has_a_suspension_to_end(e: Entity[Process]) -> bool:
    """Say: there is a suspension, or one to come."""
    return is_coming(e) and e.record.suspended_for is not None


def counts_failed_runs(t: Transition) -> bool:
    """Say: every failed run counts. A run that succeeds clears the count and the reason, a new start the count."""
    if t.before is None:
        return True
    before: Process = t.before.record
    after: Process = t.after.record
    if isinstance(t.event, RunSucceeded):
        return (after.consecutive_failures, after.failure) == (0, "")
    failures = 0 if enters(t, State.STARTING) else before.consecutive_failures + isinstance(t.event, RunFailed)
    return after.consecutive_failures == failures


def keeps_why_it_stops(t: Transition) -> bool:
    """Say: why a process is to stop is what whoever asked for it said, or that it is old."""
    why: str = t.after.record.stop_reason
    match t.event:
        case StopRequested(reason=reason):
            return why == reason
        case LifetimeElapsed():
            return bool(why)
        case _:
            return True


def keeps_the_suspension(t: Transition) -> bool:
    """Say: who is asked to be suspended is, or will be, for the reason there is; who is asked to go on will not."""
    now = t.after.record.suspended_for
    match t.event:
        case SuspendRequested(why=SuspendReason.IDLE) | IdleElapsed():
            return now is not None
        case SuspendRequested(why=why):
            return now is why
        case _:
            return not isinstance(t.event, ResumeRequested) or now is None


def wakes_the_idle(t: Transition) -> bool:
    """Say: a trigger, and the way back, end a suspension for idleness, also one to come, and no other."""
    comes_back = isinstance(t.event, BackoffElapsed) and enters(t, State.STARTING)
    if t.before is None or not (comes_back or isinstance(t.event, TriggerArrived)):
        return True
    was = t.before.record.suspended_for
    return t.after.record.suspended_for is (None if was is SuspendReason.IDLE else was)


def is_heard_for_something(t: Transition) -> bool:
    """Say: nobody rests who is down for good, and nobody is told to go on who has no rest to end."""
    match t.event:
        case SuspendRequested():
            return t.before is None or is_coming(t.before)
        case ResumeRequested():
            return t.before is None or has_a_suspension_to_end(t.before)
        case _:
            return True


def has_its_time_before_it(e: Entity[Process]) -> bool:
    """Say: whoever grows old, idles, or is to be suspended has the timer running that ends it."""
    p = e.record
    timed = {
        LifetimeElapsed: e.state in SERVING and bool(p.limits.max_lifetime_ms),
        IdleElapsed: e.state is State.AWAITING and bool(p.limits.idle_timeout_ms),
        SuspendDue: e.state is State.RUNNING and p.suspended_for is not None,
    }
    return all(e.find(kind.__name__) is not None for kind, runs in timed.items() if runs)


HEARD: Final[tuple[Property[Any], ...]] = (
    accepts(
        "what comes of serving triggers is heard, also when there is nothing to be done",
        {
            SERVING: (TriggerArrived, QueueEmptied, RunSucceeded, RunFailed, Crashed),
            State.STOPPING: (RunSucceeded, RunFailed, Crashed, Drained),
        },
    ),
    accepts("who is not up can be started", {(State.CREATED, *DOWN): (StartRequested,)}),
    accepts("a stop can be asked for in every state", {tuple(State): (StopRequested,)}),
    accepts("who is up, or will be, can be suspended", {tuple(State): (SuspendRequested,)}, when=is_coming),
    accepts("a suspension can be ended", {tuple(State): (ResumeRequested,)}, when=has_a_suspension_to_end),
    always_step("every failed run counts until one succeeds", counts_failed_runs),
    always_step("who is to stop keeps why", keeps_why_it_stops),
    always_step("a suspension is for what was asked, and is over when somebody says so", keeps_the_suspension),
    always_step("idleness, and nothing else, is over with a trigger or a restart", wakes_the_idle),
    always_step("a request to rest or to go on that could do nothing is refused", is_heard_for_something),
    goes_on("StartProcess", State.STARTING),
    goes_on("ServeTriggers", *SERVING),
    goes_on("DrainProcess", State.STOPPING),
    always("who grows old, idles, or is to be suspended has the time of it running", has_its_time_before_it),
    lasts_only("BackoffElapsed", *DOWN),
)
"""Promises of those profiles that have activities and timers."""
