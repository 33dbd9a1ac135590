"""The properties of an agent, for its operator: at all times, and of every transition.

They are written without the guards and actions that they check. Events without a timer have to be sent by the agent or
its scheduler; their fairness is assumed.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from lifefold.core.kernel import (
    ANY,
    Entity,
    Event,
    Property,
    Transition,
    accepts,
    always,
    always_step,
    leads_to,
    sometimes,
    strongly,
    weakly,
)
from lifefold.core.lifecycles.property_forms import asks_once, enters, is_transient, keeps_time
from lifefold.core.lifecycles.runtime_model import (
    AT_WORK,
    Complete,
    DeadlinePassed,
    Fail,
    FailRecovery,
    InitTimedOut,
    PreemptionForced,
    PreemptionRequested,
    Ready,
    RecoveryTimedOut,
    ResourceTimedOut,
    Run,
    Runtime,
    Schedule,
    SectionEntered,
    SectionLeft,
    ShutdownTimedOut,
    State,
    SuspendTimedOut,
    TimedOut,
    due_ms,
)
from lifefold.core.lifecycles.runtime_preemption import Preemption, Section
from lifefold.effects import CallHook, LogFailure, ReportTaskFailed, SignalPreemption


def is_within_a_section(e: Entity[Runtime]) -> bool:
    """Tell whether a section is running."""
    return bool(e.record.preemption.sections)


def is_due(e: Entity[Runtime]) -> bool:
    """Tell whether a deadline is due."""
    due = due_ms(e.record)
    return due is not None and due <= e.record.at_ms


ACCEPTED: Final[tuple[Property[Any], ...]] = (
    accepts("a section can begin in every state", {ANY: (SectionEntered,)}, when=lambda e: not is_within_a_section(e)),
    accepts("a section can end in every state", {ANY: (SectionLeft,)}, when=is_within_a_section),
    accepts("a due deadline is accepted", {State.RUNNING: (DeadlinePassed,)}, when=is_due),
)
"""Properties of all profiles."""

TIMED: Final = (
    State.INITIALIZING, State.WAITING_RESOURCES, State.SUSPENDED, State.SHUTTING_DOWN, State.RECOVERING,
)  # fmt: skip
"""The states with a timer that ends them."""


def calls_its_hooks(t: Transition) -> bool:
    """The agent's hooks are called before or after a transition as the document says."""
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
    calls = (CallHook("on_recovery_complete", (t.after.state is State.RUNNABLE,)),) if recovered else ()
    return hooks == (*wanted, *calls)


def logs_an_overlong_state(t: Transition) -> bool:
    """Every state that lasted too long is logged, with its code, and so is forced preemption."""
    logged = tuple(each.error_code for each in t.effects if isinstance(each, LogFailure))
    if isinstance(t.event, TimedOut):
        return logged == (t.event.error_code,) == (t.after.record.error_code,) and t.after.state is State.FAILED
    forced = isinstance(t.event, DeadlinePassed) and enters(t, State.FAILED)
    return logged == ("forced_preemption",) * forced


def reports_a_lost_task(t: Transition) -> bool:
    """A task that the agent drops was completed, or is reported as failed."""
    lost = t.before is not None and t.before.record.task_id is not None and t.after.record.task_id is None
    reported = any(isinstance(each, ReportTaskFailed) for each in t.effects)
    return reported == (lost and not isinstance(t.event, Complete))


def counts_recoveries(t: Transition) -> bool:
    """Every recovery counts, up to the budget, and only a completed task clears the count."""
    before, after = t.was.recoveries, t.after.record.recoveries
    if enters(t, State.RECOVERING):
        return bool(after == min(before + 1, t.after.record.limits.max_recoveries))
    return bool(after == (0 if isinstance(t.event, Complete) else before))


def keeps_the_request(t: Transition) -> bool:
    """A request is over when the agent is suspended, or its task is over, and not before."""
    if not t.was.preemption.requested or t.after.record.preemption.requested:
        return True
    return enters(t, State.SUSPENDED, State.RUNNABLE)


def signals_in_time(t: Transition) -> bool:
    """No agent is signalled before it is overdue."""
    if not _has(t, SignalPreemption):
        return True
    preemption: Preemption = t.was.preemption
    timeout_ms = t.was.limits.preemption_timeout_ms
    declared = any(each.until_ms is not None and each.until_ms <= t.at_ms for each in preemption.sections)
    waited = preemption.since_ms is not None and preemption.since_ms + timeout_ms <= t.at_ms
    return preemption.spared_ms is not None or waited or (preemption.since_ms is None and declared)


