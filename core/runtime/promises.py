"""What an operator can rely on, of an agent at any time and of every step.

The promises are written without the guards and the actions that they are about. What somebody has to say, for there is
no timer that would, is given.
"""

from typing import Final

from lifefold.core.kernel import (
    Entity,
    Event,
    Property,
    Transition,
    always,
    always_step,
    leads_to,
    sometimes,
    strongly,
    weakly,
)
from lifefold.core.policy.promises import enters, passes
from lifefold.core.runtime.events import (
    Complete,
    DeadlinePassed,
    Ready,
    Run,
    Schedule,
    TimedOut,
)
from lifefold.core.runtime.preemption import Preemption
from lifefold.core.runtime.record import AT_WORK, Runtime, State
from lifefold.effects import CallHook, LogFailure, ReportTaskFailed, SignalPreemption

TIMED: Final = (
    State.INITIALIZING, State.WAITING_RESOURCES, State.SUSPENDED, State.SHUTTING_DOWN, State.RECOVERING,
)  # fmt: skip
"""The states that end by themselves, if nobody ends them."""


def calls_its_hooks(t: Transition) -> bool:
    """Say: what the document has the agent told of a transition, before or after it, the agent is told."""
    hooks = tuple(each for each in t.effects if isinstance(each, CallHook) and each.name != "on_preempt_request")
    if t.before is None or t.entered is None:
        return not hooks
    recovered = t.before.state is State.RECOVERING
    wanted: tuple[CallHook, ...] = ()
    match t.after.state:
        case State.SCHEDULED:
            wanted = (CallHook("on_scheduled", (t.after.record.task_id,)),)
        case State.SUSPENDED:
            wanted = (CallHook("on_suspend", before=True),)
        case State.RESUMED:
            wanted = (CallHook("on_resume"),)
        case State.SHUTTING_DOWN:
            wanted = (CallHook("on_shutdown", before=True),)
        case State.RECOVERING:
            wanted = (CallHook("on_recovery_start"),)
        case State.RUNNABLE if t.before.state is State.INITIALIZING:
            wanted = (CallHook("on_startup", before=True),)
        case _:
            pass
    told = (CallHook("on_recovery_complete", (t.after.state is State.RUNNABLE,)),) if recovered else ()
    return hooks == (*wanted, *told)


def logs_what_took_too_long(t: Transition) -> bool:
    """Say: every state that lasted too long is logged, with its code, and so is preemption by force."""
    logged = tuple(each.error_code for each in t.effects if isinstance(each, LogFailure))
    if isinstance(t.event, TimedOut):
        return logged == (t.event.error_code,) == (t.after.record.error_code,) and t.after.state is State.FAILED
    forced = isinstance(t.event, DeadlinePassed) and enters(t, State.FAILED)
    return logged == ("forced_preemption",) * forced


def reports_what_is_lost(t: Transition) -> bool:
    """Say: a task that the agent puts away was completed, or is reported as failed."""
    lost = t.before is not None and t.before.record.task_id is not None and t.after.record.task_id is None
    reported = any(isinstance(each, ReportTaskFailed) for each in t.effects)
    return reported == (lost and not isinstance(t.event, Ready))


def counts_recoveries(t: Transition) -> bool:
    """Say: every recovery counts, up to the budget, and only a completed task clears the count."""
    if t.before is None:
        return True
    before, after = t.before.record.recoveries, t.after.record.recoveries
    if enters(t, State.RECOVERING):
        return bool(after == min(before + 1, t.after.record.limits.max_recoveries))
    return bool(after == (0 if isinstance(t.event, Complete) else before))


def keeps_the_request(t: Transition) -> bool:
    """Say: a request is over when the agent is suspended, or its task is over, and not before."""
    if t.before is None or not t.before.record.preemption.requested or t.after.record.preemption.requested:
        return True
    return enters(t, State.SUSPENDED, State.RUNNABLE)


def consumes_the_request(t: Transition) -> bool:
    """Say: who is suspended, or can be scheduled again, is asked nothing."""
    return not enters(t, State.SUSPENDED, State.RUNNABLE) or not t.after.record.preemption.requested


def signals_in_time(t: Transition) -> bool:
    """Say: nobody is told that he is overdue before he is."""
    if t.before is None or not isinstance(t.event, DeadlinePassed) or not _has(t, SignalPreemption):
        return True
    asked: Preemption = t.before.record.preemption
    timeout_ms = t.before.record.limits.preemption_timeout_ms
    declared = any(each.until_ms is not None and each.until_ms <= t.at_ms for each in asked.sections)
    waited = asked.since_ms is not None and asked.since_ms + timeout_ms <= t.at_ms
    return asked.spared_ms is not None or waited or (asked.since_ms is None and declared)


