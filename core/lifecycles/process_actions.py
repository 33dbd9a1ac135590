"""The guards and the actions of a process."""

from collections.abc import Callable
from typing import Never

from lifefold.core.kernel import Event, Step, replace
from lifefold.core.lifecycles.process_model import (
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
    StopRequested,
    SuspendDue,
    SuspendReason,
    SuspendRequested,
    TriggerArrived,
)
from lifefold.core.lifecycles.process_restart import Comeback
from lifefold.effects import Effect, NotifyProcess, PauseTriggers, ResumeTriggers
from lifefold.effects.process import ProcessNews

Move = Callable[[Process, MoveRequested], Step[Process, Effect]]
"""The action of a move to a named target."""

# Guards


def as_expected(p: Process, e: MoveRequested) -> bool:
    """The request expects no state, or the present one (C2)."""
    return e.expected_from is None or e.expected_from is p.state


def failed_too_often(p: Process, _e: RunFailed) -> bool:
    """One more failed run makes ``max_consecutive_failures`` in a row."""
    return p.consecutive_failures + 1 >= p.limits.max_consecutive_failures


def is_idle(p: Process, _e: TriggerArrived) -> bool:
    """The suspension, present or planned, is for idleness, which a trigger ends (C15)."""
    return p.suspended_for is SuspendReason.IDLE


def will_suspend(p: Process, _e: SuspendDue | ResumeRequested) -> bool:
    """A suspension is planned."""
    return p.suspended_for is not None


def goes_on(p: Process, _e: QueueEmptied) -> bool:
    """No suspension is planned."""
    return p.suspended_for is None


def comes_back(p: Process, _e: BackoffElapsed | SuspendRequested) -> bool:
    """The process is going to start without a request."""
    return p.comeback is not Comeback.NONE


def comes_back_suspended(p: Process, _e: ResumeRequested) -> bool:
    """The process is going to start without a request, and to be suspended then."""
    return p.comeback is not Comeback.NONE and p.suspended_for is not None


# Actions


def start(p: Process, _e: StartRequested | MoveRequested) -> Step[Process, Never]:
    """Start on request: neither a stop nor a pause stands. The restarts stay counted."""
    fresh = replace(p, stop_requested=False, stop_reason="", suspended_for=None, comeback=Comeback.NONE)
    return Step(replace(fresh, consecutive_failures=0, failure=""))


def come_back(p: Process, _e: BackoffElapsed) -> Step[Process, Never]:
    """Start by policy: a restart counts, a recycle does not, and a pause stands."""
    restarts = p.restart_count + (p.comeback is Comeback.RESTART)
    held = None if p.suspended_for is SuspendReason.IDLE else p.suspended_for
    return Step(replace(p, restart_count=restarts, suspended_for=held, consecutive_failures=0))


def begin(p: Process, e: StartSucceeded | MoveRequested) -> Step[Process, NotifyProcess]:
    """Report that the process is up."""
    kind: ProcessNews = "started" if p.comeback is Comeback.NONE else "restarted"
    reason = reason_of(e) or (p.stop_reason if p.comeback is Comeback.RECYCLE else p.failure)
    return Step(replace(p, comeback=Comeback.NONE), (NotifyProcess(kind, reason, p.restart_count),))


def want_stop(p: Process, e: StopRequested | MoveRequested) -> Step[Process, Never]:
    """Let the stop stand, and cancel a planned restart (C7)."""
    return Step(replace(p, stop_requested=True, stop_reason=e.reason, comeback=Comeback.NONE))


def grow_old(p: Process, _e: LifetimeElapsed) -> Step[Process, Never]:
    """Stop, to restart if the policy is ``always``."""
    comeback = Comeback.RECYCLE if p.limits.restart_policy == "always" else Comeback.NONE
    return Step(replace(p, stop_reason="max lifetime", comeback=comeback))


def stopped(p: Process, e: Drained | DrainElapsed | MoveRequested) -> Step[Process, NotifyProcess]:
    """Report that the process is down, the reason of the stop, and whether runs were cancelled."""
    reasons = (p.stop_reason, "drain timeout" if isinstance(e, DrainElapsed) else reason_of(e))
    return Step(p, (NotifyProcess("stopped", ", ".join(filter(None, reasons)), p.restart_count),))


def fail(p: Process, e: Crashed | Orphaned | MoveRequested) -> Step[Process, NotifyProcess]:
    """Keep the reason, and plan a restart by the policy."""
    return Step(*come_down(p, reason_of(e)))