def forces_in_time(t: Transition) -> bool:
    """No agent is failed before its signal and its grace, or the limit that it had declared before."""
    if not enters(t, State.FAILED):
        return True
    preemption: Preemption = t.was.preemption
    signalled_ms, grace_ms = preemption.signalled_ms, t.was.limits.preemption_grace_ms
    before = () if signalled_ms is None else preemption.entered_by(signalled_ms)
    limit_ms = min((each.until_ms for each in before if each.until_ms is not None), default=0)
    return signalled_ms is not None and t.at_ms >= max(signalled_ms + grace_ms, limit_ms)


def puts_no_deadline_off(t: Transition) -> bool:
    """While a request stands, no deadline is restarted; a signal is withdrawn once, for a wait."""
    if not (t.was.preemption.requested and t.after.record.preemption.requested):
        return True
    before: Preemption = t.was.preemption
    after: Preemption = t.after.record.preemption
    spared = before.spared_ms is None and after.spared_ms is not None and isinstance(t.event, Run)
    runs_on = before.since_ms is None or after.since_ms == before.since_ms
    return runs_on and (before.signalled_ms is None or after.signalled_ms == before.signalled_ms or spared)


def keeps_the_task(t: Transition) -> bool:
    """A scheduled agent has its assigned task, and keeps it until it is over."""
    before: str | None = t.was.task_id
    after: str | None = t.after.record.task_id
    if isinstance(t.event, Schedule):
        return after == t.event.task_id
    return after == before or (after is None and t.after.state not in AT_WORK)


def keeps_the_reason_of_its_failure(t: Transition) -> bool:
    """A failed agent has the reported reason, and keeps it until it can begin afresh."""
    a: Runtime = t.after.record
    if isinstance(t.event, Fail | FailRecovery):
        return (a.failure_reason, a.error_code) == (t.event.reason, "")
    if enters(t, State.RUNNABLE):
        return (a.failure_reason, a.error_code) == (None, "")
    return not enters(t, State.FAILED) or bool(a.failure_reason and a.error_code)


def notes_the_request(t: Transition) -> bool:
    """A request is reported when it comes, and kept with its first time if it can concern a task (A15)."""
    hooks = [each for each in t.effects if isinstance(each, CallHook)]
    calls = tuple(each.arguments for each in hooks if each.name == "on_preempt_request")
    if t.before is None or not isinstance(t.event, PreemptionRequested | PreemptionForced):
        return not calls
    preemption: Preemption = t.after.record.preemption
    first_ms = t.before.record.preemption.asked_ms
    asked_ms = t.at_ms if first_ms is None else first_ms
    is_kept = (preemption.requested, preemption.reason, preemption.asked_ms) == (True, t.event.reason, asked_ms)
    if isinstance(t.event, PreemptionForced):
        return is_kept and not calls
    return calls == ((t.event.reason,),) and (is_kept or t.after.state not in AT_WORK)


def keeps_the_sections(t: Transition) -> bool:
    """The sections are those that were entered and not left, each with its declared limit (A18)."""
    before: Preemption = t.was.preemption
    after: Preemption = t.after.record.preemption
    match t.event:
        case SectionEntered(key=key, within_ms=within_ms):
            new = Section(key, None if within_ms is None else t.at_ms + within_ms, t.at_ms)
            return not before.has(key) and after.sections == (*before.sections, new)
        case SectionLeft(key=key):
            left = tuple(each for each in before.sections if each.key != key)
            return before.has(key) and after.sections == left
        case _:
            afresh = enters(t, State.RUNNABLE) and t.was.state is not State.INITIALIZING
            return after.sections == (() if afresh else before.sections)


def signals_once(t: Transition) -> bool:
    """A signal names the reason and the grace, and its time is recorded."""
    signals = [each for each in t.effects if isinstance(each, SignalPreemption)]
    before = None if t.before is None else t.before.record.preemption.signalled_ms
    preemption: Preemption = t.after.record.preemption
    noted = preemption.signalled_ms is not None and before is None
    return signals == [SignalPreemption(preemption.reason, t.after.record.limits.preemption_grace_ms)] * noted


def hears_the_deadline(t: Transition) -> bool:
    """A deadline is accepted when it is due. Then the agent is signalled, or failed after a signal."""
    limits, preemption = t.was.limits, t.was.preemption
    due_ms = preemption.due_ms(limits.preemption_timeout_ms, limits.preemption_grace_ms)
    failed = t.after.state is State.FAILED
    return due_ms is not None and due_ms <= t.at_ms and failed == (preemption.signalled_ms is not None)


def begins_to_count(t: Transition) -> bool:
    """The time to answer counts once the agent runs, outside of the sections in which the request came (A17)."""
    preemption: Preemption = t.after.record.preemption
    can_answer = (
        preemption.asked_ms is not None
        and not preemption.entered_by(preemption.asked_ms)
        and t.after.state is State.RUNNING
    )
    return not can_answer or preemption.since_ms is not None


def _has(t: Transition, kind: type) -> bool:
    return any(isinstance(each, kind) for each in t.effects)


