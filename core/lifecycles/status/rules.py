"""The guards and the actions of an agent's coarse status."""

from typing import Annotated, Never

from lifefold.core.kernel import Event, Step, replace
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

# Guards


def may_stop(a: Status, e: Stop) -> bool:
    """The agent has no active tasks, or the stop is forced (B2)."""
    return e.force or not a.tasks


def drains(a: Status, e: Stop) -> bool:
    """There are active tasks, and the stop waits for them."""
    return e.drain and not may_stop(a, e)


def takes_tasks(a: Status, e: TaskBegan) -> bool:
    """The agent is not draining, and does not have this task."""
    return not a.draining and e.task not in a.tasks


def has_task(a: Status, e: TaskEnded) -> bool:
    """The agent has this task."""
    return e.task in a.tasks


def was_last_of_draining(a: Status, e: TaskEnded) -> bool:
    """This is the last task that a stop has waited for."""
    return a.draining and a.tasks == (e.task,)


# Actions

Launch = Annotated[CallHook, LAUNCH]
Release = Annotated[CallHook, RELEASE]
Told = SaveState | EmitTelemetry | CallHook


def spawned(record: Status) -> Step[Status, Told]:
    """Create an agent's record: the document's first line. Its effects are those of a restart."""
    return Step(record, _started(record))


def restart(a: Status, _e: Spawn) -> Step[Status, Launch | SaveState | EmitTelemetry]:
    """Count the incarnation; the counters stay (B6, B7)."""
    record = replace(a, incarnation=a.incarnation + 1)
    return Step(record, _started(record))


def stop(a: Status, e: Stop) -> Step[Status, SaveState | EmitTelemetry | Release]:
    """Stop; the tasks that a forced stop cuts off are reported."""
    return _stopped(a, {"forced": len(a.tasks)} if e.force and a.tasks else {})


def finish_draining(a: Status, _e: TaskEnded) -> Step[Status, SaveState | EmitTelemetry | Release]:
    """Stop with the end of the last task."""
    return _stopped(a, {})


def begin_draining(a: Status, _e: Stop) -> Step[Status, SaveState]:
    """Take no new tasks."""
    return Step(replace(a, draining=True), (SaveState(a.agent_id),))


def fail(a: Status, e: FatalError) -> Step[Status, SaveState | EmitTelemetry | Release]:
    """Keep the reason and the exit code, and report both (B13, B14, B20)."""
    reason = e.reason or UNKNOWN
    record = replace(a, tasks=(), draining=False, reason=reason, exit_code=e.exit_code)
    facts: dict[str, str | int | None] = {
        "incarnation": a.incarnation, "reason": reason, "exit_code": e.exit_code
    }  # fmt: skip
    return Step(record, (SaveState(a.agent_id), EmitTelemetry(a.agent_id, "agent_failed", facts), _release(a)))


def record_late(a: Status, e: FatalError) -> Step[Status, SaveState]:
    """Count the report, and keep its reason: it came too late to change anything (B15)."""
    late = replace(a, late_reports=a.late_reports + 1, last_late_report=e.reason or UNKNOWN)
    return Step(late, (SaveState(a.agent_id),))


def begin_task(a: Status, e: TaskBegan) -> Step[Status, SaveState]:
    """Add the task."""
    return Step(replace(a, tasks=(*a.tasks, e.task)), (SaveState(a.agent_id),))


def end_task(a: Status, e: TaskEnded) -> Step[Status, SaveState]:
    """Remove the task."""
    return Step(replace(a, tasks=tuple(each for each in a.tasks if each != e.task)), (SaveState(a.agent_id),))


def count_pii(a: Status, _e: PiiDetected) -> Step[Status, SaveState | EmitTelemetry]:
    """Count the find, and report it."""
    record = replace(a, pii_detections=a.pii_detections + 1)
    facts: dict[str, str | int | None] = {"pii_detections": record.pii_detections}
    return Step(record, (SaveState(a.agent_id), EmitTelemetry(a.agent_id, "pii_detected", facts)))


def ignore(a: Status, _e: Event) -> Step[Status, Never]:
    """Accept the event and ignore it (B3, B4)."""
    return Step(a)


def _started(a: Status) -> tuple[Told, ...]:
    facts: dict[str, str | int | None] = {"incarnation": a.incarnation}
    facts |= {"replaces": a.replaces} if a.replaces else {}
    launch = CallHook(LAUNCH, (a.agent_id, a.incarnation), before=True)
    return launch, SaveState(a.agent_id), EmitTelemetry(a.agent_id, "agent_started", facts)


def _stopped(a: Status, more: dict[str, str | int | None]) -> Step[Status, Told]:
    facts: dict[str, str | int | None] = {"incarnation": a.incarnation, **more}
    record = replace(a, tasks=(), draining=False)
    return Step(record, (SaveState(a.agent_id), EmitTelemetry(a.agent_id, "agent_stopped", facts), _release(a)))


def _release(a: Status) -> CallHook:
    return CallHook(RELEASE, (a.agent_id, a.incarnation))


def successor(a: Status, agent_id: str) -> Status:
    """Return the record of a new agent in place of this one: a new id, new counters, the same settings (B7, B8)."""
    return Status(
        agent_id=agent_id, name=a.name, replaces=a.agent_id, budget_microusd=a.budget_microusd, lease_ms=a.lease_ms
    )


def is_replaceable(a: Status) -> bool:
    """Tell whether another agent may take this one's place: only if it does not run (B8, B9)."""
    return a.state is not State.RUNNING