def fail_start(p: Process, e: StartFailed | MoveRequested) -> Step[Process, NotifyProcess]:
    """Keep the reason; a requested start is not retried, for its requester is told (C8)."""
    reason = reason_of(e)
    if p.comeback is Comeback.NONE:
        return Step(replace(p, failure=reason), (NotifyProcess("failed", reason, p.restart_count),))
    return Step(*come_down(p, reason))


def give_up(p: Process, e: RunFailed) -> Step[Process, NotifyProcess]:
    """Count the run, report the number of failures, and plan a restart by the policy."""
    failures = p.consecutive_failures + 1
    reason = f"max consecutive failures reached ({failures}): {e.reason or 'unknown'}"
    return Step(*come_down(replace(p, consecutive_failures=failures), reason))


def count_failure(p: Process, e: RunFailed) -> Step[Process, Never]:
    """Count the run."""
    return Step(replace(p, consecutive_failures=p.consecutive_failures + 1, failure=e.reason))


def clear(p: Process, _e: RunSucceeded) -> Step[Process, Never]:
    """Clear the counts of failures and restarts; no other event does."""
    return Step(replace(p, consecutive_failures=0, restart_count=0, failure=""))


def suspend(p: Process, e: SuspendRequested | MoveRequested) -> Step[Process, PauseTriggers | NotifyProcess]:
    """Begin no more runs, and report the reason."""
    why = stronger(p.suspended_for, e.why if isinstance(e, SuspendRequested) else SuspendReason.MANUAL)
    return Step(replace(p, suspended_for=why), (PauseTriggers(), NotifyProcess("suspended", why, p.restart_count)))


def pause(p: Process, e: SuspendRequested | IdleElapsed) -> Step[Process, PauseTriggers]:
    """Begin no more runs on the way to the suspension (C6)."""
    why = e.why if isinstance(e, SuspendRequested) else SuspendReason.IDLE
    return Step(replace(p, suspended_for=stronger(p.suspended_for, why)), (PauseTriggers(),))


def arrive(p: Process, _e: SuspendDue) -> Step[Process, NotifyProcess]:
    """Report the suspension; the triggers are paused already."""
    return Step(p, (NotifyProcess("suspended", p.suspended_for or "", p.restart_count),))


def hold(p: Process, e: SuspendRequested) -> Step[Process, Never]:
    """Keep the reason: for later, or because it is stronger than the present one."""
    return Step(replace(p, suspended_for=stronger(p.suspended_for, e.why)))


def resume(
    p: Process, e: TriggerArrived | ResumeRequested | MoveRequested
) -> Step[Process, ResumeTriggers | NotifyProcess]:
    """Resume, and report the reason."""
    news = NotifyProcess("resumed", reason_of(e), p.restart_count)
    return Step(replace(p, suspended_for=None), (ResumeTriggers(), news))


def go_on(p: Process, _e: TriggerArrived | ResumeRequested) -> Step[Process, ResumeTriggers]:
    """Resume: the planned suspension is cancelled."""
    return Step(replace(p, suspended_for=None), (ResumeTriggers(),))


def await_trigger(p: Process, _e: MoveRequested) -> Step[Process, ResumeTriggers]:
    """Wait on request: a planned suspension is cancelled."""
    return Step(replace(p, suspended_for=None), () if p.suspended_for is None else (ResumeTriggers(),))


def forget(p: Process, _e: ResumeRequested) -> Step[Process, Never]:
    """Cancel the planned suspension; no triggers are served yet that could be resumed."""
    return Step(replace(p, suspended_for=None))


def come_down(p: Process, reason: str) -> tuple[Process, tuple[NotifyProcess, ...]]:
    """Return a failed process, with a planned restart if there is one, and its news."""
    failed = replace(p, failure=reason, comeback=Comeback.NONE)
    news = NotifyProcess("failed", reason, p.restart_count)
    if p.stop_requested or p.limits.restart_policy == "never":
        return failed, (news,)
    if p.restart_count >= p.limits.max_restarts:
        return failed, (news, NotifyProcess("restart_exhausted", reason, p.restart_count))
    return replace(failed, comeback=Comeback.RESTART), (news,)


def stronger(now: SuspendReason | None, new: SuspendReason) -> SuspendReason:
    """Return the reason that holds: the newer one, but idleness replaces no other (C15)."""
    return now if now is not None and new is SuspendReason.IDLE else new


def reason_of(event: Event) -> str:
    """Return the reason that an event gives."""
    return "orphaned" if isinstance(event, Orphaned) else str(getattr(event, "reason", ""))