def _is_asked(e: Entity[Runtime]) -> bool:
    return e.state in AT_WORK and e.record.preemption.requested


def _may_be_asked(e: Entity[Runtime]) -> bool:
    return e.state not in {State.INITIALIZING, State.RUNNABLE}


_TIMEOUTS: Final[Mapping[type[Event], tuple[tuple[State, ...], Callable[[Runtime], int]]]] = {
    InitTimedOut: ((State.INITIALIZING,), lambda a: a.limits.init_timeout_ms),
    ResourceTimedOut: ((State.WAITING_RESOURCES,), lambda a: a.limits.resource_timeout_ms),
    SuspendTimedOut: ((State.SUSPENDED,), lambda a: a.limits.suspend_timeout_ms),
    ShutdownTimedOut: ((State.SHUTTING_DOWN,), lambda a: a.limits.shutdown_timeout_ms),
    RecoveryTimedOut: ((State.RECOVERING,), lambda a: a.limits.recovery_timeout_ms),
}
"""The states of these timers, and their durations."""

STEPS: Final = (
    *ACCEPTED,
    always_step("hooks are called with their transitions", calls_its_hooks),
    always_step("a state that lasted too long is logged", logs_an_overlong_state),
    always_step("a dropped task is completed or reported", reports_a_lost_task),
    always_step("every recovery counts until a task is completed", counts_recoveries, on=Event),
    always_step("a request stands until it is answered", keeps_the_request, on=Event),
    always_step(
        "an answered request does not come back",
        lambda t: not enters(t, State.SUSPENDED, State.RUNNABLE) or not t.after.record.preemption.requested,
    ),
    always_step("a running deadline is put off only once, for a wait", puts_no_deadline_off, on=Event),
    always_step("no agent is signalled before it is overdue", signals_in_time, on=DeadlinePassed),
    always_step("an agent keeps its task until it is over", keeps_the_task, on=Event),
    always_step("a failed agent keeps the reason until it begins afresh", keeps_the_reason_of_its_failure),
    always_step("a request is reported, and kept for an agent at work", notes_the_request),
    always_step("sections last from when they are entered until they are left", keeps_the_sections, on=Event),
    always_step("a signal names the grace", signals_once),
    always_step("a deadline is accepted when it is due, and not before", hears_the_deadline, on=DeadlinePassed),
    always_step(
        "the time to answer begins as soon as an answer is possible",
        begins_to_count,
        on=Run | SectionLeft | PreemptionRequested,
    ),
    *keeps_time(_TIMEOUTS),
    asks_once(),
    always_step("no agent is failed before its signal and its grace", forces_in_time, on=DeadlinePassed),
)
"""Properties of every transition, in all profiles."""

AT_ALL_TIMES: Final[tuple[Property[Entity[Runtime]], ...]] = (
    always("recoveries stay within the budget", lambda e: e.record.recoveries <= e.record.limits.max_recoveries),
    always("only an agent with a task has a request", lambda e: not e.record.preemption.requested or _may_be_asked(e)),
    is_transient(State.RUNNABLE, *weakly(Schedule)),
    is_transient(State.SCHEDULED, *weakly(Run)),
    is_transient(State.RUNNING, *weakly(Complete)),
    is_transient(State.WAITING, *weakly(Run)),
    is_transient(State.RESUMED, *weakly(Run)),
    sometimes("a recovery succeeds", lambda e: e.state is State.RUNNABLE and e.record.recoveries > 0),
    sometimes("preemption is forced", lambda e: e.record.error_code == "forced_preemption"),
    sometimes("a request stands within a section", lambda e: _is_asked(e) and bool(e.record.preemption.sections)),
    sometimes("a signal is withdrawn for a wait", lambda e: e.record.preemption.spared_ms is not None),
)
"""Properties of all profiles. Events that end a wait are assumed."""


def answers(*given: type[Event]) -> Property[Entity[Runtime]]:
    """Declare that no agent evades a request by waiting, given that these end waits, or by sections with limits."""
    return leads_to(
        "an agent with a request yields or is failed, unless it is in a section without a limit",
        _is_asked,
        lambda e: not _is_asked(e) or any(each.until_ms is None for each in e.record.preemption.sections),
        given=(*weakly(*given), *strongly(DeadlinePassed)),
    )


ENDING: Final = (answers(Run), *(is_transient(state) for state in TIMED))
"""Properties of the profiles whose states have timers."""

READY: Final[Property[Entity[Runtime]]] = leads_to(
    "a completed agent can take the next task, unless it is over",
    lambda e: e.state is State.COMPLETED,
    lambda e: e.state is not State.COMPLETED or e.record.is_over,
    given=weakly(Ready),
)

USUAL: Final[tuple[Property[Any], ...]] = (*AT_ALL_TIMES, READY, *ENDING, *STEPS)
"""Properties of all profiles but the one of the cited source."""
