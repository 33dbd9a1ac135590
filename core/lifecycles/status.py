"""The coarse status for operators and budgets: RUNNING, STOPPED, FAILED. The table is document 001's.

Its first line, Spawn Agent, creates the record: ``spawned`` makes it, with the effects of that line. The other four are
rows of ``table``; the FAILED line stands for every event there is. A row without a State as target (``STAY``) is no
line of the document. Such rows are for tasks, and for reports that come too late. There is no IDLE, though the
document's purpose mentions it (B18).

*Stop has a guard*, "no active tasks", and the document leaves the other case open. It is refused (B2), unless the stop
is forced. In the profile ``draining`` the stop may wait, too. Then no new task is accepted, and the agent stops with
its last task, which is the document's line for Stop Agent, taken late. Stopping a stopped agent changes nothing and is
not reported (B3).

*FAILED has a producer*, ``FatalError`` (B20), and is immutable: it accepts every event and ignores it, be it a stop
(B4) or a restart. A request for a restart is answered with the advice to replace the agent (B8). The reason of the
failure and its exit code are in the record and in ``agent_failed`` (B13, B14). A fatal error that is reported of a
stopped agent is counted, and changes nothing else (B15). So is personal data that was found before it stopped. The end
of a task that a forced stop has cut off changes nothing at all.

*A restart keeps the id*, counts the incarnation, and keeps the counters (B6, B7). ``successor`` is the other way: a new
id, new counters, and the name of its predecessor (B8).

*Saved, then reported.* ``SaveState`` comes before ``EmitTelemetry`` in every step (B10). Its interpreter commits the
transition by saving it, so a transition that cannot be saved has not happened (B11). The hook ``launch`` comes before
both.

Money is not in this record: an agent's incarnation has a ``lease``; see ``budget.agent`` for the two together.
"""

from typing import Annotated, Final, Never

from lifefold.core.kernel import STAY, Event, Machine, Row, Step, replace, row
from lifefold.core.lifecycles.property_forms import follows_table, with_own_table
from lifefold.core.lifecycles.status_model import (
    LAUNCH,
    ORPHANED,
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
from lifefold.core.lifecycles.status_properties import (
    DRAINING_PROPERTIES,
    PROPERTIES,
    drains_for_something,
    failure_is_explained,
    works_only_while_running,
)
from lifefold.effects import CallHook, EmitTelemetry, SaveState

__all__ = [
    "EVENTS", "LAUNCH", "ORPHANED", "RELEASE", "ROWS", "UNKNOWN", "FatalError", "PiiDetected", "Report", "Spawn",
    "State", "Status", "Stop", "TaskBegan", "TaskEnded", "begin_draining", "begin_task", "count_pii", "draining",
    "drains", "end_task", "fail", "finish_draining", "has_task", "ignore", "is_replaceable", "machine", "may_stop",
    "record_late", "restart", "spawned", "stop", "successor", "takes_tasks", "was_last_of_draining",
]  # fmt: skip

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
Report = SaveState | EmitTelemetry | CallHook


def spawned(record: Status) -> Step[Status, Report]:
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


def _started(a: Status) -> tuple[Report, ...]:
    facts: dict[str, str | int | None] = {"incarnation": a.incarnation}
    facts |= {"replaces": a.replaces} if a.replaces else {}
    launch = CallHook(LAUNCH, (a.agent_id, a.incarnation), before=True)
    return launch, SaveState(a.agent_id), EmitTelemetry(a.agent_id, "agent_started", facts)


def _stopped(a: Status, more: dict[str, str | int | None]) -> Step[Status, Report]:
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


EVENTS: Final[tuple[type[Event], ...]] = (Spawn, Stop, FatalError, TaskBegan, TaskEnded, PiiDetected)

ROWS: tuple[Row[Status], ...] = (
    row(State.RUNNING, Stop, State.STOPPED, stop, when=may_stop),
    row(State.RUNNING, FatalError, State.FAILED, fail),
    row(State.STOPPED, Spawn, State.RUNNING, restart),
    *(row(State.FAILED, event, State.FAILED, ignore) for event in EVENTS),
    row(State.RUNNING, TaskBegan, STAY, begin_task, when=takes_tasks),
    row(State.RUNNING, TaskEnded, STAY, end_task, when=has_task),
    row(State.RUNNING, PiiDetected, STAY, count_pii),
    row(State.STOPPED, Stop, STAY, ignore),
    row(State.STOPPED, FatalError, STAY, record_late),
    row(State.STOPPED, TaskEnded, STAY, ignore),
    row(State.STOPPED, PiiDetected, STAY, count_pii),
)

machine = Machine(
    "status",
    Status(),
    about="an agent for operators and budgets: running, stopped, failed",
    rows=ROWS,
    final={State.FAILED},
    invariants=(works_only_while_running, drains_for_something, failure_is_explained),
    properties=(*PROPERTIES, *follows_table(ROWS, but=(takes_tasks, has_task))),
)

draining = with_own_table(
    machine.with_rows(
        row(State.RUNNING, TaskEnded, State.STOPPED, finish_draining, when=was_last_of_draining),
        row(State.RUNNING, Stop, STAY, begin_draining, when=drains),
        name="status-draining",
    ),
    but=(takes_tasks, has_task, was_last_of_draining),
).with_properties(*DRAINING_PROPERTIES)
"""The profile in which a stop may wait for the active tasks: the agent stops with the last of them (B2)."""
