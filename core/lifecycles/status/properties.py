"""What operators can rely on, of an agent's coarse status at any time and of every step."""

from collections.abc import Mapping
from typing import Any, Final

from lifefold.core.kernel import (
    Property,
    Transition,
    accepts,
    always_step,
    leads_to,
    replace,
    sometimes,
    weakly,
)
from lifefold.core.lifecycles.status.model import (
    LAUNCH,
    RELEASE,
    UNKNOWN,
    FatalError,
    PiiDetected,
    Spawn,
    State,
    Status,
    Stop,
    TaskBegan,
    TaskEnded,
)
from lifefold.effects import CallHook, EmitTelemetry, SaveState

# What holds of every agent


def works_only_while_running(a: Status) -> bool:
    """Only a running agent has tasks, or is to stop when they are done (I2)."""
    return a.state is State.RUNNING or not (a.tasks or a.draining)


def drains_for_something(a: Status) -> bool:
    """Whoever drains has a task to wait for."""
    return bool(a.tasks) or not a.draining


def failure_is_explained(a: Status) -> bool:
    """A failed agent says why; another one has nothing to explain (B14)."""
    return bool(a.reason) is (a.state is State.FAILED)


# What holds of every step


def failure_is_immutable(step: Transition) -> bool:
    """What has failed stays as it is, whatever comes (B4, B20)."""
    before = step.before
    return before is None or before.state is not State.FAILED or (before.record == step.after.record)


def fatal_error_fails(step: Transition) -> bool:
    """Who runs and is said to have met a fatal error has failed: nothing is shown as running that does not (B20)."""
    runs = step.before is not None and step.before.state is State.RUNNING
    return not (runs and isinstance(step.event, FatalError)) or step.after.state is State.FAILED


def stop_waits_for_work(step: Transition) -> bool:
    """An agent with tasks stops at once only if somebody forces it (B2)."""
    if step.before is None or step.entered is not State.STOPPED:
        return True
    tasks = step.before.record.tasks
    last = isinstance(step.event, TaskEnded) and tasks == (step.event.task,) and step.before.record.draining
    return last or (isinstance(step.event, Stop) and (not tasks or step.event.force))


def restart_keeps_everything(step: Transition) -> bool:
    """A restart counts the incarnation and changes nothing else (B6, B7)."""
    if step.before is None or step.entered is not State.RUNNING:
        return True
    before: Status = step.before.record
    restarted: bool = step.after.record == replace(before, state=State.RUNNING, incarnation=before.incarnation + 1)
    return restarted


def draining_takes_no_task(step: Transition) -> bool:
    """Who is to stop when its tasks are done gets no other one (B2)."""
    before = step.before
    return before is None or not before.record.draining or set(step.after.record.tasks) <= set(before.record.tasks)


def drain_ends_only_with_the_agent(step: Transition) -> bool:
    """A stop that waits is not forgotten: nothing but the agent's end takes it back."""
    before = step.before
    return before is None or not before.record.draining or step.after.record.draining or step.entered is not None


def end_releases(step: Transition) -> bool:
    """The work of every agent that stops or fails is ended, and of every one that starts it is launched."""
    if step.before is None or step.entered is None:
        return True
    hook = LAUNCH if step.entered is State.RUNNING else RELEASE
    return [each.name for each in step.effects if isinstance(each, CallHook)] == [hook]


def change_is_kept_then_told(step: Transition) -> bool:
    """What changes is kept, and told only after that; what changes nothing is not told (B3, B10)."""
    if step.before is None:
        return True
    kinds = [type(each) for each in step.effects if isinstance(each, SaveState | EmitTelemetry)]
    changed = step.before.record != step.after.record
    return kinds in ([SaveState], [SaveState, EmitTelemetry]) if changed else EmitTelemetry not in kinds


def every_change_is_told(step: Transition) -> bool:
    """Operators hear of every start, every stop, every failure, and of personal data that was found (B3, B13)."""
    if step.before is None:
        return True
    found = step.before.record != step.after.record and isinstance(step.event, PiiDetected)
    told = {"pii_detected"} if found else set[str]()
    if step.entered is not None:
        told |= {_TOLD[step.entered]}
    return {each.event for each in step.effects if isinstance(each, EmitTelemetry)} == told


_TOLD: Final[Mapping[object, str]] = {
    State.RUNNING: "agent_started",
    State.STOPPED: "agent_stopped",
    State.FAILED: "agent_failed",
}
"""What is told when an agent comes to a state."""


def tasks_are_known(step: Transition) -> bool:
    """The tasks of who runs are those that began and have not ended, each once; nobody ends what nobody has begun."""
    if step.before is None or step.before.state is State.FAILED:
        return True
    before = list(step.before.record.tasks)
    after = list(step.after.record.tasks)
    match step.event:
        case TaskBegan(task=task):
            return task not in before and after == [*before, task]
        case TaskEnded(task=task) if step.before.state is State.RUNNING:
            return task in before and after == [each for each in before if each != task]
        case _:
            return after == (before if step.entered is None else [])


def counts_are_kept(step: Transition) -> bool:
    """Personal data that is found counts once, and so does an error that is reported too late, with its reason."""
    if step.before is None or step.before.state is State.FAILED:
        return True
    before: Status = step.before.record
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
    always_step("what has failed stays as it is", failure_is_immutable),
    always_step("a fatal error fails whoever runs", fatal_error_fails),
    always_step("nobody's tasks are cut off by a stop that is not forced", stop_waits_for_work),
    always_step("a restart counts the incarnation and changes nothing else", restart_keeps_everything),
    always_step("every start launches the agent's work, and every end releases it, once", end_releases),
    always_step(
        "what changes is kept before it is told, and what changes nothing is not told", change_is_kept_then_told
    ),
    always_step("operators hear of every start and end, and of personal data", every_change_is_told),
    always_step("an agent's tasks are those that began and have not ended", tasks_are_known),
    always_step("personal data and late errors count, each once", counts_are_kept),
    always_step("a failure is kept with its reason and exit code", failure_is_kept_whole),
    accepts(
        "whatever is said to an agent has an answer, also when it has stopped or failed",
        {
            State.RUNNING: (FatalError, PiiDetected),
            State.STOPPED: (Spawn, Stop, FatalError, TaskEnded, PiiDetected),
            State.FAILED: (Spawn, Stop, FatalError, TaskBegan, TaskEnded, PiiDetected),
        },
    ),
    accepts(
        "the end of a task that an agent has is heard",
        {State.RUNNING: (TaskEnded,)},
        when=lambda e: bool(e.record.tasks),
    ),
    sometimes("an agent has two tasks", lambda e: len(e.record.tasks) > 1),
    sometimes("an agent stops", lambda e: e.state is State.STOPPED),
    sometimes("an agent fails, and says why", lambda e: e.state is State.FAILED and bool(e.record.reason)),
    sometimes("an agent that has stopped fails too late", lambda e: e.record.late_reports > 0),
)

DRAINING_PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("who is to stop when its tasks are done gets no other one", draining_takes_no_task),
    always_step("a stop that waits is not forgotten", drain_ends_only_with_the_agent),
    leads_to(
        "whoever is to stop when its tasks are done stops, if they end",
        lambda e: e.record.draining,
        lambda e: e.state is not State.RUNNING,
        given=weakly(TaskEnded),
    ),
    sometimes("a stop waits for tasks", lambda e: e.record.draining),
)