def forces_in_time(t: Transition) -> bool:
    """Say: nobody is failed before he was signalled and had his grace, or what he had declared before."""
    if t.before is None or not isinstance(t.event, DeadlinePassed) or not enters(t, State.FAILED):
        return True
    asked: Preemption = t.before.record.preemption
    signalled_ms, grace_ms = asked.signalled_ms, t.before.record.limits.preemption_grace_ms
    before = () if signalled_ms is None else asked.entered_by(signalled_ms)
    limit_ms = min((each.until_ms for each in before if each.until_ms is not None), default=0)
    return signalled_ms is not None and t.at_ms >= max(signalled_ms + grace_ms, limit_ms)


def puts_no_deadline_off(t: Transition) -> bool:
    """Say: while a request stands, what counts goes on counting; a signal is taken back once, for a wait."""
    if t.before is None or not (t.before.record.preemption.requested and t.after.record.preemption.requested):
        return True
    before: Preemption = t.before.record.preemption
    after: Preemption = t.after.record.preemption
    spared = before.spared_ms is None and after.spared_ms is not None and isinstance(t.event, Run)
    runs_on = before.since_ms is None or after.since_ms == before.since_ms
    return runs_on and (before.signalled_ms is None or after.signalled_ms == before.signalled_ms or spared)


def _has(t: Transition, kind: type) -> bool:
    return any(isinstance(each, kind) for each in t.effects)


def _is_asked(e: Entity[Runtime]) -> bool:
    return e.state in AT_WORK and e.record.preemption.requested


def _may_be_asked(e: Entity[Runtime]) -> bool:
    return e.state not in {State.INITIALIZING, State.RUNNABLE}


STEPS: Final = (
    always_step("hooks are called with their transitions", calls_its_hooks),
    always_step("what lasted too long is logged", logs_what_took_too_long),
    always_step("a task that is put away is completed or reported", reports_what_is_lost),
    always_step("every recovery counts until a task is completed", counts_recoveries),
    always_step("a request stands until it is answered", keeps_the_request),
    always_step("an answered request does not come back", consumes_the_request),
    always_step("a deadline that runs is not put off, but once, for a wait", puts_no_deadline_off),
    always_step("nobody is signalled before he is overdue", signals_in_time),
    always_step("nobody is failed before he was signalled and had his grace", forces_in_time),
)
"""Promises of every step, of all profiles."""

AT_ALL_TIMES: Final[tuple[Property[Entity[Runtime]], ...]] = (
    always("recoveries stay within the budget", lambda e: e.record.recoveries <= e.record.limits.max_recoveries),
    always("nobody is asked to yield who has no task", lambda e: not e.record.preemption.requested or _may_be_asked(e)),
    passes(State.RUNNABLE, *weakly(Schedule)),
    passes(State.SCHEDULED, *weakly(Run)),
    passes(State.RUNNING, *weakly(Complete)),
    passes(State.WAITING, *weakly(Run)),
    passes(State.RESUMED, *weakly(Run)),
    sometimes("a recovery succeeds", lambda e: e.state is State.RUNNABLE and e.record.recoveries > 0),
    sometimes("preemption is forced", lambda e: e.record.error_code == "forced_preemption"),
    sometimes("a request stands within a section", lambda e: _is_asked(e) and bool(e.record.preemption.sections)),
    sometimes("a signal is taken back for a wait", lambda e: e.record.preemption.spared_ms is not None),
)
"""Promises of all profiles. That somebody goes on with an agent that waits for it is given."""


def answers(*given: type[Event]) -> Property[Entity[Runtime]]:
    """Promise that nobody evades a request by waiting, given that waits end with these, or by sections with limits."""
    return leads_to(
        "who is asked to yield yields or is failed, unless a section keeps him that declares no limit",
        _is_asked,
        lambda e: not _is_asked(e) or any(each.until_ms is None for each in e.record.preemption.sections),
        given=(*weakly(*given), *strongly(DeadlinePassed)),
    )


ENDING: Final = (answers(Run), *(passes(state) for state in TIMED))
"""Promises of those profiles whose states have timers."""

READY: Final[Property[Entity[Runtime]]] = leads_to(
    "who has completed can take the next task, unless it is over",
    lambda e: e.state is State.COMPLETED,
    lambda e: e.state is not State.COMPLETED or e.record.is_over,
    given=weakly(Ready),
)
