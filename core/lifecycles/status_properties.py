"""The properties of an agent's coarse status, for operators: at all times, and of every transition."""

from collections.abc import Mapping
from typing import Any, Final

from lifefold.core.kernel import Event, Property, Transition, accepts, always_step, leads_to, replace, sometimes, weakly
from lifefold.core.lifecycles.status_model import (
    LAUNCH,
    RELEASE,
    UNKNOWN,
    FatalError,
    PiiDetected,
    State,
    Status,
    Stop,
    TaskBegan,
    TaskEnded,
)
from lifefold.effects import CallHook, EmitTelemetry, SaveState

# Properties of every agent


def works_only_while_running(a: Status) -> bool:
    """Only a running agent has tasks, or is to stop when they are done (I2)."""
    return a.state is State.RUNNING or not (a.tasks or a.draining)


def drains_for_something(a: Status) -> bool:
    """A draining agent has a task to wait for."""
    return bool(a.tasks) or not a.draining


def failure_is_explained(a: Status) -> bool:
    """A failed agent has a reason; another one has none (B14)."""
    return bool(a.reason) is (a.state is State.FAILED)


# Properties of every transition


def failure_is_immutable(step: Transition) -> bool:
    """A failed agent does not change, on any event (B4, B20)."""
    before = step.before
    return before is None or before.state is not State.FAILED or (before.record == step.after.record)


def fatal_error_fails(step: Transition) -> bool:
    """A running agent with a reported fatal error has failed: no dead agent is shown as running (B20)."""
    runs = step.before is not None and step.before.state is State.RUNNING
    return not (runs and isinstance(step.event, FatalError)) or step.after.state is State.FAILED


def stop_waits_for_work(step: Transition) -> bool:
    """An agent with tasks stops at once only if the stop is forced (B2)."""
    if step.entered is not State.STOPPED:
        return True
    tasks = step.was.tasks
    last = isinstance(step.event, TaskEnded) and tasks == (step.event.task,) and step.was.draining
    return last or (isinstance(step.event, Stop) and (not tasks or step.event.force))


def restart_keeps_everything(step: Transition) -> bool:
    """A restart counts the incarnation and changes nothing else (B6, B7)."""
    if step.entered is not State.RUNNING:
        return True
    before: Status = step.was
    restarted: bool = step.after.record == replace(before, state=State.RUNNING, incarnation=before.incarnation + 1)
    return restarted


def draining_takes_no_task(step: Transition) -> bool:
    """A draining agent gets no further task (B2)."""
    before = step.before
    return before is None or not before.record.draining or set(step.after.record.tasks) <= set(before.record.tasks)


def drain_ends_only_with_the_agent(step: Transition) -> bool:
    """Only the end of the agent ends a waiting stop."""
    before = step.before
    return before is None or not before.record.draining or step.after.record.draining or step.entered is not None


def end_releases(step: Transition) -> bool:
    """An agent that stops or fails has its work ended, and one that starts has its work launched."""
    if step.entered is None:
        return True
    hook = LAUNCH if step.entered is State.RUNNING else RELEASE
    return [each.name for each in step.effects if isinstance(each, CallHook)] == [hook]


def change_is_saved_then_reported(step: Transition) -> bool:
    """A change is saved, and reported only after that; a step without a change is not reported (B3, B10)."""
    kinds = [type(each) for each in step.effects if isinstance(each, SaveState | EmitTelemetry)]
    changed = step.was != step.after.record
    return kinds in ([SaveState], [SaveState, EmitTelemetry]) if changed else EmitTelemetry not in kinds


def every_change_is_reported(step: Transition) -> bool:
    """Operators hear of every start, every stop, every failure, and of personal data that was found (B3, B13)."""
    found = step.was != step.after.record and isinstance(step.event, PiiDetected)
    expected = {"pii_detected"} if found else set[str]()
    if step.entered is not None:
        expected |= {_REPORTED[step.entered]}
    return {each.event for each in step.effects if isinstance(each, EmitTelemetry)} == expected


_REPORTED: Final[Mapping[object, str]] = {
    State.RUNNING: "agent_started",
    State.STOPPED: "agent_stopped",
    State.FAILED: "agent_failed",
}
"""The reports of an agent that enters a state."""


def tasks_are_known(step: Transition) -> bool:
    """The tasks of a running agent are those that began and have not ended; only such a task ends."""
    if step.was.state is State.FAILED:
        return True
    before = list(step.was.tasks)
    after = list(step.after.record.tasks)
    match step.event:
        case TaskBegan(task=task):
            return task not in before and after == [*before, task]
        case TaskEnded(task=task) if step.was.state is State.RUNNING:
            return task in before and after == [each for each in before if each != task]
        case _:
            return after == (before if step.entered is None else [])


def counts_are_kept(step: Transition) -> bool:
    """Each find of personal data counts once, and so does an error that is reported too late, with its reason."""
    if step.was.state is State.FAILED:
        return True
    before: Status = step.was
    after: Status = step.after.record
    rises = (after.pii_detections - before.pii_detections, after.late_reports - before.late_reports)
    if isinstance(step.event, FatalError) and before.state is State.STOPPED:
        return rises == (0, 1) and after.last_late_report == (step.event.reason or UNKNOWN)
    return rises == (isinstance(step.event, PiiDetected), 0)


def failure_is_kept_whole(step: Transition) -> bool:
    """A failure is kept with its reason and its exit code (B13, B14)."""
    if step.entered is not State.FAILED or not isinstance(step.event, FatalError):
        return True
    a: Status = step.after.record
    return (a.reason, a.exit_code) == (step.event.reason or UNKNOWN, step.event.exit_code)


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("a failed agent does not change", failure_is_immutable),
    always_step("a fatal error fails a running agent", fatal_error_fails),
    always_step("only a forced stop cuts off tasks", stop_waits_for_work, on=Event),
    always_step("a restart counts the incarnation and changes nothing else", restart_keeps_everything, on=Event),
    always_step("every start launches the agent's work, and every end releases it, once", end_releases, on=Event),
    always_step(
        "a change is saved before it is reported, and no other step is reported",
        change_is_saved_then_reported,
        on=Event,
    ),
    always_step("operators hear of every start and end, and of personal data", every_change_is_reported, on=Event),
    always_step("an agent's tasks are those that began and have not ended", tasks_are_known, on=Event),
    always_step("personal data and late errors count, each once", counts_are_kept, on=Event),
    always_step("a failure is kept with its reason and exit code", failure_is_kept_whole),
    accepts(
        "the end of an agent's task is accepted", {State.RUNNING: (TaskEnded,)}, when=lambda e: bool(e.record.tasks)
    ),
    sometimes("an agent has two tasks", lambda e: len(e.record.tasks) > 1),
    sometimes("an agent stops", lambda e: e.state is State.STOPPED),
    sometimes("an agent fails with a reason", lambda e: e.state is State.FAILED and bool(e.record.reason)),
    sometimes("an agent that has stopped fails too late", lambda e: e.record.late_reports > 0),
)

DRAINING_PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("a draining agent gets no further task", draining_takes_no_task),
    always_step("a waiting stop is not forgotten", drain_ends_only_with_the_agent),
    leads_to(
        "a draining agent stops, if its tasks end",
        lambda e: e.record.draining,
        lambda e: e.state is not State.RUNNING,
        given=weakly(TaskEnded),
    ),
    sometimes("a stop waits for tasks", lambda e: e.record.draining),
)
